package model

// mutation leaves something out. Its scenario breaks a promise then.
type mutation struct {
	name     string
	scenario string
	drops    []compareOf
	breaks   breakage
}

// brokenBy names, for each compare, the scenario that needs it.
var brokenBy = map[kind]map[string]string{
	claim: {
		"session.mod":   "known failure",
		"lock.absent":   "known failure",
		"other.mod":     "strategy changes",
		"queue.empty":   "wait, a copy waits, retry",
		"record.mod":    "known failure",
		"slot.absent":   "limit",
		"waiters.empty": "limit, some wait, three workflows",
	},
	enqueue: {
		"session.mod":  "lock API, two clients, wait",
		"lock.mod":     "wait, a copy waits, retry",
		"other.mod":    "strategy changes, wait",
		"entry.absent": "wait, copies behind another",
		"record.mod":   "wait, a copy waits, retry",
		"queue.last":   "latest",
		"entry.mod":    "latest, quiet",
	},
	claimAsHead: {
		"session.mod": "latest, park while waiting",
		"lock.absent": "wait, a copy waits, retry",
		"other.mod":   "lock API, limit of a workflow, wait",
		"queue.first": "wait, three events",
		"slot.absent": "limit, wait",
	},
	leave:  {"entry.mod": "wait, copies behind another"},
	settle: {"lock.mod": "final cancel, waiting"},
	handOver: {
		"session.mod": "pause, wait",
		"lock.mod":    "final cancel, waiting",
		"entry.mod":   "wait, cancel",
	},
	release: {"lock.mod": "wait, a copy waits, retry"},
	adopt:   {"lock.mod": "adopt twice"},
	reap: {
		"lock.mod":     "fail fast, copies, retry",
		"alive.absent": "known failure",
	},
	reapCooling: {
		"lock.mod":     "release delay, force",
		"alive.absent": "wait, release delay",
	},
	fence: {"session.mod": "fail fast, copies, retry"},
	acquire: {
		"session.mod": "lock API",
		"lock.absent": "lock API",
		"queue.empty": "lock API, two clients, wait",
	},
	putHold:   {"lock.mod": "hold, cancel, force"},
	heartbeat: {"hold.mod": "hold, retry"},
	guard: {
		"lock.mod":      "cancel, guard",
		"alive.present": "cancel, guard",
	},
	cancel:        {"lock.mod": "unreachable, cancel"},
	cancelWaiting: {"entry.mod": "wait, cancel"},
	forget:        {"record.mod": "known failure, forget"},
	correct: {
		"record.mod": "asked, retry",
		"lock.mod":   "asked, retry",
		"other.mod":  "asked, strategy changes",
	},
	forceRelease:        {"lock.mod": "final cancel"},
	forceReleaseCooling: {"lock.mod": "release delay, force"},

	enqueueParked: {
		"session.mod":  "park at once",
		"lock.mod":     "park at once, a copy runs",
		"other.mod":    "park always, strategy changes, copies",
		"entry.absent": "park at once, copies behind another",
		"record.mod":   "park at once, a copy runs",
		"queue.last":   "latest, park at once, three events",
		"entry.mod":    "latest, park at once",
	},
	parkWaiting: {"entry.create": "park while waiting"},
	parkRunning: {"lock.mod": "park while running"},
	attempt: {
		"lock.mod":      "dead letter, cancel",
		"alive.present": "carry, cancel",
		"slot.absent":   "limit, carry",
	},
	rest: {"lock.mod": "carry, cancel"},
	carry: {
		"lock.mod":     "carry, cancel",
		"alive.absent": "park while running",
	},
	settleParked: {"lock.mod": "carry, cancel"},
	settleTooOld: {
		"lock.mod":   "carry, too old, block, run",
		"age.absent": "carry, too old, block, run",
	},
	endUncarried: {
		"lock.mod":     "carry, cancel",
		"alive.absent": "carry, cancel",
	},
	endParkedPlace:     {"entry.create": "skip"},
	forceReleaseParked: {"lock.mod": "carry, force"},
	runNow:             {"lock.mod": "carry, block, run"},
	rerun: {
		"lock.mod":     "dead letter, rerun, forget",
		"other.mod":    "rerun, strategy changes",
		"entry.absent": "rerun, a copy waits",
		"record.mod":   "dead letter, rerun, forget",
	},

	enterSlotWaiters: {"entry.create": "limit, wait behind another"},
}

