package idem

// Situation is what decides what an execution does now, at the process that has it. All of it is
// about this moment: what waits asks again when something has changed. The zero value is an
// accepted execution that may be tried.
type Situation struct {
	// SenderWaits: its sender waits for the outcome, and repeats the event. Of the other fields
	// only those of Acquisition, After, MayPark and Stale count then.
	SenderWaits bool
	Acquisition
	// After is what follows its latest try, as long as the ledger does not have that; 0 = the
	// ledger has everything. It is Judgement.IfSenderWaits or Judgement.Accepted.
	After Disposition
	// MayPark: its event may be accepted instead of telling its sender how the try ended.
	MayPark bool
	// Stop is why the process has to stop with it.
	Stop Stop
	// Ending: the process shuts down. Unrouted: it does not have the route of the execution.
	Ending, Unrouted bool
	// TooOld: its MaxAge has passed.
	TooOld bool
	// Paused: its route or its workflow is. Blocked: it waits for a person. Full: a limit had no
	// slot for it. Early: its next try is not due yet.
	Paused, Blocked, Full, Early bool
	// MustAsk: its latest try is of unknown outcome, and the service is asked before another one.
	MustAsk bool
	// HasSlots: it has those of its limits.
	HasSlots bool
	// OutOfTurn: the process makes as many tries as it may, and this is none of them.
	OutOfTurn bool
	// Stale is what its route says of it, because its event is older than what went through.
	Stale Staleness
}

// Acquisition is how far an execution whose sender waits is from the lock, and what its route says
// of that. The zero value: it has the lock.
type Acquisition struct {
	NoLock NoLockReason // why it does not have the lock
	// Skips: its sender need not come again if another event has the lock. Waits: it waits in the
	// queue. Follows: it waits for the answer of the execution of its event that runs. AtOnce: it
	// is accepted before anything is asked.
	Skips, Waits, Follows, AtOnce bool
	// Waited: it has, in the queue.
	Waited bool
}

// NoLockReason is why such an execution does not have the lock.
type NoLockReason uint8

// The reasons. The zero value: it has the lock.
const (
	NoLockNotAsked  NoLockReason = iota + 1 // the ledger was not asked yet
	NoLockTaken                             // another event has the lock
	NoLockLimited                           // a limit has no slot for it
	NoLockPaused                            // its route or workflow is paused
	NoLockNoRoom                            // others are before it, and it cannot wait any longer
	NoLockDuplicate                         // another delivery of its event runs or waits
	NoLockDecided                           // it does not run, for another reason
)

// onlyTime reports whether an execution may have the lock later.
func (b NoLockReason) onlyTime() bool { return b >= NoLockTaken && b <= NoLockNoRoom }

// Stop is why a process has to stop with an execution.
type Stop uint8

// The reasons to stop. The zero value: there is none.
const (
	StopLost       Stop = iota + 1 // another process has it, or it was ended elsewhere
	StopNotRenewed                 // the session has ended, and the next one of this process may adopt its lock
	StopAbort                      // it was cancelled
	StopSkip                       // the same, and its request is to be kept
)

// Staleness is what a route says of an event that is older than what went through.
type Staleness uint8

// The zero value: it runs.
const (
	StaleSkipped Staleness = iota + 1 // its newer event counts for both
	StaleRefused                      // a person has to see it
)

// Action is what an execution does now, at the process that has it.
type Action uint8

