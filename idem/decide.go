package idem

import "time"

// Request is a delivery that has its names and asks to run.
type Request struct {
	// Scope is what it locks. Without a key the delivery is an event of its own, and Admit makes one.
	Scope       Scope
	EventID     string
	Labels      Labels
	Fingerprint Fingerprint
	Parts       Parts
	// Order is where the event stands in its scope; nil = that is not asked, or not known.
	Order *Order
	// ByPayload: the fingerprint is the key, so equal bodies are one event only for the policy's PayloadRetention.
	ByPayload   bool
	Policy      *Policy
	TraceParent string
	// Credentials digests the credentials of this delivery, salted with an execution; see CredentialsDigest.
	// Nil means that it came with none.
	Credentials func(ExecutionID) string
	// Limits are those that it counts against, besides its workflow's own; nobody changes them.
	Limits []Slot
	// Parking is nil where the delivery may not be parked.
	Parking *Parking
}

func (r *Request) credentials(id ExecutionID) string {
	if r.Credentials == nil {
		return ""
	}
	return r.Credentials(id)
}

// slots are the limits that an execution of r counts against; nil = there are none.
func (r *Request) slots() []Slot {
	if r.Policy.Limit <= 1 {
		return r.Limits
	}
	return append([]Slot{{Limit: OwnLimit(r.Scope.Workflow), N: -1}}, r.Limits...)
}

// replayFor is Lock.ReplayFor.
func (r *Request) replayFor() time.Duration {
	if r.Policy.ReplayRetention >= r.retention() {
		return 0
	}
	return r.Policy.ReplayRetention
}

func (r *Request) retention() time.Duration { return r.Policy.RetentionOf(r.ByPayload) }

// Verdict is what a delivery may do. With an empty Decision it may claim the lock over the record at revision Prev, or, where Bury
// is set, has to bury that lock first and look again.
type Verdict struct {
	Decision Decision
	// Holder is the execution that stands in the way, or the first one of a replay; empty when it is not known.
	Holder ExecutionID
	// HolderTrace is the W3C trace context of the Holder's delivery; empty when it is not known.
	HolderTrace string
	Record      *Record // of a replay or an earlier unknown outcome
	// StatusOnly: the duplicate gets the first status, and neither headers nor body.
	StatusOnly bool
	RetryAfter time.Duration // 0 = not known
	Limit      string        // of limited: the limit that has no slot for it
	Full       bool          // of locked: as many events of its workflow run as its Policy.Limit lets; Holder is the oldest of them
	// ClosedUntil: Holder has ended, its outcome is unknown, and until then its lock stays closed. The zero time: it has not ended.
	ClosedUntil time.Time
	// Differs are the parts that differ from the first delivery (of mismatch); nil where that is not known, or not for this sender to know.
	Differs []string
	Copy    *Lock  // of in_flight: the execution of the same event
	Paused  *Pause // of paused

	// WhileWaiting: (of aborted) it is this delivery that was cancelled, while it waited. Otherwise an earlier one was, for good.
	WhileWaiting bool
	// Stale: (of superseded and stale) by how much it is older than what went through, and which execution that was. nil of a copy.
	Stale *Stale

	// Newer: (of superseded) the execution that waits and is newer, so that this one took no place; "" = it had ended for it.
	Newer ExecutionID

	// Accepted: (of parked) it is this delivery that was parked, for On. Otherwise a copy of it was.
	Accepted bool
	On       ParkOn
	// Unsure: (of store_unavailable) nobody knows whether the delivery was parked, so it may run.
	Unsure bool

	Bury *Lock
	Prev int64
	// Behind is the revision of the lock that stands in the way; 0 = it is free. For whoever waits for it.
	Behind  int64
	Attempt int
	Earlier []Attempt
}

// taken reports whether somebody else has the lock, or the event.
func (v *Verdict) taken() bool {
	return v.Decision == DecisionLocked || v.Decision == DecisionInFlight || v.Decision == DecisionLimited
}

// before reports whether other events are before it, or somebody has said that it is to wait.
func (v *Verdict) before() bool {
	return v.Decision == DecisionLocked || v.Decision == DecisionLimited || v.Decision == DecisionPaused
}

// Decide says what a delivery may do, given what the ledger remembers. It reads no clock and does no I/O. The order of its
// questions is the promise of docs/decisions.md: mismatch, in flight, replayed or unknown, then the lock.
func Decide(seen *Seen, r *Request, now time.Time) Verdict {
	v := decide(seen, r, now)
	v.HolderTrace = seen.traceOf(v.Holder)
	return v
}

