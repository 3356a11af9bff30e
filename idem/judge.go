package idem

import "fmt"

// Try is how one call of the upstream ended. The zero value is a call of which the upstream has no
// byte.
type Try struct {
	Status int  // of the upstream's answer; 0 = none came
	Sent   bool // the upstream may have a byte of the request; an answer proves it
	Held   bool // the upstream answered, and asks to go on after its answer
	// Challenge says that the answer asks the sender for credentials that its request did not
	// bring. That is no outcome of the event: the sender answers it with the next request.
	Challenge bool
	// Hopeless says that no further try can succeed, whatever the policy says.
	Hopeless bool
	// Answerable says that the service can be asked what became of the event.
	Answerable bool
	// Last says that the policy allows no failed try after this one. Only an accepted event has
	// several.
	Last bool
}

// Judgement is what a try means for its event.
type Judgement struct {
	// Outcome is what is known of the effect of the try.
	Outcome Outcome
	// Status and Remembered are those of the record, if the execution ends with the try.
	Status     Status
	Remembered bool
	// IfSenderWaits is what follows if the sender waits for the answer: it is the sender that
	// repeats the event, so there is one try.
	IfSenderWaits Disposition
	// ParkOn is why the event may be accepted instead; "" = there is no reason to. The policy says
	// which reasons count.
	ParkOn ParkOn
	// Accepted is what follows if the event was accepted: its sender does not repeat it, Hooklock
	// does.
	Accepted Disposition
	// Counts says that the try counts against the attempts of an accepted event.
	Counts bool
	// Code says why an accepted event has no further try: CodeUpstreamStatus, CodeAttemptsExhausted
	// or that of DecisionUnknown. It is empty if it has one, and if the try is hopeless, which says
	// why itself.
	Code string
}

// Why an event failed, or an accepted one has no further try.
const (
	CodeUpstreamStatus    = "upstream_status"    // the upstream's answer says so
	CodeAttemptsExhausted = "attempts_exhausted" // the policy allows no more
)

// Disposition is what follows a try.
type Disposition uint8

// The dispositions. If its sender waits, only the first three follow.
const (
	ToSettle     Disposition = iota + 1 // the record says how it ended
	ToRelease                           // nothing is recorded, and the event is as if it had not come
	ToHold                              // the lock outlives the answer, until the upstream says how it ended
	ToTryAgain                          // it is tried again
	ToBlock                             // its queue waits for a person
	ToDeadLetter                        // it ends, and its request is kept for a person
)

// Judge says what a try means. It alone asks the policy about an answer, or about the lack of one.
// It reads no clock.
//
// What repeats an event makes the difference. A sender that waits gets the answer and decides from
// it, so each answer ends the execution, and the policy says whether it settles the event, too. The
// sender of an accepted event has its 2xx and does not come again: Hooklock repeats it. So an
// answer that asks to come later is obeyed here, even if the policy keeps such answers; an answer
// that refuses the event ends it only if the policy keeps that answer, and else waits for a person,
// because no sender sees it.
func Judge(p *Policy, t Try) Judgement {
	switch {
	case t.Held: // the answer is there; a callback says how the work ends
		return Judgement{Outcome: Executed, IfSenderWaits: ToHold, Accepted: ToHold}
	case t.Status == 0 && !t.Sent:
		return judgeUnsent(t)
	case t.Challenge:
		return p.judgeChallenge()
	case t.Status == 0 || p.Unknown.Has(t.Status):
		return p.judgeUnknown(t)
	}
	return p.judgeAnswer(t)
}

// judgeUnsent judges a try of which the upstream has no byte. The event is not at fault, so no
// number of such tries ends it.
func judgeUnsent(t Try) Judgement {
	j := Judgement{Outcome: NotExecuted, IfSenderWaits: ToRelease, ParkOn: ParkUnreachable, Accepted: ToTryAgain}
	if t.Hopeless {
		j.Accepted, j.Counts = ToDeadLetter, true
	}
	return j
}

// judgeChallenge judges a try whose answer asks the sender for credentials, whatever the policy
// says of such a status. No sender waits for the challenge of an accepted event.
func (p *Policy) judgeChallenge() Judgement {
	j := Judgement{Outcome: Executed, IfSenderWaits: ToRelease, Counts: true}
	p.giveUp(&j, CodeUpstreamStatus)
	return j
}

