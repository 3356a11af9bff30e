package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

// How jobs are run.
const (
	jobLook  = 3 * time.Second        // between looks for jobs whose process is gone
	jobAgain = time.Second            // after an error
	runsLook = 500 * time.Millisecond // between looks at what a job follows, once it has let everything run
	runsTime = time.Second            // the same, while it goes on
	// runsBatch bounds the executions that one look reads.
	runsBatch = 100
	// maxJobRuns is how many executions a job follows at one time.
	maxJobRuns = 10_000
	// runsPatience is how long a job that has let everything run waits for the next end. What has
	// not ended by then goes on without the job.
	runsPatience = 10 * time.Minute
	// tokenSpread is how long a job without progress is left to replicas that know its token: a new
	// token reaches one after the other.
	tokenSpread = time.Minute
	// storePatience is how long a job waits for a request that the store, or a missing key, does
	// not let it read: to go on with the next would be out of order. Then it goes on all the same.
	storePatience = time.Minute
)

// jobRunner runs jobs in this process, each in a goroutine of RunJobs.
type jobRunner struct {
	api    *API
	wanted chan struct{} // has room for one: there may be a job without a process

	mu   sync.Mutex
	mine map[string]bool // the jobs that run here, by ID
}

func newJobRunner(a *API) *jobRunner {
	return &jobRunner{api: a, wanted: make(chan struct{}, 1), mine: map[string]bool{}}
}

// lookSoon has RunJobs look for jobs now. It never blocks.
func (r *jobRunner) lookSoon() {
	select {
	case r.wanted <- struct{}{}:
	default:
	}
}

// RunJobs runs the jobs that are started here, and those of processes that are gone, until ctx
// ends. Another process goes on with them as soon as the session of this one has ended.
func (a *API) RunJobs(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	again := time.NewTicker(jobLook)
	defer again.Stop()
	for {
		a.jobs.takeJobs(ctx, &all)
		select {
		case <-again.C:
		case <-a.jobs.wanted:
		case <-ctx.Done():
			return
		}
	}
}

// takeJobs begins to run the jobs that no process runs.
func (r *jobRunner) takeJobs(ctx context.Context, all *sync.WaitGroup) {
	ctx2, done := context.WithTimeout(ctx, r.api.options.RequestTimeout)
	defer done()
	open, err := r.api.options.Ledger.OpenJobs(ctx2)
	if err != nil {
		return // the next look asks again
	}
	for i := range open {
		j := &open[i]
		isNewer := jobActions()[client.JobKind(j.Kind)] == nil // of a newer release, whose processes run it
		if isNewer || !r.beginJob(j.ID) {
			continue
		}
		if r.api.whyRevoked(j) != "" && r.api.options.Now().Sub(j.ChangedAt) < tokenSpread ||
			r.api.options.Ledger.TakeJob(ctx2, j) != nil {
			r.endJob(j.ID)
			continue
		}
		all.Go(func() {
			defer r.endJob(j.ID)
			newJobRun(r.api, j).run(ctx)
		})
	}
}

func (r *jobRunner) beginJob(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mine[id] {
		return false
	}
	r.mine[id] = true
	return true
}

func (r *jobRunner) endJob(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mine, id)
}

// jobRun is a job that this process runs.
type jobRun struct {
	api    *API
	action *action
	job    *idem.Job     // as it is in the ledger, as far as this process knows
	runs   []idem.JobRun // whose ends are not counted yet; those first that were looked at longest ago
	call   *call         // in the name of the token that started it
	at     time.Time     // of the last look at runs
	// unreadSince is since when no request can be read; the zero time: the last could.
	unreadSince time.Time
}

func newJobRun(a *API, j *idem.Job) *jobRun {
	return &jobRun{api: a, action: jobActions()[client.JobKind(j.Kind)], job: j, call: &call{
		api: a, endpoint: &endpoint{path: "/v1/jobs", access: forWrite},
		caller: caller{token: Token{Name: j.Who, Workflows: j.Only}}, r: &http.Request{RemoteAddr: j.Remote},
		only: j.IfStatus, again: j.Again,
	}}
}

