package report

import (
	"sync"
	"sync/atomic"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

const (
	// Recent is how far the rates of routes look back.
	Recent = 5 * time.Minute

	recentStep  = 10 * time.Second
	recentSteps = int64(Recent / recentStep)
)

// findingsFor is for how long a wrong event ID and twins are shown with the rates.
const findingsFor = 24 * time.Hour

// Result is the result of a request to the service. The zero value: there was none.
type Result uint8

// The results.
const (
	Succeeded Result = iota + 1 // the service answered with a 2xx
	Failed                      // it answered with another status
	Broken                      // no whole answer came
	results
)

// Rates returns the traffic of all routes in the last Recent, in their order.
func (t *Tally) Rates() []client.RouteRate {
	now := t.clockTime()
	t.mu.RLock()
	defer t.mu.RUnlock()
	rates := make([]client.RouteRate, 0, len(t.order))
	for _, name := range t.order {
		rate := t.routes[name].recentRate(now)
		rate.Route, rate.Mode = name, t.modes[name]
		rates = append(rates, rate)
	}
	return rates
}

// recent counts the decisions of one route by short steps of time, and forgets what is older than
// Recent.
type recent struct {
	last  int64 // the newest step in it
	steps [recentSteps]struct {
		decisions map[idem.Decision]int64
		results   [results]int64
	}
}

// add counts a decision, or "" for none, and a result.
func (r *recent) add(d idem.Decision, result Result, now time.Time) {
	at := now.UnixNano() / int64(recentStep)
	if at > r.last {
		for step := max(r.last, at-recentSteps) + 1; step <= at; step++ {
			s := &r.steps[step%recentSteps]
			clear(s.decisions)
			s.results = [results]int64{}
		}
		r.last = at
	}
	s := &r.steps[r.last%recentSteps] // a caller that read the clock earlier may come later
	s.results[result]++
	if d == "" {
		return
	}
	if s.decisions == nil {
		s.decisions = map[idem.Decision]int64{}
	}
	s.decisions[d]++
}

func (r *route) recentRate(now time.Time) client.RouteRate {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := now.Add(-findingsFor)
	found := client.RouteRate{Decisions: map[string]int64{}, LastAt: client.Time{Time: r.newest},
		WrongEventID: r.ids.foundSince(from),
		Twins:        r.found[twin].countBetween(from.UnixNano()/int64(stepLength), now.UnixNano()/int64(stepLength))}
	oldest := now.UnixNano()/int64(recentStep) - recentSteps + 1
	for step := max(oldest, r.recent.last-recentSteps+1); step <= r.recent.last; step++ {
		s := &r.recent.steps[step%recentSteps]
		for d, n := range s.decisions {
			found.Decisions[string(d)] += n
		}
		found.Succeeded, found.Failed = found.Succeeded+s.results[Succeeded], found.Failed+s.results[Failed]
		found.Errors += s.results[Broken]
	}
	return found
}

// Contact is what is known of a service that this process calls, from its own requests: none is
// sent for this. The zero value: no request was made yet. It is safe for concurrent use.
type Contact struct {
	answered atomic.Int64 // Unix time in ns; 0: none has. It is noted on each delivery, so it takes no lock.
	fails    atomic.Bool  // the newest result, whatever the times say: the clock may be set

	mu      sync.Mutex
	failed  time.Time
	failure string
}

// Answer notes an answer.
func (c *Contact) Answer(at time.Time) {
	c.answered.Store(at.UnixNano())
	c.fails.Store(false)
}

// Fail notes a request without one.
func (c *Contact) Fail(at time.Time, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed, c.failure = at, why
	c.fails.Store(true)
}

// Seen returns what is known of the service, which has that address.
func (c *Contact) Seen(address string) client.Contact {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := client.Contact{Address: address, State: client.ContactNotAsked, FailedAt: client.Time{Time: c.failed},
		Failure: c.failure}
	if at := c.answered.Load(); at != 0 {
		seen.State, seen.AnsweredAt.Time = client.ContactAnswers, time.Unix(0, at)
	}
	if c.fails.Load() {
		seen.State = client.ContactFails
	}
	return seen
}
