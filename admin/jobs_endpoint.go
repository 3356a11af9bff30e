package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/idem"
)

// jobActions are what jobs of each kind do with each execution.
func jobActions() map[client.JobKind]*action {
	return map[client.JobKind]*action{
		client.JobRun: runNow(), client.JobRerun: rerunAction(), client.JobSkip: skipAction(),
		client.JobCancel: cancelOne(),
		client.JobForget: forgetOne(), client.JobErase: eraseOne(),
	}
}

func cancelOne() *action {
	return &action{change: "execution.cancel", done: "cancelled, or asked to stop",
		do: func(ctx context.Context, c *call, id idem.ExecutionID, reason string) (*idem.Found, error) {
			asked := idem.Cancel{By: c.caller.token.Name, Reason: reason, At: c.api.options.Now(), Only: c.only}
			found, _, err := c.api.options.Ledger.Cancel(ctx, id, asked, &c.audit.Audit)
			if errors.Is(err, idem.ErrMoved) {
				err = refuse("status_changed", "it was not "+string(c.only)+" any more")
			}
			return found, err
		}}
}

func forgetOne() *action {
	return &action{change: "execution.forget", done: "allowed again",
		do: func(ctx context.Context, c *call, id idem.ExecutionID, reason string) (*idem.Found, error) {
			return c.forgetAs(ctx, id, reason, false)
		}}
}

// eraseOne deletes all that is known of an event that has ended. With a filter, that needs a label.
func eraseOne() *action {
	return &action{change: "execution.erase", done: "erased", ended: true,
		do: func(ctx context.Context, c *call, id idem.ExecutionID, reason string) (*idem.Found, error) {
			return c.forgetAs(ctx, id, reason, true)
		}}
}

// seesJob reports whether the caller may know of a job: its own, or any if it is not limited.
func (c *call) seesJob(j *idem.Job) bool { return !c.caller.isLimited() || j.Who == c.callerName() }

func (c *call) listJobs() error {
	ctx, done := c.readContext()
	defer done()
	all, err := c.api.options.Ledger.Jobs(ctx)
	if err != nil {
		return err
	}
	list := client.JobList{Jobs: []client.Job{}}
	for i := range all {
		if c.seesJob(&all[i]) {
			list.Jobs = append(list.Jobs, viewOfJob(&all[i]))
		}
	}
	return c.respond(http.StatusOK, list)
}

// findJob reads the job in the path.
func (c *call) findJob(ctx context.Context) (*idem.Job, error) {
	j, err := c.api.options.Ledger.Job(ctx, c.name)
	if err == nil && !c.seesJob(j) {
		return nil, idem.ErrNoJob
	}
	return j, err
}

func (c *call) getJob() error {
	ctx, done := c.readContext()
	defer done()
	j, err := c.findJob(ctx)
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, viewOfJob(j))
}

func (c *call) startJob() error {
	b, ids := bulk{rate: defaultRate, limit: defaultLimit}, []string{}
	var kind, only string
	filter := b.filterMembers()
	filter["status"] = readName(&b.Status)
	err := c.readBody(fields{
		"kind": &kind, "ifStatus": &only, "reason": &b.reason, "filter": filter, "executions": &ids,
		"dryRun": &b.dryRun, "rate": &b.rate, "again": &b.again,
	})
	if err != nil {
		return err
	}
	b.action = jobActions()[client.JobKind(kind)]
	if b.action == nil {
		return refuse("bad_request", "kind="+quoteText(kind)+": give run, skip, rerun, cancel, forget or erase")
	}
	if only != "" && (kind != string(client.JobCancel) || !slices.Contains(active, idem.Status(only))) {
		return refuse("bad_request", fmt.Sprintf("ifStatus %s: give one of %v, to cancel", quoteText(only), active))
	}
	if b.again && kind != string(client.JobRerun) {
		return refuse("bad_request", "again is for a rerun")
	}
	if err := c.readJob(&b, ids); err != nil {
		return err
	}
	now := c.api.options.Now()
	j := &idem.Job{
		ID: "job_" + strings.ToLower(rand.Text()[:16]), Kind: kind, Who: c.callerName(), Why: b.reason,
		Remote: c.r.RemoteAddr,
		Rate:   b.rate, State: idem.JobRunning, StartedAt: now, ChangedAt: now, Filter: b.jobFilter(),
		IfStatus: idem.Status(only), Again: b.again,
	}
	if c.caller.isLimited() {
		j.Only = c.caller.token.Workflows
	}
	for _, id := range ids {
		j.Executions = append(j.Executions, idem.ExecutionID(id))
	}
	if b.dryRun {
		return c.dryRun(j)
	}
	ctx, done := c.changeContext()
	defer done()
	c.audit.Job, c.audit.After = j.ID, fmt.Sprintf("%s of %s, at most %d a second", kind, aboutJob(j), j.Rate)
	if err := c.api.options.Ledger.BeginJob(ctx, j, &c.audit.Audit); err != nil {
		return err
	}
	c.api.jobs.lookSoon()
	c.w.Header().Set("Location", "/v1/jobs/"+j.ID)
	return c.respond(http.StatusCreated, viewOfJob(j))
}

