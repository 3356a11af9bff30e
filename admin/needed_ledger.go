package admin

import (
	"context"
	"time"

	"hooklock/idem"
)

// Ledger is the store of locks and records as the API needs it; *etcdlock.Control implements it.
// Besides the errors that each method names, all of them return idem.ErrStoreUnavailable. They end
// when their context does. A change writes its idem.Audit, see there.
type Ledger interface {
	// Execution finds an execution wherever it is now. It reaps dead owners that it meets, so that
	// the answer is true. It returns idem.ErrNoExecution.
	Execution(ctx context.Context, id idem.ExecutionID) (*idem.Found, error)
	// Await returns when the execution is not as since shows it any more, at once when it has
	// ended. If ctx ends first it returns the current state.
	Await(ctx context.Context, id idem.ExecutionID, since *idem.Found) (*idem.Found, error)
	// Executions returns a page. It returns idem.ErrCursor.
	Executions(ctx context.Context, q idem.ExecutionQuery) (idem.ExecutionPage, error)
	// Lock returns the lock of a workflow. It returns idem.ErrNoLock.
	Lock(ctx context.Context, workflow string) (*idem.LockView, error)
	// LockOf returns the lock of an execution of a workflow, which may have several. It returns
	// idem.ErrNoLock.
	LockOf(ctx context.Context, workflow string, id idem.ExecutionID) (*idem.LockView, error)
	// Locks returns a page. It returns idem.ErrCursor.
	Locks(ctx context.Context, q idem.LockQuery) (idem.LockPage, error)

	// Slots returns a page of the taken slots; Prefix is of the limit. It returns idem.ErrCursor.
	Slots(ctx context.Context, q idem.LockQuery) (idem.SlotPage, error)
	// Turns returns a page of the slot waiters, as Slots does.
	Turns(ctx context.Context, q idem.LockQuery) (idem.SlotPage, error)

	// Cancel asks an execution to stop, and ends one that waits. before: it had been requested
	// already. It returns idem.ErrFinished and idem.ErrMoved with what was found, and
	// idem.ErrNoExecution.
	Cancel(ctx context.Context, id idem.ExecutionID, c idem.Cancel, a *idem.Audit) (found *idem.Found, before bool,
		err error)
	// Forget lets an event run again, and deletes its stored request. It returns the removed
	// execution, also with idem.ErrNotErased; idem.ErrAlive, idem.ErrSuperseded or
	// idem.ErrNoExecution.
	Forget(ctx context.Context, id idem.ExecutionID, by idem.Cancel, a *idem.Audit) (*idem.Found, error)
	// ForceRelease ends the execution that holds the lock of a workflow. It returns idem.ErrNoLock,
	// and idem.ErrLockLost if another one holds it.
	ForceRelease(ctx context.Context, workflow string, id idem.ExecutionID, c idem.Cancel, a *idem.Audit) (*idem.Found,
		error)

	// Pauses returns all pauses, with how far each has come.
	Pauses(ctx context.Context) ([]idem.PauseState, error)
	// Pause holds back what begins in a scope. before is the pause that it replaced; nil = none.
	Pause(ctx context.Context, p idem.Pause, a *idem.Audit) (before *idem.Pause, err error)
	// Resume ends a pause and returns it. It returns idem.ErrNoPause.
	Resume(ctx context.Context, s idem.PauseScope, a *idem.Audit) (*idem.Pause, error)

	// Acknowledgements returns what people have looked at, the newest mark first.
	Acknowledgements(ctx context.Context) ([]idem.Acknowledgement, error)
	// Acknowledge stores an acknowledgement. before is the one that it replaced; nil = none.
	Acknowledge(ctx context.Context, mark idem.Acknowledgement, a *idem.Audit) (kept, before *idem.Acknowledgement,
		err error)
	// DropAcknowledgement removes one and returns it. It returns idem.ErrNotAcknowledged.
	DropAcknowledgement(ctx context.Context, c idem.Concern, a *idem.Audit) (*idem.Acknowledgement, error)

	// ParkedExecutions returns a page of the executions whose request is stored. It returns
	// idem.ErrCursor.
	ParkedExecutions(ctx context.Context, q idem.ParkedQuery) (idem.ExecutionPage, error)
	// ParkedEntries is the same in short. It returns idem.ErrCursor.
	ParkedEntries(ctx context.Context, q idem.ParkedQuery) (idem.ParkedPage, error)
	// RunNow lets a parked execution be tried now. It returns idem.ErrNotParked, idem.ErrFinished,
	// idem.ErrCancelled if it is to end, and idem.ErrNoExecution.
	RunNow(ctx context.Context, id idem.ExecutionID, a *idem.Audit) (*idem.Found, error)
	// Skip ends a parked execution as a dead letter. before: it had been requested already. It
	// returns idem.ErrNotParked, and the errors of Cancel.
	Skip(ctx context.Context, id idem.ExecutionID, c idem.Cancel, a *idem.Audit) (found *idem.Found, before bool,
		err error)
	// Rerun lets the event of an ended execution run again, whose request is stored. It returns the
	// new execution, idem.ErrNoRequest, idem.ErrAlive, idem.ErrCancelled if it was cancelled for
	// good, idem.ErrSuperseded, or idem.ErrNoExecution.
	Rerun(ctx context.Context, id idem.ExecutionID, a *idem.Audit) (*idem.Found, error)
	// RunAgain is Rerun also for an event that was settled, or whose request is kept for all events
	// of its route.
	RunAgain(ctx context.Context, id idem.ExecutionID, a *idem.Audit) (*idem.Found, error)
	// KeptRequest returns what the ledger was given of the request of an execution. It returns
	// idem.ErrNoRequest.
	KeptRequest(ctx context.Context, id idem.ExecutionID) ([]byte, error)

	// Jobs returns all jobs, the newest first, and OpenJobs those that run.
	Jobs(ctx context.Context) ([]idem.Job, error)
	OpenJobs(ctx context.Context) ([]idem.Job, error)
	// Job returns one. It returns idem.ErrNoJob.
	Job(ctx context.Context, id string) (*idem.Job, error)
	// JobRuns returns the executions whose ends a job has yet to count.
	JobRuns(ctx context.Context, id string) ([]idem.JobRun, error)
	// BeginJob stores a new job. It returns idem.ErrTooManyJobs.
	BeginJob(ctx context.Context, j *idem.Job, a *idem.Audit) error
	// TakeJob makes this process the owner of an open job. Like the next two it changes j, and
	// returns idem.ErrJobMoved if j is not as it is in the ledger; here, too, if its owner lives.
	TakeJob(ctx context.Context, j *idem.Job) error
	// PutJob stores the progress of an open job. It follows run from now on; nil = none; and ended
	// no more.
	PutJob(ctx context.Context, j *idem.Job, run *idem.JobRun, ended []idem.JobRun) error
	// MoveJob stores a job whose State has changed.
	MoveJob(ctx context.Context, j *idem.Job, a *idem.Audit) error

	// Audit writes an audit of what is no change of the ledger's, with its result.
	Audit(ctx context.Context, a *idem.Audit) error
	// AuditRefusal writes an audit of a refusal later. It never blocks.
	AuditRefusal(a idem.Audit)
	// Audits returns a page. It returns idem.ErrCursor.
	Audits(ctx context.Context, q idem.AuditQuery) (idem.AuditPage, error)
	// BadSignatures returns a page of deliveries whose signature was not valid. It returns
	// idem.ErrCursor.
	BadSignatures(ctx context.Context, q idem.BadSignatureQuery) (idem.BadSignaturePage, error)
	// Counts returns what all processes have counted of their routes.
	Counts(ctx context.Context, q idem.CountQuery) (idem.CountHistory, error)

	// Replicas returns what each process says of itself, those that ended in the last hour
	// included.
	Replicas(ctx context.Context) ([]idem.ReplicaNote, error)
	// Space returns how full the members of etcd are that answer.
	Space(ctx context.Context) []idem.StoreSpace

	// Guard reports whether a running execution may go on, and stores the step that it begins; ""
	// stores none. It returns idem.ErrCancelled and idem.ErrFinished, both with what was found,
	// idem.ErrTooManySteps, and the errors of a callback: idem.ErrStaleToken, idem.ErrLockExpired,
	// idem.ErrLockLost, idem.ErrCallbackKey, idem.ErrNoExecution.
	Guard(ctx context.Context, by idem.Callback, step string, plan []string) (*idem.Found, error)
	// Heartbeat extends a hold, or a lock of the lock API; ttl 0 means as long as before. Its
	// errors are those of Guard.
	Heartbeat(ctx context.Context, by idem.Callback, ttl time.Duration) (*idem.Found, error)
	// Complete ends a held execution. Its errors are those of Guard.
	Complete(ctx context.Context, by idem.Callback, f idem.Final) (*idem.Found, error)

	// AcquireLock takes a lock that belongs to no delivery. It returns *idem.LockHeldError, and
	// idem.ErrCancelled if its wait was cancelled.
	AcquireLock(ctx context.Context, r idem.AcquireRequest) (*idem.Acquired, error)
	// ReleaseLock gives such a lock back. It returns idem.ErrLockLost, idem.ErrStaleToken or
	// idem.ErrLockExpired.
	ReleaseLock(ctx context.Context, workflow string, by idem.Callback) error
}
