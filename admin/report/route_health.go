package report

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/idem"
)

const (
	minutes = 60 // of an hour's share
	// fewest is from how many deliveries in the hour a share is meaningful: one failure of one
	// delivery is not.
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
	// Fails reports whether the sender counts a delivery with this status as failed, after that
	// time. nil only without Limits.
	Fails func(status int, took time.Duration) bool
}

// Health is the standing of a route with its sender.
type Health struct {
	Route  string
	Last   time.Time // when the newest verified delivery to this process ended; zero: none has since the start
	Limits []Near    // over all processes
	// Standings are what this process has seen, for adding up with those of other processes.
	Standings Standings
	// Spell is the time in which the route fails now; nil: it does not.
	Spell *Spell
}

// Near is how near a sender is to a limit: 0 for not at all, 1 if it has reached it.
type Near struct {
	Limit Limit
	Ratio float64 // by verified deliveries
	// Unverified is the Ratio if unverified deliveries are the sender's, too, as after its secret
	// has changed.
	Unverified float64
}

// Health returns the health of all routes, in their order.
func (t *Tally) Health() []Health {
	now := moment{t.clockTime(), t.now()}
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]Health, 0, len(t.order))
	for _, name := range t.order {
		all = append(all, t.routes[name].healthOf(name, t.senders[name].Limits, t.elsewhere[name], now))
	}
	return all
}

// half is the part of a limit from which an operator should know of it.
const half = 0.5

// NearLimit reports whether the sender of a route is half way to one of its limits, by verified
// deliveries. It does not allocate.
func (t *Tally) NearLimit(name string) bool {
	now := moment{t.clockTime(), t.now()}
	t.mu.RLock()
	r, limits, elsewhere := t.routes[name], t.senders[name].Limits, t.elsewhere[name].Verified
	t.mu.RUnlock()
	if r == nil {
		return false
	}
	r.mu.Lock()
	all := r.failures.standingAt(now)
	r.mu.Unlock()
	all.Add(elsewhere)
	return slices.ContainsFunc(limits, func(l Limit) bool { return all.Near(l) >= half })
}

// SetElsewhere sets what other processes have seen of the senders of routes: what a sender counts
// goes over all of them. It takes the map over.
func (t *Tally) SetElsewhere(all map[string]Standings) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.elsewhere = all
}

// HasLimits reports whether a sender of a route is known to switch its endpoint off.
func (t *Tally) HasLimits() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, s := range t.senders {
		if len(s.Limits) > 0 {
			return true
		}
	}
	return false
}

func (r *route) healthOf(name string, limits []Limit, elsewhere Standings, now moment) Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := Health{Route: name, Last: r.verified, Spell: r.spell.spellAt(now)}
	if len(limits) == 0 {
		return h
	}
	h.Standings = Standings{r.failures.standingAt(now), r.suspected.standingAt(now)}
	all := h.Standings
	all.Add(elsewhere)
	for _, l := range limits {
		h.Limits = append(h.Limits, Near{l, all.Verified.Near(l), all.Suspected.Near(l)})
	}
	return h
}

// Standings are the failures of a route by its verified deliveries, and by those that may be its
// sender's, verified or not.
type Standings struct {
	Verified  Standing `json:"standing,omitzero"`
	Suspected Standing `json:"suspected,omitzero"`
}

// Add adds what another process has seen of the same sender.
func (s *Standings) Add(other Standings) {
	s.Verified.Add(other.Verified)
	s.Suspected.Add(other.Suspected)
}

// Standing is the failures of a route, as its sender counts them, with times of the wall clock.
type Standing struct {
	InRow  int       `json:"inRow,omitempty"`
	First  time.Time `json:"first,omitzero"` // of those in a row
	Last   time.Time `json:"last,omitzero"`  // of those in a row
	Good   time.Time `json:"good,omitzero"`  // the newest delivery that did not fail; zero: none since the start
	All    int       `json:"all,omitempty"`  // of the last hour
	Failed int       `json:"failures,omitempty"`
}

// Add adds what another process has seen of the same sender. Failures before a success at the other
// one no longer count as failures in a row; of those, how many came before is not known.
func (s *Standing) Add(other Standing) {
	good := s.Good
	if other.Good.After(good) {
		good = other.Good
	}
	sum := Standing{Good: good, All: s.All + other.All, Failed: s.Failed + other.Failed}
	for _, one := range []*Standing{s, &other} {
		if one.InRow == 0 || !one.Last.After(good) {
			continue
		}
		sum.InRow += one.InRow
		if sum.First.IsZero() || one.First.Before(sum.First) {
			sum.First = one.First
		}
		if one.Last.After(sum.Last) {
			sum.Last = one.Last
		}
	}
	if sum.First.Before(good) && !sum.First.IsZero() {
		sum.First = good
	}
	*s = sum
}

