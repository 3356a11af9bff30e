package e2e

import (
	"fmt"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

const accepted = "HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nlater"

// asks is an answer that asks for a hold in its header.
func asks(hold string) string {
	return "HTTP/1.1 200 OK\r\nhooklock-hold: " + hold + "\r\nContent-Length: 5\r\n\r\nlater"
}

// isHeld says that copies and other events are refused at h, and that they are told when the hold
// of that execution runs out.
func isHeld(t *testing.T, h *testkit.Hooklock, path, execution string, least, most float64) {
	t.Helper()
	for event, want := range map[string]refused{
		"1": {409, "execution_in_flight", "no", "in_flight"}, "another": {409, "workflow_locked", "no", "locked"},
	} {
		a := testkit.Post(t, h.Addr, path, "{}", key(event))
		want.check(t, a)
		conflict(t, a, execution, a.JSON()["workflow"].(string))
		if s, _ := a.JSON()["retryAfter"].(float64); s < least || s > most {
			t.Errorf("Retry-After %v, not from %v to %v", s, least, most)
		}
	}
}

func TestWorkThatGoesOnKeepsItsLockAfterTheAnswer(t *testing.T) {
	t.Parallel()
	both := fleet(t, "held")
	for name, c := range map[string]struct {
		route, answer string
		status        int
		least         float64
	}{
		"by its status":                   {"hold", accepted, 202, 30},
		"by its header":                   {"hold", asks("50s"), 200, 41},
		"by its header on any route":      {"plain", asks("50s"), 200, 41},
		"by a header that cannot be read": {"hold", asks("soon"), 200, 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := at(t, c.route)
			shared.on(t, path, answers(c.answer))
			first := testkit.Post(t, both[0].Addr, path, "{}", key("1"))
			passed(t, first, c.status, "later", "executed")
			for name := range first.Header {
				if strings.EqualFold(name, "Hooklock-Hold") || strings.EqualFold(name, "Hooklock-Recorded") {
					t.Errorf("the sender sees %s", name)
				}
			}
			for _, h := range both {
				isHeld(t, h, path, first.Execution(), c.least, 60)
			}
			mine := func(r testkit.Record) bool { return r.Text("execution") == first.Execution() }
			if r := both[0].Stderr.AwaitRecord(t, "lock.held", mine); r.Number("hold_ms") < 1000*c.least ||
				r["recorded"] != true {
				t.Errorf("%v", r)
			}
			if r := both[0].Stderr.AwaitRecord(t, "delivery", mine); r.Number("hold_ms") < 1000*c.least {
				t.Errorf("%v", r)
			}
			reached(t, path, 1)
		})
	}
}

func TestAHoldSurvivesTheProcessThatTookIt(t *testing.T) {
	t.Parallel()
	path := at(t, "hold")
	shared.on(t, path, answers(accepted))
	config := shared.config("survives", "")
	dying := testkit.Serve(t, hooklockProgram, config)
	first := testkit.Post(t, dying.Addr, path, "{}", key("1"))
	dying.Kill()
	isHeld(t, own(t, config), path, first.Execution(), 20, 40)
}

func TestAHoldThatIsNotRenewedEndsAsUnknown(t *testing.T) {
	t.Parallel()
	path := at(t, "hold")
	shared.on(t, path, answers(asks("4500ms"), testkit.OK("next")))
	first := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	passed(t, first, 200, "later", "executed")
	isHeld(t, shared.patient, path, first.Execution(), 1, 5)
	var next *testkit.Answer
	testkit.Until(t, "the lock is free", func() bool {
		next = testkit.Post(t, shared.patient.Addr, path, "{}", key("2"))
		return !undecided(next)
	})
	passed(t, next, 200, "next", "executed")
	blocked := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	refused{409, "outcome_unknown", "unknown", "unknown"}.check(t, blocked)
	if advice := fmt.Sprint("hooklock forget ", first.Execution()); !strings.Contains(string(blocked.Body),
		advice) {
		t.Errorf("no %q in %s", advice, blocked.Body)
	}
}

func TestMaxDurationIsTheEndOfAHold(t *testing.T) {
	t.Parallel()
	path := at(t, "hold-short")
	shared.on(t, path, answers(accepted, testkit.OK("again")))
	first := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	isHeld(t, shared.patient, path, first.Execution(), 1, 6)
	var again *testkit.Answer
	testkit.Until(t, "the lock is free", func() bool {
		again = testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
		return !undecided(again)
	})
	passed(t, again, 200, "again", "executed")
}

func TestALongAnswerIsHeldAtItsEndAndACutOneIsNot(t *testing.T) {
	t.Parallel()
	path := at(t, "hold")
	head := fmt.Sprintf("HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n", long)
	shared.on(t, path, answers(head+strings.Repeat("a", long)))
	first := testkit.Post(t, shared.strict.Addr, path, "{}", key("1"))
	if first.Status != 202 || len(first.Body) != long || first.Cut != nil {
		t.Fatalf("%d, %d bytes, cut: %v", first.Status, len(first.Body), first.Cut)
	}
	isHeld(t, shared.strict, path, first.Execution(), 30, 40)
	cut := path + "-cut"
	shared.on(t, cut, func(r *testkit.Received) string {
		_ = r.Conn.Say(head + strings.Repeat("a", long-1))
		return ""
	})
	a := testkit.Post(t, shared.strict.Addr, cut, "{}", key("1"))
	if a.Cut == nil {
		t.Fatal("nothing was cut")
	}
	shared.strict.Stderr.AwaitRecord(t, "execution.unknown", func(r testkit.Record) bool {
		return r.Text("execution") == a.Execution()
	})
	refused{409, "outcome_unknown", "unknown", "unknown"}.check(t,
		testkit.Post(t, shared.strict.Addr, cut, "{}", key("1")))
}

func TestInModeObserveHoldsAreSeen(t *testing.T) {
	t.Parallel()
	path := at(t, "hold-observe")
	shared.on(t, path, answers(accepted))
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 202, "later", "bypassed; would=executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 202, "later", "bypassed; would=in_flight")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("2")), 202, "later", "bypassed; would=locked")
}
