package idem

// Situation is what decides what an execution does next, at the process that has it: facts of this
// moment, which are collected anew after each change. The zero value is an accepted execution that
// may be tried.
type Situation struct {
	// SenderWaits says that the sender waits for the outcome, and repeats the event. Of the other
	// fields only those of Acquisition, After, MayPark and Stale count then.
	SenderWaits bool
	Acquisition
	// After is what follows the latest try, until the ledger has it; 0 = the ledger has everything.
	// It is Judgement.IfSenderWaits or Judgement.Accepted.
	After Disposition
	// MayPark says that the event may be accepted instead of telling its sender how the try ended.
	MayPark bool
	Stop    Stop // why the process has to stop with the execution
	Ending  bool // the process shuts down
	// Unrouted says that the configuration of this process does not have the execution's route.
	Unrouted bool
	TooOld   bool // the MaxAge of the execution has passed
	Paused   bool // the route or the workflow is paused
	Blocked  bool // the execution waits for a person
	Full     bool // a limit had no slot for the execution
	Early    bool // the next try is not due yet
	// MustAsk says that the outcome of the latest try is unknown, and that the service is asked for
	// it before another try.
	MustAsk  bool
	HasSlots bool // the execution has the slots of its limits
	// OutOfTurn says that the process makes as many tries as it may, and this is none of them.
	OutOfTurn bool
	// Stale is what the route says of the event because a newer one went through; 0 = it runs.
	Stale Staleness
}

// Acquisition is how far an attached execution is from its lock, and what its route allows on the
// way there. The zero value has the lock.
type Acquisition struct {
	NoLock NoLockReason // why the execution does not have the lock
	// Skips says that the sender need not come again if another event has the lock (strategy skip).
	Skips bool
	Waits bool // the execution may wait in the queue (strategies wait and latest)
	// Follows says that a duplicate waits for the end of its event's execution (in_flight: attach).
	Follows bool
	AtOnce  bool // the event is accepted before the ledger is asked for the lock
	Waited  bool // the execution has waited in the queue
}

// NoLockReason is why such an execution does not have the lock.
type NoLockReason uint8

// The reasons. The zero value has the lock.
const (
	NoLockNotAsked  NoLockReason = iota + 1 // the ledger was not asked yet
	NoLockTaken                             // another event has the lock
	NoLockLimited                           // a limit has no slot for the execution
	NoLockPaused                            // the route or the workflow is paused
	NoLockNoRoom                            // others are before it, and it cannot wait any longer
	NoLockDuplicate                         // another delivery of the event runs or waits
	NoLockDecided                           // the execution does not run, for another reason
)

// onlyTime reports whether an execution may have the lock later.
func (b NoLockReason) onlyTime() bool { return b >= NoLockTaken && b <= NoLockNoRoom }

// Stop is why a process has to stop with an execution.
type Stop uint8

// The reasons to stop. The zero value is none.
const (
	StopLost       Stop = iota + 1 // another process has the execution, or it was ended elsewhere
	StopNotRenewed                 // the session has ended; this process's next one may adopt the lock
	StopAbort                      // the execution was cancelled
	StopSkip                       // the execution was cancelled, and its request is to be kept
)

// Staleness is what a route says of an event that is older than the newest that went through. The
// zero value lets it run.
type Staleness uint8

// What a route says of a stale event.
const (
	StaleSkipped Staleness = iota + 1 // it does not run: the newer event counts for both
	StaleRefused                      // it does not run, and a person has to see it
)

// Action is what an execution does next, at the process that has it.
type Action uint8

// The actions that are the last of this process for the execution.
const (
	ActDecline    Action = iota + 1 // tell the sender why the event does not run
	ActDrop                         // tell the sender that the event need not come again
	ActLeave                        // do nothing: another process has the execution, or has ended it
	ActRelease                      // give the lock back, as if the event had not come
	ActSettle                       // end with the answer of the try
	ActHold                         // let the lock outlive the answer (hold)
	ActAbort                        // end as cancelled
	ActSkip                         // end as cancelled, and keep the request
	ActSupersede                    // end, because a newer event went through
	ActHandOver                     // leave the execution, in its lock, to another process
	ActDeadLetter                   // end as given up, and keep the request
	ActExpire                       // end as too old, and keep the request
	ActRefuse                       // end because a newer event went through, and keep the request
)

// The actions after which the execution goes on here.
const (
	ActClaim       Action = ActRefuse + 1 + iota // ask the ledger for the lock
	ActQueue                                     // wait in the queue for the lock
	ActFollow                                    // wait for the end of the event's running execution
	ActPark                                      // store the request, and tell the sender that the event is accepted
	ActRecordTry                                 // write down how the try ended
	ActBlock                                     // write that down, and have the queue wait for a person
	ActFreeSlots                                 // give the slots of the limits to others
	ActAwaitLock                                 // wait until this process adopts the lock, or another takes it
	ActAwaitChange                               // wait until a person resumes or unblocks it, or a slot is free
	ActAwaitTime                                 // wait until the next try is due
	ActAwaitTurn                                 // wait until this process can make one more try
	ActAsk                                       // ask the service what became of the latest try
	ActCall                                      // send the request to the service
)

// afterTry are the actions that write down what follows a try.
var afterTry = [...]Action{
	ToSettle: ActSettle, ToRelease: ActRelease, ToHold: ActHold, ToTryAgain: ActRecordTry, ToBlock: ActBlock,
	ToDeadLetter: ActDeadLetter,
}

// Next returns what an execution does next.
//
// For an accepted execution, what a try showed is written down first, because only this process
// knows it. A process that shuts down begins nothing: the next one carries a cancel out. Then come
// a cancel, the reasons to leave the execution to others, its age, and what it waits for. The age
// does not count during a pause, because nothing could run then.
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
