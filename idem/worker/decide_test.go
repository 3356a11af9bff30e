package worker

import (
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
)

// TestWhatFollowsATry: only evidence decides whether a parked execution is tried again.
func TestWhatFollowsATry(t *testing.T) {
	answered := func(status int) guard.Tried { return guard.Tried{Answer: &idem.Answer{Status: status}, Sent: true} }
	policy := func(change func(*idem.Policy)) *idem.Policy {
		p := &idem.Policy{OnUnknown: idem.UnknownRetry, ReleaseDelay: 15 * time.Second, Park: &idem.ParkPolicy{Attempts: 3, OnFailure: idem.FailureHold}}
		p.Keep.Add(200, 299)
		if change != nil {
			change(p)
		}
		return p
	}
	skips := func(p *idem.Policy) { p.Park.OnFailure = idem.FailureSkip }
	for _, c := range []struct {
		what     string
		change   func(*idem.Policy)
		failures int
		tried    guard.Tried
		want     stepKind
		failed   bool
		pause    time.Duration
	}{
		{"a 2xx settles it", nil, 0, answered(204), stepEnd, false, 0},
		{"a redirect, which is not followed, waits for a person at once", nil, 0, answered(302), stepBlock, true, 0},
		{"or is a dead letter at once, as any other refusal", skips, 0, answered(308), stepDead, true, 0},
		{"a redirect that is kept settles it", func(p *idem.Policy) { p.Keep.Add(303, 303) }, 0, answered(303), stepEnd, false, 0},
		{"an answer that is kept settles it", func(p *idem.Policy) { p.Keep.Add(404, 404) }, 0, answered(404), stepEnd, false, 0},
		{"a 5xx that is kept does not", func(p *idem.Policy) { p.Keep.Add(500, 599) }, 0, answered(500), stepRetry, true, 0},
		{"a 5xx is tried again", nil, 0, answered(503), stepRetry, true, 0},
		{"so is a 408", nil, 0, answered(408), stepRetry, true, 0},
		{"so is a 409: something is in the way", nil, 0, answered(409), stepRetry, true, 0},
		{"so is a 425: it came too early", nil, 0, answered(425), stepRetry, true, 0},
		{"a 409 that is kept is none the less", func(p *idem.Policy) { p.Keep.Add(409, 409) }, 0, answered(409), stepRetry, true, 0},
		{"so is a 429", nil, 1, answered(429), stepRetry, true, 0},
		{"the last attempt that may fail waits for a person", nil, 2, answered(500), stepBlock, true, 0},
		{"or is a dead letter", skips, 2, answered(500), stepDead, true, 0},
		{"another 4xx waits for a person at once", nil, 0, answered(404), stepBlock, true, 0},
		{"or is a dead letter at once", skips, 0, answered(404), stepDead, true, 0},
		{"what did not reach the upstream is tried again", nil, 0, guard.Tried{}, stepRetry, false, 0},
		{"however often", nil, 99, guard.Tried{}, stepRetry, false, 0},
		{"an unknown outcome is tried again after release_delay", nil, 0, guard.Tried{Sent: true}, stepRetry, true, 15 * time.Second},
		{"and counts", nil, 2, guard.Tried{Sent: true}, stepBlock, true, 0},
		{"or waits for a person at once", func(p *idem.Policy) { p.OnUnknown = idem.UnknownBlock }, 0, guard.Tried{Sent: true}, stepBlock, true, 0},
		{"an answer that says nothing is an unknown outcome", func(p *idem.Policy) { p.Unknown.Add(504, 504) }, 0, answered(504), stepRetry, true, 15 * time.Second},
		{"what no try can bring further is a dead letter", nil, 0, guard.Tried{Hopeless: true}, stepDead, true, 0},
		{"a hold is the upstream's own affair", nil, 0, guard.Tried{Sent: true, Hold: time.Minute}, stepEnd, false, 0},
	} {
		step, failed := after(policy(c.change), c.failures, &c.tried)
		if step.kind != c.want || failed != c.failed || step.pause != c.pause {
			t.Errorf("%s: got step %d after %v, failed %v; want %d after %v, %v", c.what, step.kind, step.pause, failed, c.want, c.pause, c.failed)
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
		"3 failed, the last: it hung up":                {2, guard.Tried{Sent: true, Failure: idem.Failure{Detail: "it hung up"}}},
		"the upstream answered 404":                     {0, guard.Tried{Answer: &idem.Answer{Status: 404}}},
	} {
		if step, _ := after(p, c.before, &c.tried); step.why != want {
			t.Errorf("%q, want %q", step.why, want)
		}
	}
}

// TestAskedPausesAreBounded: an upstream may ask for an hour at most.
func TestAskedPausesAreBounded(t *testing.T) {
	p := &idem.Policy{Park: &idem.ParkPolicy{Attempts: 9}}
	step, _ := after(p, 0, &guard.Tried{Answer: &idem.Answer{Status: 503}, RetryAfter: 48 * time.Hour})
	if step.pause != time.Hour {
		t.Errorf("paused for %v, want an hour at most", step.pause)
	}
}

// TestPausesGrowToFiveMinutes, each by chance within the upper half of its length.
func TestPausesGrowToFiveMinutes(t *testing.T) {
	for n, most := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1 << 40: 5 * time.Minute} {
		for range 100 {
			if d := pauseAfter(n); d < most/2 || d > most {
				t.Fatalf("after %d tries: %v, want %v to %v", n, d, most/2, most)
			}
		}
	}
}

