package admin

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// runJobs runs jobs at an API until the test ends, or until stop is called.
func runJobs(t *testing.T, a *API) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { a.RunJobs(ctx) })
	stop = func() { cancel(); over.Wait() }
	t.Cleanup(stop)
	return stop
}

// letters makes n dead letters of a workflow, and returns their IDs.
func (f *fleet) letters(workflow string, n int) (ids []string) {
	f.t.Helper()
	for i := range n {
		ids = append(ids, f.park(workflow, fmt.Sprint(i), "a|b"))
		f.deadLetter(f.carry(workflow))
	}
	return ids
}

// begun starts a job, and returns its ID.
func (f *fleet) begun(body string) string {
	f.t.Helper()
	a := f.want(201, "", "POST", "/v1/jobs", opsToken, body)
	if a.Header.Get("Location") != "/v1/jobs/"+a.text("jobId") {
		f.t.Errorf("Location: %s", a.Header.Get("Location"))
	}
	return a.text("jobId")
}

// awaitJob waits until a job is as holds wants it.
func (f *fleet) awaitJob(id, what string, holds func(*reply) bool) (a *reply) {
	f.t.Helper()
	etcdtest.Eventually(f.t, what, func() bool {
		a = f.want(200, "", "GET", "/v1/jobs/"+id, readToken1, "")
		return holds(a)
	})
	return a
}

func isDone(a *reply) bool { return a.text("state") == "done" }

// runsInOrder lets the events 0 to n-1 of a workflow run, in that order. Those that fail says
// become dead letters again.
func (f *fleet) runsInOrder(workflow string, n int, fails ...int) {
	f.t.Helper()
	for i := range n {
		h := f.carry(workflow)
		if got := h.Lock().EventID; got != fmt.Sprint(i) {
			f.t.Fatalf("%s runs as number %d", got, i)
		}
		if slices.Contains(fails, i) {
			f.deadLetter(h)
			continue
		}
		if _, err := h.Settle(within(f.t), success()); err != nil {
			f.t.Fatal(err)
		}
	}
}

func TestAJobRunsAllThatMatchAndSaysHowTheyEnded(t *testing.T) {
	f := newFleet(t, keptRequests)
	runJobs(t, f.api)
	f.letters("w", 3)
	f.letters("other", 1)
	if a := f.want(200, "", "POST", "/v1/jobs", opsToken,
		`{"kind":"rerun","filter":{"workflow":"w"},"dryRun":true}`); a.number("matched") != 3 ||
		a.text("state") != "dry_run" || a.text("jobId") != "" {
		t.Errorf("%s", a.body)
	}
	if a := f.want(200, "", "POST", "/v1/jobs", opsToken, `{"kind":"rerun","dryRun":true,"filter":{"route":"route",
		"since":"1h","until":"0s","label":"tenant=none"}}`); a.number("matched") != 0 {
		t.Errorf("%s", a.body)
	}
	id := f.begun(`{"kind":"rerun","reason":"repaired","filter":{"workflow":"w"},"rate":1000}`)
	f.runsInOrder("w", 3, 1)
	a := f.awaitJob(id, "the job is done", isDone)
	if a.number("matched") != 3 || a.number("acted") != 3 || a.number("succeeded") != 2 || a.number("failed") != 1 ||
		a.number("waiting") != 0 || a.text("who") != "ops" || a.text("reason") != "repaired" {
		t.Errorf("%s", a.body)
	}
	if got := a.text("result"); !strings.HasPrefix(got, "3 of 3 ran: 2 succeeded, 1 failed, ") {
		t.Errorf("%q", got)
	}
	if failures, _ := a.json["failures"].([]any); len(failures) != 1 ||
		failures[0].(map[string]any)["workflow"] != "w" || failures[0].(map[string]any)["why"] == "" {
		t.Errorf("%s", a.body)
	}
	audits := string(f.want(200, "", "GET", "/v1/audit?what=job.", readToken1, "").body)
	for _, part := range []string{`"what":"job.start"`, `"what":"job.end"`,
		`"after":"3 of 3 ran: 2 succeeded, 1 failed, `, `"jobId":"` + id + `"`} {
		if !strings.Contains(audits, part) {
			t.Errorf("no %s in %s", part, audits)
		}
	}
	if n := strings.Count(string(f.want(200, "", "GET", "/v1/audit?what=execution.rerun", readToken1, "").body),
		`"jobId":"`+id+`"`); n != 3 {
		t.Errorf("%d audits of its steps", n)
	}
	if list := string(f.want(200, "", "GET", "/v1/jobs", readToken1, "").body); !strings.Contains(list, id) {
		t.Errorf("%s", list)
	}
	if runs, err := f.second.JobRuns(within(t), id); len(runs) != 0 || err != nil {
		t.Errorf("left: %v %v", runs, err)
	}
}

