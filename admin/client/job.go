package client

import (
	"context"
	"net/http"
)

// JobKind is what a job does with each execution. run: as POST /v1/executions/{id}/run; so skip,
// rerun and cancel. forget: as DELETE /v1/executions/{id}; erase: with erase=true, by a filter
// only with a label.
type JobKind string

// The kinds of jobs. Those of ParkedAction take a filter or executions, the others executions
// alone.
const (
	JobRun    = JobKind(Run)
	JobSkip   = JobKind(Skip)
	JobRerun  = JobKind(Rerun)
	JobCancel = JobKind("cancel") // asks each to stop
	JobForget = JobKind("forget") // lets each event run again when it comes again
	JobErase  = JobKind("erase")  // deletes all that is known of each event; takes a filter with a label, too
)

// JobState is where a job is in its life.
type JobState string

// The states of jobs.
const (
	JobRunning JobState = "running"
	JobStopped JobState = "stopped" // by a person; ResumeJob lets it go on
	JobDone    JobState = "done"
	JobDryRun  JobState = "dry_run" // nothing was started
)

// Job is an action on many executions that the replicas make: one at a time, and another one if
// that dies. It goes on without the client.
type Job struct {
	JobID      string     `json:"jobId"` // empty after a dry run
	Kind       JobKind    `json:"kind"`
	State      JobState   `json:"state"`
	Who        string     `json:"who,omitempty"` // the name of the token that started it
	Reason     string     `json:"reason,omitempty"`
	Filter     BulkFilter `json:"filter,omitzero"`      // what it is about
	Executions []string   `json:"executions,omitempty"` // what it is about, instead of a filter
	IfStatus   Status     `json:"ifStatus,omitempty"`   // for cancel: what has another status by then is left alone
	// For rerun: all events that have ended, also those that were settled, in the order in which
	// they ended. Absent: dead letters alone.
	Again     bool `json:"again,omitempty"`
	Rate      int  `json:"rate" jsonschema:"minimum=1"` // so many a second, at most
	StartedAt Time `json:"startedAt,omitzero"`          // when it was started
	ChangedAt Time `json:"changedAt,omitzero"`          // of its last progress
	EndedAt   Time `json:"endedAt,omitzero"`            // when it was done, or stopped
	// The token's name, or policy: the token of the job was revoked.
	StoppedBy string `json:"stoppedBy,omitempty"`
	Replica   string `json:"replica,omitempty"`               // that runs it, or ran it last. Absent: none has begun.
	Matched   int    `json:"matched" jsonschema:"minimum=-1"` // how many match; -1: not known yet
	Acted     int    `json:"acted"`                           // those that the action was tried on
	// Of them, those with which nothing was done: they had changed.
	Refused int `json:"refused"`
	// Of them, those that ended with success; where nothing runs, those with which it was done.
	Succeeded int          `json:"succeeded"`
	Failed    int          `json:"failed"`                            // of them, those whose first try since failed
	Waiting   int          `json:"waiting"`                           // of them, those that are to run, or run
	Failures  []JobFailure `json:"failures" jsonschema:"maxItems=10"` // the first that failed or were refused
	// The rate that it has. Absent: not known, or it does not run.
	PerSecond   float64   `json:"perSecond,omitempty"`
	SecondsLeft float64   `json:"secondsLeft,omitempty"`                    // an estimate, until all are let run
	Result      string    `json:"result,omitempty"`                         // a sentence, once it is done or stopped
	First       []JobItem `json:"first,omitempty" jsonschema:"maxItems=10"` // of a dry run: the first of them

	raw
}

// JobItem is an execution that a job would be about.
type JobItem struct {
	ExecutionID string `json:"executionId"`
	Workflow    string `json:"workflow"`
	Route       string `json:"route"`
	Since       Time   `json:"since"` // when it came into its state: with `again`, when it ended
}

// JobFailure says why one execution of a job failed, or was refused.
type JobFailure struct {
	ExecutionID string `json:"executionId"`
	Workflow    string `json:"workflow"`
	Refused     bool   `json:"refused,omitempty"` // nothing was done with it
	Why         string `json:"why"`
}

// Over reports whether the job is done or stopped.
func (j *Job) Over() bool { return j.State != JobRunning }

// Ended returns how many of Matched have come to their end.
func (j *Job) Ended() int { return j.Refused + j.Succeeded + j.Failed }

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (j *Job) UnmarshalJSON(text []byte) error {
	type plain Job
	return j.read(text, (*plain)(j))
}

// JobList are all jobs that the token may see, the newest first: those that run, and the last 100
// of the others.
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

// StartJob starts a job. A *Problem with CodeRateLimited means that as many run as may.
func (c *Client) StartJob(ctx context.Context, j NewJob) (*Job, error) {
	return ask[Job](ctx, c, call{method: http.MethodPost, path: "/v1/jobs", body: j, has: "state"})
}

// Jobs returns all jobs that the token may see.
func (c *Client) Jobs(ctx context.Context) (*JobList, error) {
	return ask[JobList](ctx, c, call{method: http.MethodGet, path: "/v1/jobs", has: "jobs"})
}

// Job returns one job. A *Problem with CodeJobNotFound means that there is none.
func (c *Client) Job(ctx context.Context, id string) (*Job, error) {
	return ask[Job](ctx, c, call{method: http.MethodGet, path: "/v1/jobs/" + segment(id), has: "state"})
}

// StopJob stops a job: what it has let run goes on. A *Problem with CodeStatusChanged means that it
// does not run.
func (c *Client) StopJob(ctx context.Context, id, reason string) (*Job, error) {
	return c.changeJob(ctx, id, "stop", reason)
}

// ResumeJob lets a stopped job go on where it was. A *Problem with CodeStatusChanged means that it
// is not stopped.
func (c *Client) ResumeJob(ctx context.Context, id, reason string) (*Job, error) {
	return c.changeJob(ctx, id, "resume", reason)
}

func (c *Client) changeJob(ctx context.Context, id, what, reason string) (*Job, error) {
	body := map[string]string{"reason": reason}
	return ask[Job](ctx, c, call{method: http.MethodPost, path: "/v1/jobs/" + segment(id) + "/" + what, body: body,
		has: "state"})
}
