package report

import (
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

// Rate is the recent traffic of one route.
type Rate struct {
	Route, Mode string
	// Decisions counts the deliveries of the last Recent, by decision; of a delivery that was
	// forwarded all the same, by the decision that would have been made.
	Decisions map[idem.Decision]int64
	// Results counts the requests to the service in that time, by result: forwarded deliveries, and
	// tries of parked events.
	Results Results
	Last    time.Time // when the newest delivery ended; zero: none has since the start
	// WrongID is an event ID that names no single event; nil: none was seen lately.
	WrongID *client.WrongEventID
	// Twins are the events of the last day that had the body of another one.
	Twins int64
}

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

// Results counts requests by their Result.
type Results [results]int64

// Rates returns those of all routes, in their order.
func (t *Tally) Rates() []Rate {
	now := t.clock()
	t.mu.RLock()
	defer t.mu.RUnlock()
	rates := make([]Rate, 0, len(t.order))
	for _, name := range t.order {
		rate := t.routes[name].lately(now)
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
		results   Results
	}
}

// add counts a decision, or "" for none, and a result.
func (r *recent) add(d idem.Decision, result Result, now time.Time) {
	at := now.UnixNano() / int64(recentStep)
	if at > r.last {
		for step := max(r.last, at-recentSteps) + 1; step <= at; step++ {
			s := &r.steps[step%recentSteps]
			clear(s.decisions)
			s.results = Results{}
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

func (r *route) lately(now time.Time) Rate {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := now.Add(-findingsFor)
	found := Rate{Decisions: map[idem.Decision]int64{}, Last: r.newest, WrongID: r.ids.since(from),
		Twins: r.found[twin].since(from.UnixNano()/int64(stepLength), now.UnixNano()/int64(stepLength))}
	oldest := now.UnixNano()/int64(recentStep) - recentSteps + 1
	for step := max(oldest, r.recent.last-recentSteps+1); step <= r.recent.last; step++ {
		s := &r.recent.steps[step%recentSteps]
		for d, n := range s.decisions {
			found.Decisions[d] += n
		}
		for result, n := range s.results {
			found.Results[result] += n
		}
	}
	return found
}
