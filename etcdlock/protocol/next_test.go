package protocol

import (
	"errors"
	"testing"

	"hooklock/idem"
)

// TestWhatAWaitingExecutionDoesNext is the table of WhileQueued: in each row, what is known besides
// an entry that is there.
func TestWhatAWaitingExecutionDoesNext(t *testing.T) {
	for sentence, c := range map[string]struct {
		known Known
		want  Step
	}{
		"an execution that knows nothing looks": {Known{}, Look},
		"one that was handed the lock goes, though its time is over": {Known{Granted: true,
			TimeUp: true, SessionOver: true}, Go},
		"one whose session is over has lost its entry, whatever was read": {Known{SessionOver: true,
			TimeUp: true, Reported: true, Where: Locking}, Lost},
		"one whose time is over gives up, before it waits for an answer": {Known{TimeUp: true,
			Offered: true}, GiveUp},
		"a hand-off that is under way is waited for before anything is read": {Known{Offered: true},
			AwaitAnswer},
		"an entry that has become its lock was handed over, or claimed before": {Known{Reported: true, Where: Locking,
			Unread: true}, FindLock},
		"one that ran and has ended has lost its lock": {Known{Reported: true, Where: Ended,
			Began: true, Vouched: true}, LockLost},
		"one that never ran and has ended was cancelled": {Known{Reported: true, Where: Ended},
			Cancelled},
		"an entry that is gone with its session is lost, though nobody said so": {Known{Reported: true, Where: Gone},
			Lost},
		"an entry that is gone without its session was cancelled": {Known{Reported: true, Where: Gone,
			Vouched: true}, Cancelled},
		"a record of a newer release is in the way, whatever is before the entry": {Known{Reported: true, Unread: true,
			Changed: true, Preceded: true}, Unreadable},
		"a record that has changed is decided on, though others are before it": {Known{Reported: true, Changed: true,
			Preceded: true, Locked: true}, Decide},
		"one behind another waits for that entry, and not for the lock": {Known{Reported: true, Preceded: true,
			Locked: true, Dead: true}, AwaitEntry},
		"the head of the queue waits for the lock": {Known{Reported: true, Locked: true,
			Paused: true, Rests: true, Limited: true}, AwaitLock},
		"the head of the queue has a dead owner's execution reaped, also in a pause": {Known{Reported: true, Locked: true,
			Dead: true, Paused: true}, Decide},
		"what is paused waits for no slot": {Known{Reported: true, Paused: true,
			Rests: true, Limited: true}, AwaitPause},
		"what rests waits for no slot": {Known{Reported: true, Rests: true,
			Limited: true}, AwaitRest},
		"the head of the queue asks for a slot when nothing else is in the way": {Known{Reported: true, Limited: true},
			AwaitSlot},
		"the head of the queue takes the lock when nothing is in the way": {Known{Reported: true}, TakeLock},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := WhileQueued(&c.known); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestAnExecutionTakesTheLockOnlyAtItsTurn asks for every combination of what may be known.
func TestAnExecutionTakesTheLockOnlyAtItsTurn(t *testing.T) {
	const bits = 14
	for n := range 4 << bits {
		is := func(i int) bool { return n>>i&1 == 1 }
		k := Known{
			Granted: is(0), SessionOver: is(1), TimeUp: is(2), Offered: is(3), Reported: is(4), Vouched: is(5),
			Began:  is(6),
			Unread: is(7), Changed: is(8), Preceded: is(9), Locked: is(10), Dead: is(10) && is(11), Paused: is(11),
			Rests: is(12), Limited: is(13),
			Where: Where(n >> bits), //nolint:gosec // below 4
		}
		turn := k.Reported && k.Where == Queued && !k.Preceded && !k.Locked && !k.Paused && !k.Rests && !k.Unread &&
			!k.SessionOver
		switch step := WhileQueued(&k); {
		case (step == TakeLock || step == AwaitSlot) && !turn:
			t.Fatalf("it is at its turn with %+v", k)
		case (step == TakeLock || step == AwaitSlot) && k.Limited != (step == AwaitSlot):
			t.Fatalf("the limits are left out with %+v", k)
		case turn && (step == AwaitEntry || step == AwaitLock || step == AwaitPause || step == AwaitRest):
			t.Fatalf("it waits at its turn (%v) with %+v", step, k)
		case step >= AwaitAnswer && step <= AwaitSlot && (k.SessionOver || k.TimeUp):
			t.Fatalf("it waits for ever (%v) with %+v", step, k)
		case step == Look && k.Reported:
			t.Fatalf("it looks again and again with %+v", k)
		case (step == FindLock || step == LockLost || step == Cancelled) && k.Where == Queued:
			t.Fatalf("its entry is there, and it is %v with %+v", step, k)
		}
	}
}

func lockOf(id idem.ExecutionID, event idem.Key, revision int64) *idem.Lock {
	return &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: id, Scope: idem.Scope{Workflow: "w", Key: event}},
		Revision: revision}
}