// traceOf is the trace context of the execution that stands in the way.
func (s *Seen) traceOf(id ExecutionID) string {
	switch {
	case id == "":
	case s.Record != nil && s.Record.Execution == id:
		return s.Record.TraceParent
	case s.Lock != nil && s.Lock.Execution == id:
		return s.Lock.TraceParent
	case s.Waiting != nil && s.Waiting.Execution == id:
		return s.Waiting.TraceParent
	}
	return ""
}

func decide(seen *Seen, r *Request, now time.Time) Verdict {
	rec := seen.Record
	if rec != nil && r.other(rec.Fingerprint) {
		return r.mismatch(&rec.Entry)
	}
	if copied := seen.copyOf(r.Scope.Key); copied != nil {
		if r.other(copied.Fingerprint) {
			return r.mismatch(&copied.Entry)
		}
		v := Verdict{Decision: DecisionInFlight, Holder: copied.Execution, Copy: copied, RetryAfter: copied.remaining(now)}
		if copied.Parked != nil { // it was accepted, and each copy of it is
			v.Decision = DecisionParked
		}
		return v
	}
	switch {
	case rec == nil:
	case rec.Settled():
		return Verdict{Decision: DecisionReplayed, Holder: rec.Execution, Record: rec, StatusOnly: r.stranger(&rec.Entry)}
	case rec.Final && rec.Superseded() != "":
		return Verdict{Decision: DecisionSuperseded, Holder: rec.Execution, Record: rec}
	case rec.Final:
		return Verdict{Decision: DecisionAborted, Holder: rec.Execution, Record: rec}
	case rec.Outcome == Unknown && r.Policy.OnUnknown == UnknownBlock:
		return Verdict{Decision: DecisionUnknown, Holder: rec.Execution, Record: rec}
	}
	return r.decideLock(seen, rec, now)
}

// copyOf is the execution of the same event that runs or waits, nil without one.
func (s *Seen) copyOf(key Key) *Lock {
	if l := s.Lock; l != nil && !l.Cooling && !l.Dead && l.Scope.Key == key {
		return l
	}
	return s.Waiting
}

// other reports whether fp is another request than this one, where the route refuses that. Under MismatchExecute the key tells them apart.
func (r *Request) other(fp Fingerprint) bool {
	return r.Policy.OnMismatch == MismatchReject && fp != r.Fingerprint
}

// decideLock is the last question: is the lock free? rec is the record that would be written over.
func (r *Request) decideLock(seen *Seen, rec *Record, now time.Time) Verdict {
	switch lock := seen.Lock; {
	case lock != nil && lock.Dead:
		return Verdict{Bury: lock}
	case seen.Newer != nil:
		return Verdict{Decision: DecisionSuperseded, Newer: seen.Newer.Execution}
	case lock != nil:
		v := Verdict{Decision: DecisionLocked, Holder: lock.Execution, RetryAfter: lock.remaining(now)}
		if lock.Scope.PerEvent == r.Scope.PerEvent { // else it is a client's, and the own lock is free
			v.Behind = lock.Revision
		}
		if lock.Cooling {
			v.ClosedUntil = lock.CoolUntil
		}
		return v
	case seen.Paused != nil:
		return Verdict{Decision: DecisionPaused, Paused: seen.Paused, RetryAfter: seen.Paused.retryAfter(now)}
	case seen.Queue:
		return Verdict{Decision: DecisionLocked}
	case seen.Full != nil && seen.Full.Rule == "":
		return Verdict{Decision: DecisionLocked, Holder: seen.Oldest, Full: true}
	case seen.Full != nil:
		return Verdict{Decision: DecisionLimited, Limit: seen.Full.Limit}
	}
	v := Verdict{Prev: seen.RecordRevision, Attempt: 1}
	if rec != nil {
		v.Attempt = rec.Attempt + 1
		v.Earlier = rec.AndBefore()
	}
	return v
}

// mismatch refuses a delivery that has another fingerprint than first.
func (r *Request) mismatch(first *Entry) Verdict {
	v := Verdict{Decision: DecisionMismatch, Holder: first.Execution}
	if !r.stranger(first) {
		v.Differs = r.Parts.Differ(first.Parts)
	}
	return v
}

// stranger reports whether the delivery came with other credentials than the first one of its event. It may know that there was one and that it
// is settled, and no more.
func (r *Request) stranger(first *Entry) bool {
	return (!r.Policy.Verified || len(r.Policy.Credentials) > 0) && first.Credentials != r.credentials(first.Execution)
}
