package idem

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// JobState is where a Job is in its life.
type JobState string

// The states of jobs.
const (
	JobRunning JobState = "running"
	JobStopped JobState = "stopped" // it can go on
	JobDone    JobState = "done"
)

// JobFailure says why an event of a job failed, or why its action was refused.
type JobFailure struct {
	Execution ExecutionID `json:"executionId"`       // the execution that failed, or was left alone
	Workflow  string      `json:"workflow"`          // of that execution
	Refused   bool        `json:"refused,omitempty"` // nothing was done with it; false: it ran
	Why       string      `json:"why"`               // a sentence; at most 300 bytes
}

// Bounds of jobs.
const (
	// MaxOpenJobs is how many jobs run at one time, over all processes.
	MaxOpenJobs = 20
	// MaxJobEnds is how many JobRuns one change of a job may end. Each is an operation of its
	// transaction, and etcd allows 128 of them (--max-txn-ops).
	MaxJobEnds = 20
	// maxJobFailures is how many failures are kept of a job: the first ones.
	maxJobFailures = 10
)

// The errors of jobs.
var (
	ErrNoJob       = errors.New("no such job")
	ErrTooManyJobs = fmt.Errorf("%d jobs run", MaxOpenJobs)
	// ErrJobMoved says that the job is not as its reader saw it last: another process runs it, or a
	// person has stopped it. Nothing was changed.
	ErrJobMoved = errors.New("the job has changed")
)

// JobFilter selects the executions of a job: those for which all holds that is given. A field that
// is "" selects all of them.
type JobFilter struct {
	Workflow string    `json:"workflow,omitempty"` // a pattern, see MatchPattern
	Route    string    `json:"route,omitempty"`    // a name
	State    ParkState `json:"state,omitempty"`    // of its stored request
	Status   Status    `json:"status,omitempty"`   // of a job that is Again
	Label    string    `json:"label,omitempty"`    // as ParseLabel reads it
	Since    time.Time `json:"since,omitzero"`     // when it ended, or began; see ExecutionQuery
	Until    time.Time `json:"until,omitzero"`     // as Since; zero: unbounded
}

// Job is an action on many executions. It is in the ledger, and one process at a time runs it: if
// that dies, another one goes on where it was.
type Job struct {
	ID   string `json:"-"`    // in the key of the job
	Kind string `json:"kind"` // what is done with each execution; the ledger does not read it
	Who  string `json:"who"`  // the token's name
	Why  string `json:"why"`  // the reason that the owner of the token gave
	// Remote is the address that asked for it.
	Remote string `json:"remote,omitempty"`
	// Only are patterns of the workflows that its token is for; nil = all of them.
	Only   []string  `json:"only,omitempty"`
	Filter JobFilter `json:"filter,omitzero"`
	// Executions are what the job is about, instead of Filter; nil = the filter says.
	Executions []ExecutionID `json:"executions,omitempty"`
	// IfStatus leaves alone what has another status by then; "" = none is, and it is for cancels.
	IfStatus Status `json:"ifStatus,omitempty"`
	// Again: of reruns, it is about all events that have ended, also those that were settled.
	Again bool `json:"again,omitempty"`
	Rate  int  `json:"rate"` // actions a second, at most

	State     JobState  `json:"state"`               // where it is in its life
	StartedAt time.Time `json:"startedAt"`           // when it was asked for
	EndedAt   time.Time `json:"endedAt,omitzero"`    // or when it was stopped
	ChangedAt time.Time `json:"changedAt"`           // of its last progress
	StoppedBy string    `json:"stoppedBy,omitempty"` // the token's name, or "policy": that of the job was revoked
	// Result is the sentence that says how it ended; "" until then.
	Result string `json:"result,omitempty"`

	// Session is the session of the process that runs it, and Holder the name of that for people;
	// "" = none has taken it yet. TakenAt and TakenActed say when that was, and how far the job
	// was.
	Session    string    `json:"session,omitempty"`
	Holder     string    `json:"holder,omitempty"`
	TakenAt    time.Time `json:"takenAt,omitzero"`
	TakenActed int       `json:"takenActed,omitempty"`

	// Of the ledger as it was at revision Until, all that matched is done up to the execution
	// DoneID, which came into its state at DoneAt. Until 0: what matches was not looked up yet.
	Until  int64       `json:"until,omitempty"`
	DoneAt int64       `json:"doneAt,omitempty"`
	DoneID ExecutionID `json:"doneId,omitempty"`

	Matched   int          `json:"matched"`            // executions that the job is about
	Acted     int          `json:"acted"`              // of Matched: those that the action was tried on
	Refused   int          `json:"refused"`            // of Acted: nothing was done with them
	Succeeded int          `json:"succeeded"`          // of Acted
	Failed    int          `json:"failed"`             // of Acted: they ran, and failed
	Failures  []JobFailure `json:"failures,omitempty"` // the first ones, at most 10

	Revision int64 `json:"-"` // at which it was read or written
	// Asked is the revision at which it was asked for, or resumed; 0 = it is new, or a dry run.
	Asked int64 `json:"-"`
}

// Clone returns a copy that shares nothing which is changed later.
func (j *Job) Clone() *Job {
	next := *j
	next.Failures = slices.Clone(j.Failures)
	return &next
}

// Fail counts a failure, and keeps it if it is one of the first.
func (j *Job) Fail(f JobFailure) {
	if f.Refused {
		j.Refused++
	} else {
		j.Failed++
	}
	const longest = 300 // bytes of a reason
	if len(f.Why) > longest {
		f.Why = f.Why[:longest] + "…"
	}
	if len(j.Failures) < maxJobFailures {
		j.Failures = append(j.Failures, f)
	}
}

// Waiting returns how many executions of the job were let run and have not ended.
func (j *Job) Waiting() int { return j.Acted - j.Refused - j.Succeeded - j.Failed }

// JobRun is an execution that a job has let run, and whose end it counts.
type JobRun struct {
	Execution ExecutionID `json:"-"`                  // in the key of the run
	Workflow  string      `json:"workflow"`           // of the execution
	Failures  int         `json:"failures,omitempty"` // of its tries before
}

// JobStep is the change of one execution as a step of a job. The transaction that makes the change
// writes the job, too, and is refused if the job has changed: so each step is made once, by the one
// process that has the job, and is counted if it was made.
type JobStep struct {
	Job    *Job // as it is after the step; its Revision is that before it
	Follow bool // the execution that it lets run is noted as a JobRun
	// Run and Applied are set by the ledger: what was noted, and the revision of the step. Applied
	// 0: nothing in the ledger had to change, or whether it did is not known.
	Run     JobRun
	Applied int64
	Moved   bool // the job has changed, so nothing was done
}
