package idem

import (
	"context"
	"slices"
	"time"
)

// An execution is parked when its sender has the answer that its event is accepted and it has not
// ended: it waits in its workflow's queue without a session, or has the lock and is tried again
// (docs/park.md). It survives the process that accepted it.

// ParkOn says what lets a delivery be parked.
type ParkOn string

// The reasons to park.
const (
	ParkLocked      ParkOn = ParkOn(DecisionLocked) // another event of its workflow is before it
	ParkSlow        ParkOn = "slow"                 // its upstream takes longer than its sender waits
	ParkUnreachable ParkOn = "unreachable"          // nothing of it reached the upstream
	ParkUnknown     ParkOn = "unknown"              // it is not known whether it ran
	// the upstream's answer asks to come later, as ParkPolicy.RetryOn says
	ParkFailed ParkOn = "failed"
	// its sender is half way to switching the endpoint off; not in a policy's list either
	ParkSenderLimit ParkOn = "sender_limit"
	ParkAgain       ParkOn = "again" // a person lets the event run again; never in a policy's list
	// its route or workflow is paused; a policy that parks for anything parks for this too
	ParkPaused ParkOn = ParkOn(DecisionPaused)
)

// Choices lists the reasons to park that a policy names.
func (ParkOn) Choices() []string {
	return asStrings(ParkLocked, ParkSlow, ParkUnreachable, ParkUnknown, ParkFailed)
}

// OnFailure says what happens to a parked execution that may not be tried again.
type OnFailure string

// The choices.
const (
	FailureHold OnFailure = "hold" // its workflow waits for an operator's decision, so that the order is kept
	FailureSkip OnFailure = "skip" // it is a dead letter, and the next one runs
)

// Choices lists the values of a configuration.
func (OnFailure) Choices() []string { return asStrings(FailureHold, FailureSkip) }

// ParkSignature says which signature a parked request has when it runs.
type ParkSignature string

// The signatures of a parked request.
const (
	SignatureKeep  ParkSignature = "keep"  // the one it came with
	SignatureRenew ParkSignature = "renew" // a new one, with the time at which it is sent
)

// Choices lists the signatures of a parked request.
func (ParkSignature) Choices() []string { return asStrings(SignatureKeep, SignatureRenew) }

// ParkPolicy is what a route does about parking. A nil one parks nothing.
type ParkPolicy struct {
	Locked, Slow, Unreachable, Unknown, Failed bool // its ParkOn
	// After is how long after its arrival a delivery is parked; 0 = it gets its 2xx at once,
	// always.
	After     time.Duration
	Answer    int           // the status with which a parked delivery is answered; 2xx
	MaxAge    time.Duration // since it was parked; then it becomes a dead letter
	Attempts  int           // failed tries before it is given up; those that provably did not run do not count
	OnFailure OnFailure
	// RetryFirst is the pause after the first failed try; each further one doubles it, up to
	// RetryMost. 0 = the worker's own.
	RetryFirst, RetryMost time.Duration
	// RetryOn are the upstream's answers after which it is tried again. Empty: 5xx and those of the
	// 4xx that speak of time.
	RetryOn StatusSet
	// Delay is how long after it was accepted an event is tried first; 0 = at once. With a delay
	// every delivery is parked at once, because none runs before.
	Delay      time.Duration
	Signature  ParkSignature
	MaxWaiting int // parked executions of one workflow
	MaxBytes   int // of a request; a longer one is not parked. 0 = no bound
	// FailedAnswers says that the beginning of each answer that says that a try failed is kept, for
	// operators.
	FailedAnswers bool
}

// Has reports whether a delivery may be parked for that reason.
func (p *ParkPolicy) Has(on ParkOn) bool {
	switch on {
	case ParkPaused, ParkSenderLimit:
		return true
	case ParkLocked:
		return p.Locked
	case ParkSlow:
		return p.Slow
	case ParkUnreachable:
		return p.Unreachable
	case ParkUnknown:
		return p.Unknown
	case ParkFailed:
		return p.Failed
	}
	return false
}

