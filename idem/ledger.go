package idem

import (
	"context"
	"errors"
	"time"
)

// Errors that a Ledger returns. Anything else is a bug.
var (
	// ErrStoreUnavailable says that the store cannot decide now. Nothing was claimed: should the
	// claim still be applied, the ledger takes it back by itself.
	ErrStoreUnavailable = errors.New("store unavailable")
	// ErrNotClaimed says that the claim has provably not been applied and never will be. Try again
	// under a new execution ID.
	ErrNotClaimed = errors.New("claim was not applied")
	// ErrLockLost says that the lock no longer belongs to this process; the execution was ended
	// elsewhere.
	ErrLockLost = errors.New("lock lost")
	// ErrNoSlot says that every slot of a limit that the execution counts against is taken.
	ErrNoSlot = errors.New("a limit has no slot for it")
	// ErrNotOld says that MaxAge of the execution is not over.
	ErrNotOld = errors.New("not too old")
	// ErrNotRenewed says that the session was not renewed in time, so nothing may be done under it
	// any more. It comes together with ErrLockLost, and says that the lock need not have been taken
	// by another process.
	ErrNotRenewed = errors.New("session was not renewed in time")
	// ErrNotRecorded says that the outcome is not in the ledger yet. The ledger goes on trying, and
	// tells its owner of the end when it is known.
	ErrNotRecorded = errors.New("outcome not recorded yet")
	// ErrQueueEntryLost says that the queue entry is gone with its session.
	ErrQueueEntryLost = errors.New("place in the queue lost")
	// ErrCancelled says that the execution was cancelled.
	ErrCancelled = errors.New("execution cancelled")
)

// Ledger is the store of locks and records as the Guard needs it. Every call ends when its context
// does.
type Ledger interface {
	// FirstTwin returns the first event with the body of t, which t is from then on, whatever
	// becomes of either; the zero value if that is t itself. Events that are asked about at once
	// get one answer, at all processes. It returns ErrStoreUnavailable.
	FirstTwin(ctx context.Context, t *Twin) (FirstTwin, error)
	// Claim takes the lock of l.Scope for l.Execution, if it is free and not paused, if its queue
	// is empty, and if the event's record is still at revision prev (0: absent). Exactly one of the
	// three results is set: the held lock, what stands in the way, or an error. The ledger fills in
	// Token, Revision, Holder and Alive of the held lock.
	Claim(ctx context.Context, l Lock, prev int64) (RunningLock, *Obstacle, error)
	// Reap ends the execution of a lock whose owner is dead: FAILED unknown, and after its release
	// delay the lock is free. It returns nil if another process was faster, or if the owner turns
	// out to be alive: read again.
	Reap(ctx context.Context, dead *Lock) error
	// Enqueue adds an entry to the queue of l.Scope, if the event's record is still at revision
	// prev and no delivery of the event waits or runs. behind is the revision of the lock that was
	// seen in the way, 0 = it was free: knowing it saves a request. Exactly one of the three
	// results is set, as with Claim. An execution that leaves the queue without a lock may not come
	// back under its ID.
	//
	// With l.Parked it is parked at once: the entry is no process's, any one that has its route
	// runs it, and there is nothing to wait for or to leave. ErrNotRecorded: unknown, so the
	// response may say neither that it is accepted nor that it does not run; should it have been
	// parked, it stays. Other errors mean that it is not, and never will be; after ErrNotClaimed it
	// may be tried again under a new execution ID.
	Enqueue(ctx context.Context, l Lock, prev, behind int64) (QueueEntry, *Obstacle, error)
	// AwaitEnd waits until the execution of l, which runs or waits, has ended, or until its owner
	// is dead. It returns the dead lock, or how that very execution ended, if that can be known:
	// its record, even when it is gone by now, or Released.
	AwaitEnd(ctx context.Context, l *Lock) (*Obstacle, error)
	// Paused returns the pause that executions of that route and workflow wait for, as far as this
	// process knows; nil = none. It does not call the store.
	Paused(route, workflow string) *Pause
	// LastSeenLock returns the lock of another event that the waiters of this process saw last; nil
	// = there are none, or the lock was free. It does not call the store: a delivery that is going
	// to wait as well saves a claim that would be refused.
	LastSeenLock(scope Scope) *Lock
	// ReadAnswer reads the answer of r that is Apart: then it is Whole, or has Left. It returns
	// ErrStoreUnavailable, or the context's error.
	ReadAnswer(ctx context.Context, r *Record) error
	// DropRecord takes back the record of an execution that was ended while it waited, because its
	// delivery is forwarded all the same. It never blocks.
	DropRecord(r *Record)
	// CountDuplicate counts one duplicate of an execution that was answered without running. It
	// never blocks. The count is kept for retention.
	CountDuplicate(id ExecutionID, retention time.Duration)
}