func TestWhatAParkedExecutionMayDo(t *testing.T) {
	can := situation{routed: true}
	with := func(change func(*situation)) situation {
		k := can
		change(&k)
		return k
	}
	for name, c := range map[string]struct {
		known   situation
		blocked string
		slot    bool
		do      action
		rest    time.Duration
	}{
		"it is due":                       {known: can, do: actTry},
		"it is due and has a slot":        {known: can, slot: true, do: actTry},
		"the process ends":                {known: with(func(k *situation) { k.ending, k.old = true, true }), do: actPutDown},
		"the route is gone":               {known: with(func(k *situation) { k.routed, k.old = false, true }), do: actPutDown},
		"it is too old":                   {known: with(func(k *situation) { k.old, k.due = true, time.Hour }), do: actExpire},
		"it is too old and blocked":       {known: with(func(k *situation) { k.old = true }), blocked: "why", do: actExpire},
		"it is too old and paused":        {known: with(func(k *situation) { k.old, k.paused = true, true }), do: actRest, rest: ageLook},
		"it is due and paused":            {known: with(func(k *situation) { k.paused = true }), do: actRest, rest: ageLook},
		"it is due and blocked":           {known: can, blocked: "why", do: actRest, rest: ageLook},
		"a limit is full":                 {known: with(func(k *situation) { k.full = true }), do: actRest, rest: ageLook},
		"it is due in a second":           {known: with(func(k *situation) { k.due = time.Second }), do: actRest, rest: time.Second},
		"it is due in an hour":            {known: with(func(k *situation) { k.due = time.Hour }), do: actRest, rest: ageLook},
		"it is not due and has a slot":    {known: with(func(k *situation) { k.due = time.Second }), slot: true, do: actGiveBack},
		"it is paused and has a slot":     {known: with(func(k *situation) { k.paused = true }), slot: true, do: actGiveBack},
		"it is blocked and has a slot":    {known: can, blocked: "why", slot: true, do: actGiveBack},
		"a limit is full, and it has one": {known: with(func(k *situation) { k.full = true }), slot: true, do: actGiveBack},
	} {
		l := &idem.Lock{Parked: &idem.Parked{Blocked: c.blocked}}
		if c.slot {
			l.Slots = []idem.Slot{{Limit: "l"}}
		}
		if do, rest := whileParked(l, c.known); do != c.do || rest != c.rest {
			t.Errorf("%s: %d for %v, want %d for %v", name, do, rest, c.do, c.rest)
		}
	}
}
