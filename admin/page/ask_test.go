package page

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
)

// questionOf is what the script would send, and what a person reads.
func questionOf(t *testing.T, api *scripted, query string) (requests []request, text string) {
	t.Helper()
	_, text = get(t, newPage(t, api), "/page/ask?"+query)
	if found := regexp.MustCompile(`data-requests="([^"]*)"`).FindStringSubmatch(text); found != nil {
		if err := json.Unmarshal([]byte(html.UnescapeString(found[1])), &requests); err != nil {
			t.Fatal(err)
		}
	}
	return requests, html.UnescapeString(text)
}

func TestAQuestionSaysWhatFollowsAndSendsWhatWasSeen(t *testing.T) {
	at := client.Time{Time: time.Now().Add(-time.Minute)}
	pending := client.Execution{
		ExecutionID: anID, Workflow: "w", EventID: "evt_1", Status: client.Pending, StartedAt: at}
	running, unknown, done, parked, letter := pending, pending, pending, pending, pending
	running.Status = client.Running
	unknown.Status, unknown.Outcome, unknown.FinishedAt = client.Failed, client.Unknown, at
	unknown.Error = &client.Failure{Code: "upstream_timeout", Detail: "412 bytes were sent and no answer came"}
	done.Status, done.Outcome, done.FinishedAt, done.Response, done.Duplicates = client.Success, client.Executed, at,
		&client.Response{Status: 200, Bytes: 31, Kept: true}, 7
	parked.Parked = &client.Parked{Since: at, Tries: 2, Failures: 1, Blocked: "its outcome is unknown"}
	letter.Status, letter.Outcome, letter.FinishedAt, letter.RequestKept = client.Failed, client.Unknown, at, true
	stored := done
	stored.RequestStored, stored.Route = client.StoredYes, "signed"
	lock := client.Lock{Workflow: "w", ExecutionID: anID, Token: 42, Waiting: 3, LockedAt: at}
	cooling := lock
	cooling.Cooling = true
	other := lock
	other.ExecutionID = strings.Replace(anID, "exec_m", "exec_n", 1)
	for name, c := range map[string]struct {
		query string
		x     client.Execution
		lock  *client.Lock
		want  string // of the first request; "" = there is none
		says  []string
	}{
		"cancel what waits": {"do=cancel&id=" + anID, pending, nil, `POST v1/executions/` + anID + `/cancel map[ifStatus:PENDING]`,
			[]string{"nothing was sent to the service", "--if-status PENDING", `'{"ifStatus":"PENDING","reason":"why"}'`}},
		"cancel what runs": {"do=cancel&id=" + anID, running, &lock, `POST v1/executions/` + anID + `/cancel map[ifStatus:RUNNING]`,
			[]string{"closed within 200 ms", "3 events wait for the lock"}},
		"cancel what ended": {"do=cancel&id=" + anID, done, nil, "", []string{"It has ended: SUCCESS"}},
		"release": {
			"do=release&workflow=w&id=" + anID, running, &lock, "DELETE v1/locks/w map[]",
			[]string{"A second event can then run at the same time", "Fencing number 42 becomes stale",
				"locks release w --execution " + anID, "execution=" + anID + "&reason="}},
		"release what cools": {
			"do=release&workflow=w&id=" + anID, unknown, &cooling, "DELETE v1/locks/w map[]",
			[]string{"412 bytes were sent and no answer came"}},
		"release another's": {
			"do=release&workflow=w&id=" + anID, running, &other, "", []string{"Another execution has the lock now"}},
		"forget what is known": {
			"do=forget&id=" + anID, done, nil, "DELETE v1/executions/" + anID + " map[]",
			[]string{"a second time", "7 duplicates"}},
		"forget what is not": {
			"do=forget&id=" + anID, unknown, nil, "DELETE v1/executions/" + anID + " map[]",
			[]string{"412 bytes were sent and no answer came", "twice"}},
		"forget what runs": {"do=forget&id=" + anID, running, nil, "", []string{"cancel it first"}},
		"run": {
			"do=run&id=" + anID, parked, nil, "POST v1/executions/" + anID + "/run map[]",
			[]string{"tried 2 times", "its outcome is unknown"}},
		"run what is not": {"do=run&id=" + anID, running, nil, "", []string{"It does not wait any more"}},
		"skip": {
			"do=skip&id=" + anID, parked, nil, "POST v1/executions/" + anID + "/skip map[]", []string{"dead letter"}},
		"rerun": {
			"do=rerun&id=" + anID, letter, nil, "POST v1/executions/" + anID + "/rerun map[]",
			[]string{"takes effect twice"}},
		"run again": {
			"do=again&id=" + anID, stored, nil, "POST v1/executions/" + anID + "/rerun map[again:true]",
			[]string{"may do twice", "the signature as it came", "executions rerun " + anID + " --again --reason"}},
		"run again what is not": {"do=again&id=" + anID, done, nil, "", []string{"not kept"}},
		"rerun what is not":     {"do=rerun&id=" + anID, unknown, nil, "", []string{"not kept"}},
	} {
		t.Run(name, func(t *testing.T) {
			api := &scripted{answers: map[string]any{"/v1/executions/" + anID: &c.x,
				"/v1/routes": &client.RouteList{Routes: []client.RouteRules{{Route: "signed", SignatureAge: 300}}}}}
			if c.lock != nil {
				api.set("/v1/locks/w", c.lock)
			}
			requests, text := questionOf(t, api, c.query)
			got := ""
			if len(requests) > 0 {
				got = fmt.Sprint(requests[0].Method, " ", requests[0].Path, " ", requests[0].Body)
			}
			if got != c.want {
				t.Errorf("sends %q, want %q", got, c.want)
			}
			if strings.Contains(c.query, "release") && got != "" && requests[0].Query["execution"] != anID {
				t.Errorf("a release without a compare: %+v", requests[0])
			}
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("does not say %q: %s", want, text)
				}
			}
		})
	}
	page := &client.ExecutionPage{Executions: []client.Execution{running, pending, done}, NextCursor: "more"}
	page.Executions[1].ExecutionID = other.ExecutionID
	api := &scripted{answers: map[string]any{"/v1/executions": page}}
	requests, text := questionOf(t, api, "do=all-cancel&route=r")
	if len(requests) != 2 || requests[0].Path != "v1/jobs" || requests[0].Body["ifStatus"] != "PENDING" ||
		requests[1].Body["ifStatus"] != "RUNNING" || fmt.Sprint(requests[1].Body["executions"]) != "["+anID+"]" ||
		!strings.Contains(text, "Cancel 2 events") || !strings.Contains(text, "newest 2") {
		t.Errorf("%+v %s", requests, text)
	}
	if api.asked[0] != "GET /v1/executions?limit=100&route=r" {
		t.Errorf("asked %v", api.asked)
	}
	api = &scripted{answers: map[string]any{"/v1/jobs": &client.Job{Matched: 37}}}
	requests, text = questionOf(t, api, "do=all-rerun&state=dead_letter&route=r&label=order%3D1")
	if len(requests) != 1 || requests[0].Body["kind"] != "rerun" || requests[0].Path != "v1/jobs" || !strings.Contains(text, "Rerun 37 events") || fmt.Sprint(requests[0].Body["filter"]) != "map[label:order=1 route:r state:dead_letter]" || !strings.Contains(text, "hooklock rerun --route r --label 'order=1' --dead-letters --reason") {
		t.Errorf("%+v %s", requests, text)
	}
	if _, text = questionOf(t, api, "do=all-run&state=blocked"); !strings.Contains(text,
		"hooklock run --blocked --reason") {
		t.Errorf("%s", text)
	}
	if _, text = questionOf(t, api, "do=all-run&state=parked&route=r"); strings.Contains(text, "hooklock run") {
		// it would run what is blocked, too
		t.Errorf("%s", text)
	}
}
