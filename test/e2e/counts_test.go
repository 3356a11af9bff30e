package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// An answer of the service is not a success because the event ran.
func TestStatusTellsSuccessFromAFailureOfTheServiceAndFromNoAnswer(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		switch r.Body {
		case "fails":
			return testkit.Reply(500, "database is locked")
		case "redirects":
			return testkit.Reply(302, "", "Location: /other")
		case "breaks":
			return ""
		}
		return testkit.OK("done")
	})
	h := own(t, bare(up.URL, `
routes:
  - {name: enforces, path: /enforces}
  - {name: observes, path: /observes, mode: observe}
  - {name: retries, path: /retries, workflow: "{header.Idempotency-Key}", park: {on: [failed, unknown], after: 1m, attempts: 1, on_failure: skip}}
  - {name: parks, path: /parks, park: {enabled: true, after: 0s, attempts: 1, on_failure: skip}}
  - {name: holds, path: /holds, park: {after: 0s, attempts: 1}}
  - {name: silent, path: /silent}
`))
	for _, route := range []string{"enforces", "observes", "retries", "parks"} {
		for i, body := range []string{"works", "fails", "redirects", "breaks"} {
			testkit.Post(t, h.Addr, "/"+route, body, key(fmt.Sprint(route, i)))
		}
	}
	testkit.Post(t, h.Addr, "/holds", "fails", key("holds"))
	want := map[string]string{"holds": "0 1 0", "enforces": "1 2 1", "observes": "1 2 1", "retries": "1 2 1",
		"parks": "1 2 1", "silent": "0 0 0"}
	got := map[string]string{}
	testkit.Until(t, "the parked events to end", func() bool {
		_, status := asked(t, h, "GET", "/v1/status", "", "")
		for _, r := range status["routes"].([]any) {
			r := r.(map[string]any)
			got[r["route"].(string)] = fmt.Sprint(r["succeeded"], r["failed"], r["errors"])
		}
		return got["parks"] == want["parks"] && got["holds"] == want["holds"]
	})
	for route := range want {
		if got[route] != want[route] {
			t.Errorf("%s: succeeded, failed, errors: %s, want %s", route, got[route], want[route])
		}
	}
	for line := range strings.Lines(cli(t, h, "status")) {
		if fields := strings.Fields(line); len(fields) > 9 && want[fields[0]] != "" && fields[1] != "fails" &&
			strings.Join(fields[3:6], " ") != want[fields[0]] {
			t.Errorf("status says %q", line)
		}
	}
	testkit.Until(t, "the accepted event to be counted", func() bool {
		return regexp.MustCompile(`1 blocked queue of holds.*: hooklock events --blocked --route holds\n`).MatchString(
			cli(t, h, "status"))
	})
	if text := cli(t, h, "status"); !regexp.MustCompile(`(?m)^running +0 `).MatchString(text) {
		t.Errorf("what is blocked does not run:\n%s", text)
	}
	if text := cli(t, h, "events", "--blocked", "--route", "holds"); !strings.Contains(text, "BLOCKED") {
		t.Errorf("what status names shows\n%s", text)
	}
	for line := range strings.Lines(cli(t, h, "status")) {
		if _, command, named := strings.Cut(strings.TrimSpace(line), ": hooklock events "); named {
			if text := cli(t, h, append([]string{"events"}, strings.Fields(command)...)...); !strings.Contains(text,
				"STATUS") {
				t.Errorf("%q finds\n%s", command, text)
			}
		}
	}
	if text := cli(t, h, "status"); strings.Contains(text, "never") || !strings.Contains(text, "none in 24h") {
		t.Errorf("a route without deliveries:\n%s", text)
	}
}

