package idem

import "time"

// Request is a delivery that has its names and asks to run.
type Request struct {
	// Scope is what the delivery locks. If it has no key, the delivery is an event of its own, and
	// Admit makes a key.
	Scope       Scope
	EventID     string
	Labels      Labels
	Fingerprint Fingerprint
	Parts       Parts
	// Order is the position of the event in its scope; nil = the route does not judge order, or the
	// position is not known.
	Order *Order
	// ByPayload says that the fingerprint is the key, so equal bodies are one event only for the
	// policy's PayloadRetention.
	ByPayload bool
	// Twin says that it has an event ID, and a body of which something counts, so that it may have
	// a twin.
	Twin        bool
	Policy      *Policy
	TraceParent string
	// Credentials digests the credentials of this delivery, salted with an execution; see
	// CredentialsDigest. Nil means that it came with none.
	Credentials func(ExecutionID) string
	// Limits are the limits that the delivery counts against, besides its workflow's own. They must
	// not be changed.
	Limits []Slot
	// Parking is nil where the delivery may not be parked.
	Parking *Parking
	// Question is the URL that says what became of the event; "" = there is none.
	Question string
}

// Lock returns the lock of an execution of r that begins now, as verdict v lets it: what a claim or
// a queue entry writes. callbackHash is ExecutionFacts.CallbackHash.
func (r *Request) Lock(id ExecutionID, callbackHash string, v *Verdict, now time.Time) Lock {
	l := Lock{
		ExecutionFacts: ExecutionFacts{
			Execution: id, Scope: r.Scope, Route: r.Policy.Route, EventID: r.EventID, Labels: r.Labels,
			Fingerprint: r.Fingerprint, Parts: r.Parts,
			Credentials: r.credentialsDigest(id), Order: r.Order, CallbackHash: callbackHash,
			TraceParent: r.TraceParent,
			Attempt:     v.Attempt, Earlier: v.Earlier, StartedAt: now, Retention: r.recordRetention(),
			Slots: r.neededSlots(),
		},
		MaxDuration: r.Policy.MaxDuration, ReleaseDelay: r.Policy.ReleaseDelay, ReplayBody: r.Policy.ReplayBody,
		ReplayFor: r.replayFor(), Latest: r.Policy.newSeries(),
	}
	l.Question = r.Policy.Ask.newQuestion(r.Question)
	return l
}

func (r *Request) credentialsDigest(id ExecutionID) string {
	if r.Credentials == nil {
		return ""
	}
	return r.Credentials(id)
}

// neededSlots returns the limits that an execution of r counts against; nil = none.
func (r *Request) neededSlots() []Slot {
	if r.Policy.Concurrency <= 1 {
		return r.Limits
	}
	return append([]Slot{{LimitName: OwnLimit(r.Scope.Workflow), Index: -1}}, r.Limits...)
}

// replayFor returns Lock.ReplayFor.
func (r *Request) replayFor() time.Duration {
	if r.Policy.ReplayRetention >= r.recordRetention() {
		return 0
	}
	return r.Policy.ReplayRetention
}

func (r *Request) recordRetention() time.Duration { return r.Policy.RetentionOf(r.ByPayload) }

// Verdict is what a delivery may do. With an empty Decision it may claim the lock over the record
// at revision Prev. If Reap is set, it must first reap the execution of that lock and read again.
type Verdict struct {
	Decision Decision // "" = the delivery may claim the lock
	// Holder is the execution that stands in the way, or the first one of a replay; empty when it
	// is not known.
	Holder ExecutionID
	// HolderTrace is the W3C trace context of the Holder's delivery; empty when it is not known.
	HolderTrace string
	Record      *Record // of a replay or an earlier unknown outcome
	// StatusOnly says that the duplicate gets the first status, and neither headers nor body.
	StatusOnly bool
	RetryAfter time.Duration // 0 = not known
	FullLimit  string        // of limited: the limit that has no slot for it
	// of locked: as many events of its workflow run as Policy.Concurrency allows; Holder is the
	// oldest of them
	Full bool
	// ClosedUntil is until when the lock of Holder, which has ended with an unknown outcome, stays
	// closed. The zero time: Holder has not ended.
	ClosedUntil time.Time
	// Differs are the parts that differ from the first delivery, of mismatch and if Changed; nil if
	// they are not known, or, of mismatch, may not be shown to this sender.
	Differs []string
	// Changed says that it is a duplicate by its event ID, but another request than the first
	// delivery (on_mismatch: replay). Two events may share the ID.
	Changed bool
	Copy    *Lock  // of in_flight: the execution of the same event
	Paused  *Pause // of paused

	// WhileWaiting: (of aborted) this delivery was cancelled while it waited. Otherwise an earlier
	// one was cancelled for good.
	WhileWaiting bool
	// Stale: (of superseded and stale) by how much the event is older than the newest one that went
	// through, and which execution that was. nil for a duplicate.
	Stale *Stale

	// Newer: (of superseded) the newer execution that waits, because of which this one was not
	// enqueued; "" = this one had been enqueued.
	Newer ExecutionID

	// Accepted: (of parked) this delivery was parked, for On. Otherwise an earlier delivery of the
	// event was.
	Accepted bool
	On       ParkOn
	// Unsure: (of store_unavailable) it is not known whether the delivery was parked, so it may
	// run.
	Unsure bool

	// Reap is the lock of a dead owner that is in the way; nil = there is none.
	Reap *Lock
	// Prev is the mod revision of the event's record that was read; 0 = it has none.
	Prev int64
	// Behind is the revision of the lock that stands in the way, for a delivery that waits for it;
	// 0 = the lock is free.
	Behind  int64
	Attempt int
	Earlier []Attempt
}

