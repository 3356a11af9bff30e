package protocol

import "hooklock/idem"

// What an execution does next on its way to its lock. These functions do no I/O and read no clock:
// each row is one sentence of next_test.go.
//
// 	       Enqueue           ClaimAsHead, or a hand-off
// 	 ────────────► its entry ─────────────────────────► its lock
// 	 AfterEnqueue  WhileQueued        AfterClaim
//
// Their inputs may be out of date. Each step that changes something is a transaction that compares
// what it relies on, and a refusal brings the state of now.

// Step is what an execution does next.
type Step uint8

// The steps of an execution in its queue, as WhileQueued returns them.
const (
	Look        Step = iota // read the state
	Go                      // it has its lock, and this process knows it
	FindLock                // its entry has become its lock: take that over
	TakeLock                // it is the head of the queue, and the lock is free
	Decide                  // the caller decides: the lock is dead, or the event's record has changed
	AwaitAnswer             // of the hand-off that is under way
	AwaitEntry              // wait until the entry before it is gone
	AwaitLock               // wait until the lock is gone, or its owner
	AwaitPause              // wait until the pauses change
	AwaitRest               // wait until nothing newer has come for a while (strategy latest)
	AwaitSlot               // wait for a slot of each limit, if there is none yet
	GiveUp                  // its wait has timed out
	Lost                    // its entry has gone with its session
	LockLost                // it had its lock, and another process has ended it
	Cancelled               // its entry has gone, and its session has not
	Unreadable              // the event's record is of a newer release, or damaged
)

// Further steps after a transaction that was refused, or whose answer is lost.
const (
	Enter       Step = iota + Unreadable + 1 // its entry is there, or was
	BehindLock                               // again, with the lock's revision of now
	BesideOther                              // again, with the other lock's revision of now
	Never                                    // it was not applied, and never will be
	Unsure                                   // it may have been applied, and have ended since
	NoSpace                                  // etcd is full
	// nothing that was read is in the way: it is the queue, a slot, or the epoch
	Unexplained
)

var stepNames = [...]string{
	"look", "go", "find lock", "take lock", "decide", "await answer", "await entry", "await lock", "await pause",
	"await rest", "await slot", "give up", "lost",
	"lock lost", "cancelled", "unreadable", "enter", "behind lock", "beside other", "never", "unsure", "no space",
	"unexplained",
}

// String returns the name of the step, for tests.
func (s Step) String() string { return stepNames[s] }

// Where is where an execution is: in exactly one of these.
type Where uint8

// Where an execution is.
const (
	Queued  Where = iota
	Locking       // it has its lock
	Ended         // the event's record is its own
	Gone          // nothing is left of it, or its record was forgotten or written over
)

// Known is what a process knows of an execution that has its entry, and of what is before it. The
// zero value: nothing is known.
type Known struct {
	Granted     bool // its lock is this process's
	SessionOver bool // the session that its entry lives on is over
	TimeUp      bool // it may wait no longer, or etcd could not be read
	Offered     bool // this process hands the lock to the head of its queue, and does not know yet how that went
	Reported    bool // what follows is known: it was read, or a watch has reported it

	Where    Where // where it was when it was read
	Vouched  bool  // its session was there when it was read
	Began    bool  // it has ended, and may have run before
	Unread   bool  // the record cannot be read
	Changed  bool  // the record is not the one that it was enqueued with
	Preceded bool  // another entry is before its own
	Locked   bool  // another execution has the lock, or a client's lock holds it back
	Dead     bool  // the owner of that lock is dead
	Paused   bool  // its route or its workflow is
	Rests    bool  // it is to be replaced, if a newer one comes
	Limited  bool  // it needs slots
}

// Saw adds what was read, for an execution whose entry is of revision at.Entry and that knows the
// record of revision at.Record.
func (k *Known) Saw(st *State, id idem.ExecutionID, at Revisions) {
	k.Reported = true
	switch ended := st.Ended(id); {
	case st.Place == at.Entry:
		k.Where = Queued
	case st.Runs(id):
		k.Where = Locking
	case ended != nil:
		k.Where, k.Began = Ended, ended.Outcome != idem.NotExecuted
	default:
		k.Where = Gone
	}
	k.Unread, k.Changed = st.Unread != nil, st.Prev != at.Record
	k.Locked, k.Dead = st.Lock != nil, st.Lock != nil && st.Lock.Dead
}

