package client

import (
	"context"
	"net/http"
)

// JobKind is what a job does with each execution. run, skip, rerun and cancel do what POST
// /v1/executions/{id}/KIND does, and forget what DELETE /v1/executions/{id} does; erase does it
// with erase=true.
type JobKind string

// The kinds of jobs. JobRun, JobSkip and JobRerun take a filter or executions, JobCancel and
// JobForget take executions alone.
const (
	JobRun    = JobKind(Run)
	JobSkip   = JobKind(Skip)
	JobRerun  = JobKind(Rerun)
	JobCancel = JobKind("cancel") // asks each to stop
	JobForget = JobKind("forget") // lets each event run again when it comes again
	// JobErase deletes all that is known of each event. It takes executions, or a filter with a
	// label.
	JobErase = JobKind("erase")
)

// JobState is the state of a job.
type JobState string

// The states of jobs.
const (
	JobRunning JobState = "running"
	JobStopped JobState = "stopped" // by a person; ResumeJob lets it go on
	JobDone    JobState = "done"
	JobDryRun  JobState = "dry_run" // nothing was started
)

// Job is an action on many executions. A replica runs it, and another one goes on with it if that
// replica dies; it does not need its client.
type Job struct {
	JobID      string     `json:"jobId"` // empty after a dry run
	Kind       JobKind    `json:"kind"`
	State      JobState   `json:"state"`
	Who        string     `json:"who,omitempty"` // the name of the token that started it
	Reason     string     `json:"reason,omitempty"`
	Filter     BulkFilter `json:"filter,omitzero"`      // which executions it acts on
	Executions []string   `json:"executions,omitempty"` // which executions it acts on, instead of a filter
	// Of cancel: executions that have another status by then are left alone.
	IfStatus Status `json:"ifStatus,omitempty"`
	// Of rerun: it runs all events that have ended, also those that were settled, in the order in
	// which they ended. Absent: dead letters alone.
	Again     bool `json:"again,omitempty"`
	Rate      int  `json:"rate" jsonschema:"minimum=1"` // how many executions it acts on in a second, at most
	StartedAt Time `json:"startedAt,omitzero"`          // when it was started
	ChangedAt Time `json:"changedAt,omitzero"`          // when it last got on
	EndedAt   Time `json:"endedAt,omitzero"`            // when it was done or stopped
	// The name of the token. policy: the token of the job was revoked.
	StoppedBy string `json:"stoppedBy,omitempty"`
	// The replica that runs it, or ran it last. Absent if none has begun.
	Replica string `json:"replica,omitempty"`
	Matched int    `json:"matched" jsonschema:"minimum=-1"` // how many executions match; -1: not known yet
	Acted   int    `json:"acted"`                           // how many of them it has acted on
	// How many of these had changed, so that nothing was done with them.
	Refused int `json:"refused"`
	// How many of these ended with success. If the job runs nothing, how many it has dealt with.
	Succeeded int `json:"succeeded"`
	// How many of these failed at their first try since.
	Failed   int          `json:"failed"`
	Waiting  int          `json:"waiting"`                           // how many of these run, or are to run
	Failures []JobFailure `json:"failures" jsonschema:"maxItems=10"` // the first that failed or were refused
	// How many it acts on in a second now. Absent if that is not known, and if it does not run.
	PerSecond float64 `json:"perSecond,omitempty"`
	// An estimate of how many seconds it takes until it has acted on all.
	SecondsLeft float64 `json:"secondsLeft,omitempty"`
	Result      string  `json:"result,omitempty"` // a sentence, once it is done or stopped
	// of a dry run: the first executions that match
	First []JobItem `json:"first,omitempty" jsonschema:"maxItems=10"`

	raw
}

// JobItem is an execution that matches a dry run.
type JobItem struct {
	ExecutionID string `json:"executionId"`
	Workflow    string `json:"workflow"`
	Route       string `json:"route"`
	Since       Time   `json:"since"` // When it came into its state; with `again`, when it ended.
}

// JobFailure says why an execution of a job failed or was refused.
type JobFailure struct {
	ExecutionID string `json:"executionId"`
	Workflow    string `json:"workflow"`
	Refused     bool   `json:"refused,omitempty"` // nothing was done with it
	Why         string `json:"why"`
}

// Over reports whether the job is done or stopped.
func (j *Job) Over() bool { return j.State != JobRunning }

// Ended returns how many of the executions that matched have come to their end.
func (j *Job) Ended() int { return j.Refused + j.Succeeded + j.Failed }

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (j *Job) UnmarshalJSON(text []byte) error {
	type plain Job
	return j.read(text, (*plain)(j))
}

// JobList has the jobs that the token may see, the newest first: all that run, and the last 100 of
// the others.
type JobList struct {
	Jobs []Job `json:"jobs"`

	raw
}

// NewJob is a job to start. It has a filter, or executions.
type NewJob struct {
	Kind JobKind `json:"kind"`
	// Reason goes into the audit log, and with skip into the records. Only a dry run needs none.
	Reason string `json:"reason,omitempty"`
	// Filter has at least one member. An execution must match all that are given.
	Filter BulkFilter `json:"filter,omitzero"`
	// Executions are the IDs of at most 100 executions, instead of a filter. cancel and forget take
	// no filter.
	Executions []string `json:"executions,omitempty"`
	// IfStatus is for cancel: an execution that has another status by then is left alone.
	IfStatus Status `json:"ifStatus,omitempty"`
	// Again is for rerun: all events that have ended, also those that were settled, in the order in
	// which they ended. Absent: dead letters alone.
	Again bool `json:"again,omitempty"`
	// Rate is how many executions the job acts on in a second, at most.
	Rate int `json:"rate,omitempty"`
	// DryRun starts nothing, and returns how many executions match.
	DryRun bool `json:"dryRun,omitempty"`
}

// StartJob starts a job. A *Problem with CodeRateLimited means that as many jobs run as may.
func (c *Client) StartJob(ctx context.Context, j NewJob) (*Job, error) {
	return ask[Job](ctx, c, call{method: http.MethodPost, path: "/v1/jobs", body: j, has: "state"})
}

// Jobs returns the jobs that the token may see.
func (c *Client) Jobs(ctx context.Context) (*JobList, error) {
	return get[JobList](ctx, c, "/v1/jobs", "jobs", nil)
}

// Job returns a job. A *Problem with CodeJobNotFound means that there is none of that ID.
func (c *Client) Job(ctx context.Context, id string) (*Job, error) {
	return get[Job](ctx, c, "/v1/jobs/"+pathSegment(id), "state", nil)
}

// StopJob stops a job. What it has let run goes on. A *Problem with CodeStatusChanged means that
// the job does not run.
func (c *Client) StopJob(ctx context.Context, id, reason string) (*Job, error) {
	return c.changeJob(ctx, id, "stop", reason)
}

// ResumeJob lets a stopped job go on where it was. A *Problem with CodeStatusChanged means that the
// job is not stopped.
func (c *Client) ResumeJob(ctx context.Context, id, reason string) (*Job, error) {
	return c.changeJob(ctx, id, "resume", reason)
}

func (c *Client) changeJob(ctx context.Context, id, what, reason string) (*Job, error) {
	body := map[string]string{"reason": reason}
	return ask[Job](ctx, c, call{method: http.MethodPost, path: "/v1/jobs/" + pathSegment(id) + "/" + what, body: body,
		has: "state"})
}