// Taken reports whether another execution has the lock, or the event.
func (v *Verdict) Taken() bool {
	return v.Decision == DecisionLocked || v.Decision == DecisionInFlight || v.Decision == DecisionLimited
}

// Decide says what a delivery may do, given what the ledger remembers. It reads no clock and does
// no I/O. The order of its checks is the promise of docs/answers.md: mismatch, in flight, replayed
// or unknown, then the lock. An event binds its bytes while it runs or waits, and once it does not
// run again; a failure binds nothing.
func Decide(seen *Obstacle, r *Request, now time.Time) Verdict {
	v := decideAdmission(seen, r, now)
	v.HolderTrace = seen.traceOf(v.Holder)
	r.compareWithFirst(&v)
	return v
}

// compareWithFirst notes in v whether a duplicate is another request than the first delivery of its
// event.
func (r *Request) compareWithFirst(v *Verdict) {
	var first *ExecutionFacts
	switch {
	case v.Decision == "" || v.Decision == DecisionMismatch:
	case v.Copy != nil:
		first = &v.Copy.ExecutionFacts
	case v.Record != nil:
		first = &v.Record.ExecutionFacts
	}
	if v.Changed = first != nil && first.Fingerprint != r.Fingerprint; v.Changed {
		v.Differs = r.Parts.Differ(first.Parts)
	}
}

// DecideAttached says what a duplicate gets that was attached to execution first, which has ended
// as seen says: the answer of the first delivery, or why there is none. It reads no clock and does
// no I/O.
func DecideAttached(seen *Obstacle, r *Request, first ExecutionID) Verdict {
	v := decideAttached(seen, r, first)
	r.compareWithFirst(&v)
	return v
}

func decideAttached(seen *Obstacle, r *Request, first ExecutionID) Verdict {
	rec := seen.Record
	switch {
	case seen.Released:
		return Verdict{Decision: DecisionUpstreamUnreachable, Holder: first}
	case rec == nil || rec.Execution != first && !rec.Settled(): // it is not known any more
		return Verdict{Decision: DecisionLockLost, Holder: first}
	case rec.Execution != first && r.rejectsFingerprint(rec.Fingerprint):
		// the first one failed, and other bytes settled the event
		return r.mismatchVerdict(&rec.ExecutionFacts)
	case rec.Answer != nil:
		return Verdict{Decision: DecisionAttached, Holder: rec.Execution, Record: rec,
			StatusOnly: r.hasOtherCredentials(&rec.ExecutionFacts)}
	case rec.Superseded() != "":
		return Verdict{Decision: DecisionSuperseded, Holder: rec.Execution, Record: rec}
	case rec.Status == Aborted:
		return Verdict{Decision: DecisionAborted, Holder: rec.Execution, Record: rec}
	}
	if rec.Outcome == Executed || rec.Error == nil { // the upstream reported a held one as failed, and no more
		return Verdict{Decision: DecisionUpstreamFailed, Holder: rec.Execution, Record: rec}
	}
	switch d := Decision(rec.Error.Code); d {
	case DecisionUpstreamFailed, DecisionUpstreamTimeout, DecisionInternalError:
		return Verdict{Decision: d, Holder: rec.Execution, Record: rec}
	}
	return Verdict{Decision: DecisionLockLost, Holder: rec.Execution, Record: rec}
}

