package idem

import (
	"testing"
	"time"
)

func TestWhatIsKnownOfAllTriesTogether(t *testing.T) {
	e := func(o Outcome) *Evidence { return &Evidence{Outcome: o} }
	for name, c := range map[string]struct {
		tries []*Evidence
		want  Outcome
	}{
		"none began":                          {nil, NotExecuted},
		"none reached the upstream":           {[]*Evidence{e(NotExecuted), e(NotExecuted)}, NotExecuted},
		"one was answered":                    {[]*Evidence{e(Executed)}, Executed},
		"of one nobody knows":                 {[]*Evidence{e(Unknown), e(NotExecuted)}, Unknown},
		"one was answered after an unknown":   {[]*Evidence{e(Unknown), e(Executed)}, Executed},
		"of one after an answer nobody knows": {[]*Evidence{e(Executed), e(Unknown), e(NotExecuted)}, Unknown},
	} {
		p := Parked{}
		for _, last := range c.tries {
			p.Tries++
			p.Trying = true
			if p.Outcome() != Unknown {
				t.Errorf("%s: while it is tried: %s", name, p.Outcome())
			}
			p = p.AfterTry(last)
		}
		if got := p.Outcome(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestAProcessThatTakesAnExecutionOverKeepsItsPlan, as far as the clocks of two machines can be
// trusted.
func TestAProcessThatTakesAnExecutionOverKeepsItsPlan(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const pause, delay = 300 * time.Second, 15 * time.Second
	answered, unknown := &Evidence{Outcome: Executed, Status: 503}, &Evidence{Outcome: Unknown}
	unreached := &Evidence{Outcome: NotExecuted}
	for name, c := range map[string]struct {
		left, pause time.Duration // until NextAttempt, and the length of the pause
		last        *Evidence
		want        time.Duration
	}{
		"the rest of the pause is waited for": {200 * time.Second, pause, answered,
			200 * time.Second},
		"it is over":                                   {-time.Hour, pause, answered, 0},
		"a clock a year ahead planned it":              {365 * 24 * time.Hour, pause, answered, pause},
		"an earlier release did not write the length":  {200 * time.Second, 0, answered, 200 * time.Second},
		"an earlier release wrote it by a clock ahead": {24 * time.Hour, 0, answered, time.Hour},
		"the upstream may be at work":                  {time.Second, delay, unknown, delay},
		"the upstream is perhaps at work, and asked for more": {200 * time.Second, pause, unknown,
			200 * time.Second},
		"the upstream is perhaps at work, and the pause is over": {-time.Hour, delay, unknown, delay},
		"nothing reached the upstream": {3 * time.Second, 5 * time.Second, unreached,
			3 * time.Second},
	} {
		p := Parked{Tries: 2, NextAttempt: now.Add(c.left), Pause: c.pause, Pauses: 1, Last: c.last}
		got := p.Resumed(now, delay)
		wait := got.NextAttempt.Sub(now)
		if wait != c.want || got.Pause != c.pause || got.Pauses != 1 || got.Tries != 2 {
			t.Errorf("%s: it waits %v, want %v: %+v", name, wait, c.want, got)
		}
	}
	for name, p := range map[string]Parked{
		"an operator wants it now":  {Tries: 1, Last: unknown},
		"it waits for a person":     {Tries: 1, Last: answered, Blocked: "attempts_exhausted"},
		"its try has not ended yet": {Tries: 1, Trying: true},
	} {
		if got := p.Resumed(now, delay); !got.NextAttempt.IsZero() {
			t.Errorf("%s: the next try is at %v", name, got.NextAttempt)
		}
	}
}
