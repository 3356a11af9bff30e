package main

import (
	"strings"
	"testing"

	"hooklock/cmd/hooklock/cli"
)

// first returns the first request.
func (a *adminAPI) first() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[0]
}

// jobJSON is a job; more are further members.
func jobJSON(state, more string) string {
	return `{"jobId":"job_aaaaaaaaaaaaaaaa","kind":"rerun","state":"` + state +
		`","who":"ops","reason":"repaired","rate":10,"startedAt":"2026-11-21T10:00:01.000Z","matched":3,"acted":3,` +
		`"waiting":0,` + more + `}`
}

func TestAnActionOnManyIsAJobThatIsWatched(t *testing.T) {
	const failure = `{"executionId":"` + id +
		`","workflow":"orders/acme","why":"upstream_status: the service answered 500"}`
	fine := jobJSON("done",
		`"refused":0,"succeeded":3,"failed":0,"failures":[],"result":"3 of 3 ran: 3 succeeded, 0 failed, 2 s"`)
	ended := map[string]string{
		"rerun": fine,
		"run": jobJSON("done", `"refused":0,"succeeded":2,"failed":1,"failures":[`+failure+
			`],"result":"3 of 3 ran: 2 succeeded, 1 failed, 2 s"`),
		"skip": jobJSON("done", `"refused":1,"succeeded":2,"failed":0,"failures":[`+
			strings.Replace(failure, `"why"`, `"refused":true,"why"`, 1)+
			`],"result":"2 of 3 skipped, 1 left alone, 2 s"`),
	}
	for what, want := range map[string]struct {
		code int
		said string
	}{
		"rerun": {cli.ExitFine, "3 of 3 ran: 3 succeeded, 0 failed, 2 s"},
		"run":   {cli.ExitFine, "3 match, 3 done, 0 refused\njob_aaaaaaaaaaaaaaaa: 3 of 3 ran: 2 succeeded, 1 failed"},
		"skip":  {cli.ExitRefused, "1 left alone"},
	} {
		api := serveAPI(t, map[string]string{
			"POST /v1/jobs": "201 " +
				jobJSON("running", `"refused":0,"succeeded":0,"failed":0,"failures":[]`),
			"GET /v1/jobs/job_aaaaaaaaaaaaaaaa": "200 " + ended[what],
		})
		code, out, problems := command(t, nil, "executions", what, "--workflow", "orders/*", "--rate", "50", "--reason",
			"repaired", "--admin", api.url)
		if code != want.code || !strings.Contains(problems, want.said) ||
			strings.Contains(out, id) != (what != "rerun") {
			t.Errorf("%s: %d %s%s", what, code, out, problems)
		}
		if want := `{"kind":"` + what +
			`","reason":"repaired","filter":{"workflow":"orders/*"},"rate":50}`; !strings.HasSuffix(api.first(), want) {
			t.Errorf("asked %s", api.first())
		}
	}
	api := serveAPI(t, map[string]string{
		"POST /v1/jobs": "201 " +
			jobJSON("running", `"refused":0,"succeeded":0,"failed":0,"failures":[]`),
		"GET /v1/jobs/job_aaaaaaaaaaaaaaaa": "200 " + fine,
	})
	code, out, problems := command(t, nil, "retry", "--dead-letters", "--reason", "repaired", "-o", "json", "--admin",
		api.url)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != cli.ExitFine || len(lines) != 2 || !strings.Contains(lines[0], `"state":"running"`) ||
		!strings.Contains(lines[1], `"result":"3 of 3 ran`) {
		t.Errorf("%d %s%s", code, out, problems)
	}
	code, out, _ = command(t, nil, "retry", "--dead-letters", "--reason", "repaired", "--detach", "--admin", api.url)
	if code != cli.ExitFine || !strings.Contains(out, "job_aaaaaaaaaaaaaaaa has begun") ||
		!strings.HasPrefix(api.last(), "POST /v1/jobs") {
		t.Errorf("%d %s", code, out)
	}
}

func TestJobsAreListedAndStoppedByTheBeginningOfTheirID(t *testing.T) {
	running := jobJSON("running", `"refused":0,"succeeded":1,"failed":0,"failures":[],"perSecond":9.9,"secondsLeft":75`)
	const job = "/v1/jobs/job_aaaaaaaaaaaaaaaa"
	api := serveAPI(t, map[string]string{
		"GET /v1/jobs": `200 {"jobs":[` + running + `]}`,
		"GET " + job:   "200 " + running,
		"POST " + job + "/stop": "200 " +
			jobJSON("stopped",
				`"refused":0,"succeeded":1,"failed":0,"failures":[],"result":"stopped by ops, 1 of 3 ran"`),
		"POST " + job + "/resume":  `412 {"code":"status_changed","detail":"the job is running, not stopped"}`,
		"GET /v1/jobs/job_unknown": `404 {"code":"job_not_found"}`,
	})
	at := "--admin=" + api.url
	if code, out, _ := command(t, nil, "jobs", at); code != cli.ExitFine ||
		!strings.Contains(out, "job_aaaaaaaaaaaaaaaa") || !strings.Contains(out, "running") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := command(t, nil, "jobs", "get", "aaa", at); code != cli.ExitFine ||
		!strings.Contains(out, "1 of 3") || !strings.Contains(out, "1m15s left") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := command(t, nil, "jobs", "stop", "job_aa", "--reason", "r", at); code != cli.ExitFine ||
		!strings.Contains(out, "is stopped by ops, 1 of 3 ran") {
		t.Errorf("%d %s", code, out)
	}
	if code, _, problems := command(t, nil, "jobs", "resume", "job_aa", "--reason", "r", at); code != cli.ExitRefused ||
		!strings.Contains(problems, "not stopped") {
		t.Errorf("%d %s", code, problems)
	}
	if code, _, problems := command(t, nil, "jobs", "get", "job_unknown", at); code != cli.ExitNotFound {
		t.Errorf("%d %s", code, problems)
	}
	for _, wrong := range [][]string{{"jobs", "get"}, {"jobs", "stop", "job_aa"}, {"jobs", "nonsense"}} {
		if code, _, problems := command(t, nil, append(wrong, at)...); code != cli.ExitUsage {
			t.Errorf("%v: %d %s", wrong, code, problems)
		}
	}
}