// cover says why a compare that nothing needs is kept.
type cover struct {
	kind     kind
	compare  string
	by       string // the compare that covers it; empty: see why
	scenario string // that breaks without both
	why      string
}

// redundant compares are kept because they say what is meant. Each is covered by another one of its
// transaction: without both a promise breaks, or, where there is no other, the reason says why
// nothing can.
var redundant = []cover{
	{claimAsHead, "entry.create", "session.mod", "latest, quiet, cancel",
		"who has an epoch and knows q has that place"},
	{handOver, "alive.present", "entry.mod", "wait, session lost", "a place that does not wait parked goes with its " +
		"session; but a session that is ended by its key alone leaves it"},
	{handOver, "record.mod", "", "", "as with claim as head"},
	{correct, "entry.absent", "", "", "what waits compares the record when its turn comes"},
	{adopt, "lock.create", "lock.mod", "adopt twice", "a lock of the revision seen is the lock seen"},
	{putHold, "lock.create", "lock.mod", "hold, retry", "a lock of the revision seen is the lock seen"},
	{guard, "lock.create", "lock.mod", "cancel, guard", "a lock of the revision seen is the lock seen"},
	{heartbeat, "lock.create", "hold.mod", "hold, retry",
		"H has the execution in its name, and lives as long as its lock"},
	{claimAsHead, "record.mod", "", "", "enqueue has compared the lock: no copy runs while the event waits, so its " +
		"record can only be forgotten"},
	{cancelWaiting, "record.mod", "", "", "as with claim as head"},
	{parkRunning, "lock.create", "lock.mod", "park while running", "a lock of the revision seen is the lock seen"},
	{attempt, "lock.create", "lock.mod", "carry, cancel", "a lock of the revision seen is the lock seen"},
	{rest, "lock.create", "lock.mod", "carry, cancel", "a lock of the revision seen is the lock seen"},
	{settleParked, "lock.create", "lock.mod", "carry, cancel", "a lock of the revision seen is the lock seen"},
	{settleTooOld, "lock.create", "lock.mod", "carry, too old, block, run",
		"a lock of the revision seen is the lock seen"},
	{carry, "session.mod", "", "", "a late carry names a session: where that lives, its process takes up what " +
		"nobody in it has"},
	{sweepLetter, "record.mod", "", "", "it is sent where the record is gone or another's, and a record does not " +
		"come back"},
	{endParkedPlace, "record.mod", "", "", "as with claim as head"},
	{adopt, "session.mod", "", "", "a late adoption names a session that is gone: the lock is dead, and is adopted " +
		"again or reaped"},
}

