package idem

import (
	"strconv"
	"strings"
	"time"
)

// Strategy says what a delivery does when another one has the lock.
type Strategy string

// The strategies.
const (
	FailFast Strategy = "fail_fast" // it is refused: 409
	Wait     Strategy = "wait"      // it waits in the queue, first come, first served over all replicas
	Skip     Strategy = "skip"      // it is dropped: 200, and the sender does not send it again
	Latest   Strategy = "latest"    // it waits, and replaces the one that waits: 200 for that
	NoLock   Strategy = "none"      // events of one workflow may overlap; only duplicates of one event conflict
)

// Choices lists the strategies.
func (Strategy) Choices() []string { return asStrings(FailFast, Wait, Skip, Latest, NoLock) }

// Waits reports whether a delivery waits if the lock is taken.
func (s Strategy) Waits() bool { return s == Wait || s == Latest }

// InFlight says what a duplicate of a running event gets.
type InFlight string

// The policies for duplicates of a running event.
const (
	Conflict InFlight = "conflict" // 409
	Attach   InFlight = "attach"   // it waits for the first one's answer and gets the same
)

// Choices lists the policies for copies of a running event.
func (InFlight) Choices() []string { return asStrings(Conflict, Attach) }

// OnMismatch says what a delivery gets whose key is known with another fingerprint.
type OnMismatch string

// The mismatch policies.
const (
	MismatchReject OnMismatch = "reject" // 422: an event ID was used again
	// the event ID alone decides; for senders that change the body between attempts
	MismatchReplay OnMismatch = "replay"
	// run it: the fingerprint belongs to the key, so each request is an event of its own
	MismatchExecute OnMismatch = "execute"
	// MismatchReplayUnsigned is MismatchReplay in a configuration whose deliveries are not signed.
	// A Policy has MismatchReplay.
	MismatchReplayUnsigned OnMismatch = "replay_unsigned"
)

// Choices lists the mismatch policies.
func (OnMismatch) Choices() []string {
	return asStrings(MismatchReject, MismatchReplay, MismatchExecute, MismatchReplayUnsigned)
}

// OnUnknown says what a delivery gets whose earlier execution ended with an unknown outcome.
type OnUnknown string

// The policies for an unknown outcome.
const (
	UnknownRetry OnUnknown = "retry" // run it again, as the key's next attempt
	UnknownBlock OnUnknown = "block" // 409 until an operator has looked and allowed it again
	UnknownAsk   OnUnknown = "ask"   // the service is asked what became of it; without an answer, as block
)

// Choices lists the policies for an unknown outcome.
func (OnUnknown) Choices() []string { return asStrings(UnknownRetry, UnknownBlock, UnknownAsk) }

func asStrings[W ~string](choices ...W) []string {
	texts := make([]string, len(choices))
	for i, c := range choices {
		texts[i] = string(c)
	}
	return texts
}

// DurationText spells d as a policy is written, without the zeros at the end of Duration.String:
// 168h, not 168h0m0s.
func DurationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// StatusSet is a set of HTTP statuses. The zero value is empty.
type StatusSet struct{ bits [10]uint64 }

// Add puts the statuses from lo to hi, both included, into the set.
func (s *StatusSet) Add(lo, hi int) {
	for i := max(lo, 0); i <= hi && i < len(s.bits)*64; i++ {
		s.bits[i/64] |= 1 << (i % 64)
	}
}

// Has reports whether status is in the set.
func (s *StatusSet) Has(status int) bool {
	return status >= 0 && status < len(s.bits)*64 && s.bits[status/64]&(1<<(status%64)) != 0
}

// String lists the set: 200-299, 404. It is empty for the empty set.
func (s *StatusSet) String() string {
	var parts []string
	for i := 0; i < len(s.bits)*64; i++ {
		if !s.Has(i) {
			continue
		}
		first := i
		for s.Has(i + 1) {
			i++
		}
		if part := strconv.Itoa(first); i == first {
			parts = append(parts, part)
		} else {
			parts = append(parts, part+"-"+strconv.Itoa(i))
		}
	}
	return strings.Join(parts, ", ")
}

