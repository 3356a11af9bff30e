package idem

import (
	"errors"
	"time"
)

// What people, upstreams and clients of the lock API are told when the ledger does not do what they ask, beside ErrStoreUnavailable,
// ErrLockLost and ErrCancelled.
var (
	// ErrNoExecution: the ledger has no trace of the execution. It never ran, its record has expired or was forgotten, or provably
	// nothing of it had reached the upstream.
	ErrNoExecution = errors.New("no such execution")
	// ErrNoLock: the workflow is free.
	ErrNoLock = errors.New("lock is free")
	// ErrFinished: the execution has ended. The first terminal status stays.
	ErrFinished = errors.New("execution has ended")
	// ErrAlive: the execution waits, runs or is held, so its event cannot be forgotten.
	ErrAlive = errors.New("execution has not ended")
	// ErrSuperseded: the event has run again since, so the ledger has this execution in short only.
	ErrSuperseded = errors.New("the event has run again since")
	// ErrMoved: the execution is not in the status that whoever asks has seen, so it is not what they meant.
	ErrMoved = errors.New("execution is in another status by now")
	// ErrStaleToken: the fencing token is not the one of the execution's lock.
	ErrStaleToken = errors.New("fencing token is not current")
	// ErrLockExpired: the hold ran out before anybody renewed it.
	ErrLockExpired = errors.New("hold ran out")
	// ErrCallbackKey: the callback key is not the execution's own.
	ErrCallbackKey = errors.New("callback key is not the execution's")
	// ErrLockHeld: somebody else has the lock, or the time to wait for it was over.
	ErrLockHeld = errors.New("lock is held")
	// ErrTooManySteps: the execution's steps would not fit into its lock any more.
	ErrTooManySteps = errors.New("too many steps")
	// ErrNotParked: the execution's sender waits for its answer, so nobody can say that it is to be tried later.
	ErrNotParked = errors.New("execution is not parked")
	// ErrNoRequest: the ledger does not keep the request of the execution.
	ErrNoRequest = errors.New("request is not kept")
	// ErrRequestUnavailable: the request of the execution is kept, and cannot be read: where it is kept does not answer, or its key is missing.
	ErrRequestUnavailable = errors.New("request cannot be read")
	// ErrCursor: the cursor of a query is none that a page of the same query gave.
	ErrCursor = errors.New("not a cursor of this list")
)

// LockHeldError is ErrLockHeld with what is known of the holder.
type LockHeldError struct {
	Holder *Lock // nil: others wait for the lock, and who is next is not decided
}

// Error says what ErrLockHeld says.
func (e *LockHeldError) Error() string { return ErrLockHeld.Error() }

// Unwrap makes it an ErrLockHeld.
func (e *LockHeldError) Unwrap() error { return ErrLockHeld }

// StepStatus is where a step of an execution's plan is.
type StepStatus string

// The statuses of a step.
const (
	StepRunning StepStatus = "running"
	StepDone    StepStatus = "done"
	StepSkipped StepStatus = "skipped" // the execution was cancelled before it began
)

// Step is one step of an execution, as its upstream told it with guard.
type Step struct {
	Name       string     `json:"name"`
	Status     StepStatus `json:"status"`
	StartedAt  time.Time  `json:"startedAt,omitzero"`
	FinishedAt time.Time  `json:"finishedAt,omitzero"`
}

// Found is an execution where it is now. Lock is set while it waits (Place is then true), runs or is held, Record when it has ended,
// Short alone when the event has run again since.
type Found struct {
	Lock   *Lock
	Place  bool // it waits in the queue
	Record *Record
	Short  *Attempt
	// ShortOf is the scope of the event whose earlier attempt Short is.
	ShortOf Scope
	// Later is what the ledger says of the execution that knows of Short: a later one of the same event. nil where nothing does.
	Later *Entry
	// Attempts are all executions of the event in short, the oldest first; nil where nobody asked.
	Attempts []Attempt
	// Arrivals are the deliveries of the event that were not executed; nil = none are kept, or nobody asked. Alone: there is no execution at all.
	Arrivals *History
	// Duplicates are the copies that were answered without running, right within a second.
	Duplicates int64
	// Revision of the ledger at which this was read; for waiting for the next change.
	Revision int64
}

