package admin

import (
	"context"
	"time"

	"hooklock/idem"
)

// Ledger is the store of locks and records as the API needs it; *etcdlock.Control is one. Besides the errors that each method names, all
// of them return idem.ErrStoreUnavailable. They end when their context does.
type Ledger interface {
	// Execution finds an execution wherever it is now. What it meets dead it buries, so that the answer is the truth.
	// idem.ErrNoExecution.
	Execution(ctx context.Context, id idem.ExecutionID) (*idem.Found, error)
	// Await returns when the execution is not as since shows it any more, at once when it has ended. When ctx ends first it returns the
	// state as it is.
	Await(ctx context.Context, id idem.ExecutionID, since *idem.Found) (*idem.Found, error)
	// Executions lists a page. idem.ErrCursor.
	Executions(ctx context.Context, q idem.ExecutionQuery) (idem.ExecutionPage, error)
	// Lock is the lock of a workflow. idem.ErrNoLock.
	Lock(ctx context.Context, workflow string) (*idem.LockView, error)
	// LockOf is the lock of an execution of a workflow, which may have several. idem.ErrNoLock.
	LockOf(ctx context.Context, workflow string, id idem.ExecutionID) (*idem.LockView, error)
	// Locks lists a page. idem.ErrCursor.
	Locks(ctx context.Context, q idem.LockQuery) (idem.LockPage, error)

	// Slots lists a page of the slots of limits that are taken; Prefix is of the limit. idem.ErrCursor.
	Slots(ctx context.Context, q idem.LockQuery) (idem.SlotPage, error)
	// Turns lists a page of those who are first of their queue and wait for a slot, as Slots does.
	Turns(ctx context.Context, q idem.LockQuery) (idem.SlotPage, error)

	// Cancel asks an execution to stop, and ends one that waits. before: it had been asked already. idem.ErrFinished and idem.ErrMoved, with
	// what was found; idem.ErrNoExecution.
	Cancel(ctx context.Context, id idem.ExecutionID, c idem.Cancel) (found *idem.Found, before bool, err error)
	// Forget lets an event run again. It returns what it forgot. idem.ErrAlive, idem.ErrSuperseded, idem.ErrNoExecution.
	Forget(ctx context.Context, id idem.ExecutionID, by idem.Cancel) (*idem.Found, error)
	// ForceRelease ends the execution that holds the lock of a workflow. idem.ErrNoLock; idem.ErrLockLost when another one holds it.
	ForceRelease(ctx context.Context, workflow string, id idem.ExecutionID, c idem.Cancel) (*idem.Found, error)

	// Pauses are all pauses, with how far each has come.
	Pauses(ctx context.Context) ([]idem.PauseState, error)
	// Pause holds back what begins in a scope. before is the pause that it replaced; nil = none.
	Pause(ctx context.Context, p idem.Pause) (before *idem.Pause, err error)
	// Resume ends a pause and returns it. idem.ErrNoPause.
	Resume(ctx context.Context, s idem.PauseScope) (*idem.Pause, error)

	// ParkedExecutions lists a page of the executions whose request is kept. idem.ErrCursor.
	ParkedExecutions(ctx context.Context, q idem.ParkedQuery) (idem.ExecutionPage, error)
	// ParkedEntries is the same in short. idem.ErrCursor.
	ParkedEntries(ctx context.Context, q idem.ParkedQuery) (idem.ParkedPage, error)
	// RunNow lets a parked execution be tried now. idem.ErrNotParked; idem.ErrFinished; idem.ErrCancelled where it is to end;
	// idem.ErrNoExecution.
	RunNow(ctx context.Context, id idem.ExecutionID) (*idem.Found, error)
	// Skip ends a parked execution as a dead letter. before: it had been asked already. idem.ErrNotParked, and those of Cancel.
	Skip(ctx context.Context, id idem.ExecutionID, c idem.Cancel) (found *idem.Found, before bool, err error)
	// Rerun lets the event of an ended execution run again, whose request is kept. It returns the new execution. idem.ErrNoRequest; idem.ErrAlive;
	// idem.ErrCancelled where it was cancelled for good; idem.ErrSuperseded; idem.ErrNoExecution.
	Rerun(ctx context.Context, id idem.ExecutionID) (*idem.Found, error)
	// KeptRequest is what was given to the ledger of the request of an execution. idem.ErrNoRequest.
	KeptRequest(ctx context.Context, id idem.ExecutionID) ([]byte, error)

	// Audited notes what somebody with a token asked for, for Audits. It never blocks.
	Audited(a idem.Audit)
	// Audits lists a page. idem.ErrCursor.
	Audits(ctx context.Context, q idem.AuditQuery) (idem.AuditPage, error)
	// Counts is what all processes have counted of their routes.
	Counts(ctx context.Context, q idem.CountQuery) (idem.CountHistory, error)

	// Guard says whether a running execution may go on, and notes the step that it begins; "" notes none. idem.ErrCancelled and
	// idem.ErrFinished, both with what was found, and the errors of a callback: idem.ErrStaleToken, idem.ErrLockExpired,
	// idem.ErrLockLost, idem.ErrCallbackKey, idem.ErrNoExecution; idem.ErrTooManySteps.
	Guard(ctx context.Context, by idem.Callback, step string, plan []string) (*idem.Found, error)
	// Heartbeat extends a hold, or a lock of the lock API; ttl 0 means as long as before. Errors as with Guard.
	Heartbeat(ctx context.Context, by idem.Callback, ttl time.Duration) (*idem.Found, error)
	// Complete ends a held execution. Errors as with Guard.
	Complete(ctx context.Context, by idem.Callback, f idem.Final) (*idem.Found, error)

	// AcquireLock takes a lock that is nobody's delivery. *idem.LockHeldError; idem.ErrCancelled when somebody ended its wait.
	AcquireLock(ctx context.Context, r idem.AcquireRequest) (*idem.Acquired, error)
	// ReleaseLock gives such a lock back. idem.ErrLockLost, idem.ErrStaleToken, idem.ErrLockExpired.
	ReleaseLock(ctx context.Context, workflow string, by idem.Callback) error
}