// judgeUnknown judges a try that may have taken effect.
func (p *Policy) judgeUnknown(t Try) Judgement {
	j := Judgement{Outcome: Unknown, Status: Failed, IfSenderWaits: ToSettle, ParkOn: ParkUnknown, Counts: true}
	switch {
	case p.OnUnknown == UnknownAsk && t.Answerable: // what it says decides, whatever number of tries is left
		j.Accepted = ToTryAgain
		return j
	case p.OnUnknown == UnknownBlock || p.OnUnknown == UnknownAsk:
		j.Accepted, j.Code = ToBlock, DecisionUnknown.Row().Code
		return j
	}
	p.retryIfAllowed(&j, t)
	return j
}

// judgeAnswer judges a try whose answer says whether it took effect.
func (p *Policy) judgeAnswer(t Try) Judgement {
	keeps := p.Keep.Has(t.Status)
	j := Judgement{Outcome: Executed, Status: Failed, Remembered: keeps && p.Idempotency, IfSenderWaits: ToSettle,
		Accepted: ToSettle}
	switch {
	case Is2xx(t.Status):
		j.Status = Success
	case p.asksToComeLater(t.Status):
		j.Counts = true
		p.retryIfAllowed(&j, t)
		if !keeps {
			j.ParkOn = ParkFailed
		}
	case !keeps: // each further try would be refused, too
		j.Counts = true
		p.giveUp(&j, CodeUpstreamStatus)
	}
	return j
}

// retryIfAllowed has an accepted event tried again after a failed try, if the policy allows that.
func (p *Policy) retryIfAllowed(j *Judgement, t Try) {
	if t.Last {
		p.giveUp(j, CodeAttemptsExhausted)
		return
	}
	j.Accepted = ToTryAgain
}

// giveUp lets an accepted event have no further try.
func (p *Policy) giveUp(j *Judgement, code string) {
	j.Accepted, j.Code = ToBlock, code
	if p.Park != nil && p.Park.OnFailure == FailureSkip {
		j.Accepted = ToDeadLetter
	}
}

// BlocksUnknown reports whether a record is of an unknown outcome that a person, or an answer of
// the service, has to decide before the event runs again.
func (p *Policy) BlocksUnknown(rec *Record) bool {
	return !rec.Final && !rec.Settled() && rec.Outcome == Unknown &&
		(p.OnUnknown == UnknownBlock || p.OnUnknown == UnknownAsk)
}

// AnswerFailure says why an answer of that status fails an execution; nil: the answer says success.
func (j *Judgement) AnswerFailure(status int) *Failure {
	switch {
	case j.Outcome == Unknown:
		return &Failure{Code: CodeUpstreamStatus,
			Detail: fmt.Sprintf("the upstream answered %d, which says nothing about the effect", status)}
	case j.Status == Success:
		return nil
	}
	return &Failure{Code: CodeUpstreamStatus, Detail: fmt.Sprintf("the upstream answered %d", status)}
}

// Is2xx reports whether an answer says that the event went through, as a label. What it means for
// the event, Judge says. A redirect is none: Hooklock follows none.
func Is2xx(status int) bool { return status >= 200 && status < 300 }

// answeredFailure reports whether a try brought an answer that does not say success; e may be nil.
func (e *Evidence) answeredFailure() bool { return e != nil && e.Status != 0 && !Is2xx(e.Status) }

// asksToComeLater reports whether an answer says that the event may go through later: the policy's
// choice, else asksToComeLater.
func (p *Policy) asksToComeLater(status int) bool {
	if p.Park != nil && p.Park.RetryOn != (StatusSet{}) {
		return p.Park.RetryOn.Has(status)
	}
	return asksToComeLater(status)
}

// asksToComeLater reports whether an answer says that the event may go through later: a server's
// failure, or one of the 4xx that speak of time (RFC 9110, 4918 and 8470: 408 took too long, 409
// meets something in the way, 423 something that is locked, 425 is too early, 429 are too many).
func asksToComeLater(status int) bool {
	switch status {
	case 408, 409, 423, 425, 429:
		return true
	}
	return status >= 500
}