// WhileQueued is what an execution does that has its entry.
func WhileQueued(k *Known) Step {
	switch {
	case k.Granted:
		return Go
	case k.SessionOver:
		return Lost
	case k.TimeUp:
		return GiveUp
	case k.Offered:
		return AwaitAnswer
	case !k.Reported:
		return Look
	case k.Where != Queued:
		return nextWithoutEntry(k)
	case k.Unread:
		return Unreadable
	case k.Changed:
		return Decide
	case k.Preceded:
		return AwaitEntry
	}
	return nextAtHead(k)
}

// nextWithoutEntry is for an execution whose entry is gone. etcd may know of the end of its session
// before this process does.
func nextWithoutEntry(k *Known) Step {
	switch {
	case k.Where == Locking:
		return FindLock
	case k.Where == Ended && k.Began:
		return LockLost
	case k.Where == Gone && !k.Vouched:
		return Lost
	}
	return Cancelled
}

// nextAtHead is for the head of the queue. A pause comes before the rest and the slot: what is
// paused gives way to others at its limits.
func nextAtHead(k *Known) Step {
	switch {
	case k.Locked && k.Dead:
		return Decide
	case k.Locked:
		return AwaitLock
	case k.Paused:
		return AwaitPause
	case k.Rests:
		return AwaitRest
	case k.Limited:
		return AwaitSlot
	}
	return TakeLock
}

// Answer is what the sender knows of a transaction that, as far as it knows, was not applied.
type Answer uint8

// Answers to a transaction.
const (
	Refused Answer = iota
	Missing        // there is none, and a fence came after it: what the state does not show will never be
	Full           // etcd was full
)

// Unapplied is an Enqueue or a claim that, as far as its sender knows, was not applied.
type Unapplied struct {
	Lock   *idem.Lock // what it would have written
	At     Revisions  // what it has compared; Entry = 0: it was past the queue
	Answer Answer     // what etcd said of it
}

// AfterEnqueue returns what an execution does that, as far as it knows, has not been enqueued, in
// state st.
func AfterEnqueue(st *State, a *Unapplied) Step {
	id, event, parks := a.Lock.Execution, a.Lock.Scope.Key, a.Lock.Parked != nil
	switch {
	case st.Waits(id): // an answer got lost, this one or an earlier one
		return Enter
	case st.Runs(id) && !parks:
		return FindLock
	case parks && (st.Runs(id) || st.Ended(id) != nil): // any process may have run it since
		return Enter
	case parks && a.Answer == Missing && st.Prev != a.At.Record:
		return Unsure
	case a.Answer == Missing:
		return Never
	case st.Place != 0, st.Prev != a.At.Record, st.CopyInOther(event), st.LockRevision() != a.At.Lock &&
		st.CopyRuns(event) != nil:
		return Decide
	case a.Answer == Full:
		return NoSpace
	case st.LockRevision() != a.At.Lock:
		return BehindLock
	case st.OtherRevision() != a.At.OtherLock:
		return BesideOther
	}
	return Unexplained
}

// AfterClaim returns what an execution does that, as far as it knows, has no lock, in state st.
// Another process may run a parked execution by now.
func AfterClaim(st *State, a *Unapplied) Step {
	id, refused := a.Lock.Execution, a.Answer == Refused
	switch ended := st.Ended(id); {
	case !refused && st.Runs(id) && (a.Lock.Parked == nil || st.Lock.Alive == a.Lock.Alive):
		return FindLock
	case !refused && ended != nil && (a.At.Entry == 0 || ended.Outcome != idem.NotExecuted):
		return LockLost
	case a.Answer == Missing:
		return Never
	case isBlocked(st, a):
		return Decide
	case a.Answer == Full:
		return NoSpace
	case st.OtherRevision() != a.At.OtherLock:
		return BesideOther
	}
	return Unexplained
}

// isBlocked reports whether a lock, a record or an entry is in the way of a claim.
func isBlocked(st *State, a *Unapplied) bool {
	switch {
	case st.Lock != nil, st.Prev != a.At.Record, st.HoldsBack(a.Lock) != nil:
		return true
	case a.At.Entry != 0:
		return st.Place != a.At.Entry || st.Head < a.At.Entry
	}
	return st.Head != 0 || st.Place != 0 || st.CopyInOther(a.Lock.Scope.Key)
}
