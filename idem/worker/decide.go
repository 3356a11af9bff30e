package worker

import (
	"fmt"
	"math/rand/v2"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
)

// Pauses between two tries.
const (
	firstPause = time.Second
	mostPause  = 5 * time.Minute
	mostAsked  = time.Hour // of a delay that the upstream asks for
)

// ageLook is how often a worker checks whether a resting execution is too old.
const ageLook = 30 * time.Second

// nextStep is what follows a try.
type nextStep struct {
	kind   idem.Disposition
	failed bool          // the try counts against the policy's attempts
	pause  time.Duration // of ToTryAgain; 0 = the worker's own
	why    string        // of ToBlock and ToDeadLetter
	code   string
}

// after decides what follows a try of a parked execution that had failed so often before. It reads no clock.
func after(p *idem.Policy, e *idem.Entry, failures int, t *guard.Tried) nextStep {
	try := t.Try()
	try.Last = p.IsLastTry(e, failures)
	j := idem.Judge(p, try)
	step := nextStep{kind: j.Accepted, failed: j.Counts, code: j.Code}
	switch {
	case step.kind == idem.ToTryAgain:
		step.pause = min(t.RetryAfter, mostAsked)
		if j.Outcome == idem.Unknown { // the upstream may still be at work
			step.pause = max(p.ReleaseDelay, step.pause)
		}
	case t.Hopeless:
		step.code, step.why = t.Failure.Code, t.Failure.Detail
	case j.Code == idem.CodeAttemptsExhausted:
		step.why = fmt.Sprintf("%d failed, the last: %s", e.SpentBefore()+failures+1, textOf(t))
	case j.Code == idem.CodeUpstreamStatus:
		step.why = textOf(t)
	case j.Code != "":
		step.why = "it is unknown whether the upstream executed it: " + t.Failure.Detail
	}
	return step
}

// textOf says for operators how the try failed.
func textOf(t *guard.Tried) string {
	switch {
	case t.Challenge:
		return fmt.Sprintf("the upstream answered %d and asks for credentials, and no sender waits any more to give them", t.Answer.Status)
	case t.Answer != nil:
		return fmt.Sprintf("the upstream answered %d", t.Answer.Status)
	}
	return t.Failure.Detail
}

// pauseAfter returns how long a worker waits after n failed tries in a row: doubled each time, with jitter, so that many do not come back
// together.
func pauseAfter(n int) time.Duration {
	d := mostPause
	if n < 10 {
		d = min(mostPause, firstPause<<max(n-1, 0))
	}
	return d/2 + rand.N(d/2+1)
}
