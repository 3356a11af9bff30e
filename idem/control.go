package idem

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"time"
)

// Errors for operators, upstreams and clients of the lock API, beside ErrStoreUnavailable,
// ErrLockLost and ErrCancelled.
var (
	// ErrNoExecution says that the ledger has no trace of the execution. It never ran, its record
	// has expired or was forgotten, or provably nothing of it had reached the upstream.
	ErrNoExecution = errors.New("no such execution")
	// ErrNoLock says that the workflow is free.
	ErrNoLock = errors.New("lock is free")
	// ErrFinished says that the execution has ended. The first terminal status stays.
	ErrFinished = errors.New("execution has ended")
	// ErrAlive says that the execution waits, runs or is held, so its event cannot be forgotten.
	ErrAlive = errors.New("execution has not ended")
	// ErrSuperseded says that the event has run again since, so the ledger has this execution in
	// short only.
	ErrSuperseded = errors.New("the event has run again since")
	// ErrMoved says that the execution is no longer in the status that the caller has seen, so it
	// may not be what the caller meant.
	ErrMoved = errors.New("execution is in another status by now")
	// ErrStaleToken says that the fencing token is not the one of the execution's lock.
	ErrStaleToken = errors.New("fencing token is not current")
	// ErrLockExpired says that the hold ran out without being renewed.
	ErrLockExpired = errors.New("hold ran out")
	// ErrCallbackKey says that the callback key is not the execution's own.
	ErrCallbackKey = errors.New("callback key is not the execution's")
	// ErrLockHeld says that another execution has the lock, or the time to wait for it is over.
	ErrLockHeld = errors.New("lock is held")
	// ErrTooManySteps says that the execution's steps would not fit into its lock any more.
	ErrTooManySteps = errors.New("too many steps")
	// ErrNotParked says that the execution's sender waits for its answer, so the execution cannot
	// be tried later.
	ErrNotParked = errors.New("execution is not parked")
	// ErrNoRequest says that the ledger does not keep the request of the execution.
	ErrNoRequest = errors.New("request is not kept")
	// ErrRequestUnavailable says that the request of the execution is kept, and cannot be read:
	// where it is kept does not answer, or its key is missing.
	ErrRequestUnavailable = errors.New("request cannot be read")
	// ErrNotErased says that the execution is forgotten, and the request that was kept of it
	// outside of the ledger could not be deleted.
	ErrNotErased = errors.New("stored request is not deleted")
	// ErrCursor says that the cursor of a query is none that a page of the same query gave.
	ErrCursor = errors.New("not a cursor of this list")
)

// LockHeldError is ErrLockHeld with what is known of the holder.
type LockHeldError struct {
	Holder *Lock // nil: others wait for the lock, and the next holder is not decided
}

// Error returns the text of ErrLockHeld.
func (e *LockHeldError) Error() string { return ErrLockHeld.Error() }

// Unwrap makes it an ErrLockHeld.
func (e *LockHeldError) Unwrap() error { return ErrLockHeld }

// StepStatus is where a step of an execution's plan is.
type StepStatus string

// The statuses of a step.
const (
	StepRunning StepStatus = "running"
	StepDone    StepStatus = "done"
	StepSkipped StepStatus = "skipped" // the execution was cancelled before the step began
)

// Step is one step of an execution, as its upstream reported it with guard.
type Step struct {
	Name       string     `json:"name"`                // as the upstream calls it; unique in its execution
	Status     StepStatus `json:"status"`              // where it is now
	StartedAt  time.Time  `json:"startedAt,omitzero"`  // zero: it has not begun
	FinishedAt time.Time  `json:"finishedAt,omitzero"` // zero: it has not ended
}

// Found is an execution and where it is now. One of Lock, Record and Short is set.
type Found struct {
	Lock    *Lock    // while it waits, runs, or keeps its lock after its answer (a hold)
	InQueue bool     // it waits in the queue; Lock is what its entry says
	Record  *Record  // it has ended, and the event has not run again since
	Short   *Attempt // it has ended, and the event has run again since
	// ShortOf is the scope of the event whose earlier attempt Short is.
	ShortOf Scope
	// Later is what the ledger says of the execution that knows of Short: a later one of the same
	// event. nil where nothing does.
	Later *ExecutionFacts
	// Attempts are all executions of the event in short, the oldest first; nil if they were not
	// asked for.
	Attempts []Attempt
	// Arrivals are the deliveries of the event that were not executed; nil = none are kept, or they
	// were not asked for. If only Arrivals is set, the event has no execution.
	Arrivals *History
	// Duplicates counts the duplicates that were answered without running. It lags by up to a
	// second.
	Duplicates int64
	// Revision of the ledger at which this was read; for waiting for the next change.
	Revision int64
}

// Facts returns what the execution's lock or record says of it; nil if only Short is left of it.
func (f *Found) Facts() *ExecutionFacts {
	switch {
	case f.Record != nil:
		return &f.Record.ExecutionFacts
	case f.Lock != nil:
		return &f.Lock.ExecutionFacts
	}
	return nil
}

