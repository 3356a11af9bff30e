package e2e

import (
	"fmt"
	"regexp"
	"testing"

	"hooklock/test/testkit"
)

// orderRoutes are routes that ask for the order of events.
const orderRoutes = `
park_store: {single_member: true}
routes:
  - {name: ord-skip, path: "/ord-skip/{w}", workflow: "os/{path.w}", order: {by: "{body.at}", scope: "{body.of}", unit: s, on_stale: skip}, park: {enabled: true, after: 0s}}
  - {name: ord-reject, path: "/ord-reject/{w}", workflow: "or/{path.w}", order: {by: "{body.at}", on_stale: reject}, park: {enabled: true, after: 0s}}
  - {name: ord-tell, path: "/ord-tell/{w}", workflow: "ot/{path.w}", order: {by: "{body.at}"}, park: {enabled: true, after: 0s}}
  - {name: ord-watch, path: "/ord-watch/{w}", workflow: "ow/{path.w}", order: {by: "{body.at}", on_stale: skip}, mode: observe}
`

func ordering(t *testing.T) *testkit.Hooklock {
	t.Helper()
	return own(t, bare(shared.up.URL, "shutdown_timeout: 5s\n"+orderRoutes))
}

// lateComer lets an event run, and one that is older wait behind it in line. It returns both
// executions, and the calls of the upstream.
func lateComer(t *testing.T, h *testkit.Hooklock, path string) (newest, older string, work *held) {
	t.Helper()
	work = shared.holds(t, path)
	newest = acceptedAs(t, testkit.Post(t, h.Addr, path, `{"of":"x","at":100}`, key("new")), 202)
	work.await(t)
	older = acceptedAs(t, testkit.Post(t, h.Addr, path, `{"of":"x","at":63}`, key("old")), 202)
	work.answer <- testkit.OK("")
	return newest, older, work
}

func TestAParkedEventThatIsOlderThanWhatWentThroughDoesNotRun(t *testing.T) {
	t.Parallel()
	h := ordering(t)
	path := at(t, "ord-skip")
	newest, older, _ := lateComer(t, h, path)
	testkit.Until(t, "the older one to end", func() bool { return execution(t, h, older)["status"] == "ABORTED" })
	x := execution(t, h, older)
	if x["outcome"] != "not_executed" || x["supersededBy"] != newest || x["abortedBy"] != "policy" ||
		x["requestKept"] != nil {
		t.Errorf("%v", x)
	}
	shown := cli(t, h, "executions", "get", older)
	for _, line := range []string{"(?m)^superseded by +" + newest + "$", "(?m)^order +63 in x; 37s older than " +
		newest + ", which had gone through$"} {
		if !regexp.MustCompile(line).MatchString(shown) {
			t.Errorf("no line %s in\n%s", line, shown)
		}
	}
	reached(t, path, 1)
}

func TestAParkedEventThatIsRejectedForItsAgeIsADeadLetter(t *testing.T) {
	t.Parallel()
	h := ordering(t)
	path := at(t, "ord-reject")
	_, older, _ := lateComer(t, h, path)
	letters(t, h, older)
	if e, _ := execution(t, h, older)["error"].(map[string]any); e["code"] != "stale_event" {
		t.Errorf("%v", e)
	}
	reached(t, path, 1)
}

func TestAParkedEventThatIsOlderRunsWithTheHeaderThatSaysSo(t *testing.T) {
	t.Parallel()
	h := ordering(t)
	path := at(t, "ord-tell")
	_, older, work := lateComer(t, h, path)
	if got := work.await(t); got.Header.Get("Hooklock-Stale") != "37" || got.Header.Get("Hooklock-Execution") != older {
		t.Errorf("%s", got.Raw)
	}
	work.answer <- testkit.OK("")
	testkit.Until(t, "the older one to end", func() bool { return execution(t, h, older)["status"] == "SUCCESS" })
}

func TestTheReportCountsStaleEventsBeforeTheirOrderIsEnforced(t *testing.T) {
	t.Parallel()
	h := ordering(t)
	path := at(t, "ord-watch")
	for _, body := range []string{`{"at":100}`, `{"at":63}`} {
		if a := testkit.Post(t, h.Addr, path, body, key(body)); a.Status != 200 {
			t.Fatalf("%v", a)
		}
	}
	table := cli(t, h, "report", "--examples")
	for _, line := range []string{`(?m)^ROUTE +MODE +DELIVERIES +STALE `, `(?m)^ord-watch +observe +2 +1 +0 `,
		`(?m)^ord-watch +stale +\S+ +superseded `} {
		if !regexp.MustCompile(line).MatchString(table) {
			t.Errorf("no line %s in\n%s", line, table)
		}
	}
}

func TestAnOrderHoldsWhereSeveralEventsRunAtATime(t *testing.T) {
	t.Parallel()
	h := own(t, bare(shared.up.URL, `
routes:
  - {name: skips, path: /skips, order: {by: "{body.at}", on_stale: skip}, lock: {limit: 3}}
  - {name: rejects, path: /rejects, order: {by: "{body.at}", on_stale: reject}, lock: {limit: 3, strategy: wait}}
  - {name: parks, path: /parks, order: {by: "{body.at}", on_stale: skip}, lock: {limit: 3}, park: {enabled: true, after: 0s}}
`))
	for path, stale := range map[string]string{"/skips": "superseded", "/rejects": "stale_event"} {
		for i, c := range []struct{ at, want string }{{"10", "executed"}, {"5", stale}, {"3", stale},
			{"11", "executed"}} {
			if a := testkit.Post(t, h.Addr, path, `{"at":`+c.at+`}`, key(fmt.Sprint(path, i))); a.Decision() != c.want {
				t.Errorf("%s: %s was %s, want %s", path, c.at, a.Decision(), c.want)
			}
		}
	}
	newest := acceptedAs(t, testkit.Post(t, h.Addr, "/parks", `{"at":10}`, key("10")), 202)
	testkit.Until(t, "the newest one to end", func() bool { return execution(t, h, newest)["status"] == "SUCCESS" })
	older := acceptedAs(t, testkit.Post(t, h.Addr, "/parks", `{"at":5}`, key("5")), 202)
	testkit.Until(t, "the older one to end", func() bool { return execution(t, h, older)["supersededBy"] == newest })
}