func TestCountsOfRoutesAreThoseOfAllReplicasAndOutliveARestart(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		if r.Body == "fails" {
			return testkit.Reply(500, "database is locked")
		}
		return testkit.OK("done")
	})
	config := bare(up.URL, `
routes:
  - {name: orders, path: /orders}
`)
	before := own(t, config)
	for i, body := range []string{"works", "fails", "works"} {
		testkit.Post(t, before.Addr, "/orders", body, key(fmt.Sprint(i)))
	}
	testkit.Post(t, before.Addr, "/orders", "works", key("0")) // a duplicate
	leave(t, before.Process)
	h := own(t, config)
	testkit.Post(t, h.Addr, "/orders", "works", key("later"))
	code, counts := asked(t, h, "GET", "/v1/routes/counts?since=1h", "", "")
	if code != 200 {
		t.Fatalf("%d %v", code, counts)
	}
	orders := counts["routes"].([]any)[0].(map[string]any)
	total := orders["total"].(map[string]any)
	for name, want := range map[string]float64{"deliveries": 5, "succeeded": 3, "failed": 1, "duplicates": 1,
		"errors": 0, "deadLetters": 0} {
		if total[name] != want {
			t.Errorf("%s: %v, want %v", name, total[name], want)
		}
	}
	if orders["lastAt"] == nil || orders["p50Seconds"] == nil || len(orders["steps"].([]any)) == 0 {
		t.Errorf("%v", orders)
	}
	if text := cli(t, h, "status"); !strings.Contains(text, "last 24h, all replicas") ||
		strings.Contains(text, "none in") {
		t.Errorf("%s", text)
	}
	if text := cli(t, h, "status", "-o", "json"); !strings.Contains(text, `"counts"`) ||
		!strings.Contains(text, `"badSignatures"`) {
		t.Errorf("%s", text)
	}
}

// Who cancels what waits does not make an error of the service.
func TestADeliveryForWhichNothingWasAskedOfTheServiceIsNoErrorOfIt(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		<-r.Context.Done()
		return ""
	})
	h := own(t, bare(up.URL, `
routes:
  - {name: waits, path: /waits, lock: {strategy: wait, wait_timeout: 1m}}
  - {name: attaches, path: /attaches, idempotency: {in_flight: attach}}
`))
	answers := map[string]<-chan *testkit.Answer{}
	for i, route := range []string{"waits", "attaches"} {
		answers["the first of "+route] = testkit.GoPost(t, h.Addr, "/"+route, "{}", key("first-"+route))
		up.AwaitReceived(t, "/"+route, 1)
		other := map[string]string{"waits": "second-waits", "attaches": "first-attaches"}[route]
		answers["the second of "+route] = testkit.GoPost(t, h.Addr, "/"+route, "{}", key(other))
		testkit.Until(t, "it waits", func() bool { return waiting(t, h) == i+1 })
	}
	for _, event := range []string{"second-waits", "first-waits", "first-attaches"} {
		cli(t, h, "cancel", event, "--reason", "not now")
	}
	for what, answer := range answers {
		if a := testkit.Receive(t, what, answer); a.Status != 503 {
			t.Errorf("%s: %v", what, a)
		}
	}
	testkit.Until(t, "both of each route are counted as what they are", func() bool {
		_, counts := asked(t, h, "GET", "/v1/routes/counts?since=1h", "", "")
		for _, r := range counts["routes"].([]any) {
			total := r.(map[string]any)["total"].(map[string]any)
			if total["deliveries"] != 2.0 {
				return false
			}
			if total["errors"] != 1.0 || total["refused"] != 1.0 {
				t.Errorf("%v", r)
			}
		}
		return true
	})
}

// A dead letter is one until it runs again, or is forgotten: what became one in the last day is no
// number of what there is.
func TestDeadLettersOfRoutesAreThoseThatThereAre(t *testing.T) {
	t.Parallel()
	works := make(chan bool, 1)
	works <- false
	up := testkit.NewUpstream(t, func(*testkit.Received) string {
		now := <-works
		works <- now
		if !now {
			return testkit.Reply(500, "database is locked")
		}
		return testkit.OK("done")
	})
	h := own(t, bare(up.URL, `
routes:
  - {name: orders, path: /orders, park: {enabled: true, after: 0s, attempts: 1, on_failure: skip}}
`))
	testkit.Post(t, h.Addr, "/orders", "one", key("one"))
	dead := func() (now string) {
		for line := range strings.Lines(cli(t, h, "status")) {
			if fields := strings.Fields(line); len(fields) > 11 && fields[0] == "orders" {
				return fields[10]
			}
		}
		return ""
	}
	testkit.Until(t, "the dead letter to be shown", func() bool { return dead() == "1" })
	<-works
	works <- true
	cli(t, h, "retry", "--dead-letters", "--reason", "repaired")
	testkit.Until(t, "the dead letter to be gone", func() bool { return dead() == "0" })
}
