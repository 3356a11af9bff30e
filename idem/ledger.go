package idem

import (
	"context"
	"errors"
	"time"
)

// Errors that a Ledger returns. Anything else is a bug.
var (
	// ErrStoreUnavailable: the store cannot decide now. Nothing was claimed, and nothing of the claim will come to stay:
	// should it still land, the ledger takes it back by itself.
	ErrStoreUnavailable = errors.New("store unavailable")
	// ErrNotClaimed: the claim has provably not been applied and never will be. Try again under a new execution ID.
	ErrNotClaimed = errors.New("claim was not applied")
	// ErrLockLost: the lock is no longer ours; somebody else ended the execution.
	ErrLockLost = errors.New("lock lost")
	// ErrNoSlot: every slot of a limit that the execution counts against is taken.
	ErrNoSlot = errors.New("a limit has no slot for it")
	// ErrNotOld: MaxAge of the execution is not over.
	ErrNotOld = errors.New("not too old")
	// ErrUnheard: the session was not renewed in time, so nobody may act for it any more. It comes together with ErrLockLost, and says
	// that nobody else need have taken the lock.
	ErrUnheard = errors.New("session was not renewed in time")
	// ErrNotRecorded: the outcome is not in the ledger yet. The ledger goes on trying, and tells its owner of the end when it is known.
	ErrNotRecorded = errors.New("outcome not recorded yet")
	// ErrPlaceLost: the place in the queue is gone with its session.
	ErrPlaceLost = errors.New("place in the queue lost")
	// ErrCancelled: somebody asked to stop the execution.
	ErrCancelled = errors.New("execution cancelled")
)

// Ledger is the store of locks and records as the Guard needs it. Every call ends when its context does.
type Ledger interface {
	// Claim takes the lock of l.Scope for l.Execution, if it is free and nothing of it is paused, if nobody waits for it, and if the event's record is
	// still at revision prev (0: absent). Exactly one of the three results is set: the held lock, what stands in the way, or
	// an error. The ledger fills in Token, Revision, Holder and Alive of the held lock.
	Claim(ctx context.Context, l Lock, prev int64) (Held, *Seen, error)
	// Bury ends the execution of a lock whose owner is dead: FAILED unknown, and after its release delay the lock is free. No error
	// when somebody else was faster, or when the owner turns out to be alive: read again.
	Bury(ctx context.Context, dead *Lock) error
	// Enqueue takes a place in the queue of l.Scope, if the event's record is still at revision prev and no copy of the event waits or
	// runs. behind is the revision of the lock that was seen in the way, 0 = it was free: knowing it saves a request. Exactly one of the
	// three results is set, as with Claim. An execution that leaves the queue without a lock may not come back under its ID.
	Enqueue(ctx context.Context, l Lock, prev, behind int64) (Place, *Seen, error)
	// EnqueueParked is Enqueue for an execution whose sender is told that it is accepted: its place needs no session, and whoever has its route runs
	// it. l.Parked is set. With neither result it is parked. ErrNotRecorded: nobody knows, so its sender may be told neither that it is accepted
	// nor that it does not run; should it have been parked, it stays. Other errors mean that it is not, and never will be; after ErrNotClaimed it
	// may be tried again under a new execution ID.
	EnqueueParked(ctx context.Context, l Lock, prev, behind int64, kept Kept) (*Seen, error)
	// Follow waits until the execution of l, which somebody runs or waits with, has ended, or until its owner is dead. It returns the
	// dead lock, or else how that very execution ended, where that can be known: its record, even when it is gone by now, or
	// Released.
	Follow(ctx context.Context, l *Lock) (*Seen, error)
	// Paused is the pause that executions of that route and workflow wait for, as far as this process has heard; nil = none. It asks nobody.
	Paused(route, workflow string) *Pause
	// Ahead is the lock that was seen last by who waits for it in this process, of another event; nil = nobody does, or it was free. It asks nobody:
	// for who is going to wait there, too, it saves a claim that would be refused.
	Ahead(scope Scope) *Lock
	// Answer reads the answer of r that is Apart: then it is Whole, or has Left. The error is ErrStoreUnavailable, or the context's.
	Answer(ctx context.Context, r *Record) error
	// Drop takes back the record of an execution that was ended while it waited: its delivery is forwarded all the same. It never blocks.
	Drop(r *Record)
	// Duplicate counts one copy of an execution that was answered without running. It never blocks. The count is kept for retention.
	Duplicate(id ExecutionID, retention time.Duration)
}