// QueueEntry is an entry in the queue of a workflow, which is first come, first served over all
// processes. It lives as long as the session that made it. Await and ClaimHead are not safe for
// concurrent use. It ends with a successful ClaimHead, or with Leave.
type QueueEntry interface {
	// Await waits until the entry is the head of the queue and the lock is free, or has a dead
	// owner to be reaped first, or until the lock was handed to it, which ClaimHead then only has
	// to confirm; or until the event's record is not at revision prev any more. It returns what it
	// found. ErrQueueEntryLost: decide again from the beginning, under a new execution ID.
	// ErrCancelled: the execution was cancelled while it waited; the record found is its own. Other
	// errors are the context's, and the entry is still in the queue: then what it found is the lock
	// or the limit that it waits for, nil if that is not known.
	Await(ctx context.Context, prev int64) (*Obstacle, error)
	// ClaimHead takes the lock for l, which keeps the execution ID of the entry. Its results are
	// those of Claim, and ErrQueueEntryLost. If the entry is gone it may also return what it sees,
	// or ErrNotClaimed: Await says why it is gone. Without a lock the entry is still in the queue:
	// wait again, or leave.
	ClaimHead(ctx context.Context, l Lock, prev int64) (RunningLock, *Obstacle, error)
	// Park keeps the entry beyond its session, at its position in the queue. After nil this process
	// does not own the entry any more, and Leave does nothing. ErrNotRecorded: unknown so far, as
	// with Ledger.Enqueue; the ledger goes on trying by itself, and Leave does nothing. After other
	// errors it is not parked: ErrQueueEntryLost and ErrCancelled as with Await, or
	// ErrStoreUnavailable.
	Park(ctx context.Context, p Parked) error
	// Leave removes the entry. Should a claim of it still be applied, the ledger takes that back
	// too. It goes on by itself if ctx ends first.
	Leave(ctx context.Context) error
}

// Obstacle is what stands in the way of a claim, read in one transaction.
type Obstacle struct {
	Lock   *Lock   // nil = free
	Record *Record // nil = none, or one that this version cannot read
	// RecordRevision is the record's mod revision, 0 when it is absent.
	RecordRevision int64
	// Full is the limit that has no slot for it: all are taken, or others wait for one; nil = no
	// limit is in the way.
	Full *Slot
	// Oldest is the execution that has had a slot of Full for longest, as far as this process
	// knows; "" = not known.
	Oldest ExecutionID
	// Queue says that the queue of the lock is not empty. It is not set while the lock is taken:
	// then Lock stands in the way.
	Queue bool
	// Released: (Follow only) the execution ended without a record: provably nothing of it had
	// reached the upstream, or that asked for credentials first.
	Released bool
	// Waiting is the execution of this event that waits for the lock; nil = none.
	Waiting *Lock
	// Newer: (Enqueue only) under strategy latest, the execution that waits and is newer by its
	// order; nil = none.
	Newer *Lock
	// Paused: (Claim only) the pause because of which nothing was claimed. If the store does not
	// answer, nothing else is known.
	Paused *Pause
}

