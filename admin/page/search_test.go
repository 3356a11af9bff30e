package page

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hooklock/admin/client"
)

func TestTheSearchFieldTakesQualifiersAndShowsThemAgain(t *testing.T) {
	for field, want := range map[string]string{
		"evt_1":                                "text=evt_1",
		"route:stripe status:failed since:10m": "route=stripe&since=10m&status=FAILED",
		`evt_1 workflow:"orders/a b"`:          "text=evt_1&workflow=orders%2Fa+b",
		"status:unknown":                       "outcome=unknown",
		"status:dead route:r":                  "route=r&state=dead_letter",
		"got:locked":                           "decision=locked",
		"label:order=1042":                     "label=order%3D1042",
		"order:1042":                           "text=order%3A1042",
		"https://a/b colour:red since:":        "text=https%3A%2F%2Fa%2Fb+colour%3Ared+since%3A",
		"since:2026-11-26T01:13:00Z":           "since=2026-11-26T01%3A13%3A00Z",
	} {
		q := parseSearch(field)
		if q.Encode() != want {
			t.Errorf("%s: %s, want %s", field, q.Encode(), want)
		}
		if again := parseSearch(searchText(q)).Encode(); again != want {
			t.Errorf("%s is shown as %s, which is %s", field, searchText(q), again)
		}
	}
}

func TestOneHitOfASearchOpensItself(t *testing.T) {
	one := &client.ExecutionPage{Executions: []client.Execution{{ExecutionID: anID, Workflow: "w", EventID: "evt_1"}}}
	api := &scripted{answers: map[string]any{"/v1/executions": one}}
	server := newPage(t, api)
	open := `data-open="#story?id=` + anID + `"`
	for path, want := range map[string]bool{"find?text=evt_1": true, "find?text=evt_1+route:r": true,
		"find?text=route:r": false, "find?route=r": false, "find?text=evt_1&cursor=x": false} {
		if _, text := get(t, server, "/page/"+path); strings.Contains(text, open) != want {
			t.Errorf("%s: opens itself: %t", path, !want)
		}
	}
	one.NextCursor = "more"
	if _, text := get(t, server, "/page/find?text=evt_1"); strings.Contains(text, open) {
		t.Error("there are more")
	}
}

func TestAnIDIsFoundAsTheListCutsIt(t *testing.T) {
	event := func(id string) client.Execution {
		return client.Execution{ExecutionID: anID, Workflow: "a-workflow-of-a-long-name/" + id, EventID: id}
	}
	const mine, other = "evt_1QRefused409WhileBusy00wM9pLd", "evt_1QRefused409WhileBusy00wM9pLe"
	api := &scripted{answers: map[string]any{
		"/v1/executions": &client.ExecutionPage{Executions: []client.Execution{event(other), event(mine)}}}}
	server := newPage(t, api)
	for _, shown := range []string{middleCutCell(mine).Text, middleCutCell("a-workflow-of-a-long-name/" + mine).Text} {
		api.asked = nil
		_, text := get(t, server, "/page/find?"+url.Values{"text": {shown}}.Encode())
		if !strings.Contains(text, mine) || strings.Contains(text, other) {
			t.Errorf("%s: %s", shown, text)
		}
		begin, _, _ := strings.Cut(shown, "…")
		if want := "GET /v1/executions?" + queryOf("event", begin, "limit", "50").Encode(); api.asked[0] != want {
			t.Errorf("%s asks %q", shown, api.asked)
		}
	}
	if _, text := get(t, server, "/page/find?"+
		url.Values{"text": {"evt_1QRefused4…elsewhere"}}.Encode()); !strings.Contains(text, "No event matches") {
		t.Errorf("another end is found: %s", text)
	}
}

// Each search that is no look at one key reads the indexes of all records.
func TestAWordThatFitsNothingIsLookedUpByItsKeyAndInOneSearch(t *testing.T) {
	api := &scripted{answers: map[string]any{"/v1/executions": &client.ExecutionPage{}}}
	server := newPage(t, api)
	for _, word := range []string{"nothing", "order:1042", "0af7651916cd43dd8448eb211c80319c", "stripe/acme"} {
		api.asked = nil
		if _, text := get(t, server, "/page/find?"+url.Values{"text": {word}}.Encode()); !strings.Contains(text,
			"No event matches") {
			t.Errorf("%s: %s", word, text)
		}
		asked := strings.Join(api.asked, "\n")
		if len(api.asked) != 4 || !strings.Contains(api.asked[0], "event=") ||
			!strings.Contains(api.asked[1], "text=") || !strings.Contains(api.asked[2], "/v1/signatures?event=") ||
			api.asked[3] != "GET /v1/status" {
			t.Errorf("%s asks:\n%s", word, asked)
		}
	}
}