// traceOf returns the trace context of the execution that stands in the way.
func (s *Obstacle) traceOf(id ExecutionID) string {
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

func decideAdmission(seen *Obstacle, r *Request, now time.Time) Verdict {
	rec := seen.Record
	ended := rec != nil && !r.mayRunAfter(rec)
	if ended && r.rejectsFingerprint(rec.Fingerprint) {
		return r.mismatchVerdict(&rec.ExecutionFacts)
	}
	if copied := seen.copyOf(r.Scope.Key); copied != nil {
		if r.rejectsFingerprint(copied.Fingerprint) {
			return r.mismatchVerdict(&copied.ExecutionFacts)
		}
		v := Verdict{Decision: DecisionInFlight, Holder: copied.Execution, Copy: copied,
			RetryAfter: copied.expectedRemaining(now)}
		if copied.Parked != nil { // the event was accepted, and so is each duplicate of it
			v.Decision = DecisionParked
		}
		return v
	}
	if ended {
		return r.decideEnded(rec)
	}
	if v := r.decidePace(seen, rec, now); v.Decision != "" {
		return v
	}
	return r.decideLock(seen, rec, now)
}

// mayRunAfter reports whether an event that ended as rec says may run again. Then it protects
// nothing, and does not bind the event to its bytes: a sender that corrects a malformed body, or
// counts its attempts there, is served.
func (r *Request) mayRunAfter(rec *Record) bool {
	return !rec.Settled() && !rec.Final && !r.Policy.BlocksUnknown(rec) && !r.Policy.Exhausted(rec)
}

// decideEnded returns what a copy gets of an event that does not run again.
func (r *Request) decideEnded(rec *Record) Verdict {
	v := Verdict{Decision: DecisionUnknown, Holder: rec.Execution, Record: rec}
	switch {
	case rec.Settled():
		v.Decision, v.StatusOnly = DecisionReplayed, r.hasOtherCredentials(&rec.ExecutionFacts)
	case rec.Final && rec.Superseded() != "":
		v.Decision = DecisionSuperseded
	case rec.Final:
		v.Decision = DecisionAborted
	case !r.Policy.BlocksUnknown(rec):
		v.Decision = DecisionExhausted
	}
	return v
}

// decidePace refuses an event whose attempts end at once, again and again, until its pause is over.
// Another request of the event is none of them: a sender that corrects it is served. The zero
// value: it may run.
func (r *Request) decidePace(seen *Obstacle, rec *Record, now time.Time) Verdict {
	if rec == nil || rec.Fingerprint != r.Fingerprint || seen.Lock != nil && seen.Lock.Dead {
		return Verdict{}
	}
	wait := rec.paceDelay(now)
	if wait == 0 {
		return Verdict{}
	}
	if seen.Lock != nil {
		wait = max(wait, seen.Lock.expectedRemaining(now))
	}
	return Verdict{Decision: DecisionPaced, Holder: rec.Execution, RetryAfter: wait}
}

// copyOf returns the execution of the same event that runs or waits; nil if there is none.
func (s *Obstacle) copyOf(key Key) *Lock {
	if l := s.Lock; l != nil && !l.Cooling && !l.Dead && l.Scope.Key == key {
		return l
	}
	return s.Waiting
}

// Runs reports whether an execution of the event runs or waits.
func (s *Obstacle) Runs(key Key) bool { return s.copyOf(key) != nil }

// rejectsFingerprint reports whether fp is of another request than this one and the route refuses
// that. Under MismatchExecute the key tells them apart.
func (r *Request) rejectsFingerprint(fp Fingerprint) bool {
	return r.Policy.OnMismatch == MismatchReject && fp != r.Fingerprint
}

// decideLock makes the last check: is the lock free? rec is the record that would be overwritten.
func (r *Request) decideLock(seen *Obstacle, rec *Record, now time.Time) Verdict {
	switch lock := seen.Lock; {
	case lock != nil && lock.Dead:
		return Verdict{Reap: lock}
	case seen.Newer != nil:
		return Verdict{Decision: DecisionSuperseded, Newer: seen.Newer.Execution}
	case lock != nil:
		v := Verdict{Decision: DecisionLocked, Holder: lock.Execution, RetryAfter: lock.expectedRemaining(now)}
		if lock.Scope.PerEvent == r.Scope.PerEvent { // else a client has it, and this event's own lock is free
			v.Behind = lock.Revision
		}
		if lock.Cooling {
			v.ClosedUntil = lock.CoolUntil
		}
		return v
	case seen.Paused != nil:
		return Verdict{Decision: DecisionPaused, Paused: seen.Paused, RetryAfter: seen.Paused.RetryAfter(now)}
	case seen.Queue:
		return Verdict{Decision: DecisionLocked}
	case seen.Full != nil && seen.Full.Rule == "":
		return Verdict{Decision: DecisionLocked, Holder: seen.Oldest, Full: true}
	case seen.Full != nil:
		return Verdict{Decision: DecisionLimited, FullLimit: seen.Full.LimitName}
	}
	v := Verdict{Prev: seen.RecordRevision, Attempt: 1}
	if rec != nil {
		v.Attempt = rec.Attempt + 1
		v.Earlier = rec.EarlierForNext(r.Parts)
	}
	return v
}

// mismatchVerdict refuses a delivery that has another fingerprint than first.
func (r *Request) mismatchVerdict(first *ExecutionFacts) Verdict {
	v := Verdict{Decision: DecisionMismatch, Holder: first.Execution}
	if !r.hasOtherCredentials(first) {
		v.Differs = r.Parts.Differ(first.Parts)
	}
	return v
}

// hasOtherCredentials reports whether the delivery came with other credentials than the first one
// of its event. Its sender may learn only that there was a first one and that it is settled.
func (r *Request) hasOtherCredentials(first *ExecutionFacts) bool {
	if r.Policy.Verified && len(r.Policy.Credentials) == 0 ||
		first.Credentials == r.credentialsDigest(first.Execution) {
		return false
	}
	for i := range first.Earlier { // one that runs the request of an earlier attempt has the digest of that
		if first.Credentials != "" && first.Credentials == r.credentialsDigest(first.Earlier[i].Execution) {
			return false
		}
	}
	return true
}