func TestAJobIsStoppedAndGoesOn(t *testing.T) {
	f := newFleet(t, keptRequests)
	runJobs(t, f.api)
	f.letters("w", 4)
	id := f.begun(`{"kind":"rerun","reason":"r","filter":{"workflow":"w"},"rate":1}`)
	f.awaitJob(id, "it has begun", func(a *reply) bool { return a.number("acted") > 0 })
	a := f.want(200, "", "POST", "/v1/jobs/"+id+"/stop", opsToken, `{"reason":"too early"}`)
	acted := a.number("acted")
	if a.text("state") != "stopped" || a.text("stoppedBy") != "ops" || acted >= 4 ||
		!strings.HasPrefix(a.text("result"), "stopped by ops, 0 of 4 ran") {
		t.Errorf("%s", a.body)
	}
	f.want(412, "status_changed", "POST", "/v1/jobs/"+id+"/stop", opsToken, `{"reason":"again"}`)
	etcdtest.Eventually(t, "its goroutine ends", func() bool {
		f.api.jobs.mu.Lock()
		defer f.api.jobs.mu.Unlock()
		return len(f.api.jobs.mine) == 0
	})
	if a := f.want(200, "", "GET", "/v1/jobs/"+id, readToken1, ""); a.number("acted") != acted {
		t.Errorf("it went on: %s", a.body)
	}
	if a := f.want(200, "", "POST", "/v1/jobs/"+id+"/resume", opsToken,
		`{"reason":"now"}`); a.text("state") != "running" || a.json["result"] != nil {
		t.Errorf("%s", a.body)
	}
	f.want(412, "status_changed", "POST", "/v1/jobs/"+id+"/resume", opsToken, `{"reason":"again"}`)
	f.runsInOrder("w", 4)
	if a := f.awaitJob(id, "it is done", isDone); a.number("succeeded") != 4 || a.json["stoppedBy"] != nil {
		t.Errorf("%s", a.body)
	}
	f.want(412, "status_changed", "POST", "/v1/jobs/"+id+"/resume", opsToken, `{"reason":"again"}`)
}

func TestAJobTakesExecutionsInsteadOfAFilter(t *testing.T) {
	f := newFleet(t, keptRequests)
	runJobs(t, f.api)
	ids := f.letters("w", 2)
	waiting := f.park("x", "1", "a|b")
	named := `,"executions":["` + strings.Join(append(ids, waiting, anID), `","`) + `"]}`
	a := f.awaitJob(f.begun(`{"kind":"forget","reason":"r"`+named), "it is done", isDone)
	if a.number("succeeded") != 2 || a.number("refused") != 2 || !strings.HasPrefix(a.text("result"),
		"2 of 4 allowed again, 2 left alone, ") || !strings.Contains(string(a.body), "execution_in_flight") {
		t.Errorf("%s", a.body)
	}
	a = f.awaitJob(f.begun(`{"kind":"cancel","reason":"r","executions":["`+waiting+`"]}`), "it is done", isDone)
	if a.number("succeeded") != 1 || f.execution(waiting).text("status") != "ABORTED" {
		t.Errorf("%s", a.body)
	}
	queued := f.park("x", "2", "a|b")
	a = f.awaitJob(f.begun(`{"kind":"cancel","ifStatus":"RUNNING","reason":"r","executions":["`+queued+`"]}`),
		"it is done", isDone)
	if a.number("refused") != 1 || !strings.Contains(string(a.body), "it was not RUNNING any more") ||
		f.execution(queued).text("status") != "PENDING" {
		t.Errorf("%s", a.body)
	}
	f.want(202, "", "POST", "/v1/executions/"+queued+"/cancel", opsToken, `{"reason":"r"}`)
	f.park("y", "1", "a|b")
	a = f.awaitJob(f.begun(`{"kind":"skip","reason":"r","filter":{"state":"parked"}}`), "it is done", isDone)
	if a.number("succeeded") != 1 || !strings.HasPrefix(a.text("result"), "1 of 1 skipped, ") {
		t.Errorf("%s", a.body)
	}
}