const (
	// maxFilter bounds the filter of a job, in bytes: it is written with each step.
	maxFilter = 2048
	// maxJobTargets is how many executions a job can name.
	maxJobTargets = 100
)

// readJob checks what a new job is about, and its reason.
func (c *call) readJob(b *bulk, ids []string) error {
	if len(ids) == 0 {
		if b.action.ended && b.Label == "" {
			return refuse("bad_request", "filter: name the label of what is to be erased")
		}
		if len(b.action.states) == 0 && !b.action.ended {
			return refuse("bad_request", "executions: name what this is about, at most "+fmt.Sprint(maxJobTargets))
		}
		if err := checkText("filter", b.Workflow+b.Route+b.Label, maxFilter); err != nil {
			return err
		}
		return c.checkBulk(b)
	}
	switch {
	case len(ids) > maxJobTargets:
		return refuse("bad_request", fmt.Sprintf("executions: at most %d, got %d", maxJobTargets, len(ids)))
	case b.BulkFilter != client.BulkFilter{}:
		return refuse("bad_request", "filter, executions: give one of them")
	}
	for _, id := range ids {
		if _, _, err := idem.ExecutionID(id).Parse(); err != nil {
			return refuse("bad_request",
				quoteText(id)+` in executions: an execution ID is "exec_" and 32 letters or digits`)
		}
	}
	if err := b.checkRate(); err != nil {
		return err
	}
	return c.mayStart(b)
}

// firstItems is how many executions a dry run names.
const firstItems = 10

// dryRun says how many executions a job would be about, and names the first.
func (c *call) dryRun(j *idem.Job) error {
	c.audit.quiet = true
	ctx, done := c.readContext()
	defer done()
	items, err := newJobRun(c.api, j).remainingItems(ctx)
	if err != nil {
		return err
	}
	v := viewOfJob(j)
	for i := range items[:min(len(items), firstItems)] {
		e := &items[i]
		v.First = append(v.First, client.JobItem{
			ExecutionID: string(e.Execution), Workflow: e.Workflow, Route: e.Route, Since: client.Time{Time: e.Since}})
	}
	v.JobID, v.State, v.Matched = "", client.JobDryRun, len(items)
	v.StartedAt, v.ChangedAt = client.Time{}, client.Time{}
	return c.respond(http.StatusOK, v)
}

// mostMoves bounds how often a change of a job is repeated because its progress came in between.
const mostMoves = 100

// moveJob changes the state of the job in the path.
func (c *call) moveJob(from idem.JobState, change func(*idem.Job)) error {
	var reason string
	if err := c.readBody(fields{"reason": &reason}); err != nil {
		return err
	}
	if err := c.checkReason(reason); err != nil {
		return err
	}
	ctx, done := c.changeContext()
	defer done()
	for n := 1; ; n++ {
		j, err := c.findJob(ctx)
		if err != nil {
			return err
		}
		c.audit.Job, c.audit.Before = j.ID, string(j.State)
		if j.State != from {
			return refuse("status_changed", "the job is "+string(j.State)+", not "+string(from))
		}
		change(j)
		c.audit.After = string(j.State) + ": " + aboutJob(j)
		if j.Result != "" {
			c.audit.After = j.Result
		}
		switch err := c.api.options.Ledger.MoveJob(ctx, j, &c.audit.Audit); {
		case err == nil:
			c.api.jobs.lookSoon()
			return c.respond(http.StatusOK, viewOfJob(j))
		case n == mostMoves || !errors.Is(err, idem.ErrJobMoved):
			return err
		}
	}
}

func (c *call) stopJob() error {
	return c.moveJob(idem.JobRunning, func(j *idem.Job) {
		j.State, j.StoppedBy, j.EndedAt = idem.JobStopped, c.callerName(), c.api.options.Now()
		j.Result = "stopped by " + j.StoppedBy + ", " + resultOf(j)
	})
}

// policy is the name in the audit for what Hooklock does by itself; no token may have it.
const policy = "policy"

// whyRevoked says why a job may not go on: its token is gone, or may do less than when the job
// began; "" = it may. For a person behind a proxy, the proxy's token counts.
func (a *API) whyRevoked(j *idem.Job) string {
	name := j.Who
	if i := strings.LastIndex(name, " ("); i >= 0 { // no token has a blank in its name
		name = strings.TrimSuffix(name[i+2:], ")")
	}
	said := "the token " + name
	tokens := a.access.Load().Tokens
	switch i := slices.IndexFunc(tokens, func(t Token) bool { return t.Name == name }); {
	case i < 0:
		return said + " is accepted no more"
	case !tokens[i].Write:
		return said + " has no scope write any more"
	default:
		if c := (caller{token: tokens[i]}); c.isLimited() && !slices.Equal(tokens[i].Workflows, j.Only) {
			return said + " is for other workflows now"
		}
	}
	return ""
}