func recordOf(id idem.ExecutionID, o idem.Outcome) *idem.Record {
	return &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: id}, End: idem.End{Outcome: o}}
}

func TestWhatWasReadSaysWhereAnExecutionIs(t *testing.T) {
	const mine = idem.ExecutionID("mine")
	at := Revisions{Entry: 7, Record: 5}
	cooling := lockOf(mine, "", 0)
	cooling.Cooling = true
	dead := lockOf("other", "", 0)
	dead.Dead = true
	for sentence, c := range map[string]struct {
		state State
		want  Known
	}{
		"its entry has the revision that it got": {State{Place: 7, Prev: 5, Lock: lockOf("other", "", 0)},
			Known{Where: Queued, Locked: true}},
		"a copy's entry is not its own": {State{Place: 9, Prev: 5}, Known{Where: Gone}},
		"it has the lock": {State{Prev: 5, Lock: lockOf(mine, "", 0)},
			Known{Where: Locking, Locked: true}},
		"it has ended, and its lock is kept for a delay": {State{Prev: 6, Lock: cooling,
			Record: recordOf(mine, idem.Unknown)}, Known{Where: Ended, Began: true, Changed: true, Locked: true}},
		"it has ended, and nothing of it reached upstream": {State{Prev: 6, Record: recordOf(mine, idem.NotExecuted)},
			Known{Where: Ended, Changed: true}},
		"the record is another one": {State{Place: 7, Prev: 6},
			Known{Where: Queued, Changed: true}},
		"the record cannot be read": {State{Place: 7, Prev: 5, Unread: errors.New("newer")},
			Known{Where: Queued, Unread: true}},
		"the lock is that of an owner that is known as dead": {State{Place: 7, Prev: 5, Lock: dead},
			Known{Where: Queued, Locked: true, Dead: true}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got Known
			got.Saw(&c.state, mine, at)
			if c.want.Reported = true; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestWhatFollowsAnEnqueueThatWasNotApplied is the table of AfterEnqueue, for an Enqueue behind the
// lock of revision 3, with the record of revision 5.
func TestWhatFollowsAnEnqueueThatWasNotApplied(t *testing.T) {
	mine, parked := lockOf("mine", "event", 0), lockOf("mine", "event", 0)
	parked.Parked = &idem.Parked{}
	before := lockOf("other", "before", 3)
	kept := lockOf("copy", "event", 4)
	kept.Cooling = true
	for sentence, c := range map[string]struct {
		lock   *idem.Lock
		state  State
		answer Answer
		want   Step
	}{
		"its entry is there: an answer got lost": {mine,
			State{Lock: before, Prev: 5, Place: 8, Copied: mine}, Missing, Enter},
		"its entry is there: an earlier answer got lost": {mine,
			State{Lock: before, Prev: 5, Place: 8, Copied: mine}, Refused, Enter},
		"it was enqueued and handed the lock": {mine,
			State{Lock: lockOf("mine", "event", 9), Prev: 5}, Missing, FindLock},
		"a parked one was enqueued, and a process runs it": {parked,
			State{Lock: lockOf("mine", "event", 9), Prev: 5}, Missing, Enter},
		"a parked one was enqueued, and has ended": {parked,
			State{Record: recordOf("mine", idem.Executed), Prev: 9}, Missing, Enter},
		"a parked one may have been enqueued, and its record be replaced": {parked, State{Prev: 9}, Missing, Unsure},
		"a parked one that left nothing never was": {parked, State{Lock: before, Prev: 5},
			Missing, Never},
		"one without an answer never will be, after the fence": {mine, State{Lock: before, Prev: 9}, Missing,
			Never},
		"a copy of its event waits": {mine,
			State{Lock: before, Prev: 5, Place: 8, Copied: kept}, Refused, Decide},
		"the event's record has changed": {mine, State{Lock: before, Prev: 9}, Refused,
			Decide},
		"a copy has the lock now": {mine,
			State{Lock: lockOf("copy", "event", 4), Prev: 5}, Refused, Decide},
		"a copy has the other lock": {mine,
			State{Lock: before, Other: lockOf("copy", "event", 4), Prev: 5}, Refused, Decide},
		"a copy has ended, and its lock is kept for a delay": {mine, State{Lock: kept, Prev: 5}, Refused,
			BehindLock},
		"another event has the lock now": {mine,
			State{Lock: lockOf("next", "next", 4), Prev: 5}, Refused, BehindLock},
		"the lock is free now": {mine, State{Prev: 5}, Refused, BehindLock},
		"another event has the other lock": {mine,
			State{Lock: before, Other: lockOf("next", "next", 4), Prev: 5}, Refused, BesideOther},
		"nothing of that is in the way": {mine, State{Lock: before, Prev: 5}, Refused,
			Unexplained},
		"etcd is full, and a copy is in the way": {mine, State{Lock: before, Prev: 9}, Full,
			Decide},
		"etcd is full, and would be again": {mine, State{Prev: 5}, Full, NoSpace},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := AfterEnqueue(&c.state,
				&Unapplied{c.lock, Revisions{Lock: 3, Record: 5}, c.answer}); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestWhatFollowsAClaimThatWasNotApplied is the table of AfterClaim, with the record of revision 5;
// of the head of the queue, its entry is of revision 7.
func TestWhatFollowsAClaimThatWasNotApplied(t *testing.T) {
	mine, parked := lockOf("mine", "event", 0), lockOf("mine", "event", 0)
	parked.Parked, parked.Alive = &idem.Parked{}, "here"
	own, elsewhere := lockOf("mine", "event", 9), lockOf("mine", "event", 9)
	elsewhere.Alive = "there"
	limited, client := lockOf("mine", "event", 0), lockOf("client", "x", 4)
	limited.Scope.PerEvent, limited.Slots = true, []idem.Slot{{LimitName: "w"}}
	routed := lockOf("next", "next", 4)
	routed.Route = "/hooks"
	for sentence, c := range map[string]struct {
		lock   *idem.Lock
		q      int64
		state  State
		answer Answer
		want   Step
	}{
		"it has the lock: its answer got lost": {mine, 0, State{Lock: own, Prev: 5}, Missing,
			FindLock},
		"it has the lock, and etcd was full after that": {mine, 0, State{Lock: own, Prev: 5}, Full,
			FindLock},
		"a refused one that was handed the lock finds out as a waiter": {mine, 7, State{Lock: own, Prev: 5}, Refused,
			Decide},
		"a parked one is another process's": {parked, 7, State{Lock: elsewhere, Prev: 5},
			Missing, Never},
		"it has ended: its lock was lost": {mine, 0,
			State{Record: recordOf("mine", idem.NotExecuted), Prev: 9}, Missing, LockLost},
		"it ran from the queue and has ended: its lock was lost": {mine, 7,
			State{Record: recordOf("mine", idem.Unknown), Prev: 9}, Missing, LockLost},
		"it was cancelled in the queue, which the waiter finds out": {mine, 7,
			State{Record: recordOf("mine", idem.NotExecuted), Prev: 9}, Missing, Never},
		"one without an answer never will be, after the fence": {mine, 0,
			State{Lock: lockOf("next", "next", 4), Prev: 9}, Missing, Never},
		"another event has the lock": {mine, 0,
			State{Lock: lockOf("next", "next", 4), Prev: 5}, Refused, Decide},
		"the event's record has changed": {mine, 7, State{Prev: 9, Place: 7, Head: 7},
			Refused, Decide},
		"others wait, and it comes past the queue": {mine, 0, State{Prev: 5, Head: 4}, Refused,
			Decide},
		"a copy waits":               {mine, 0, State{Prev: 5, Place: 4}, Refused, Decide},
		"a copy has the other lock":  {mine, 0, State{Prev: 5, Other: lockOf("copy", "event", 4)}, Refused, Decide},
		"an entry is before its own": {mine, 7, State{Prev: 5, Place: 7, Head: 4}, Refused, Decide},
		"its entry is gone":          {mine, 7, State{Prev: 5, Head: 8}, Refused, Decide},
		"a client's lock of the workflow holds back a limited one": {limited, 7,
			State{Prev: 5, Place: 7, Head: 7, Other: client}, Refused, Decide},
		"another event has the other lock, as it may during an update": {mine, 7,
			State{Prev: 5, Place: 7, Head: 7, Other: routed}, Refused, BesideOther},
		"nothing of that is in the way": {mine, 7, State{Prev: 5, Place: 7, Head: 7},
			Refused, Unexplained},
		"etcd is full, and still says that another event has the lock": {mine, 0,
			State{Lock: lockOf("next", "next", 4), Prev: 5}, Full, Decide},
		"etcd is full, and would be again": {mine, 0, State{Prev: 5}, Full, NoSpace},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := AfterClaim(&c.state,
				&Unapplied{c.lock, Revisions{Entry: c.q, Record: 5}, c.answer}); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