// Near returns how near the sender is to a limit: 0 for not at all, 1 if it has reached it.
func (s *Standing) Near(l Limit) float64 {
	switch {
	case l.InRow > 0:
		return min(float64(s.InRow)/float64(l.InRow), 1)
	case s.InRow == 0 && l.For > 0:
		return 0
	case l.For > 0:
		return min(float64(s.Last.Sub(s.First))/float64(l.For), 1)
	}
	if s.All < fewest {
		return 0
	}
	return min(float64(s.Failed)/float64(s.All)/l.Share, 1)
}

// failures are the failures of one route, as its sender counts them.
type failures struct {
	inRow             int
	first, last, good time.Time // the first and the last of those in a row, and the newest success
	hour              [minutes]struct {
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
		f.inRow, f.good = 0, now
		return
	}
	m.failed++
	if f.inRow++; f.inRow == 1 {
		f.first = now
	}
	f.last = now
}

// standingAt returns the failures as they are at that time.
func (f *failures) standingAt(now moment) Standing {
	s := Standing{InRow: f.inRow, Good: now.wallTime(f.good)}
	if f.inRow > 0 {
		s.First, s.Last = now.wallTime(f.first), now.wallTime(f.last)
	}
	for i := range f.hour {
		if m := &f.hour[i]; m.at > now.at.Unix()/60-minutes && m.at <= now.at.Unix()/60 {
			s.All, s.Failed = s.All+int(m.all), s.Failed+int(m.failed)
		}
	}
	return s
}

// ParseLimit reads what Limit.String returns. ok: it could be read.
func ParseLimit(text string) (l Limit, ok bool) {
	var err error
	if number, is := strings.CutSuffix(text, "_in_a_row"); is {
		l.InRow, err = strconv.Atoi(number)
		return l, err == nil && l.InRow > 0
	}
	if span, is := strings.CutSuffix(text, "_of_failures"); is {
		l.For, err = time.ParseDuration(span)
		return l, err == nil && l.For > 0
	}
	part, is := strings.CutSuffix(text, "%_of_an_hour")
	l.Share, err = strconv.ParseFloat(part, 64)
	l.Share /= 100
	return l, is && err == nil && l.Share > 0
}

const (
	// spellFrom is how many failures make a spell: one or two are no reason to wake a person.
	spellFrom = 3
	// spellOver is how many successes in a row end a spell.
	spellOver = 3
	// spellKept is for how long after its last failure a spell is shown: later, the sender has
	// probably given up.
	spellKept = 24 * time.Hour
)

// Failure is why a request to the service failed.
type Failure struct {
	Cause string `json:"cause,omitempty"` // such as "the service answered 500"
	Said  string `json:"said,omitempty"`  // the beginning of what it answered; "" = that is not known
}

// Spell is a time in which requests of a route to the service fail, with times of the wall clock.
type Spell struct {
	Since  time.Time `json:"since"` // the first failure
	Last   time.Time `json:"last"`  // the newest failure
	Failed int       `json:"failures"`
	All    int       `json:"all"` // requests since then
	Failure
}

// spell follows the requests of a route. The zero value: none fails.
type spell struct {
	since, last time.Time // by the clock of the tally
	failed, all int
	good        int // the newest in a row
	why         Failure
}

// add notes a request. One that failed for a reason that says nothing of the service is left out.
func (s *spell) add(result Result, why Failure, now time.Time) {
	switch {
	case result == 0, result != Succeeded && why == Failure{}:
		return
	case result != Succeeded:
		if s.failed == 0 {
			s.since = now
		}
		s.failed, s.all, s.good, s.last, s.why = s.failed+1, s.all+1, 0, now, why
		return
	case s.failed == 0:
		return
	}
	s.all, s.good = s.all+1, s.good+1
	if s.good >= spellOver || 2*s.failed < s.all {
		*s = spell{}
	}
}

// spellAt returns the spell as it is at that time; nil: the route does not fail.
func (s *spell) spellAt(at moment) *Spell {
	if s.failed < spellFrom || at.at.Sub(s.last) > spellKept {
		return nil
	}
	return &Spell{Since: at.wallTime(s.since), Last: at.wallTime(s.last), Failed: s.failed, All: s.all, Failure: s.why}
}