// resumeJob lets a job go on. If its token may not run it any more, it becomes the caller's job.
func (c *call) resumeJob() error {
	return c.moveJob(idem.JobStopped, func(j *idem.Job) {
		if c.api.whyRevoked(j) != "" {
			if j.Who = c.callerName(); c.caller.isLimited() {
				j.Only = c.caller.token.Workflows
			}
		}
		j.State, j.ChangedAt = idem.JobRunning, c.api.options.Now()
		j.StoppedBy, j.EndedAt, j.Result, j.Session = "", time.Time{}, "", ""
	})
}

// withoutValue returns the label of an erasure as the audit and the ended job keep it: its value
// tells whose data was erased.
func withoutValue(label string) string {
	if l := idem.ParseLabel(label); l.Name != "" {
		return l.Name + "=…"
	}
	return "…"
}

// aboutJob says what a job is about, for the audit.
func aboutJob(j *idem.Job) string {
	if n := len(j.Executions); n > 0 {
		return story.Count(n, "execution", "executions")
	}
	f, said := j.Filter, []string{}
	if j.Kind == string(client.JobErase) && f.Label != "" {
		f.Label = withoutValue(f.Label)
	}
	for _, one := range [][2]string{
		{"route", f.Route}, {"workflow", f.Workflow}, {"state", string(f.State)}, {"status", string(f.Status)},
		{"label", f.Label},
	} {
		if one[1] != "" {
			said = append(said, one[0]+" "+one[1])
		}
	}
	if !f.Since.IsZero() {
		said = append(said, "since "+f.Since.UTC().Format(time.RFC3339))
	}
	if !f.Until.IsZero() {
		said = append(said, "until "+f.Until.UTC().Format(time.RFC3339))
	}
	return strings.Join(said, ", ")
}

// resultOf is the sentence that says how far a job came, and how long it took.
func resultOf(j *idem.Job) string {
	said := fmt.Sprintf("%d of %d ran: %d succeeded, %d failed", j.Succeeded+j.Failed, j.Matched, j.Succeeded, j.Failed)
	if a := jobActions()[client.JobKind(j.Kind)]; a != nil && !a.follows {
		said = fmt.Sprintf("%d of %d %s", j.Succeeded, j.Matched, a.done)
	}
	for _, more := range []struct {
		n    int
		text string
	}{{j.Waiting(), "%d wait or run"}, {j.Refused, "%d left alone"}} {
		if more.n > 0 {
			said += fmt.Sprintf(", "+more.text, more.n)
		}
	}
	return said + ", " + story.Span(j.EndedAt.Sub(j.StartedAt).Round(time.Second))
}

func viewOfJob(j *idem.Job) client.Job {
	v := client.Job{
		JobID: j.ID, Kind: client.JobKind(j.Kind), State: client.JobState(j.State), Who: j.Who, Reason: j.Why,
		Rate: j.Rate, Filter: viewOfFilter(&j.Filter), StartedAt: client.Time{Time: j.StartedAt},
		ChangedAt: client.Time{Time: j.ChangedAt}, EndedAt: client.Time{Time: j.EndedAt}, StoppedBy: j.StoppedBy,
		Replica: j.Holder, Matched: j.Matched, Acted: j.Acted, Refused: j.Refused, Succeeded: j.Succeeded,
		Failed: j.Failed, Waiting: j.Waiting(), Failures: []client.JobFailure{}, Result: j.Result,
		IfStatus: client.Status(j.IfStatus), Again: j.Again,
	}
	for _, id := range j.Executions {
		v.Executions = append(v.Executions, string(id))
	}
	for _, f := range j.Failures {
		v.Failures = append(v.Failures,
			client.JobFailure{ExecutionID: string(f.Execution), Workflow: f.Workflow, Refused: f.Refused, Why: f.Why})
	}
	if j.Until == 0 {
		v.Matched = -1
	}
	if j.State == idem.JobRunning && j.Until != 0 {
		rate := float64(j.Rate)
		if took, n := j.ChangedAt.Sub(j.TakenAt), j.Acted-j.TakenActed; took > time.Second && n > 0 {
			rate = float64(n) / took.Seconds()
			v.PerSecond = rate
		}
		v.SecondsLeft = float64(j.Matched-j.Acted) / rate
	}
	return v
}

func viewOfFilter(f *idem.JobFilter) client.BulkFilter {
	v := client.BulkFilter{
		Workflow: f.Workflow, Route: f.Route, State: client.ParkState(f.State), Status: client.Status(f.Status),
		Label: f.Label}
	if !f.Since.IsZero() {
		v.Since = f.Since.UTC().Format(time.RFC3339Nano)
	}
	if !f.Until.IsZero() {
		v.Until = f.Until.UTC().Format(time.RFC3339Nano)
	}
	return v
}