// The actions. The first thirteen are the last that this process does with the execution.
const (
	ActDecline    Action = iota + 1 // the response to its sender says why it does not run
	ActDrop                         // the response to its sender says that it need not come again
	ActLeave                        // nothing: another process has it, or has ended it
	ActRelease                      // its lock is given back, and the event is as if it had not come
	ActSettle                       // it ends with the answer of its try
	ActHold                         // its lock outlives the answer
	ActAbort                        // it ends as cancelled
	ActSkip                         // the same, and its request is kept
	ActSupersede                    // it ends, because a newer event went through
	ActHandOver                     // another process takes it
	ActDeadLetter                   // it ends, and its request is kept
	ActExpire                       // the same, because it is too old
	ActRefuse                       // the same, because a newer event went through

	ActClaim       // the ledger is asked for the lock
	ActQueue       // it waits in the queue for the lock
	ActFollow      // it waits for the answer of the execution of its event that runs
	ActPark        // its request is stored, and the response says that the event is accepted
	ActRecordTry   // how its try ended is written down
	ActBlock       // the same, and its queue waits for a person
	ActFreeSlots   // others get the slots of its limits
	ActAwaitLock   // it waits until the next session adopts its lock, or another process takes it
	ActAwaitChange // it waits until a person resumes or unblocks it, or a slot is free
	ActAwaitTime   // it waits until its next try is due
	ActAwaitTurn   // it waits until the process can make one more try
	ActAsk         // the service is asked what became of its latest try
	ActCall        // it is tried
)

// afterTry are the actions that write down what follows a try.
var afterTry = [...]Action{
	ToSettle: ActSettle, ToRelease: ActRelease, ToHold: ActHold, ToTryAgain: ActRecordTry, ToBlock: ActBlock,
	ToDeadLetter: ActDeadLetter,
}

// Next says what an execution does now.
//
// Of an accepted one, what a try showed is written down before anything else, for it is known here
// alone. A process that ends begins nothing: the one that takes it carries a cancel out. Then come
// a cancel, the reasons to leave it to others, its age, and what it waits for. The age does not
// count during a pause, in which it could not run.
func Next(s *Situation) Action {
	switch {
	case s.SenderWaits:
		return s.whileSenderWaits()
	case s.Stop == StopLost:
		return ActLeave
	case s.After != 0:
		return afterTry[s.After]
	case s.Ending:
		return ActHandOver
	case s.Stop == StopAbort:
		return ActAbort
	case s.Stop == StopSkip:
		return ActSkip
	case s.Stop == StopNotRenewed:
		return ActAwaitLock
	case s.Unrouted:
		return ActHandOver
	case s.TooOld && !s.Paused:
		return ActExpire
	}
	return s.untilCall()
}

// whileSenderWaits is Next of an execution whose sender waits. It has one try: how that ended is
// told to the sender, or the event is accepted and need not come again. A stale event that is
// refused leaves no trace, as any refusal does.
func (s *Situation) whileSenderWaits() Action {
	switch {
	case s.NoLock != 0:
		return s.untilLock()
	case s.After != 0 && s.MayPark:
		return ActPark
	case s.After != 0:
		return afterTry[s.After]
	case s.Stale == StaleSkipped:
		return ActSupersede
	case s.Stale == StaleRefused:
		return ActRelease
	}
	return ActCall
}

// untilLock is Next of an execution whose sender waits, and that does not have the lock.
func (s *Situation) untilLock() Action {
	switch {
	case s.NoLock == NoLockNotAsked && s.AtOnce && s.MayPark:
		return ActPark
	case s.NoLock == NoLockNotAsked:
		return ActClaim
	case s.Skips && (s.NoLock == NoLockTaken || s.NoLock == NoLockDuplicate):
		return ActDrop
	case s.Waits && !s.Waited && s.NoLock.onlyTime():
		return ActQueue
	case s.MayPark && s.NoLock.onlyTime():
		return ActPark
	case s.Follows && s.NoLock == NoLockDuplicate:
		return ActFollow
	}
	return ActDecline
}

// untilCall is Next of an accepted execution that is to be tried.
func (s *Situation) untilCall() Action {
	waits := s.Paused || s.Blocked || s.Full
	switch {
	case (waits || s.Early || s.MustAsk) && s.HasSlots:
		return ActFreeSlots
	case waits:
		return ActAwaitChange
	case s.Early:
		return ActAwaitTime
	case s.MustAsk:
		return ActAsk
	case s.OutOfTurn:
		return ActAwaitTurn
	case s.Stale == StaleSkipped:
		return ActSupersede
	case s.Stale == StaleRefused:
		return ActRefuse
	}
	return ActCall
}
