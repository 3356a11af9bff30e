package idem

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Tried is how one try of a parked execution ended.
type Tried struct {
	// Answer is the upstream's whole answer; nil: none came. Its memory goes over to the carrier.
	Answer *Answer
	// Hold is for how long the upstream asks to go on after its answer; 0 = it is done.
	Hold time.Duration
	// Sent: the upstream may have a byte of the request.
	Sent    bool
	Failure Failure // why no answer came
	// Stale: it was not tried, because its event is older than what went through and the policy skips such ones; nil otherwise.
	Stale *Stale
	// Hopeless: no other try can bring more, whatever the policy says; Failure says why.
	Hopeless bool
	// RetryAfter is when the upstream wants to be asked again; 0 = it does not say.
	RetryAfter time.Duration
	// Stopped is why the try was told to stop: one of the causes of an execution's Context; nil: it was not.
	Stopped error
}

// Pauses between two tries.
const (
	firstPause = time.Second
	mostPause  = 5 * time.Minute
	mostAsked  = time.Hour // of what an upstream asks for
)

// nextStep is what follows a try.
type nextStep struct {
	kind  stepKind
	pause time.Duration // of stepRetry; 0 = the carrier's own
	why   string        // of stepBlock and stepDead
	code  string
}

type stepKind uint8

const (
	stepEnd   stepKind = iota + 1 // the answer settles it
	stepRetry                     // it is tried again
	stepBlock                     // its line waits for a person
	stepDead                      // it is a dead letter
)

// evidence is what the ledger keeps of t.
func (t *Tried) evidence(p *Policy, now time.Time) *Evidence {
	e := &Evidence{Outcome: t.outcome(p), At: now, Code: t.Failure.Code, Detail: t.Failure.Detail}
	if t.Answer != nil {
		e.Status = t.Answer.Status
	}
	return e
}

func (t *Tried) outcome(p *Policy) Outcome {
	switch {
	case t.Answer != nil && p.Unknown.Has(t.Answer.Status):
		return Unknown
	case t.Answer != nil:
		return Executed
	case t.Sent:
		return Unknown
	}
	return NotExecuted
}

// after says what follows a try of a parked execution that had failed so often before. It reads no clock.
func (p *Policy) after(failures int, t *Tried) (step nextStep, failed bool) {
	park := p.Park
	switch {
	case t.Hold > 0:
		return nextStep{kind: stepEnd}, false
	case t.Hopeless:
		return nextStep{kind: stepDead, code: t.Failure.Code, why: t.Failure.Detail}, true
	}
	switch outcome := t.outcome(p); {
	case outcome == NotExecuted: // that is not its fault, and does not count
		return nextStep{kind: stepRetry}, false
	case outcome == Unknown && p.OnUnknown == UnknownBlock:
		return nextStep{kind: stepBlock, code: DecisionUnknown.Row().Code, why: "nobody knows whether the upstream executed it: " + t.Failure.Detail}, true
	case outcome == Unknown:
		step = nextStep{kind: stepRetry, pause: p.ReleaseDelay}
	case t.Answer.Status < 400 || p.Keep.Has(t.Answer.Status) && !Retried(t.Answer.Status):
		return nextStep{kind: stepEnd}, false
	case Retried(t.Answer.Status):
		step = nextStep{kind: stepRetry, pause: min(t.RetryAfter, mostAsked)}
	default:
		return park.giveUp("upstream_status", t.Failure.Detail), true
	}
	if failures+1 >= park.Attempts {
		return park.giveUp("attempts_exhausted", t.Failure.Detail), true
	}
	return step, true
}

// giveUp is what follows a try after which there is no other.
func (p *ParkPolicy) giveUp(code, why string) nextStep {
	if p.OnFailure == FailureSkip {
		return nextStep{kind: stepDead, code: code, why: why}
	}
	return nextStep{kind: stepBlock, code: code, why: why}
}

// retryAfter is when an upstream wants to be asked again; 0 = it does not say in seconds. A date is not read: whose clock would it be by?
func retryAfter(a *Answer) time.Duration {
	for _, f := range a.Header {
		if !strings.EqualFold(f.Name, "Retry-After") {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(f.Value), 10, 31); err == nil {
			return time.Duration(n) * time.Second
		}
	}
	return 0
}

// Retried reports whether an answer says that the event may go through later.
func Retried(status int) bool { return status >= 500 || status == 408 || status == 429 }

// pauseAfter is how long a carrier waits after n tries in a row that brought nothing: doubled each time, with jitter, so that many do not come
// back together.
func pauseAfter(n int) time.Duration {
	d := mostPause
	if n < 10 {
		d = min(mostPause, firstPause<<max(n-1, 0))
	}
	return d/2 + rand.N(d/2+1)
}
