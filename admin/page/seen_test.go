package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

// What was looked at is neither counted nor shown, and what happened after that is; the page says that there is more, and where.
func TestWhatWasLookedAtIsNotCountedAndWhatIsNewIs(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) client.Time { return client.Time{Time: now.Add(-d)} }
	route := func(name string, bad int64, last time.Duration) client.RouteRate {
		return client.RouteRate{Route: name, Decisions: map[string]int64{string(idem.DecisionUnverified): bad}, LastAt: ago(last)}
	}
	status := &client.ReplicaStatus{
		Replica: "r", At: ago(0), StartedAt: ago(100 * time.Hour), RateSeconds: 300,
		Routes: []client.RouteRate{route("forged", 12, 0), route("again", 12, 0), route("quiet", 0, 3*time.Hour), route("quieter", 0, 2*time.Hour)},
	}
	mark := func(concern string, until time.Duration) client.SeenMark {
		return client.SeenMark{Concern: concern, Until: ago(until), By: "ops", Reason: "TICKET-9", At: ago(until)}
	}
	api := &scripted{answers: map[string]any{
		"/v1/executions": &client.ExecutionPage{Executions: []client.Execution{}}, "/v1/status": status, "/v1/routes/counts": &client.CountList{},
		"/v1/seen": &client.SeenList{Seen: []client.SeenMark{
			mark("bad_signatures:forged", time.Minute), mark("bad_signatures:again", 6*time.Minute), mark("silent:quiet", time.Hour), mark("silent:quieter", 150*time.Minute), mark("unknown:forged", time.Hour),
		}},
	}}
	server := newPage(t, api)
	_, text := get(t, server, "/page/needs")
	before, marks, found := strings.Cut(text, `id="seen"`)
	for route, want := range map[string]bool{"forged": false, "again": true, "quiet": false, "quieter": true} {
		if strings.Contains(before, fmt.Sprintf(`data-row="%s"`, route)) != want {
			t.Errorf("%s is shown: %v, in\n%s", route, !want, before)
		}
	}
	if !found || !strings.Contains(marks, "TICKET-9") || !strings.Contains(marks, "#find?outcome=unknown&amp;status=FAILED&amp;route=forged") || strings.Count(marks, "Show again") != 5 {
		t.Errorf("what was looked at:\n%s", marks)
	}
	if _, text := get(t, server, "/page/bar"); !strings.Contains(text, `data-attention="2"`) {
		t.Errorf("the count of the bar: %s", text)
	}
	status.Routes = status.Routes[:1]
	if _, text := get(t, server, "/page/needs"); !strings.Contains(text, "Besides what was looked at: no dead letter") {
		t.Errorf("what was looked at is called none:\n%s", text)
	}
	asked := strings.Join(api.asked, "\n")
	for _, kind := range []string{"dead_letters", "blocked", "unknown", "reused", "lost"} {
		if !strings.Contains(asked, "unseen="+kind) {
			t.Errorf("the list of %s has what was looked at in it:\n%s", kind, asked)
		}
	}
}

// The question names what is marked, by route and up to when, so that what comes meanwhile is not hidden.
func TestTheMarkEndsWithTheNewestThatWasShown(t *testing.T) {
	now := time.Now()
	x := func(route string, ago time.Duration) client.Execution {
		return client.Execution{ExecutionID: "exec_" + route, Route: route, Workflow: "w", Status: client.Failed, FinishedAt: client.Time{Time: now.Add(-ago)}}
	}
	stamped := func(ago time.Duration) string { return now.Add(-ago).UTC().Format("2006-01-02T15:04:05.000Z") }
	api := &scripted{answers: map[string]any{
		"/v1/seen": &client.SeenList{}, "/v1/status": &client.ReplicaStatus{}, "/v1/routes/counts": &client.CountList{},
		"/v1/executions": &client.ExecutionPage{Executions: []client.Execution{x("stripe", time.Hour), x("github", 2*time.Hour), x("stripe", time.Minute)}},
	}}
	server := newPage(t, api)
	_, text := get(t, server, "/page/ask?do=seen&kind=dead_letters")
	for _, want := range []string{
		"stripe: 2 dead letters, up to", "github: 1 dead letter, up to", "dead_letters:stripe", stamped(time.Minute), stamped(2 * time.Hour), "hooklock seen dead_letters:github --until " + stamped(2*time.Hour),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, stamped(time.Hour)) {
		t.Errorf("the older of two is named:\n%s", text)
	}
	if _, text := get(t, server, "/page/needs"); strings.Count(text, "do=seen&amp;kind=") != 5 {
		t.Errorf("a button for each kind:\n%s", text)
	}
	api.set("/v1/executions", &client.ExecutionPage{Executions: []client.Execution{}})
	if _, text := get(t, server, "/page/ask?do=seen&kind=dead_letters"); !strings.Contains(text, "None is left.") {
		t.Errorf("%s", text)
	}
	if res, _ := get(t, server, "/page/ask?do=seen&kind=nothing"); res.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown kind: %d", res.StatusCode)
	}
	api.set("/v1/seen", &client.Problem{Status: 403, Code: client.CodeForbidden, Detail: "the token is limited to some workflows"})
	api.set("/v1/executions", &client.ExecutionPage{Executions: []client.Execution{x("stripe", time.Hour)}})
	if _, text := get(t, server, "/page/needs"); !strings.Contains(text, "Dead letters") || strings.Contains(text, "do=seen") {
		t.Errorf("a token that cannot mark is asked to:\n%s", text)
	}
}

func TestRoutesWhoseEventIDsAreWrongNeedAttention(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) client.Time { return client.Time{Time: now.Add(-ago)} }
	counted := func(route string, changed, duplicates int64) client.RouteCounts {
		return client.RouteCounts{Route: route, Steps: []client.CountStep{{At: at(time.Hour), Counts: client.Counts{Changed: changed, Duplicates: duplicates}}}}
	}
	api := &scripted{answers: map[string]any{
		"/v1/executions": &client.ExecutionPage{Executions: []client.Execution{}}, "/v1/seen": &client.SeenList{Seen: []client.SeenMark{{Concern: "changed:seen", Until: at(0)}}},
		"/v1/status": &client.ReplicaStatus{At: at(0), Routes: []client.RouteRate{
			{Route: "syslog", WrongEventID: &client.WrongEventID{EventID: "$UNIQID", Why: client.IDPlaceholder, Deliveries: 3, At: at(time.Minute)}}, {Route: "linear", Changes: true},
		}},
		"/v1/routes/counts": &client.CountList{Routes: []client.RouteCounts{counted("alertmanager", 4, 6), counted("few", 3, 6), counted("linear", 6, 6), counted("seen", 6, 6)}},
	}}
	server := newPage(t, api)
	_, text := get(t, server, "/page/needs")
	for _, want := range []string{"4 of 6 duplicates were other requests", "$UNIQID", "is a placeholder"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, route := range []string{"few", "linear", "seen"} {
		if strings.Contains(text, fmt.Sprintf(`data-row="%s"`, route)) {
			t.Errorf("%s needs attention", route)
		}
	}
	if _, text := get(t, server, "/page/bar"); !strings.Contains(text, `data-attention="2"`) {
		t.Errorf("the count of the bar: %s", text)
	}
}
