package worker

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
)

// Pauses between two tries, where the policy does not say.
const (
	firstPause = time.Second
	mostPause  = 5 * time.Minute
	mostAsked  = time.Hour // of a delay that the upstream asks for
)

// pausesOf returns the first pause between two tries, and the longest; p may be nil.
func pausesOf(p *idem.Policy) (first, most time.Duration) {
	if p == nil || p.Park == nil {
		return firstPause, mostPause
	}
	return cmp.Or(p.Park.RetryFirst, firstPause), cmp.Or(p.Park.RetryMost, mostPause)
}

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

// stepAfterTry decides what follows a try of a parked execution that had failed so often before. It
// reads no clock. answerable: the service can be asked what became of it.
func stepAfterTry(p *idem.Policy, e *idem.ExecutionFacts, failures int, answerable bool, t *guard.Tried) nextStep {
	try := t.Try()
	try.Last, try.Answerable = p.IsLastTry(e, failures), p.Ask != nil && answerable
	j := idem.Judge(p, try)
	step := nextStep{kind: j.Accepted, failed: j.Counts, code: j.Code}
	switch {
	case step.kind == idem.ToTryAgain:
		step.pause = min(t.RetryAfter, mostAsked)
		if j.Outcome == idem.Unknown { // the upstream may still be at work
			step.pause = max(p.ReleaseDelay, step.pause)
			if try.Answerable {
				step.pause = max(p.Ask.Pause(0), step.pause)
			}
		}
	case t.Hopeless:
		step.code, step.why = t.Failure.Code, t.Failure.Detail
	case j.Code == idem.CodeAttemptsExhausted:
		step.why = fmt.Sprintf("%d failed, the last: %s", e.FailedAttemptsBefore()+failures+1, textOf(t))
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
		return fmt.Sprintf("the upstream answered %d and asks for credentials, and no sender waits any more to give "+
			"them", t.Answer.Status)
	case t.Answer != nil:
		return fmt.Sprintf("the upstream answered %d", t.Answer.Status)
	}
	return t.Failure.Detail
}

// asksToBeLeft reports whether the service asks to be left alone for a while, by all events.
func asksToBeLeft(t *guard.Tried) bool {
	return t.RetryAfter > 0 && t.Answer != nil && (t.Answer.Status == 429 || t.Answer.Status == 503)
}

// pauseAfter returns how long a worker waits after n failed tries in a row: first, doubled each
// time up to most, with jitter, so that many do not come back together.
func pauseAfter(first, most time.Duration, n int) time.Duration {
	d := first
	for range n - 1 {
		if d *= 2; d >= most {
			break
		}
	}
	d = min(d, most)
	return d/2 + rand.N(d/2+1)
}
