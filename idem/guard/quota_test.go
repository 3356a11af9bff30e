package guard

import (
	"testing"
	"time"

	"hooklock/idem"
)

func TestARouteHasSoManyNewEventsInASecond(t *testing.T) {
	p, other, unbounded := &idem.Policy{Route: "a", NewPerSecond: 3}, &idem.Policy{Route: "b", NewPerSecond: 1},
		&idem.Policy{Route: "c"}
	var q quotas
	taken := func(p *idem.Policy, now time.Time) (n int) {
		for n < 1000 {
			if _, ok := q.takeToken(p, now); !ok {
				return n
			}
			n++
		}
		return n
	}
	now := noon
	for _, c := range []struct {
		sentence string
		later    time.Duration
		before   float64
		want     int
	}{
		{"a whole second's at first", 0, 0, 3},
		{"none at the same time", 0, 0, 0},
		{"one after a third", time.Second/3 + time.Millisecond, 0, 1},
		{"no more than a second's after an hour", time.Hour, 0, 3},
		{"one that was given back", 0, 1, 1},
		{"none after a debt", time.Second, -3, 0},
		{"more back than a second's", 0, 100, 3},
		{"the clock goes back", -time.Hour, 0, 0},
	} {
		now = now.Add(c.later)
		q.addTokens(p, c.before, now)
		if got := taken(p, now); got != c.want {
			t.Errorf("%s: %d, want %d", c.sentence, got, c.want)
		}
	}
	if taken(other, now) != 1 || taken(unbounded, now) != 1000 {
		t.Error("another route is bounded by this one")
	}
	if wait, ok := q.takeToken(other, noon); ok || wait <= 0 || wait > time.Second {
		t.Errorf("wait %v", wait)
	}
}