// run runs the job until it is over, or another process has it, or ctx ends.
func (r *jobRun) run(ctx context.Context) {
	for {
		err := r.goOn(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if !errors.Is(err, idem.ErrJobMoved) {
			r.api.options.Log.Warn("admin.job", "job", r.job.ID, "error", err.Error())
			pauseFor(ctx, jobAgain)
		}
		if !r.reload(ctx) {
			return
		}
	}
}

// reload reads the job again, until the ledger answers. It returns false if it is over, or another
// process has it.
func (r *jobRun) reload(ctx context.Context) bool {
	for {
		bounded, done := context.WithTimeout(ctx, r.api.options.RequestTimeout)
		j, err := r.api.options.Ledger.Job(bounded, r.job.ID)
		done()
		switch {
		case err == nil:
			mine := j.State == idem.JobRunning && j.Session == r.job.Session
			r.job = j
			return mine
		case errors.Is(err, idem.ErrNoJob) || !pauseFor(ctx, jobAgain):
			return false
		}
	}
}

// pauseFor waits, and returns false if ctx ends first.
func pauseFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// goOn goes on with the job where the ledger says it is, until it is done.
func (r *jobRun) goOn(ctx context.Context) error {
	if err := r.readRuns(ctx); err != nil {
		return err
	}
	items, err := r.remainingItems(ctx)
	if err != nil {
		return err
	}
	pace := time.NewTicker(time.Second / time.Duration(r.job.Rate))
	defer pace.Stop()
	for i := range items {
		if why := r.api.whyRevoked(r.job); why != "" {
			return r.endAs(idem.JobStopped, "stopped because "+why+", ")
		}
		if err := r.changeOne(ctx, &items[i]); err != nil {
			return err
		}
		if err := r.followSome(ctx); err != nil {
			return err
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := r.awaitRuns(ctx); err != nil {
		return err
	}
	return r.endAs(idem.JobDone, "")
}

func (r *jobRun) readRuns(ctx context.Context) (err error) {
	bounded, done := context.WithTimeout(ctx, r.api.options.RequestTimeout)
	defer done()
	r.runs, err = r.api.options.Ledger.JobRuns(bounded, r.job.ID)
	return err
}

// remainingItems returns what is left to do, of what was there when the job was asked for: it may
// be looked up much later. The first time, it notes how much that is. Later, it leaves out what has
// changed since, and counts that as left alone.
func (r *jobRun) remainingItems(ctx context.Context) (items []idem.ParkedEntry, err error) {
	at := bulkCursor{until: cmp.Or(r.job.Until, r.job.Asked), revision: r.job.DoneAt, id: r.job.DoneID}
	if ids := r.job.Executions; ids != nil {
		for i, id := range ids[min(at.revision, int64(len(ids))):] {
			items = append(items, idem.ParkedEntry{Execution: id, Revision: at.revision + int64(i) + 1})
		}
		at.until = max(at.until, r.job.Revision)
	} else {
		f := &r.job.Filter
		b := bulk{action: r.action, BulkFilter: viewOfFilter(f), again: r.job.Again,
			narrow: idem.ExecutionQuery{Since: f.Since, Until: f.Until}}
		if f.Label != "" {
			if b.narrow.Label, err = labelOf(f.Label); err != nil {
				return nil, err
			}
		}
		if items, err = r.call.findMatching(ctx, &b, &at); err != nil {
			return nil, err
		}
	}
	if r.job.Revision == 0 { // this is a dry run
		return items, nil
	}
	next := r.nextProgress()
	switch changed := r.job.Matched - r.job.Acted - len(items); {
	case r.job.Until == 0:
		next.Until, next.Matched = at.until, len(items)
	case changed <= 0:
		return items, nil
	default:
		next.Acted, next.Refused = next.Acted+changed, next.Refused+changed
	}
	return items, r.putProgress(ctx, next, nil, nil)
}

// nextProgress returns a copy of the job for its next progress.
func (r *jobRun) nextProgress() *idem.Job {
	next := r.job.Clone()
	next.ChangedAt = r.api.options.Now()
	return next
}

func (r *jobRun) putProgress(ctx context.Context, next *idem.Job, run *idem.JobRun, ended []idem.JobRun) error {
	bounded, done := context.WithTimeout(context.WithoutCancel(ctx), r.api.options.RequestTimeout)
	defer done()
	err := r.api.options.Ledger.PutJob(bounded, next, run, ended)
	if err == nil {
		r.job = next
	}
	return err
}

// changeOne does with one execution what the job is for. The change and the progress of the job are
// one transaction, so whatever breaks off here, and whichever process goes on, each is made once.
func (r *jobRun) changeOne(ctx context.Context, e *idem.ParkedEntry) error {
	before := r.nextProgress()
	before.DoneAt, before.DoneID, before.Acted = e.Revision, e.Execution, r.job.Acted+1
	done := before.Clone()
	if !r.action.follows {
		done.Succeeded++
	}
	s := &idem.JobStep{Job: done, Follow: r.action.follows}
	_, p := r.call.actFor(r.action, e, r.job.Why, r.job.Until, s)
	if p == nil {
		r.unreadSince = time.Time{}
	}
	switch {
	case p == nil && s.Applied != 0:
		done.Revision, r.job = s.Applied, done
		r.followRun(&s.Run)
		return nil
	case p == nil: // nothing in the ledger had to change, or it has and the answer got lost
		return r.stepDone(ctx, done, s)
	case s.Moved:
		return idem.ErrJobMoved
	case p.Code == "store_unavailable", p.Code == "audit_unavailable",
		p.Code == "request_unavailable" && r.waitsForStore():
		return p
	}
	before.Fail(idem.JobFailure{
		Execution: e.Execution, Workflow: e.Workflow, Refused: true, Why: p.Code + ": " + p.Detail})
	return r.putProgress(ctx, before, nil, nil)
}

// waitsForStore reports whether to try again with a request that cannot be read.
func (r *jobRun) waitsForStore() bool {
	if r.unreadSince.IsZero() {
		r.unreadSince = time.Now()
	}
	return time.Since(r.unreadSince) < storePatience
}

func (r *jobRun) followRun(run *idem.JobRun) {
	if run.Execution != "" {
		r.runs = append(r.runs, *run)
	}
}

// stepDone notes a step that was made, unless it was noted with it.
func (r *jobRun) stepDone(ctx context.Context, done *idem.Job, s *idem.JobStep) error {
	moved := r.job.Revision
	if !r.reload(ctx) || r.job.Revision != moved {
		return idem.ErrJobMoved // go on from what the ledger has
	}
	var run *idem.JobRun
	if s.Follow && s.Run.Execution != "" {
		run = &s.Run
	}
	err := r.putProgress(ctx, done, run, nil)
	if err == nil {
		r.followRun(&s.Run)
	}
	return err
}

// followSome counts how some of the executions ended that the job has let run, if the last look was
// a while ago.
func (r *jobRun) followSome(ctx context.Context) error {
	if time.Since(r.at) < runsTime && len(r.runs) < maxJobRuns {
		return nil
	}
	for {
		if _, err := r.countEnds(ctx); err != nil || len(r.runs) < maxJobRuns {
			return err
		}
		if !pauseFor(ctx, runsLook) {
			return ctx.Err()
		}
	}
}

// awaitRuns counts how all of them ended.
func (r *jobRun) awaitRuns(ctx context.Context) error {
	for last := time.Now(); len(r.runs) > 0; {
		n, err := r.countEnds(ctx)
		if err != nil {
			return err
		}
		if n > 0 {
			last = time.Now()
			continue
		}
		if time.Since(last) > runsPatience {
			return nil
		}
		if !pauseFor(ctx, runsLook) {
			return ctx.Err()
		}
	}
	return nil
}

// countEnds looks at those that were looked at longest ago, and returns how many have ended.
func (r *jobRun) countEnds(ctx context.Context) (n int, err error) {
	r.at = time.Now()
	next, ended := r.nextProgress(), []idem.JobRun{}
	for range min(len(r.runs), runsBatch) {
		one := r.runs[0]
		over, failed, err := r.readEnd(ctx, &one)
		if err != nil {
			return n, err
		}
		r.runs = r.runs[1:]
		switch {
		case !over:
			r.runs = append(r.runs, one)
			continue
		case failed != "":
			next.Fail(idem.JobFailure{Execution: one.Execution, Workflow: one.Workflow, Why: failed})
		default:
			next.Succeeded++
		}
		if ended = append(ended, one); len(ended) < idem.MaxJobEnds {
			continue
		}
		if err := r.putProgress(ctx, next, nil, ended); err != nil {
			return n, err
		}
		n += len(ended)
		next, ended = r.nextProgress(), ended[:0:0]
	}
	if len(ended) > 0 {
		err = r.putProgress(ctx, next, nil, ended)
	}
	return n + len(ended), err
}

// readEnd reads whether an execution has ended, or its first try since the job let it run, and why
// that failed; "" = it did not.
func (r *jobRun) readEnd(ctx context.Context, run *idem.JobRun) (over bool, failed string, err error) {
	bounded, done := context.WithTimeout(ctx, r.api.options.RequestTimeout)
	defer done()
	f, err := r.api.options.Ledger.Execution(bounded, run.Execution)
	switch {
	case errors.Is(err, idem.ErrNoExecution):
		return true, "its record is gone: it was allowed to run again, or has expired", nil
	case err != nil:
		return false, "", err
	}
	over, failed = endOfRun(f, run)
	return over, failed, nil
}

// endOfRun is ended for an execution that was found.
func endOfRun(f *idem.Found, run *idem.JobRun) (over bool, failed string) {
	status := f.Status()
	if status == idem.Success {
		return true, ""
	}
	if status.Terminal() {
		failed = string(status)
		if f.Record != nil && f.Record.Error != nil {
			failed = f.Record.Error.Code + ": " + f.Record.Error.Detail
		}
		if f.Record != nil && f.Record.Abort != nil {
			failed = "ended by " + f.Record.Abort.By + ": " + f.Record.Abort.Reason
		}
		return true, failed
	}
	if f.Lock == nil || f.Lock.Parked == nil || f.Lock.Parked.Trying {
		return false, ""
	}
	switch p := f.Lock.Parked; {
	case p.Blocked != "":
		return true, "it needs a decision: " + p.Blocked
	case p.Failures > run.Failures && p.Last != nil:
		failed = p.Last.Code
		if p.Last.Status != 0 {
			failed = fmt.Sprintf("the service answered %d", p.Last.Status)
		}
		return true, failed + "; it is tried again by itself"
	}
	return false, ""
}

// endAs ends the job, or stops it, with a sentence in the audit.
func (r *jobRun) endAs(as idem.JobState, why string) error {
	next := r.nextProgress()
	next.State, next.EndedAt = as, r.api.options.Now()
	next.Result = why + resultOf(next)
	if as == idem.JobDone && next.Kind == string(client.JobErase) && next.Filter.Label != "" {
		next.Filter.Label = withoutValue(next.Filter.Label)
	}
	c := &call{api: r.api, endpoint: &endpoint{path: "/v1/jobs", access: forWrite, change: "job.end"},
		caller: r.call.caller, r: r.call.r}
	if as == idem.JobStopped {
		c.endpoint.change, c.caller.token.Name, next.StoppedBy = "job.stop", policy, policy
	}
	c.audit.Why, c.audit.After = cutText(next.Why), next.Result
	c.audit.Workflow, c.audit.Job = next.Filter.Workflow, next.ID
	c.beginAudit()
	release, p := c.reserveAuditLine()
	if p != nil {
		return p
	}
	defer release()
	bounded, done := c.changeContext()
	defer done()
	if err := r.api.options.Ledger.MoveJob(bounded, next, &c.audit.Audit); err != nil {
		return err
	}
	c.endAudit(nil)
	return nil
}