func TestAJobOfBlockedExecutionsCountsTheirNextTry(t *testing.T) {
	f := newFleet(t, keptRequests)
	runJobs(t, f.api)
	f.park("w", "1", "a|b")
	h := f.carry("w")
	f.block(h)
	id := f.begun(`{"kind":"run","reason":"r","filter":{"state":"blocked"}}`)
	f.awaitJob(id, "it is let run", func(a *reply) bool { return a.number("waiting") == 1 })
	if a := f.want(200, "", "GET", "/v1/jobs/"+id, readToken1, ""); a.number("failed") != 0 {
		t.Errorf("the try before counts: %s", a.body)
	}
	p := *h.Lock().Parked
	p.Tries, p.Trying = 2, true
	if err := h.BeginTry(within(t), p, h.Lock().CallbackHash); err != nil {
		t.Fatal(err)
	}
	p.Failures, p.Trying, p.Blocked, p.Last = 2, false, "2 of 2 tries failed",
		&idem.Evidence{Outcome: idem.Executed, Status: 500, Code: "upstream_status", At: time.Now()}
	if err := h.RecordTry(within(t), p); err != nil {
		t.Fatal(err)
	}
	a := f.awaitJob(id, "it is done", isDone)
	if a.number("failed") != 1 || !strings.Contains(string(a.body), "it needs a decision: 2 of 2 tries failed") {
		t.Errorf("%s", a.body)
	}
}

// beforeStep is a ledger that calls its function before what a job does with an execution, and does
// nothing after an error of it.
type beforeStep struct {
	Ledger
	does func(id idem.ExecutionID, a *idem.Audit) error
}

func (l beforeStep) RunNow(ctx context.Context, id idem.ExecutionID, a *idem.Audit) (*idem.Found, error) {
	if err := l.does(id, a); err != nil {
		return nil, err
	}
	return l.Ledger.RunNow(ctx, id, a)
}

func (l beforeStep) Skip(ctx context.Context, id idem.ExecutionID, by idem.Cancel, a *idem.Audit) (*idem.Found, bool,
	error) {
	if err := l.does(id, a); err != nil {
		return nil, false, err
	}
	return l.Ledger.Skip(ctx, id, by, a)
}

func (l beforeStep) Rerun(ctx context.Context, id idem.ExecutionID, a *idem.Audit) (*idem.Found, error) {
	if err := l.does(id, a); err != nil {
		return nil, err
	}
	return l.Ledger.Rerun(ctx, id, a)
}

// No process could look up what matches before: its own had died, or etcd did not answer.
func TestAJobLeavesAloneWhatCameAfterItWasAskedFor(t *testing.T) {
	f := newFleet(t, keptRequests)
	f.letters("w", 1)
	var ids []string
	for _, body := range []string{`{"kind":"rerun","reason":"r","filter":{"workflow":"w"}}`,
		`{"kind":"rerun","reason":"r","again":true,"filter":{"workflow":"w","status":"SUCCESS"}}`} {
		ids = append(ids, f.begun(body))
	}
	f.park("w", "later", "a|b")
	f.deadLetter(f.carry("w"))
	runJobs(t, f.api)
	f.runsInOrder("w", 1)
	for i, want := range []int64{1, 0} {
		if a := f.awaitJob(ids[i], "it is done", isDone); a.number("matched") != want {
			t.Errorf("%s", a.body)
		}
	}
}

