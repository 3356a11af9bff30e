package admin

import (
	"fmt"
	"strings"
	"testing"

	"hooklock/idem"
)

func TestASettledEventRunsAgainOnlyIfThatIsSaid(t *testing.T) {
	f := newFleet(t, keptRequests)
	id := f.ended("w", "1", success())
	path := "/v1/executions/" + id + "/rerun"
	a := f.want(404, "request_not_kept", "POST", path, opsToken, `{"reason":"it was wrong"}`)
	if !strings.Contains(a.text("detail"), "--again") {
		t.Errorf("%s", a.body)
	}
	f.want(400, "bad_request", "POST", "/v1/executions/"+id+"/skip", opsToken, `{"reason":"r","again":true}`)
	a = f.want(201, "", "POST", path, opsToken, `{"reason":"it was wrong","again":true}`)
	if a.text("status") != "PENDING" || a.json["attempt"] != 2.0 || member(a, "parked")["on"] != "again" {
		t.Errorf("%s", a.body)
	}
	f.want(409, "execution_in_flight", "POST", path, opsToken, `{"reason":"twice","again":true}`)
	unkept := f.ended("w2", "unkept", success())
	a = f.want(404, "request_not_kept", "POST", "/v1/executions/"+unkept+"/rerun", opsToken,
		`{"reason":"r","again":true}`)
	if detail := a.text("detail"); strings.Contains(detail, "--again") || !strings.Contains(detail, "forget") {
		t.Errorf("%s", a.body)
	}
}

func TestAJobLetsAllRunAgainThatHaveEnded(t *testing.T) {
	f := newFleet(t, keptRequests)
	runJobs(t, f.api)
	for i := range 12 {
		f.ended("w", fmt.Sprint(i), success())
	}
	f.ended("w", "failed", failure())
	f.ended("other", "1", success())
	f.ended("w", "unkept", success())
	dry := f.want(200, "", "POST", "/v1/jobs", opsToken,
		`{"kind":"rerun","again":true,"filter":{"workflow":"w","status":"SUCCESS"},"dryRun":true}`)
	first, _ := dry.json["first"].([]any)
	if dry.json["matched"] != 13.0 || len(first) != 10 {
		t.Errorf("%s", dry.body)
	}
	id := f.begun(
		`{"kind":"rerun","again":true,"reason":"it was wrong","filter":{"workflow":"w","status":"SUCCESS"},"rate":1000}`)
	f.awaitJob(id, "all are let run", func(a *reply) bool { return a.json["acted"] == 13.0 })
	f.runsInOrder("w", 12)
	a := f.awaitJob(id, "it is done", isDone)
	if a.json["succeeded"] != 12.0 || a.json["refused"] != 1.0 || a.json["again"] != true {
		t.Errorf("%s", a.body)
	}
}

// What is left alone would run after the events that had run after it.
func TestAJobWaitsForTheRequestStore(t *testing.T) {
	f := newFleet(t, keptRequests)
	runJobs(t, f.api)
	for i := range 3 {
		f.ended("w", fmt.Sprint(i), success())
	}
	f.unread.Store(2)
	id := f.begun(`{"kind":"rerun","again":true,"reason":"r","filter":{"workflow":"w","status":"SUCCESS"},"rate":1000}`)
	f.awaitJob(id, "all are let run", func(a *reply) bool { return a.json["acted"] == 3.0 })
	f.runsInOrder("w", 3)
	if a := f.awaitJob(id, "it is done", isDone); a.json["succeeded"] != 3.0 || a.json["refused"] != 0.0 {
		t.Errorf("%s", a.body)
	}
}

// A request whose key is missing holds a job up once.
func TestAJobDoesNotWaitForTheRequestStoreForEver(t *testing.T) {
	r := &jobRun{}
	if !r.waitsForStore() {
		t.Error("it does not wait at all")
	}
	r.unreadSince = r.unreadSince.Add(-storePatience)
	for range 2 {
		if r.waitsForStore() {
			t.Error("it waits for the next one")
		}
	}
}

func TestAJobOfEventsThatEndedIsRefusedWhatItCannotMean(t *testing.T) {
	f := newFleet(t, keptRequests)
	for _, body := range []string{
		`{"kind":"skip","again":true,"reason":"r","filter":{"workflow":"w"}}`,
		`{"kind":"rerun","reason":"r","filter":{"status":"SUCCESS"}}`,
		`{"kind":"rerun","again":true,"reason":"r","filter":{"status":"RUNNING"}}`,
		`{"kind":"rerun","again":true,"reason":"r","filter":{"state":"dead_letter"}}`,
		`{"kind":"rerun","again":true,"reason":"r"}`,
	} {
		f.want(400, "bad_request", "POST", "/v1/jobs", opsToken, body)
	}
}

// ended runs an event to its end, and returns its execution.
func (f *fleet) ended(workflow, event string, end idem.End) string {
	f.t.Helper()
	return string(f.settle(f.run(workflow, event), end).Execution)
}
