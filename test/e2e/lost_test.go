package e2e

import (
	"regexp"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// A sender for which 409 is the end: its event did not run, and everything that a person looks at
// says so, and what to set. One that comes again is not lost.
func TestAnEventThatWasRefusedAndDidNotComeAgainIsNamed(t *testing.T) {
	t.Parallel()
	slow := newHeld(t)
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		if strings.Contains(r.Body, "holder") {
			return slow.handle(r)
		}
		return testkit.OK("done")
	})
	h := own(t, bare(up.URL, `
routes:
  - {name: am, path: /am, workflow: am, idempotency: {payload_retention: 16s}}
`))
	holder := testkit.GoPost(t, h.Addr, "/am", `{"name":"holder"}`)
	slow.await(t)
	for _, name := range []string{"resolved", "again"} {
		if a := testkit.Post(t, h.Addr, "/am", `{"name":"`+name+`"}`); a.Status != 409 {
			t.Fatalf("%v", a)
		}
	}
	if none := cli(t, h, "events", "--lost"); !strings.Contains(none, "no event is possibly lost") {
		t.Errorf("lost at once:\n%s", none)
	}
	slow.answer <- testkit.OK("")
	testkit.Receive(t, "the holder's answer", holder)
	if a := testkit.Post(t, h.Addr, "/am", `{"name":"again"}`); a.Status != 200 {
		t.Fatalf("%v", a)
	}
	testkit.Until(t, "it is lost", func() bool { return !strings.Contains(cli(t, h, "events", "--lost"), "no event") })
	lost := cli(t, h, "events", "--lost", "--since", "1h")
	if strings.Count(lost, "REFUSED") != 1 || !strings.Contains(lost, "409 locked") ||
		!strings.Contains(lost, "and did not come again") {
		t.Errorf("the list:\n%s", lost)
	}
	status := cli(t, h, "status")
	want := `1 event possibly lost of am.* since .*, locked; resend at the sender: hooklock events --lost --route '?am'?`
	if !regexp.MustCompile(want).MatchString(status) {
		t.Errorf("the status:\n%s", status)
	}
	if !strings.Contains(h.Metrics(t), `hooklock_events_lost_total{route="am"} 1`) {
		t.Error("no metric")
	}
	h.AwaitLine(t, h.Stderr, `"event.lost"`)
	cli(t, h, "seen", "lost:am", "--reason", "resent by hand")
	if status := cli(t, h, "status"); strings.Contains(status, "possibly lost") {
		t.Errorf("what was looked at needs attention:\n%s", status)
	}
}
