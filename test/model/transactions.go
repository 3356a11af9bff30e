package model

// kind is a transaction of the protocol.
type kind uint8

const (
	claim kind = iota + 1
	enqueue
	claimAsHead
	leave
	settle
	handOver
	release
	adopt
	reap
	reapCooling
	fence
	acquire
	putHold
	heartbeat
	guard
	cancel
	cancelWaiting
	forget
	forceRelease
	forceReleaseCooling
	enqueueParked
	parkWaiting
	parkRunning
	attempt
	rest
	carry
	settleParked
	settleTooOld
	endUncarried
	endParkedPlace
	forceReleaseParked
	runNow
	rerun
	sweepLetter
	enterSlotWaiters
	dropSlotWaiter
	correct
	kinds
)

var kindNames = [kinds]string{
	claim: "claim", enqueue: "enqueue", claimAsHead: "claimAsHead", leave: "leave", settle: "settle",
	handOver: "handOver", release: "release", adopt: "adopt", reap: "reap", reapCooling: "reapCooling",
	fence: "fence", acquire: "acquire", putHold: "hold", heartbeat: "heartbeat", guard: "guard", cancel: "cancel",
	cancelWaiting: "cancelWaiting", forget: "forget", forceRelease: "forceRelease",
	forceReleaseCooling: "forceReleaseCooling", enqueueParked: "enqueueParked", parkWaiting: "parkWaiting",
	parkRunning: "parkRunning", attempt: "attempt", rest: "rest", carry: "carry", settleParked: "settleParked",
	settleTooOld: "settleTooOld", endUncarried: "endUncarried", endParkedPlace: "endParkedPlace",
	forceReleaseParked: "forceReleaseParked", runNow: "runNow", rerun: "rerun", sweepLetter: "sweepLetter",
	enterSlotWaiters: "enterSlotWaiters", dropSlotWaiter: "dropSlotWaiter", correct: "correct",
}

func (k kind) String() string { return kindNames[k] }

// txn is one transaction as it was sent, with what its sender knew.
type txn struct {
	kind                kind
	by                  execution
	session             session
	epoch               revision // of the session
	created, l, q, prev revision // of the lock, of the queue entry, of the record
	h                   revision // of the hold
	o                   revision // of the other lock
	alive               alive    // what the lock named at l
	outcome             outcome  // to write into the record
	lease               uint8    // of the hold to write
	cancel              uint8    // that the lock carried at l

	token          revision  // to spell in the lock; 0 = its create revision is the token, or fresh
	fresh          bool      // the token is the revision of this put
	parked, trying bool      // to write into the lock
	letter         bool      // the request is kept with the record
	next           execution // that is handed the lock
	heir           session   // of next
	old            execution // whose request it takes over
	again          bool      // the event of old was settled
	seen           bool      // to write into the session: its process has heard of the pause
	slot           uint8     // to take, from 1; 0 = none
	turn           bool      // to take with a place
	last           revision  // create revision of the last place in the queue, as its sender saw it
	over           execution // that it replaces in the queue; 0 = nobody
	overQ          revision  // mod revision of that place
	overParked     bool      // that place is of a parked execution
	frees          bool      // the lock of l, which cools for it

	saw sight // of the lock at l
}

// sight is what a sender that knows a revision of a lock knows of it beside what a transaction has
// anyway.
type sight struct {
	by                             execution
	alive                          alive
	token                          revision
	slot, cancel                   uint8
	parked, trying, blocked, steps bool
	again                          bool
}