func TestAJobLeavesAloneWhatAPersonRanAfterItBegan(t *testing.T) {
	f := newFleet(t, keptRequests)
	// A person runs it, and it blocks again, after the job has seen it and before the job's step.
	runBefore := func(id string, h idem.RunningLock) {
		ledger := f.api.options.Ledger
		f.api.options.Ledger = beforeStep{ledger, func(named idem.ExecutionID, _ *idem.Audit) error {
			if string(named) != id || member(f.execution(id), "parked")["tries"] != 1.0 {
				return nil
			}
			if _, err := f.second.RunNow(within(t), named, nil); err != nil {
				t.Error(err)
			}
			p := *h.Lock().Parked
			p.Tries, p.Trying, p.Blocked = 2, true, ""
			if err := h.BeginTry(within(t), p, h.Lock().CallbackHash); err != nil {
				t.Error(err)
			}
			p.Failures, p.Trying, p.Blocked = 2, false, "2 of 2 tries failed"
			return h.RecordTry(within(t), p)
		}}
		t.Cleanup(func() { f.api.options.Ledger = ledger })
	}
	for i, body := range []string{
		`{"kind":"run","reason":"r","filter":{"workflow":"WORKFLOW","state":"blocked"}}`,
		`{"kind":"skip","reason":"r","filter":{"workflow":"WORKFLOW","state":"blocked"}}`,
		`{"kind":"run","reason":"r","executions":["EXECUTION"]}`,
		`{"kind":"skip","reason":"r","executions":["EXECUTION"]}`, `{"reason":"r","filter":{"workflow":"WORKFLOW"}}`,
	} {
		workflow := fmt.Sprint("w", i)
		id := f.park(workflow, workflow, "a|b")
		h := f.carry(workflow)
		f.block(h)
		runBefore(id, h)
		body = strings.NewReplacer("WORKFLOW", workflow, "EXECUTION", id).Replace(body)
		var a *reply
		if strings.Contains(body, "kind") {
			stop := runJobs(t, f.api)
			a = f.awaitJob(f.begun(body), "it is done", isDone)
			stop()
		} else {
			a = f.want(200, "", "POST", "/v1/executions/run", opsToken, body)
		}
		if a.number("refused") != 1 || !strings.Contains(string(a.body), "it has changed since it was chosen") {
			t.Errorf("%s: %s", body, a.body)
		}
		if p := member(f.execution(id), "parked"); p["blocked"] != "2 of 2 tries failed" {
			t.Errorf("%s: %v", body, p)
		}
	}
}

func TestAJobThatGoesOnCountsWhatHasChangedMeanwhileAsLeftAlone(t *testing.T) {
	f := newFleet(t, keptRequests)
	ids := f.letters("w", 3)
	ledger, changed := f.api.options.Ledger, false
	f.api.options.Ledger = beforeStep{ledger, func(id idem.ExecutionID, _ *idem.Audit) error {
		if changed || string(id) != ids[1] {
			return nil
		}
		changed = true
		if _, err := ledger.Rerun(within(t), idem.ExecutionID(ids[2]), nil); err != nil {
			t.Error(err)
		}
		return idem.ErrStoreUnavailable
	}}
	runJobs(t, f.api)
	id := f.begun(`{"kind":"rerun","reason":"r","filter":{"workflow":"w"},"rate":1000}`)
	f.runsInOrder("w", 1)
	for range 2 {
		if _, err := f.carry("w").Settle(within(t), success()); err != nil {
			t.Fatal(err)
		}
	}
	a := f.awaitJob(id, "it is done", isDone)
	if a.number("acted") != 3 || a.number("succeeded") != 2 || a.number("refused") != 1 ||
		!strings.Contains(a.text("result"), "1 left alone") {
		t.Errorf("%s", a.body)
	}
}