// Place is a place in the queue of a workflow: first come, first served, over all processes. It lives as long as the session that took
// it. Await and ClaimHead are for one goroutine. It ends with a successful ClaimHead, or with Leave.
type Place interface {
	// Await waits until it is this place's turn: nobody is before it and the lock is free, or dead and to be buried first, or it was handed the
	// lock by who had it, which ClaimHead then only has to say; or until
	// the event's record is not at revision prev any more. It returns what it found. ErrPlaceLost: decide again from the beginning,
	// under a new execution ID. ErrCancelled: somebody cancelled the execution while it waited; the record found says who, and is its
	// own. Other errors are the context's, and the place is still taken: then what it found is the lock or the limit that it waits for,
	// nil where that is not known.
	Await(ctx context.Context, prev int64) (*Seen, error)
	// ClaimHead takes the lock for l, which keeps the execution ID of the place. Its results are those of Claim, and ErrPlaceLost. Where the
	// place is gone it may also return what it sees, or ErrNotClaimed: Await says why it is gone.
	// Without a lock the place is still taken: wait again, or leave.
	ClaimHead(ctx context.Context, l Lock, prev int64) (Held, *Seen, error)
	// Park keeps the place beyond its session, with its place in line. p and kept as with Ledger.EnqueueParked. After nil the place is nobody's any more,
	// and Leave does nothing. ErrNotRecorded: unknown so far, as with Ledger.EnqueueParked; the ledger goes on trying by itself, and Leave does nothing.
	// After other errors it is not parked: ErrPlaceLost and ErrCancelled as with Await, or ErrStoreUnavailable.
	Park(ctx context.Context, p Parked, kept Kept) error
	// Leave gives the place up. Should a claim of it still arrive, the ledger gives that back too. It goes on by itself when ctx ends
	// first.
	Leave(ctx context.Context) error
}

// Seen is what stands in the way of a claim, read in one transaction.
type Seen struct {
	Lock   *Lock   // nil = free
	Record *Record // nil = none, or one that this version cannot read
	// RecordRevision is the record's mod revision, 0 when it is absent.
	RecordRevision int64
	// Full is the limit that has no slot for it: all are taken, or others wait for one; nil = that is not in the way.
	Full *Slot
	// Oldest is the execution that has had a slot of Full for longest, as far as this process knows; "" = it does not.
	Oldest ExecutionID
	// Queue: somebody waits for the lock. Not said while the lock is held: then it is the lock that stands in the way.
	Queue bool
	// Released: (Follow only) the execution ended without a record, so provably nothing of it had reached the upstream.
	Released bool
	// Waiting is the copy of this event that waits for the lock; nil = none.
	Waiting *Lock
	// Newer: (Enqueue only) under strategy latest, who waits and is newer by what their order says; nil = nobody is.
	Newer *Lock
	// Paused: (Claim only) nothing was claimed, because of that. Where the store does not answer, nothing else is known.
	Paused *Pause
}