// RunningLock is a lock that this process holds. Its methods may be called from any goroutine.
type RunningLock interface {
	// Lock returns the lock as this process last saw it. The caller must not change it.
	Lock() *Lock
	// Begin is called before the upstream is. After an error the lock can no longer be trusted, and
	// nothing may be sent: ErrLockLost or ErrCancelled.
	Begin() error
	// OnStop registers the function that is called, at most once and never before OnStop returns on
	// the same goroutine, when the execution has to stop: the lock was lost (ErrLockLost) or the
	// execution was cancelled (ErrCancelled). It must not block. It replaces the one before it.
	OnStop(func(cause error))
	// Count is called before the end of an execution is written, or of a try of it, with what that
	// adds to the counts of its route: they are committed together. If nothing is written, it is
	// counted all the same.
	Count(one Counted)
	// Settle moves the execution from its lock into its event's record. It returns the record as
	// written; a cancel that was requested turns an unknown outcome into ABORTED. ErrLockLost: the
	// execution had been ended elsewhere; the record, if not nil, says how. ErrNotRecorded: unknown
	// so far, and the ledger goes on trying by itself. ErrNotOld: it was to become a dead letter
	// for its age (CodeTooOld), and an operator has renewed its time; it goes on unchanged.
	Settle(ctx context.Context, e End) (*Record, error)
	// Hold lets the lock and the execution outlive the answer: for ttl, and longer if it is
	// renewed, through any process, at most until MaxDuration. This process has nothing to do with
	// it any more. A cancel that was requested stays in it. ErrLockLost: the execution had been
	// ended elsewhere. ErrNotRecorded: unknown so far, and the ledger goes on trying by itself.
	Hold(ctx context.Context, ttl time.Duration) error
	// Park lets the execution outlive this process, as its Lock says then; this process still has
	// its lock, and goes on, unless another one was faster (ErrLockLost of OnStop).
	// After ErrLockLost, ErrCancelled and ErrStoreUnavailable it is not parked, and never will be.
	// ErrNotRecorded: unknown, so the response may say neither; each later call of this RunningLock
	// does what is right for either.
	Park(ctx context.Context, p Parked) error
	// BeginTry is called before a parked execution is tried again. Its Lock has a new fencing token
	// then. callbackHash, which is new each time, replaces that of the try before. After an error
	// nothing may be sent: ErrLockLost, ErrCancelled, ErrPaused, ErrStoreUnavailable, or ErrNoSlot:
	// then its queue becomes ready again when there may be a slot.
	BeginTry(ctx context.Context, p Parked, callbackHash string) error
	// RecordTry writes down how the latest try of a parked execution ended, and what it waits for.
	// Errors are those of BeginTry. After ErrLockLost, of RecordTry or BeginTry, the execution does
	// not belong to this process any more: call only methods of Ledger.
	RecordTry(ctx context.Context, p Parked) error
	// Release gives the lock back for an execution that is as if it had not been: provably nothing
	// reached the upstream, or that asked for credentials first. It leaves the event's record as it
	// was. The ledger goes on trying by itself when the store does not answer. ErrCancelled: a
	// cancel was requested, so the execution ended as ABORTED, not executed, instead. ErrLockLost:
	// it had been ended elsewhere.
	//
	// Release of a parked execution leaves it, in its lock, to the next park worker, which may be
	// that of this process.
	Release(ctx context.Context) error
}

// ParkLedger is what a Ledger knows of parked executions, over all processes.
type ParkLedger interface {
	// Parked counts them, and those in the queue of that scope.
	Parked(s Scope) ParkedCount
	// NextReady waits for a queue that is ready: its first execution may be parked and no worker
	// runs it. It returns each queue once for each reason to look, in the order in which they
	// became ready. route is that of the executions in it; "" if they are of several, and Take
	// finds out.
	NextReady(ctx context.Context) (s Scope, route string, err error)
	// MarkReady makes the queue ready again; all queues if s is the zero value.
	MarkReady(s Scope)
	// IsTooOld reports whether the MaxAge of a parked execution is over, as far as this process
	// knows. One that reached it while it was paused is not old before its next try has begun.
	IsTooOld(id ExecutionID) bool
	// TakeParked claims the first execution of a queue, unless it is paused, or takes over the one
	// in its lock whose process is gone. nil, nil: there is nothing to take now, and the queue
	// becomes ready when that changes; an execution that needs a decision is not taken. After an
	// error the caller must call MarkReady. mine reports whether this process can run a route.
	TakeParked(ctx context.Context, s Scope, mine func(route string) bool) (*Taken, error)
	// Request returns what Park was given to keep. The caller owns it.
	Request(ctx context.Context, id ExecutionID) ([]byte, error)
}
