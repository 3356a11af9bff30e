package telemetry

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/idem/worker"
	"hooklock/proxy"
	"hooklock/test/testkit"
)

// full is a report in which everything is said.
func full() *proxy.Report {
	r := executed()
	r.Would, r.Code, r.Signature, r.SignaturePart, r.SpanID, r.By, r.Loss = idem.DecisionLocked, "", "mismatch",
		"header", "b7ad6b7169203331", "ops", proxy.LossSession
	r.EventID, r.Labels, r.Differs, r.Stale, r.Ordered = "evt_1", idem.Labels{{Name: "order", Value: "1042"}},
		[]string{"query", "body"}, "37s", naming.OrderedOK
	r.Changed, r.EventIDPart, r.TwinOf = true, proxy.PartPlaceholder, "0123456789abcdef"
	r.Stages.Wait.For, r.Hold, r.Err, r.ClosedUntil = time.Second, time.Minute, os.ErrDeadlineExceeded,
		began.Add(time.Minute)
	return r
}

// documented are the fields of each event in docs/logs.md.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	return testkit.LogTable(string(text))
}

// last is the last line of the log.
func (r *rig) last(t *testing.T) map[string]any {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.log.String()), "\n")
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
		t.Fatalf("%v in %q", err, lines[len(lines)-1])
	}
	return line
}

func TestTheLinesOfADeliveryHaveTheFieldsThatTheTableSays(t *testing.T) {
	table := documented(t)
	r := open(t)
	rejected := full()
	rejected.Code = "body_too_large"
	redirected := full()
	redirected.Status, redirected.UpstreamStatus, redirected.Path = 302, 302, "/elsewhere"
	lines := map[string]func(){"delivery": func() { r.OnDelivered(redirected) }}
	for _, name := range []proxy.EventName{
		proxy.EventAcquired, proxy.EventRefused, proxy.EventReleased, proxy.EventHeld, proxy.EventLost,
		proxy.EventUnknown, proxy.EventCancelled,
	} {
		lines[string(name)] = func() { r.Event(name, full()) }
	}
	entry := idem.ExecutionFacts{
		Route: "plain", Scope: idem.Scope{Workflow: "w", Key: "k"}, EventID: "evt_1",
		Labels: idem.Labels{{Name: "order", Value: "1042"}}, Execution: "exec_1",
		Attempt: 1, Holder: "h", StartedAt: began,
	}
	lines["lock.expired"] = func() { r.OnReaped(&idem.Lock{ExecutionFacts: entry}) }
	lines["record.reduced"] = func() { r.OnReduced(&idem.Record{ExecutionFacts: entry}, 40_000) }
	for event, write := range lines {
		write()
		line := r.last(t)
		if event == "delivery" {
			line["code"] = "" // a line has a code or an error
		}
		if event == "lock.refused" {
			delete(line, "attempt") // which only an execution has
		}
		if line["msg"] != event {
			t.Errorf("%v, want %s", line, event)
		}
		for field := range line {
			if !slices.Contains([]string{"time", "level", "msg"}, field) && !slices.Contains(table[event], field) {
				t.Errorf("%s: field %s is not in docs/logs.md", event, field)
			}
		}
		for _, field := range table[event] {
			if _, there := line[field]; !there {
				t.Errorf("%s: docs/logs.md promises %s", event, field)
			}
		}
	}
}

func TestAProblemThatNeedsAttentionIsAWarning(t *testing.T) {
	r := open(t)
	warned := []idem.Decision{
		idem.DecisionStoreUnavailable, idem.DecisionLockLost, idem.DecisionUpstreamUnreachable,
		idem.DecisionUpstreamFailed, idem.DecisionUpstreamTimeout,
	}
	for _, row := range idem.Decisions() {
		report := executed()
		report.Decision = row.Decision
		r.OnDelivered(report)
		want := "INFO"
		switch {
		case slices.Contains(warned, row.Decision):
			want = "WARN"
		case row.Decision == idem.DecisionInternalError:
			want = "ERROR"
		}
		if level := r.last(t)["level"]; level != want {
			t.Errorf("%s: %v, want %s", row.Decision, level, want)
		}
	}
	redirected := executed()
	redirected.Status, redirected.UpstreamStatus = 302, 302
	r.OnDelivered(redirected)
	if line := r.last(t); line["level"] != "WARN" || line["redirected"] != true {
		t.Errorf("the service answered with a redirect: %v", line)
	}
	redirected.Status = 202 // it is parked: its sender sees no redirect
	r.OnDelivered(redirected)
	if line := r.last(t); line["level"] != "INFO" || line["redirected"] != nil {
		t.Errorf("a redirect that no sender sees: %v", line)
	}
	forwarded := executed()
	forwarded.Decision, forwarded.Would = idem.DecisionBypassed, idem.DecisionStoreUnavailable
	r.OnDelivered(forwarded)
	if level := r.last(t)["level"]; level != "WARN" {
		t.Errorf("forwarded because etcd is away: %v", level)
	}
}

