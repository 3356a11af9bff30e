package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
)

const aJob = "job_aaaaaaaaaaaaaaaa"

func jobOf(state client.JobState) client.Job {
	return client.Job{
		JobID: aJob, Kind: client.JobRerun, State: state, Who: "ops", Reason: "repaired",
		Filter: client.BulkFilter{Route: "shopify", State: client.ParkDeadLetter},
		Rate:   10, StartedAt: client.Time{Time: time.Now()}, Matched: 991, Acted: 264, Succeeded: 258, Failed: 5,
		Refused: 1, SecondsLeft: 72.7,
		Failures: []client.JobFailure{{ExecutionID: anID, Workflow: "w", Why: "the service answered 500"}},
	}
}

func TestTheScreenOfJobsShowsHowFarEachIs(t *testing.T) {
	job := jobOf(client.JobRunning)
	api := &scripted{answers: map[string]any{"/v1/jobs": &client.JobList{Jobs: []client.Job{job}}}}
	_, text := get(t, newPage(t, api), "/page/jobs")
	for _, part := range []string{"Rerun dead letters of shopify", `<progress max="991" value="264"`,
		"264 of 991 events", "72 s left", "do=job-stop", "ops: repaired"} {
		if !strings.Contains(text, strings.ReplaceAll(part, "72 s left", "1 min 12 s left")) {
			t.Errorf("no %q in %s", part, text)
		}
	}
	if _, text = get(t, newPage(t, api), "/page/jobs?job="+aJob); !strings.Contains(text, "the service answered 500") ||
		!strings.Contains(text, "#story?id="+anID) {
		t.Errorf("%s", text)
	}
	done := jobOf(client.JobDone)
	done.Result = "991 of 991 ran: 985 succeeded, 6 failed, 4 min 20 s"
	api.set("/v1/jobs", &client.JobList{Jobs: []client.Job{done}})
	if _, text = get(t, newPage(t, api), "/page/jobs"); !strings.Contains(text, done.Result) ||
		strings.Contains(text, "do=job-") {
		t.Errorf("%s", text)
	}
}

func TestAJobIsStoppedAndResumedFromThePage(t *testing.T) {
	for do, state := range map[string]client.JobState{"stop": client.JobRunning, "resume": client.JobStopped} {
		job := jobOf(state)
		api := &scripted{answers: map[string]any{"/v1/jobs/" + aJob: &job}}
		requests, text := questionOf(t, api, "do=job-"+do+"&id="+aJob)
		if len(requests) != 1 || requests[0].Path != "v1/jobs/"+aJob+"/"+do ||
			!strings.Contains(text, "hooklock jobs "+do+" "+aJob+" --reason") {
			t.Errorf("%+v %s", requests, text)
		}
		over := jobOf(client.JobDone)
		api.set("/v1/jobs/"+aJob, &over)
		if requests, text = questionOf(t, api, "do=job-"+do+"&id="+aJob); len(requests) != 0 ||
			!strings.Contains(text, "It is done by now.") {
			t.Errorf("%+v %s", requests, text)
		}
	}
}

func TestOneSelectedEventIsNoJob(t *testing.T) {
	letter := client.Execution{ExecutionID: anID, Workflow: "w", Status: client.Failed, RequestKept: true}
	api := &scripted{answers: map[string]any{"/v1/executions/" + anID: &letter}}
	requests, _ := questionOf(t, api, "do=picked-rerun&pick="+anID)
	if len(requests) != 1 || requests[0].Path != "v1/executions/"+anID+"/rerun" {
		t.Errorf("%+v", requests)
	}
	requests, _ = questionOf(t, api, "do=picked-rerun&pick="+anID+"&pick="+anID)
	if len(requests) != 1 || requests[0].Path != "v1/jobs" || fmt.Sprint(requests[0].Body["executions"]) != "["+anID+
		" "+anID+"]" {
		t.Errorf("%+v", requests)
	}
}