func TestAJobStopsWithItsToken(t *testing.T) {
	f := newFleet(t, keptRequests)
	access := Access{Tokens: rigTokens(), UserHeader: "X-User",
		UserHeaderFrom: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	ledger, revoke := f.api.options.Ledger, Access{}
	f.api.options.Ledger = beforeStep{ledger, func(idem.ExecutionID, *idem.Audit) error {
		f.api.SetAccess(revoke)
		return nil
	}}
	runJobs(t, f.api)
	for i, row := range []struct {
		why    string
		change func(t *Token) // of the token that starts the job
	}{
		{"the token stripe is accepted no more", func(t *Token) { t.Name = "another" }},
		{"the token stripe has no scope write any more", func(t *Token) { t.Write = false }},
		{"the token stripe is for other workflows now", func(t *Token) { t.Workflows = []string{"stripe/other"} }},
	} {
		f.api.SetAccess(access)
		workflow := fmt.Sprint("stripe/", i)
		f.letters(workflow, 4)
		revoke = access
		revoke.Tokens = slices.Clone(access.Tokens)
		row.change(&revoke.Tokens[2])
		id := f.want(201, "", "POST", "/v1/jobs", stripeToken, `{"kind":"rerun","reason":"r","filter":{"workflow":"`+
			workflow+`"},"rate":1000}`, "X-User", "anna").text("jobId")
		a := f.awaitJob(id, row.why, func(a *reply) bool { return a.text("state") != "running" })
		if a.text("state") != "stopped" || a.text("who") != "anna (stripe)" || a.text("stoppedBy") != "policy" ||
			a.number("acted") != 1 || !strings.HasPrefix(a.text("result"), "stopped because "+row.why+", 0 of 4 ran") {
			t.Errorf("%s", a.body)
		}
		if audits := string(f.want(200, "", "GET", "/v1/audit?what=job.stop", readToken1,
			"").body); !strings.Contains(audits, row.why) || !strings.Contains(audits, `"who":"policy"`) {
			t.Errorf("%s", audits)
		}
		if a := f.want(200, "", "POST", "/v1/jobs/"+id+"/resume", opsToken,
			`{"reason":"mine now"}`); a.text("who") != "ops" {
			t.Errorf("%s", a.body)
		}
		f.runsInOrder(workflow, 4)
		if a := f.awaitJob(id, "it is done", isDone); a.number("succeeded") != 4 {
			t.Errorf("%s", a.body)
		}
	}
}

func TestAReplicaLeavesAJobWhoseTokenItDoesNotKnowYetToOthersForAMinute(t *testing.T) {
	f := newFleet(t, keptRequests)
	f.letters("w", 1)
	begin := func(id string, changed time.Time) {
		j := &idem.Job{ID: id, Kind: "rerun", Who: "new", Rate: 1, StartedAt: changed, ChangedAt: changed,
			Filter: idem.JobFilter{Workflow: "w"}}
		if err := f.second.BeginJob(within(t), j, nil); err != nil {
			t.Fatal(err)
		}
	}
	begin("job_new", time.Now())
	begin("job_old", time.Now().Add(-2*time.Minute))
	var over sync.WaitGroup
	f.api.jobs.takeJobs(t.Context(), &over)
	over.Wait()
	if a := f.want(200, "", "GET", "/v1/jobs/job_new", readToken1, ""); a.text("state") != "running" ||
		a.json["replica"] != nil {
		t.Errorf("%s", a.body)
	}
	if a := f.want(200, "", "GET", "/v1/jobs/job_old", readToken1, ""); a.text("state") != "stopped" ||
		a.number("acted") != 0 {
		t.Errorf("%s", a.body)
	}
}

func TestAJobIsRefusedThatNamesNothingOrTooMuch(t *testing.T) {
	f := newFleet(t, keptRequests)
	id := f.park("w", "1", "a|b")
	long := `"` + strings.Join(slices.Repeat([]string{id}, 101), `","`) + `"`
	for _, bad := range []string{
		`{"kind":"cancel","ifStatus":"SUCCESS","reason":"r","executions":["` + id + `"]}`,
		`{"kind":"rerun","ifStatus":"RUNNING","reason":"r","filter":{"workflow":"w"}}`,
		`{}`, `{"kind":"burn","reason":"r","filter":{"workflow":"w"}}`, `{"kind":"rerun","filter":{"workflow":"w"}}`,
		`{"kind":"rerun","reason":"r","filter":{}}`,
		`{"kind":"rerun","reason":"r"}`, `{"kind":"forget","reason":"r","filter":{"workflow":"w"}}`,
		`{"kind":"rerun","reason":"r","filter":{"state":"blocked"}}`,
		`{"kind":"rerun","reason":"r","filter":{"workflow":"w"},"rate":1001}`,
		`{"kind":"cancel","reason":"r","executions":[` + long + `]}`,
		`{"kind":"rerun","reason":"r","filter":{"workflow":"` + strings.Repeat("w", 2049) + `"}}`,
		`{"kind":"cancel","reason":"r","executions":["exec_1"]}`, `{"kind":"cancel","executions":["` + id + `"]}`,
		`{"kind":"rerun","reason":"r","filter":{"workflow":"w"},"executions":["` + id + `"]}`,
		`{"kind":"cancel","reason":"r","executions":["` + id + `"],"rate":0}`,
	} {
		f.want(400, "bad_request", "POST", "/v1/jobs", opsToken, bad)
	}
	f.want(403, "forbidden", "POST", "/v1/jobs", readToken1, `{"kind":"rerun","reason":"r","filter":{"workflow":"w"}}`)
	f.want(403, "forbidden", "POST", "/v1/jobs", writeToken1,
		`{"kind":"rerun","filter":{"workflow":"w"},"dryRun":true}`)
	f.want(400, "bad_request", "GET", "/v1/jobs?limit=1", readToken1, "")
	f.want(400, "bad_request", "GET", "/v1/jobs/job_x?wait=1s", readToken1, "")
	f.want(404, "job_not_found", "GET", "/v1/jobs/job_x", readToken1, "")
	for _, what := range []string{"stop", "resume"} {
		f.want(404, "job_not_found", "POST", "/v1/jobs/job_x/"+what, opsToken, `{"reason":"r"}`)
		f.want(400, "bad_request", "POST", "/v1/jobs/job_x/"+what, opsToken, `{}`)
	}
	// No process runs jobs here, so they stay open.
	mine := f.want(201, "", "POST", "/v1/jobs", stripeToken,
		`{"kind":"rerun","reason":"r","filter":{"workflow":"w"}}`).text("jobId")
	other := f.begun(`{"kind":"rerun","reason":"r","filter":{"workflow":"w"}}`)
	f.want(404, "job_not_found", "GET", "/v1/jobs/"+other, stripeToken, "")
	if list := string(f.want(200, "", "GET", "/v1/jobs", stripeToken, "").body); strings.Contains(list, other) ||
		!strings.Contains(list, mine) {
		t.Errorf("%s", list)
	}
	for range idem.MaxOpenJobs - 2 {
		f.begun(`{"kind":"rerun","reason":"r","filter":{"workflow":"w"}}`)
	}
	f.want(429, "rate_limited", "POST", "/v1/jobs", opsToken, `{"kind":"rerun","reason":"r","filter":{"workflow":"w"}}`)
	f.want(200, "", "POST", "/v1/jobs/"+mine+"/stop", stripeToken, `{"reason":"r"}`)
	f.begun(`{"kind":"rerun","reason":"r","filter":{"workflow":"w"}}`)
}

func TestAJobOfALimitedTokenIsAboutItsWorkflows(t *testing.T) {
	f := newFleet(t, keptRequests)
	runJobs(t, f.api)
	theirs, mine := f.letters("w", 1)[0], f.letters("stripe/a", 1)[0]
	start := func(body string) *reply {
		return f.awaitJob(f.want(201, "", "POST", "/v1/jobs", stripeToken, body).text("jobId"), "it is done", isDone)
	}
	a := start(`{"kind":"forget","reason":"r","executions":["` + theirs + `","` + mine + `"]}`)
	if a.number("succeeded") != 1 || a.number("refused") != 1 {
		t.Errorf("%s", a.body)
	}
	f.execution(theirs)
	if a := start(`{"kind":"rerun","reason":"r","filter":{"state":"dead_letter"}}`); a.number("matched") != 0 ||
		!strings.HasPrefix(a.text("result"), "0 of 0 ran") {
		t.Errorf("%s", a.body)
	}
}