// ID returns the execution's ID; "" if there is no execution.
func (f *Found) ID() ExecutionID {
	switch e := f.Facts(); {
	case e != nil:
		return e.Execution
	case f.Short != nil:
		return f.Short.Execution
	}
	return ""
}

// IDs returns the IDs of the execution and of the attempts before it.
func (f *Found) IDs() (ids []ExecutionID) {
	if e := f.Facts(); e != nil {
		e.anyAttempt(func(id ExecutionID, _ string) bool { ids = append(ids, id); return false })
	}
	return ids
}

// Status returns the status of the execution.
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
	case f.InQueue:
		return Pending
	}
	return Running
}

// Workflow returns the execution's workflow.
func (f *Found) Workflow() string {
	switch e := f.Facts(); {
	case e != nil:
		return e.Workflow
	case f.Short != nil:
		return f.ShortOf.Workflow
	}
	return f.Arrivals.Workflow
}

// LockQuery selects locks by the beginning of their workflow. The zero value is all of them.
type LockQuery struct {
	Prefix   string // the beginning of the workflow; "" = any
	PageSize int    // 0 = 100
	Cursor   string // NextCursor of the page before; "" = the first page
}

// LockView is a lock as operators see it.
type LockView struct {
	Lock    *Lock // the execution that has the lock
	Waiting int   // executions in its queue
	// Of is how many executions of the workflow may run at a time, by the configuration of this
	// process; 0 = one.
	Of int
	// Holders are the running executions of the workflow, the oldest first, the one of Lock
	// included. It is set only if one workflow was asked for and Of is not 0.
	Holders []ExecutionID
}

// LockPage is a part of the locks; see ExecutionPage.
type LockPage struct {
	Locks      []LockView // sorted by their keys in the ledger
	NextCursor string     // asks for the next page; "" = this is the last one
}

// SlotView is a slot that is taken, and the execution that has it.
type SlotView struct {
	Slot
	Of        int         // slots of the limit, by the configuration of this process; 0 = it has no such limit
	Execution ExecutionID // the execution that has the slot, or waits for it
	Workflow  string      // of that execution
	Route     string      // of that execution
}

// SlotCount is how many executions of a process have a slot of the limits of one name, and how many
// wait for one.
type SlotCount struct {
	LimitName      string // the name in limits.shared, or lock.limit for the limits of workflows
	Taken, Waiting int    // executions
}

// SlotPage is a part of the taken slots, or of the slot waiters, whose N is -1; see ExecutionPage.
type SlotPage struct {
	Slots      []SlotView // sorted by their keys in the ledger
	NextCursor string     // asks for the next page; "" = this is the last one
}

// Callback is how an upstream, or a client of the lock API, proves that it may act on an execution.
type Callback struct {
	Execution ExecutionID // the one that it acts on
	// Workflow, if not "", must be the workflow of the execution; otherwise the execution is not
	// found.
	Workflow string
	// Token is the fencing token; 0 if the lock covers the event alone, because its upstream is
	// given no token.
	Token int64
	// Key is the execution's callback key. It is compared in constant time with the hash in the
	// ledger. Clients of the lock API authenticate with a token of the admin API instead: they
	// leave Key empty, and AnyKey is true.
	Key    string
	AnyKey bool
}

// NewCallbackKey makes the key with which an upstream may act on its own execution, from random
// bits, and the hash of it that the ledger keeps.
func NewCallbackKey(random [10]byte) (key, hash string) {
	key = base32.StdEncoding.EncodeToString(random[:])
	return key, HashCallbackKey(key)
}

// HashCallbackKey returns ExecutionFacts.CallbackHash of a callback key, which has as many bits as
// the key.
func HashCallbackKey(key string) string {
	hash := sha256.Sum256([]byte(key))
	return hex.EncodeToString(hash[:10])
}

// Final is the end of a held execution as its upstream reports it.
type Final struct {
	Status Status // Success or Failed
	// Answer is what duplicates get; nil means 200 without a body for SUCCESS, and nothing for
	// FAILED.
	Answer *Answer
	Error  *Failure // of FAILED; nil = the upstream gave no reason
}

// AcquireRequest asks for a lock that belongs to no delivery.
type AcquireRequest struct {
	Workflow string        // whose lock it is
	Holder   string        // free text for operators
	TTL      time.Duration // the lock is lost if it is not renewed for this long; whole seconds
	Wait     time.Duration // how long to wait for it in the queue; 0 = not at all
}

// Acquired is a lock of the lock API.
type Acquired struct {
	Lock        *Lock  // with its fencing token
	CallbackKey string // renews and releases it; only its hash is stored
}

// StoreSpace is how full the database of a member of the store is.
type StoreSpace struct {
	Member string // its endpoint; "embedded"
	Size   int64  // of its file, bytes; this is what the quota is for
	InUse  int64  // bytes of the file that hold something
	Quota  int64  // bytes; 0 = it does not say
	Full   bool   // it takes nothing new
}
