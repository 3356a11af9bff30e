package e2e

import (
	"strings"
	"sync/atomic"
	"testing"

	"hooklock/test/testkit"
)

// TestAnEventThatKillsTheServiceEachTimeWaitsForAPerson: first it is paced, then refused, and other
// events go on. What a person does then is as after an unknown outcome that blocks.
func TestAnEventThatKillsTheServiceEachTimeWaitsForAPerson(t *testing.T) {
	t.Parallel()
	var repaired atomic.Bool
	var deaths atomic.Int32
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		if strings.Contains(r.Body, "poison") && !repaired.Load() {
			deaths.Add(1)
			return ""
		}
		return testkit.OK("done")
	})
	h := own(t, bare(up.URL, `
routes:
  - {name: hooks, path: "/hooks/{w}", workflow: "{path.w}", lock: {release_delay: 0s}, idempotency: {attempts: 5}}
`))
	poison := func() *testkit.Answer {
		return testkit.Post(t, h.Addr, "/hooks/a", `{"poison": true}`, key("evt_1"))
	}
	broke := refused{502, "upstream_failed", "unknown", "upstream_failed"}
	for range 4 {
		broke.check(t, poison())
	}
	paced := poison()
	refused{409, "event_paced", "no", "paced"}.check(t, paced)
	if paced.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", paced.Header.Get("Retry-After"))
	}
	var last *testkit.Answer
	testkit.Until(t, "the pause is over", func() bool { last = poison(); return last.Decision() != "paced" })
	broke.check(t, last)
	for range 3 {
		refused{409, "attempts_exhausted", "unknown", "exhausted"}.check(t, poison())
	}
	if n := deaths.Load(); n != 5 {
		t.Errorf("the service died %d times, want 5", n)
	}
	passed(t, testkit.Post(t, h.Addr, "/hooks/b", "{}", key("evt_2")), 200, "done", "executed")
	h.Stderr.AwaitRecord(t, "event.exhausted", func(r testkit.Record) bool {
		return r.Text("execution") == last.Execution() && r.Text("event_id") == "evt_1"
	})
	testkit.Until(t, "status names it", func() bool {
		return strings.Contains(cli(t, h, "status"), "1 exhausted event of hooks (a)")
	})
	if got := cli(t, h, "show", "evt_1"); !strings.Contains(got,
		"It failed as often as its route lets it: repair the service or the event, then allow it again.") {
		t.Errorf("show says\n%s", got)
	}

	repaired.Store(true)
	cli(t, h, "executions", "forget", last.Execution(), "--reason", "repaired")
	testkit.Until(t, "it runs again", func() bool { last = poison(); return last.Decision() != "exhausted" })
	passed(t, last, 200, "done", "executed")
}
