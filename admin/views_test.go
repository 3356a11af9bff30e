package admin

import (
	"testing"
	"time"

	"hooklock/idem"
)

func TestALockEndsAtTheNearestOfItsEnds(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	of := func(change func(*idem.Lock)) *idem.Lock {
		l := &idem.Lock{Entry: idem.Entry{Route: "stripe", StartedAt: start}, MaxDuration: time.Hour}
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
	}{
		"the upstream's time":              {of(func(*idem.Lock) {}), time.Second, 30 * time.Second},
		"it answers for longer":            {of(func(*idem.Lock) {}), time.Minute, time.Hour},
		"a short max_duration":             {of(func(l *idem.Lock) { l.MaxDuration = 10 * time.Second }), time.Second, 10 * time.Second},
		"a hold":                           {held(30 * time.Minute), time.Minute, 30 * time.Minute},
		"a hold that outlives its limit":   {held(90 * time.Minute), time.Minute, time.Hour},
		"a hold whose end is not known":    {of(func(l *idem.Lock) { l.Held = true }), time.Minute, time.Hour},
		"no end but the upstream's":        {of(func(l *idem.Lock) { l.MaxDuration = 0 }), time.Second, 30 * time.Second},
		"parked: it is tried again":        {of(func(l *idem.Lock) { l.Parked = &idem.Parked{} }), time.Second, time.Hour},
		"closed after an unknown outcome":  {of(func(l *idem.Lock) { l.Cooling, l.CoolUntil = true, start.Add(2*time.Hour) }), time.Second, 2 * time.Hour},
		"of the lock API, for its own ttl": {of(func(l *idem.Lock) { l.Route, l.MaxDuration, l.Held, l.HoldUntil = "", 0, true, start.Add(time.Minute) }), time.Second, time.Minute},
	} {
		if end := expiry(c.lock, 30*time.Second, start.Add(c.now)); !end.Equal(start.Add(c.want)) {
			t.Errorf("%s: ends after %v, want %v", name, end.Sub(start), c.want)
		}
	}
	if end := expiry(of(func(l *idem.Lock) { l.MaxDuration = 0 }), 30*time.Second, start.Add(time.Minute)); !end.IsZero() {
		t.Errorf("no end is known, got %v", end)
	}
}
