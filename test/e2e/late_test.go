package e2e

import (
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// linesAbout is how many lines of an event there are about an execution.
func linesAbout(h *testkit.Hooklock, event, execution string) (n int) {
	for _, r := range h.Stderr.Records() {
		if r.Text("msg") == event && r.Text("execution") == execution {
			n++
		}
	}
	return n
}

func TestAnEndThatIsRecordedLateIsCountedOnceWhenItIsKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer   string
		status   int
		outcome  string
		unknowns int
	}{
		"answered":   {testkit.OK("true answer"), 200, "executed", 0},
		"broken off": {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", 502, "unknown", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, etcd := alone(t, "")
			path := at(t, "plain")
			work := newHeld(t)
			shared.on(t, path, func(r *testkit.Received) string {
				_ = r.Conn.Say(work.handle(r))
				return ""
			})
			first := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
			work.await(t)
			etcd.Freeze(t)
			work.answer <- c.answer
			a := testkit.Receive(t, "the answer", first)
			if a.Status != c.status || a.Header.Get("Hooklock-Recorded") != "false" {
				t.Errorf("%v", a)
			}
			id := a.Execution()
			shows(t, h, `hooklock_answers_unrecorded_total{route="plain"} 1`)
			for _, outcome := range []string{"executed", "not_executed", "unknown", "buried"} {
				shows(t, h, `hooklock_executions_total{outcome="`+outcome+`",route="plain"} 0`)
			}
			etcd.Thaw(t)
			h.Stderr.AwaitRecord(t, "lock.released", func(r testkit.Record) bool {
				return r.Text("execution") == id && r["recorded"] == true && r.Text("outcome") == c.outcome &&
					r.Text("trace_id") != ""
			})
			for _, outcome := range []string{"executed", "not_executed", "unknown", "buried"} {
				line := `hooklock_executions_total{outcome="` + outcome + `",route="plain"} 0`
				if outcome == c.outcome {
					line = strings.TrimSuffix(line, "0") + "1"
				}
				shows(t, h, line)
			}
			if n := linesAbout(h, "execution.unknown", id); n != c.unknowns {
				t.Errorf("%d lines say that its outcome is unknown", n)
			}
		})
	}
}

func TestAnOutcomeThatIsUnknownAfterALostSessionHasItsLineAndIsCountedOnce(t *testing.T) {
	t.Parallel()
	etcd := testkit.StartEtcd(t, etcdProgram, 1)[0]
	path := at(t, "plain")
	work := shared.holds(t, path)
	h := own(t, short(shared, etcd.Endpoint, "late"))
	sent := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	id := work.await(t).Header.Get("Hooklock-Execution")
	etcd.Freeze(t)
	refused{503, "lock_lost", "unknown", "lock_lost"}.check(t, testkit.Receive(t, "the answer", sent))
	shows(t, h, `hooklock_executions_total{outcome="unknown",route="plain"} 0`)
	etcd.Thaw(t)
	r := h.Stderr.AwaitRecord(t, "execution.unknown", nil)
	if r.Text("execution") != id || r.Text("workflow") != strings.TrimPrefix(path, "/") || r.Text("route") != "plain" {
		t.Errorf("%v", r)
	}
	shows(t, h, `hooklock_executions_total{outcome="unknown",route="plain"} 1`)
	shows(t, h, `hooklock_executions_total{outcome="buried",route="plain"} 0`)
	shows(t, h, `hooklock_lock_losses_total{reason="unheard"} 1`)
}

func TestAnExecutionThatAnotherReplicaEndedIsCountedThereAlone(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	work := shared.holds(t, path)
	config := shared.config("ended-elsewhere", "")
	one, other := own(t, config), own(t, config)
	sent := testkit.GoPost(t, one.Addr, path, "{}", key("1"))
	id := work.await(t).Header.Get("Hooklock-Execution")
	cli(t, other, "locks", "release", strings.TrimPrefix(path, "/"), "--execution", id, "--reason", "test")
	if a := testkit.Receive(t, "the answer", sent); a.Decision() != "lock_lost" {
		t.Errorf("%v", a)
	}
	one.Stderr.AwaitRecord(t, "lock.lost", nil)
	shows(t, other, `hooklock_executions_total{outcome="unknown",route="plain"} 1`)
	shows(t, one, `hooklock_executions_total{outcome="unknown",route="plain"} 0`)
	other.Stderr.AwaitRecord(t, "execution.unknown", func(r testkit.Record) bool { return r.Text("execution") == id })
	if a, b := linesAbout(one, "execution.unknown", id), linesAbout(other, "execution.unknown", id); a != 0 || b != 1 {
		t.Errorf("%d lines of who ran it, %d of who ended it", a, b)
	}
}