// Held is a lock that this process holds. Its methods may be called from any goroutine.
type Held interface {
	// Lock is the lock as last seen by its owner. The caller must not change it.
	Lock() *Lock
	// Begin says that the upstream is about to be called. An error means that the lock can no longer be trusted, and that
	// nothing may be sent: ErrLockLost or ErrCancelled.
	Begin() error
	// OnStop registers the function that is called, at most once and never before OnStop returns on the same goroutine, when the
	// execution has to stop: the lock was lost (ErrLockLost) or a cancel was asked (ErrCancelled). It must not block.
	OnStop(func(cause error))
	// Settle moves the execution from its lock into its event's record. It returns the record as written; a cancel that was
	// asked turns an unknown outcome into ABORTED. ErrLockLost: somebody else had ended the execution; the record, if not nil,
	// says how. ErrNotRecorded: unknown so far, and the ledger goes on trying by itself.
	Settle(ctx context.Context, e End) (*Record, error)
	// Hold lets the lock and the execution outlive the answer: for ttl, and for as long after that as somebody renews it, through any
	// process, at most until MaxDuration. This process has nothing to do with it any more. A cancel that was asked stays in it.
	// ErrLockLost: somebody else had ended the execution. ErrNotRecorded: unknown so far, and the ledger goes on trying by itself.
	Hold(ctx context.Context, ttl time.Duration) error
	// Park makes the execution one that outlives this process; this process still has its lock, and goes on. After ErrLockLost, ErrCancelled and
	// ErrStoreUnavailable it is not parked, and never will be. ErrNotRecorded: nobody knows, so its sender may be told neither; each later call of
	// this Held does what is right for either.
	Park(ctx context.Context, p Parked, kept Kept) error
	// Attempt says that a parked execution is about to be tried again. Its Lock has a new fencing token then. callbackHash, which is new each time, replaces that of the
	// try before. An error means that nothing may be sent: ErrLockLost, ErrCancelled, ErrPaused, ErrStoreUnavailable,
	// or ErrNoSlot: then its line is ripe again when there may be one.
	Attempt(ctx context.Context, p Parked, callbackHash string) error
	// Rest writes down how the latest try of a parked execution ended, and what it waits for. Errors as with Attempt. After ErrLockLost, of this
	// and of Attempt, the execution is not this process's any more: call nothing but Ledger's.
	Rest(ctx context.Context, p Parked) error
	// DeadLetter is Settle for a parked execution that may not be tried again: its request is kept with the record. ErrNotOld: it was for its age
	// (CodeTooOld), and somebody has given it its time again; it goes on as it was.
	DeadLetter(ctx context.Context, e End) (*Record, error)
	// Release of a parked execution gives it to whoever carries it on, in the lock that it has; this process may be that again.
	//
	// Release gives the lock back for an execution of which provably nothing reached the upstream, and leaves the event's record as
	// it was. The ledger goes on trying by itself when the store does not answer. ErrCancelled: a cancel was asked, so the execution
	// ended as ABORTED, not executed, instead. ErrLockLost: somebody else had ended it.
	Release(ctx context.Context) error
}

// ParkLedger is what a Ledger knows of parked executions, over all processes.
type ParkLedger interface {
	// Parked counts them.
	Parked() ParkedCount
	// Waiting is how many of them are in the line of that scope.
	Waiting(s Scope) int
	// Ripe waits for a line whose first execution may be parked and without a carrier. It gives each line once for each reason to look, the one that
	// became ripe first before the others. The route is that of the executions in it; "" where they are of several, and Take finds out.
	Ripe(ctx context.Context) (s Scope, route string, err error)
	// Ripen makes the line ripe again; all lines where s is the zero value.
	Ripen(s Scope)
	// Old: the MaxAge of a parked execution is over, as far as this process has heard. One that reached it while it was paused is not old before
	// its next try has begun.
	Old(id ExecutionID) bool
	// Take claims the first execution of a line, unless it is paused, or carries on the one in its lock whose process is gone. nil, nil: there is nothing to take now,
	// and the line becomes ripe when that changes; an execution that waits for a person is not taken. After an error somebody has to call Ripen. route must have been asked for: mine says whether this process can run that route.
	Take(ctx context.Context, s Scope, mine func(route string) bool) (*Taken, error)
	// Request is what Park was given to keep; the caller's.
	Request(ctx context.Context, id ExecutionID) ([]byte, error)
}