// Entry is what the ledger says of the execution, wherever it is; nil where only Short is left of it.
func (f *Found) Entry() *Entry {
	switch {
	case f.Record != nil:
		return &f.Record.Entry
	case f.Lock != nil:
		return &f.Lock.Entry
	}
	return nil
}

// ID is the execution's; "" where there is none.
func (f *Found) ID() ExecutionID {
	switch e := f.Entry(); {
	case e != nil:
		return e.Execution
	case f.Short != nil:
		return f.Short.Execution
	}
	return ""
}

// IDs are those of the execution and of the attempts before it.
func (f *Found) IDs() (ids []ExecutionID) {
	if e := f.Entry(); e != nil {
		e.any(func(id ExecutionID, _ string) bool { ids = append(ids, id); return false })
	}
	return ids
}

// Status is the status that the execution's place in the ledger means.
func (f *Found) Status() Status {
	switch {
	case f.Record != nil:
		return f.Record.Status
	case f.Short != nil:
		return f.Short.Status
	case f.Lock == nil && f.Arrivals.Forgotten != nil:
		return Released
	case f.Lock == nil:
		return Refused
	case f.Lock.Cancel != nil:
		return CancelRequested
	case f.Place:
		return Pending
	}
	return Running
}

// Workflow is the execution's workflow.
func (f *Found) Workflow() string {
	switch e := f.Entry(); {
	case e != nil:
		return e.Workflow
	case f.Short != nil:
		return f.ShortOf.Workflow
	}
	return f.Arrivals.Workflow
}

// LockQuery selects locks by the beginning of their workflow. The zero value is all of them.
type LockQuery struct {
	Prefix string
	Limit  int // 0 = 100
	Cursor string
}

// LockView is a lock as people see it.
type LockView struct {
	Lock    *Lock
	Waiting int // executions in its queue
	// Of is how many executions of the workflow may run at a time, as this process has it, where that is more than one; 0 = it is one.
	Of int
	// Holders are those that do, the oldest first, the one of Lock among them. Only where one workflow was asked for, and Of is not 0.
	Holders []ExecutionID
}

// LockPage is a part of the locks; see ExecutionPage.
type LockPage struct {
	Locks      []LockView
	NextCursor string
}

// SlotView is a slot that is taken, and who has it.
type SlotView struct {
	Slot
	Of        int // how many there are, as this process has it; 0 = it knows no such limit
	Execution ExecutionID
	Workflow  string
	Route     string
}

// SlotCount is how many executions of a process have a slot of the limits of one name, and how many wait for one.
type SlotCount struct {
	Limit          string // as limits.shared has it; lock.limit is those of workflows
	Taken, Waiting int
}

// SlotPage is a part of the slots that are taken, or of those who wait for one, whose N is -1; see ExecutionPage.
type SlotPage struct {
	Slots      []SlotView
	NextCursor string
}

// Callback is what an upstream, or a client of the lock API, shows to speak about its own execution.
type Callback struct {
	Execution ExecutionID
	// Workflow, where it is not "", is the one that the execution has to be of; otherwise there is no such execution.
	Workflow string
	// Token is the fencing token; 0 where the lock covers the event alone, whose upstream is given none.
	Token int64
	// Key is the execution's callback key. It is compared in constant time with the hash in the ledger. Clients of the lock API are known by
	// a token of the admin API instead: they leave it empty, and AnyKey is true.
	Key    string
	AnyKey bool
}

// Final is the end of a held execution as its upstream tells it.
type Final struct {
	Status Status // Success or Failed
	// Answer is what duplicates get; nil means 200 without a body for SUCCESS, and nothing for FAILED.
	Answer *Answer
	Error  *Failure // of FAILED; nil = the upstream gave no reason
}

// AcquireRequest asks for a lock that is nobody's delivery.
type AcquireRequest struct {
	Workflow string
	Holder   string        // for people
	TTL      time.Duration // the lock is lost when nobody renews it for so long; whole seconds
	Wait     time.Duration // how long to wait for it in the queue; 0 = not at all
}

// Acquired is a lock of the lock API.
type Acquired struct {
	Lock        *Lock
	CallbackKey string
}