// Policy is what a route does with its deliveries. It is made once at load and shared by all of
// them.
type Policy struct {
	Route       string        // the name of the route
	Strategy    Strategy      // what a delivery does if another one has the lock
	WaitTimeout time.Duration // how long a delivery waits in the queue
	// Quiet is how long nothing newer must come before the newest runs, and MaxWait for how long at
	// most they replace each other; of strategy latest. 0 = it runs when the lock is free.
	Quiet, MaxWait time.Duration
	MaxWaiting     int // deliveries of one workflow that wait in this process; 0 = none may
	// Concurrency is how many events of a workflow run at a time. With more than one, each has a
	// slot of the workflow's own limit, and its lock covers the event. 0 is 1.
	Concurrency int
	InFlight    InFlight
	// AttachTimeout is how long a duplicate waits for the first delivery's answer: the upstream's
	// timeout and WaitTimeout.
	AttachTimeout time.Duration
	MaxDuration   time.Duration // a running execution is ended at this age; 0 = never
	ReleaseDelay  time.Duration // the lock stays closed for this long after an unknown outcome; 0 = not at all

	// Idempotency is off when false: every delivery is its own event.
	Idempotency bool
	// Retention is how long a record answers duplicates, counted from the end of the execution. It
	// must be longer than the sender's whole retry schedule, or a late retry runs the event again.
	Retention time.Duration
	// PayloadRetention replaces Retention where the fingerprint is the key: equal bodies after that
	// are new events.
	PayloadRetention time.Duration
	// NewPerSecond bounds the new events that a process accepts for the route; 0 = no bound.
	NewPerSecond int
	// ReplayRetention is how long at least the answer is kept with its record; after that
	// duplicates get its status alone. 0, or a time that is not shorter than that of the record: as
	// long as the record.
	ReplayRetention time.Duration
	ReplayBody      int // bytes; a longer answer is not kept, its duplicate gets the first status alone
	OnMismatch      OnMismatch
	OnUnknown       OnUnknown
	// Attempts is how many attempts of an event may fail, or end with an unknown outcome, before it
	// waits for a person. 0 = any number.
	Attempts int
	// Ask is how the service is asked what became of an event; nil unless OnUnknown is UnknownAsk.
	Ask  *AskPolicy
	Keep StatusSet // upstream answers that settle the event
	// HoldOn are the upstream answers after which the work goes on, and HoldTTL is how long the
	// upstream may be silent then. What the upstream asks for in its answer comes before both.
	HoldOn  StatusSet
	HoldTTL time.Duration
	Unknown StatusSet // upstream answers that say nothing about the effect
	// Verified says that deliveries are signed, so a duplicate proves that it is the sender's.
	// Otherwise a duplicate that comes with other credentials than the first delivery does not get
	// its answer.
	Verified bool
	// Credentials are headers whose values count as credentials, signed or not, in lower case.
	Credentials []string
	// Park is the route's policy of parking; nil = nothing is parked.
	Park *ParkPolicy
	// TwinWindow is for how long another event ID with the body of an event, in its workflow, is
	// taken for the same event; 0 = two IDs are two events.
	TwinWindow time.Duration
	// Order is the route's policy for events that come out of order; nil = order is not checked.
	Order *OrderPolicy
	// Observe says that every delivery runs, whatever is decided, so no duplicate counts as
	// answered without running.
	Observe bool
}

// PerEvent reports whether locks cover the event alone, not its workflow.
func (p *Policy) PerEvent() bool { return p.Strategy == NoLock || p.Concurrency > 1 }

// RetentionOf returns for how long the record of a delivery is kept.
func (p *Policy) RetentionOf(byPayload bool) time.Duration {
	if byPayload {
		return p.PayloadRetention
	}
	return p.Retention
}