// Parked is what the ledger stores of a parked execution, in its queue entry or its lock.
type Parked struct {
	Since time.Time `json:"since"`           // when it was parked
	On    ParkOn    `json:"on"`              // what it was parked for
	Bytes int64     `json:"bytes"`           // of the request as it is stored
	Tries int       `json:"tries,omitempty"` // calls of the upstream that began, the one before it was parked included
	// Failures are the tries that count against the policy's Attempts.
	Failures int `json:"failures,omitempty"`
	// Trying says that a try began, and its end is not written down. A worker that takes the
	// execution over treats its outcome as unknown.
	Trying bool `json:"trying,omitempty"`
	// NextAttempt is when it is tried again, by the clock of the process that has it; see Resumed.
	// Zero: it is tried now, is blocked, or an operator wants a try now.
	NextAttempt time.Time `json:"nextAttempt,omitzero"`
	// Pause is how long the wait until NextAttempt was as it began. 0: there is none, or an earlier
	// release wrote it.
	Pause time.Duration `json:"pauseNs,omitempty"`
	// Pauses counts the pauses so far. The worker makes each longer than the one before.
	Pauses  int       `json:"pauses,omitempty"`
	Last    *Evidence `json:"last,omitempty"`    // of the latest try that ended
	Effect  Outcome   `json:"effect,omitempty"`  // of all tries that ended; "" = none has
	Blocked string    `json:"blocked,omitempty"` // why it needs a decision; "" = it does not
	// Asked is how often the service was asked about the latest try; NotToAsk: it is not, because a
	// person wants the next try.
	Asked int `json:"asked,omitempty"`
	// Failed are the newest answers that said that a try failed, the newest last.
	Failed []FailedAnswer `json:"failed,omitempty"`
	// MaxAge is the one of Kept, to let it run again. The ledger writes MaxAge, Since and Bytes
	// once.
	MaxAge time.Duration `json:"maxAgeNs,omitempty"`
	// Kept is its request, for the call of the ledger that parks it; nil in what the ledger
	// returns.
	Kept *StoredRequest `json:"-"`
}

// FailedAnswer is an answer of the upstream that says that a try failed.
type FailedAnswer struct {
	At     time.Time `json:"at"`             // when the answer came
	Status int       `json:"status"`         // its HTTP status
	Text   string    `json:"text,omitempty"` // the beginning of its body; "" = it is not kept, or is no text
}

// maxFailed bounds the failed answers that are kept of an execution.
const maxFailed = 8

// Outcome returns what is known of all tries together.
func (p *Parked) Outcome() Outcome {
	switch {
	case p.Tries == 0:
		return NotExecuted
	case p.Trying || p.Effect == "":
		return Unknown
	}
	return p.Effect
}

// AfterTry returns p after the end of a try; nil: nothing is known of its end. p is not changed.
// The latest try that reached the upstream decides: an answer after a try of unknown outcome
// settles it, and a try of unknown outcome after an answer that said failure may have succeeded.
func (p *Parked) AfterTry(last *Evidence) Parked {
	next := *p
	next.Trying, next.Last, next.Asked = false, last, 0
	if last.answeredFailure() {
		next.Failed = append(slices.Clone(next.Failed), FailedAnswer{last.At.UTC().Round(time.Millisecond), last.Status,
			last.AnswerText})
		next.Failed = next.Failed[max(0, len(next.Failed)-maxFailed):]
	}
	switch {
	case last == nil:
	case next.Effect == "", last.Outcome != NotExecuted:
		next.Effect = last.Outcome
	}
	return next
}

// NotToAsk stands in Parked.Asked.
const NotToAsk = -1

// Asks reports whether the service is to be asked what became of the latest try, before another
// one.
func (p *Parked) Asks(policy *Policy, question *Question) bool {
	return question != nil && policy.Ask != nil && p.Last != nil && p.Last.Outcome == Unknown && p.Asked >= 0 &&
		p.Asked < policy.Ask.Attempts
}

// AfterQuestion returns p after the service has said what became of the latest try. That did not
// take effect: it is as if it had not been. Unknown: it is asked again at now and a pause, or waits
// for a person. p is not changed.
func (p *Parked) AfterQuestion(said *Asked, policy *AskPolicy, now time.Time) Parked {
	next := *p
	next.Asked = said.Times
	next.NextAttempt, next.Pause = time.Time{}, 0
	switch {
	case said.Outcome == NotExecuted:
		last := *p.Last
		last.Outcome = NotExecuted
		next.Last, next.Effect, next.Asked = &last, NotExecuted, 0
		next.Failures = max(0, p.Failures-1)
	case said.Times >= policy.Attempts:
		next.Blocked = "it is unknown whether the upstream executed it, and it did not say: " + said.Detail
	default:
		next.Pause = policy.Pause(said.Times)
		next.NextAttempt = now.Add(next.Pause)
	}
	return next
}