func TestTheTabsOfTheListHaveNumbersWhereTheyAreCountedAnyway(t *testing.T) {
	counted := &client.CountList{Routes: []client.RouteCounts{
		{Route: "github", Total: client.Counts{Deliveries: 99, Succeeded: 50, Failed: 3, Errors: 2}},
		{Route: "stripe", Total: client.Counts{Succeeded: 7}},
	}}
	status := &client.ReplicaStatus{Parked: client.ParkedStatus{Count: 11, Blocked: 1, DeadLetters: 9}}
	api := &scripted{answers: map[string]any{"/v1/executions": &client.ExecutionPage{}, "/v1/routes/counts": counted,
		"/v1/status": status}}
	server := newPage(t, api)
	shows := func(search string, want map[string]string) {
		t.Helper()
		_, text := get(t, server, "/page/find?"+url.Values{"text": {search}}.Encode())
		_, tabs, _ := strings.Cut(text, `<p class="links">`)
		tabs, _, _ = strings.Cut(tabs, "</p>")
		for _, tab := range []string{"All", "Succeeded", "Failed", "Unknown", "Refused", "Running", "Accepted, waiting",
			"Blocked", "Dead letters", "Cancelled"} {
			if n := want[tab]; n != "" {
				tab += " " + n
			}
			if !strings.Contains(tabs, ">"+tab+"</a>") {
				t.Errorf("%s: no tab %q in %s", search, tab, tabs)
			}
		}
		if strings.Contains(text, "Succeeded counts ") != (want != nil) {
			t.Errorf("%s: %s", search, text)
		}
	}
	shows("", map[string]string{"Succeeded": "57", "Accepted, waiting": "10", "Blocked": "1", "Dead letters": "9"})
	shows("status:failed", map[string]string{"Succeeded": "57", "Accepted, waiting": "10", "Blocked": "1",
		"Dead letters": "9"})
	shows("route:github", map[string]string{"Succeeded": "50"})
	shows("route:stripe", map[string]string{"Succeeded": "7"})
	if !slices.Contains(api.asked, "GET /v1/routes/counts?latency=false&since=24h") {
		t.Errorf("asked %q", api.asked)
	}
	api.asked = nil
	shows("since:10m", map[string]string{"Succeeded": "57"}) // what waits now may have come before
	if !slices.Contains(api.asked, "GET /v1/routes/counts?latency=false&since=10m") {
		t.Errorf("asked %q", api.asked)
	}
	api.asked = nil
	for _, narrower := range []string{"evt_1", "label:order=1", "workflow:w", "prefix:w", "until:1h", "got:locked",
		"event:e", "key:00", "id:exec_", "trace:t"} {
		shows(narrower, nil)
	}
	if slices.ContainsFunc(api.asked, func(asked string) bool {
		return strings.Contains(asked, "counts")
	}) {
		t.Errorf("what it does not show is asked for: %q", api.asked)
	}
	for path, answer := range map[string]any{"/v1/status": status,
		"/v1/routes/counts": &client.CountList{Routes: append(counted.Routes, client.RouteCounts{Route: "(others)"})}} {
		api.set(path, answer)
	}
	shows("route:github", nil) // it may be one of the others
	for _, path := range []string{"/v1/status", "/v1/routes/counts"} {
		api.set(path, &client.Problem{Status: 403, Code: client.CodeForbidden, Detail: "the token is limited to some"})
	}
	shows("", nil)
}

func TestASelectionIsAskedAboutAsItIsNow(t *testing.T) {
	other := strings.Replace(anID, "exec_m", "exec_n", 1)
	letter := client.Execution{ExecutionID: anID, Workflow: "w", Status: client.Failed, Outcome: client.Executed,
		RequestKept: true}
	running := client.Execution{ExecutionID: other, Workflow: "w", Status: client.Running}
	api := &scripted{answers: map[string]any{"/v1/executions/" + anID: &letter, "/v1/executions/" + other: &running,
		"/v1/executions/exec_gone": &client.Problem{Status: 404, Code: client.CodeExecutionNotFound}}}
	for do, want := range map[string]string{"picked-rerun": "POST v1/executions/" + anID + "/rerun",
		"picked-cancel": "POST v1/executions/" + other + "/cancel", "picked-forget": "DELETE v1/executions/" + anID} {
		requests, text := questionOf(t, api, "do="+do+"&pick="+anID+"&pick="+other+"&pick=exec_gone")
		if len(requests) != 1 || requests[0].Method+" "+requests[0].Path != want {
			t.Errorf("%s: %+v %s", do, requests, text)
		}
	}
	if requests, text := questionOf(t, api, "do=picked-skip&pick="+anID); len(requests) != 0 ||
		!strings.Contains(text, "None matches any more") {
		t.Errorf("%+v %s", requests, text)
	}
}

func TestAnExportHasWhatIsShownAndRunsNoFormula(t *testing.T) {
	page := &client.ExecutionPage{Executions: []client.Execution{{ExecutionID: anID, Workflow: "w", Route: "r",
		EventID: "=1+2", Status: client.Failed, Outcome: client.Executed, Response: &client.Response{Status: 500}}}}
	api := &scripted{answers: map[string]any{"/v1/executions": page, "/v1/executions/" + anID: &page.Executions[0]}}
	server := newPage(t, api)
	res, text := get(t, server, "/page/export?format=csv&text=status:failed")
	if res.Header.Get("Content-Type") != "text/csv; charset=utf-8" ||
		!strings.HasPrefix(text,
			"time,event,route,workflow,status,outcome,what_happened,told,duration_seconds,attempt,duplicates,labels,execution,trace\n") ||
		!strings.Contains(text, ",'=1+2,r,w,FAILED,executed,500,500,,0,0,,"+anID+",\n") ||
		!strings.Contains(api.asked[0], "status=FAILED") {
		t.Errorf("%v %v\n%s", res.Header, api.asked, text)
	}
	res, text = get(t, server, "/page/export?format=json&pick="+anID)
	if res.Header.Get("Content-Type") != "application/json" || !strings.Contains(text, `"eventId": "=1+2"`) ||
		res.Header.Get("X-Hooklock-More") != "" {
		t.Errorf("%v\n%s", res.Header, text)
	}
	api.set("/v1/executions", &client.Problem{Status: 401, Code: client.CodeUnauthorized, Detail: "no"})
	if res, _ := get(t, server, "/page/export?format=csv"); res.StatusCode != http.StatusUnauthorized {
		t.Error(res.Status)
	}
}