func TestTheEventIDIsLeftOutWhereReadersMayNotKnowIt(t *testing.T) {
	r := open(t)
	tell := func() map[string]any {
		r.OnDelivered(full())
		return r.last(t)
	}
	if tell()["event_id"] != "evt_1" {
		t.Error("a line has no event ID")
	}
	r.SetEventIDs(false)
	line := tell()
	for _, field := range []string{"event_id", "labels"} {
		if v, there := line[field]; there {
			t.Errorf("a line has %s %v", field, v)
		}
	}
}

func TestSamplingDropsOnlyWhatWentWell(t *testing.T) {
	r := open(t)
	r.SetSampling(0)
	failed := executed()
	failed.Status = 500
	unrecorded := executed()
	unrecorded.Recorded = false
	stopped := met(idem.DecisionBypassed, 200)
	stopped.Would = idem.DecisionLocked
	for name, c := range map[string]struct {
		report *proxy.Report
		said   bool
	}{
		"executed": {executed(), false}, "replayed": {met(idem.DecisionReplayed, 200), false},
		"upstream's error": {failed, true},
		"not recorded":     {unrecorded, true}, "locked": {met(idem.DecisionLocked, 409), true},
		"skipped":  {met(idem.DecisionSkipped, 200), true},
		"observed": {stopped, true},
	} {
		r.log.Reset()
		r.OnDelivered(c.report)
		if said := r.log.Len() > 0; said != c.said {
			t.Errorf("%s: %v", name, said)
		}
	}
	r.log.Reset()
	r.Event(proxy.EventAcquired, executed())
	r.Event(proxy.EventReleased, executed())
	if r.log.Len() > 0 {
		t.Errorf("%s", r.log)
	}
	r.Event(proxy.EventUnknown, executed())
	if r.log.Len() == 0 {
		t.Error("an unknown outcome is not said")
	}
}

func TestATryOfAParkedEventThatWentWrongHasItsLine(t *testing.T) {
	r := open(t)
	r.SetSampling(0)
	for _, c := range []struct {
		outcome idem.Outcome
		status  int
		said    bool
	}{
		{idem.Executed, 204, false}, {idem.Executed, 302, true}, {idem.Executed, 404, true}, {idem.Executed, 500, true},
		{idem.NotExecuted, 0, true}, {idem.Unknown, 0, true}, {idem.Unknown, 504, true},
	} {
		tried := executed()
		tried.Outcome, tried.UpstreamStatus = c.outcome, c.status
		r.log.Reset()
		r.Event(proxy.EventTried, tried)
		if said := r.log.Len() > 0; said != c.said {
			t.Errorf("%s with %d: said is %v, want %v", c.outcome, c.status, said, c.said)
		}
	}
}

func TestSamplingKeepsAShareAndTheSameOnesEverywhere(t *testing.T) {
	a, b := open(t), open(t)
	a.SetSampling(10)
	b.SetSampling(10)
	kept := 0
	for i := range 10_000 {
		d := executed()
		d.TraceID = traceID(i)
		if a.keepsRoutineLines(d) != b.keepsRoutineLines(d) {
			t.Fatal("two replicas do not agree")
		}
		if a.keepsRoutineLines(d) {
			kept++
		}
	}
	if kept < 900 || kept > 1100 {
		t.Errorf("%d of 10000 are kept", kept)
	}
}

// traceID is one as senders make them: its bits are spread.
func traceID(i int) string {
	const digits = "0123456789abcdef"
	id := make([]byte, 32)
	x := uint64(i)*0x9E3779B97F4A7C15 + 1
	for j := range id {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		id[j] = digits[x>>60]
	}
	return string(id)
}

func TestABadVariableIsSaidAndNoReasonToStop(t *testing.T) {
	r := open(t, "OTEL_TRACES_EXPORTER", "zipkin", "OTEL_RESOURCE_ATTRIBUTES", "no equals sign")
	if log := r.log.String(); strings.Count(log, "telemetry.config") != 2 {
		t.Errorf("%s", log)
	}
}

// Under strategy latest the process that tells may not be the one that accepted the event, and its
// clock may be behind.
func TestTheAgeOfAParkedEventIsNeverNegative(t *testing.T) {
	r := open(t)
	l := &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Route: "plain"},
		Parked: &idem.Parked{Since: time.Now().Add(time.Hour)}}
	r.OnParkedEvent(worker.Event{What: worker.EventDeadLetter, Lock: l, Code: "replaced"})
	if age := r.last(t)["age_ms"]; age != 0.0 {
		t.Errorf("age_ms is %v", age)
	}
}
