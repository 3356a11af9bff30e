package worker

import (
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
)

// TestOnlyAnUnknownOutcomeWaitsForTheReleaseDelay: the upstream may still be at work then. What a
// try means is idem.Judge's affair.
func TestOnlyAnUnknownOutcomeWaitsForTheReleaseDelay(t *testing.T) {
	p := &idem.Policy{ReleaseDelay: 15 * time.Second, Park: &idem.ParkPolicy{Attempts: 3}}
	for want, tried := range map[time.Duration]guard.Tried{
		15 * time.Second: {Sent: true},
		20 * time.Second: {Sent: true, RetryAfter: 20 * time.Second},
		7 * time.Second:  {Answer: &idem.Answer{Status: 503}, Sent: true, RetryAfter: 7 * time.Second},
		0:                {},
	} {
		if step := stepAfterTry(p, &idem.ExecutionFacts{Attempt: 1}, 0, false, &tried); step.kind != idem.ToTryAgain ||
			step.pause != want {
			t.Errorf("%+v: %+v, want a pause of %v", tried, step, want)
		}
	}
}

// TestTheLastAttemptIsCounted: the policy's attempts include the one that failed just now.
func TestTheLastAttemptIsCounted(t *testing.T) {
	p := &idem.Policy{Park: &idem.ParkPolicy{Attempts: 3}}
	tried := &guard.Tried{Answer: &idem.Answer{Status: 500}, Sent: true}
	for failures, want := range []idem.Disposition{idem.ToTryAgain, idem.ToTryAgain, idem.ToBlock} {
		if step := stepAfterTry(p, &idem.ExecutionFacts{Attempt: 1}, failures, false, tried); step.kind != want ||
			!step.failed {
			t.Errorf("after %d failures: %+v, want %d", failures, step, want)
		}
	}
}

// TestTheSmallerNumberOfAttemptsEndsAParkedEvent: park.attempts counts the tries of one execution,
// and idempotency.attempts those of the attempts before it, too.
func TestTheSmallerNumberOfAttemptsEndsAParkedEvent(t *testing.T) {
	before := &idem.ExecutionFacts{Attempt: 3,
		Earlier: []idem.Attempt{{Outcome: idem.Unknown}, {Outcome: idem.Executed, Tries: 9, FailedTries: 4}}}
	tried := &guard.Tried{Answer: &idem.Answer{Status: 500}, Sent: true}
	for name, c := range map[string]struct {
		park, all int
		onFailure idem.OnFailure
		want      idem.Disposition // after the third failure
	}{
		"neither is reached":                {4, 9, idem.FailureHold, idem.ToTryAgain},
		"those of this execution":           {3, 9, idem.FailureHold, idem.ToBlock},
		"those of the event":                {4, 8, idem.FailureHold, idem.ToBlock},
		"there is no bound for the event":   {4, 0, idem.FailureHold, idem.ToTryAgain},
		"on_failure says how, of both":      {4, 8, idem.FailureSkip, idem.ToDeadLetter},
		"a person has let it run once more": {4, 2, idem.FailureHold, idem.ToBlock},
	} {
		p := &idem.Policy{Attempts: c.all, Park: &idem.ParkPolicy{Attempts: c.park, OnFailure: c.onFailure}}
		if step := stepAfterTry(p, before, 2, false, tried); step.kind != c.want ||
			c.want != idem.ToTryAgain && step.code != idem.CodeAttemptsExhausted {
			t.Errorf("%s: %+v", name, step)
		}
	}
}

// TestAnEventThatMayNotBeTriedAgainSaysWhatTheServiceAnswered, and how often it failed.
func TestAnEventThatMayNotBeTriedAgainSaysWhatTheServiceAnswered(t *testing.T) {
	p := &idem.Policy{Park: &idem.ParkPolicy{Attempts: 3, OnFailure: idem.FailureSkip}}
	for want, c := range map[string]struct {
		before int
		tried  guard.Tried
	}{
		"3 failed, the last: the upstream answered 500": {2, guard.Tried{Answer: &idem.Answer{Status: 500}}},
		"the upstream answered 401 and asks for credentials, and no sender waits any more to give them": {
			0, guard.Tried{Answer: &idem.Answer{Status: 401}, Challenge: true},
		},
		"3 failed, the last: it hung up": {2, guard.Tried{Sent: true, Failure: idem.Failure{Detail: "it hung up"}}},
		"the upstream answered 404":      {0, guard.Tried{Answer: &idem.Answer{Status: 404}}},
	} {
		if step := stepAfterTry(p, &idem.ExecutionFacts{Attempt: 1}, c.before, false, &c.tried); step.why != want {
			t.Errorf("%q, want %q", step.why, want)
		}
	}
}

// TestAskedPausesAreBounded: an upstream may ask for an hour at most.
func TestAskedPausesAreBounded(t *testing.T) {
	p := &idem.Policy{Park: &idem.ParkPolicy{Attempts: 9}}
	step := stepAfterTry(p, &idem.ExecutionFacts{Attempt: 1}, 0, false,
		&guard.Tried{Answer: &idem.Answer{Status: 503}, RetryAfter: 48 * time.Hour})
	if step.pause != time.Hour {
		t.Errorf("paused for %v, want an hour at most", step.pause)
	}
}

// TestPausesGrowToFiveMinutes, each by chance within the upper half of its length.
func TestPausesGrowToFiveMinutes(t *testing.T) {
	for n, most := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second,
		9: 256 * time.Second, 10: 5 * time.Minute, 1 << 40: 5 * time.Minute} {
		for range 100 {
			if d := pauseAfter(firstPause, mostPause, n); d < most/2 || d > most {
				t.Fatalf("after %d tries: %v, want %v to %v", n, d, most/2, most)
			}
		}
	}
}
