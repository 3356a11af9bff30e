package report

import (
	"strconv"
	"time"

	"hooklock/idem"
)

const (
	minutes = 60 // of an hour's share
	// fewest is from how many deliveries in the hour a share is meaningful: one failure of one delivery is not.
	fewest = 20
)

// Limit says when the sender of a route switches its endpoint off. One of its fields is set.
type Limit struct {
	InRow int           // failures in a row
	For   time.Duration // nothing but failures for this long
	Share float64       // of the deliveries of an hour that fail; up to 1
}

// String returns the limit for operators: 4_in_a_row, 24h_of_failures, 95%_of_an_hour.
func (l Limit) String() string {
	switch {
	case l.InRow > 0:
		return strconv.Itoa(l.InRow) + "_in_a_row"
	case l.For > 0:
		return idem.DurationText(l.For) + "_of_failures"
	}
	return strconv.FormatFloat(l.Share*100, 'f', -1, 64) + "%_of_an_hour"
}

// Sender is how the sender of a route counts failures. The zero value counts nothing.
type Sender struct {
	Limits []Limit
	// Fails reports whether the sender counts a delivery with this status as failed, after that time. nil only without Limits.
	Fails func(status int, took time.Duration) bool
}

// Health is the standing of a route with its sender, as this process has seen it.
type Health struct {
	Route  string
	Last   time.Time // when the newest verified delivery ended; zero: none has since the start
	Limits []Near
}

// Near is how near a sender is to a limit: 0 for not at all, 1 if it has reached it.
type Near struct {
	Limit Limit
	Ratio float64 // by verified deliveries
	// Unverified is the Ratio if unverified deliveries are the sender's, too, as after its secret has changed.
	Unverified float64
}

// Health returns the health of all routes, in their order.
func (t *Tally) Health() []Health {
	now := t.clock()
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]Health, 0, len(t.order))
	for _, name := range t.order {
		all = append(all, t.routes[name].healthOf(name, t.senders[name].Limits, now))
	}
	return all
}

// half is the part of a limit from which an operator should know of it.
const half = 0.5

// NearLimit reports whether the sender of a route is half way to one of its limits, by verified deliveries. It does not allocate.
func (t *Tally) NearLimit(name string) bool {
	now := t.clock()
	t.mu.RLock()
	r, limits := t.routes[name], t.senders[name].Limits
	t.mu.RUnlock()
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range limits {
		if r.failures.near(l, now) >= half {
			return true
		}
	}
	return false
}

func (r *route) healthOf(name string, limits []Limit, now time.Time) Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := Health{Route: name, Last: r.verified}
	for _, l := range limits {
		h.Limits = append(h.Limits, Near{l, r.failures.near(l, now), r.suspected.near(l, now)})
	}
	return h
}

// failures are the failures of one route, as its sender counts them.
type failures struct {
	inRow       int
	first, last time.Time // of those in a row
	hour        [minutes]struct {
		at          int64 // the minute
		all, failed uint32
	}
}

func (f *failures) add(failed bool, now time.Time) {
	at := now.Unix() / 60
	m := &f.hour[at%minutes]
	if m.at != at {
		m.at, m.all, m.failed = at, 0, 0
	}
	m.all++
	if !failed {
		f.inRow = 0
		return
	}
	m.failed++
	if f.inRow++; f.inRow == 1 {
		f.first = now
	}
	f.last = now
}

// near returns how near they are to a limit.
func (f *failures) near(l Limit, now time.Time) float64 {
	switch {
	case l.InRow > 0:
		return min(float64(f.inRow)/float64(l.InRow), 1)
	case f.inRow == 0 && l.For > 0:
		return 0
	case l.For > 0:
		return min(float64(f.last.Sub(f.first))/float64(l.For), 1)
	}
	all, failed := uint32(0), uint32(0)
	for i := range f.hour {
		if m := &f.hour[i]; m.at > now.Unix()/60-minutes && m.at <= now.Unix()/60 {
			all, failed = all+m.all, failed+m.failed
		}
	}
	if all < fewest {
		return 0
	}
	return min(float64(failed)/float64(all)/l.Share, 1)
}