// rules of the processes, beside the compares, and the scenario that needs each.
var rules = []mutation{
	{name: "an answer of the service is not written down while its event runs again", scenario: "asked, retry",
		breaks: correctsBesideCopy},
	{name: "the file of a dead process settles no lock that another process has taken over", scenario: "proven, carry",
		breaks: provesForOthers},
	{name: "an ambiguous claim is followed by a fence", scenario: "known failure", breaks: noFence},
	{name: "a claim after an ambiguous one has a new execution ID", scenario: "fail fast, three copies, forget",
		breaks: sameIDAgain},
	{name: "a lock that comes after the sender's 503 is given back", scenario: "known failure", breaks: lateLockIsKept},
	{name: "a lock that a lost answer had got is read with its cancel", scenario: "unreachable, cancel",
		breaks: rereadMissesCancel},
	{name: "a cooling lock is nobody's", scenario: "max duration", breaks: coolingIsMine},
	{name: "force release of a cooling lock writes no record", scenario: "release delay, force",
		breaks: forceRecordsCooling},
	{name: "a final cancel goes into every record, also where the outcome is known", scenario: "final cancel",
		breaks: finalOnlyWhereAborted},
	{name: "a final cancel goes into the record of a force release", scenario: "final cancel",
		breaks: forceForgetsFinal},
	{name: "reaping carries the cancel out", scenario: "final cancel", breaks: reapForgetsCancel},
	{name: "a settle of an unknown outcome lets the lock cool", scenario: "wait, release delay",
		breaks: endWithoutDelay},
	{name: "reaping lets the lock cool", scenario: "wait, release delay", breaks: reapWithoutDelay},
	{name: "an attached copy takes the record of the execution that it attached to",
		scenario: "attach, three copies, forget", breaks: attachToAnybody},
	{name: "a sender is told that its event is accepted when it is", scenario: "park while waiting",
		breaks: acceptsBefore},
	{name: "who is handed the lock has a token of its own", scenario: "wait, three events", breaks: handOverKeepsToken},
	{name: "who is handed the lock was seen to be first in the queue", scenario: "wait, three events",
		breaks: handOverToAnybody},
	{name: "a lock is not handed over while its workflow is paused", scenario: "pause, wait",
		breaks: handOverWhilePaused},
	{name: "a lock that is to cool is not handed over", scenario: "wait, release delay", breaks: handOverWithoutDelay},
	{name: "a put over a lock spells the token that it has", scenario: "carry, cancel", breaks: tokenNotSpelled},
	{name: "who carries a parked execution on has a token of its own", scenario: "carry, cancel",
		breaks: carryKeepsToken},
	{name: "each try has a token of its own", scenario: "carry, cancel", breaks: attemptKeepsToken},
	{name: "a try is announced", scenario: "carry, cancel", breaks: tryWithoutAttempt},
	{name: "what may have run waits for a person under on_unknown: block", scenario: "carry, block, run",
		breaks: carrierTriesAgain},
	{name: "an event whose attempts are used up waits for a person", scenario: "fail fast, copies, one attempt, forget",
		breaks: exhaustedRuns},
	{name: "a process takes up what names its own session and nobody in it has", scenario: "carry, cancel",
		breaks: ownIsLeft},
	{name: "a lock is carried by who finds its own session in it", scenario: "carry, cancel", breaks: anyLockIsCarried},
	{name: "a claim is held against the pauses after it has read its epoch", scenario: "pause",
		breaks: pauseBeforeEpoch},
	{name: "a pause is acknowledged with a fence", scenario: "pause", breaks: ackWithoutFence},
	{name: "a session that is opened knows the pauses", scenario: "pause, session given up", breaks: opensBlind},
	{name: "nobody's turn comes while his workflow is paused", scenario: "pause, wait", breaks: turnWhilePaused},
	{name: "what is parked is not taken from the queue while it is paused", scenario: "pause, park at once",
		breaks: takenWhilePaused},
	{name: "what is parked is not tried while it is paused", scenario: "pause, carry", breaks: triedWhilePaused},
	{name: "a success raises the mark in the transaction that ends it", scenario: "order", breaks: successRaisesLater},
	{name: "a success alone raises the mark", scenario: "order", breaks: anyEndRaises},
	{name: "a success of an older event leaves the mark", scenario: "order", breaks: raisesBlindly},
	{name: "a forget leaves a mark that something newer has raised", scenario: "order, forget",
		breaks: forgetDropsAnyMark},
	{name: "a forget deletes the request of a dead letter", scenario: "dead letter, rerun, forget",
		breaks: forgetKeepsLetter},
	{name: "a mark that two locks share only rises", scenario: "order, two locks", breaks: raisesBlindly},
	{name: "the mark is read by the transaction that takes the lock", scenario: "order, skip, wait",
		breaks: readsMarkBefore},
	{name: "a kept answer is written with its record", scenario: "answers apart", breaks: answerLater},
	{name: "an event whose kept answer has left stays settled", scenario: "answers apart", breaks: leftAnswerRuns},
	{name: "a hold that its lock names goes with it", scenario: "hold, retry", breaks: holdIsKept},
	{name: "a slot is freed with its lock", scenario: "limit, wait", breaks: slotIsKept},
	{name: "a slot is kept while its lock cools", scenario: "limit, release delay, force", breaks: slotFreedEarly},
	{name: "what rests gives its slot back", scenario: "limit, carry, block, run", breaks: restKeepsSlot},
	{name: "what is parked takes a slot for each try", scenario: "limit, carry", breaks: triedWithoutSlot},
	{name: "who waits no more gives its turn up", scenario: "limit, wait", breaks: turnIsKept},
	{name: "who replaces another one waits in its place", scenario: "latest, quiet", breaks: replacedForNobody},
	{name: "what is replaced is ended for good", scenario: "latest, quiet, copies", breaks: replacedMayRun},
	{name: "a sender is told that a newer one waits when it does", scenario: "latest, quiet", breaks: toldTooEarly},
	{name: "who sees a client's lock of the workflow does not pass it", scenario: "lock API, limit of a workflow",
		breaks: passesClient},
	{name: "an event that a person lets run again stays settled, whatever becomes of that", scenario: "again, cancel",
		breaks: failureUnsettles},
	{name: "an attached copy that finds nothing does not say that nothing ran",
		scenario: "attach, three copies, forget", breaks: copySaysNotExecuted},
}
