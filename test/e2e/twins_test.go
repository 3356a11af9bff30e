package e2e

import (
	"regexp"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// Two subscriptions of one hook send each event under two IDs. Both run, and everything that a
// person looks at names them.
func TestAnEventUnderTwoIDsIsNamed(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	h := own(t, bare(up.URL, `
routes:
  - {name: header, path: /header, event_id: "{header.X-Id}"}
  - {name: body, path: /body, workflow: "{body.order}", event_id: "{body.id}", ignore: [body.at]}
  - {name: quiet, path: /quiet, event_id: "{header.X-Id}", twins: off}
`))
	send := func(path, body, id string, want int) {
		t.Helper()
		if a := testkit.Post(t, h.Addr, path, body, "X-Id: "+id); a.Status != want {
			t.Fatalf("%s %s: %v", path, id, a)
		}
	}
	for _, path := range []string{"/header", "/quiet"} {
		send(path, `{"order":1}`, "a", 200)
		send(path, `{"order":1}`, "a", 200) // a duplicate is no twin
		send(path, `{"order":1}`, "b", 200)
		send(path, `{"order":1}`, "b", 200)
		send(path, `{"order":2}`, "c", 200)
	}
	send("/body", `{"id":"a","order":1,"at":1}`, "", 200)
	send("/body", `{"id":"b","order":1,"at":2}`, "", 200)
	send("/body", `{"id":"c","order":2,"at":1}`, "", 200)

	r := reported(t, h, "1h")
	for i, want := range []int64{1, 1, 0} {
		f := r.Routes[i]
		if f.Twins.Count != want || len(f.Twins.Examples) != int(want) {
			t.Errorf("%s: %+v", f.Route, f.Twins)
		}
	}
	twin := r.Routes[0].Twins.Examples[0]
	if twin.Decision != "executed" || twin.TwinOf == "" || twin.TwinOf == twin.Key {
		t.Errorf("%+v", twin)
	}
	table := cli(t, h, "report", "--examples")
	for _, line := range []string{`(?m)^header: 1 events? had the body of another one .*` + twin.Key + ", like " + twin.TwinOf,
		`(?m)^header +twin .* like ` + twin.TwinOf, `(?m)^body: 1 event`} {
		if !regexp.MustCompile(line).MatchString(table) {
			t.Errorf("no line %s in\n%s", line, table)
		}
	}
	if strings.Contains(table, "quiet: ") {
		t.Errorf("twins are named where they are off:\n%s", table)
	}
	status := cli(t, h, "status")
	if !strings.Contains(status, "twins") ||
		!strings.Contains(status, "header: 1 event of 24h had the body of another one") ||
		strings.Contains(status, "quiet: ") {
		t.Errorf("status says\n%s", status)
	}
	metrics := h.Metrics(t)
	for _, line := range []string{`hooklock_events_twins_total{route="header"} 1`, `hooklock_events_twins_total{route="body"} 1`,
		`hooklock_events_twins_total{route="quiet"} 0`} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %s in the metrics", line)
		}
	}
	if n := len(up.Received("/header")) + len(up.Received("/quiet")); n != 6 {
		t.Errorf("%d events ran, not 6", n)
	}
}
