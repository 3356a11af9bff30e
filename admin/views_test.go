package admin

import (
	"testing"
	"time"

	"hooklock/idem"
)

func TestALockEndsAtTheNearestOfItsEnds(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	of := func(change func(*idem.Lock)) *idem.Lock {
		l := &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Route: "stripe", StartedAt: start}, MaxDuration: time.Hour}
		change(l)
		return l
	}
	held := func(ttl time.Duration) *idem.Lock {
		return of(func(l *idem.Lock) { l.Held, l.HoldUntil = true, start.Add(ttl) })
	}
	for name, c := range map[string]struct {
		lock *idem.Lock
		now  time.Duration // since its start
		want time.Duration
		by   string
	}{
		"the upstream's time": {of(func(*idem.Lock) {}), time.Second, 30 * time.Second,
			"upstream.timeout"},
		"it answers for longer": {of(func(*idem.Lock) {}), time.Minute, time.Hour, "max_duration"},
		"a short max_duration": {of(func(l *idem.Lock) {
			l.MaxDuration = 10 * time.Second
		}), time.Second, 10 * time.Second, "max_duration"},
		"a hold":                         {held(30 * time.Minute), time.Minute, 30 * time.Minute, "hold"},
		"a hold that outlives its limit": {held(90 * time.Minute), time.Minute, time.Hour, "max_duration"},
		"a hold whose end is not known": {of(func(l *idem.Lock) {
			l.Held = true
		}), time.Minute, time.Hour, "max_duration"},
		"no end but the upstream's": {of(func(l *idem.Lock) {
			l.MaxDuration = 0
		}), time.Second, 30 * time.Second, "upstream.timeout"},
		"parked, and held by its last try": {of(func(l *idem.Lock) {
			l.Parked, l.Held, l.HoldUntil = &idem.Parked{}, true, start.Add(3*time.Hour)
		}), 2 * time.Hour, 3 * time.Hour, "hold"},
		"closed after an unknown outcome": {of(func(l *idem.Lock) {
			l.Cooling, l.CoolUntil = true, start.Add(2*time.Hour)
		}), time.Second, 2 * time.Hour, "release_delay"},
		"of the lock API, for its own ttl": {of(func(l *idem.Lock) {
			l.Route, l.MaxDuration, l.Held, l.HoldUntil = "", 0, true, start.Add(time.Minute)
		}), time.Second, time.Minute, "hold"},
	} {
		if end, by := nearestEnd(c.lock, 30*time.Second, start.Add(c.now)); !end.Equal(start.Add(c.want)) ||
			by != c.by {
			t.Errorf("%s: ends after %v by %s, want %v by %s", name, end.Sub(start), by, c.want, c.by)
		}
	}
	if end, _ := nearestEnd(of(func(l *idem.Lock) {
		l.MaxDuration = 0
	}), 30*time.Second, start.Add(time.Minute)); !end.IsZero() {
		t.Errorf("no end is known, got %v", end)
	}
	if end, by := nearestEnd(of(func(l *idem.Lock) {
		l.Parked = &idem.Parked{}
	}), 30*time.Second, start.Add(time.Second)); !end.IsZero() {
		t.Errorf("parked: max_duration is of each try, got %v by %s", end, by)
	}
}