// longestPause bounds a wait whose Pause is not known.
const longestPause = time.Hour

// Resumed returns p as the process that takes the execution over at now goes on with it: what was
// planned holds. The clock of the process before it may be wrong, so no wait is longer than its
// Pause. If the latest try is of unknown outcome, the upstream may still be at work on it. Only the
// process before measured since when, so the whole releaseDelay begins anew. p is not changed.
func (p *Parked) Resumed(now time.Time, releaseDelay time.Duration) Parked {
	next := *p
	if p.NextAttempt.IsZero() {
		return next
	}
	longest := p.Pause
	if longest == 0 {
		longest = max(longestPause, releaseDelay)
	}
	wait := min(max(p.NextAttempt.Sub(now), 0), longest)
	if p.Last != nil && p.Last.Outcome == Unknown {
		wait = max(wait, releaseDelay)
	}
	next.NextAttempt = now.Add(wait)
	return next
}

// FailuresWith returns Failures after one more try that is not counted yet; nil: there is none.
func (p *Parked) FailuresWith(last *Evidence) int {
	if last != nil && (last.Outcome == Unknown || last.answeredFailure()) {
		return p.Failures + 1
	}
	return p.Failures
}

// FailedWith returns Failed after one more try; nil: there is none.
func (p *Parked) FailedWith(last *Evidence) []FailedAnswer {
	if last == nil {
		return p.Failed
	}
	return p.AfterTry(last).Failed
}

// Evidence is what is known of one try of a parked execution.
type Evidence struct {
	Outcome Outcome   `json:"outcome"`          // what is known of its effect
	Status  int       `json:"status,omitempty"` // the upstream's answer; 0 = none came
	Code    string    `json:"code,omitempty"`   // why no answer came: a Failure's; "" = one came
	Detail  string    `json:"detail,omitempty"` // the same as a text
	At      time.Time `json:"at"`               // when the try ended
	// Text is the beginning of a failed answer's body; it is in Parked.Failed, and not here, when
	// it is written.
	AnswerText string `json:"-"`
}

// StoredRequest is the stored request of a parked execution.
type StoredRequest struct {
	// Value goes into the ledger: the request itself, or its location. The ledger does not read it.
	Value []byte
	Bytes int64 // of the request, for the budget
	// MaxAge is for how long the execution may be tried, by the ledger's own clock.
	MaxAge time.Duration
}

// Parking is what a delivery that may be parked brings with it.
type Parking struct {
	// AtOnce: park the delivery before anything is asked, whatever the policy says, because its
	// sender has seen too many failures.
	AtOnce bool
	// Patience is how long the sender still waits for an answer; less than 0 = no longer.
	Patience time.Duration
	Size     int // bytes of the request
	// Store stores the request of this execution, and returns what the ledger keeps of it. After a
	// nil error, what is stored outside of the ledger is durable.
	Store func(ctx context.Context, id ExecutionID) (StoredRequest, error)
}

// ParkedCount is what is parked over all processes, as far as this one knows.
type ParkedCount struct {
	Events      int       // parked executions that have not ended
	InQueue     int       // of Events, those in the queue that was asked about
	Bytes       int64     // of all stored requests, those of dead letters included
	Blocked     int       // workflows that need a decision
	DeadLetters int       // requests of ended executions
	Oldest      time.Time // when the oldest one was parked; zero = none is
}

// CodeTooOld is the code of an execution that reached the route's max_age. The ledger recognizes by
// it an end that is for that.
const CodeTooOld = "max_age"

// Taken is a parked execution that this process runs from now on.
type Taken struct {
	Running RunningLock // the lock, which is now this process's
	// TooOld says that its MaxAge is over.
	TooOld bool
	// Carried says that another process ran it, and its latest try may still be at work.
	Carried bool
	// HoldExpired says that the upstream had answered its latest try and went on with a hold, which
	// was not renewed in time.
	HoldExpired bool
	// Request is what ParkLedger.Request would return, as read with the rest; nil = it was not
	// found.
	Request []byte
}
