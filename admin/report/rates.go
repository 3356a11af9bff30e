package report

import (
	"time"

	"hooklock/idem"
)

const (
	// Recent is how far the rates of routes look back.
	Recent = 5 * time.Minute

	recentStep  = 10 * time.Second
	recentSteps = int64(Recent / recentStep)
)

// Rate is what came to one route lately.
type Rate struct {
	Route, Mode string
	// Decisions are the deliveries of the last Recent, by what was decided; of a delivery that was forwarded all the same, what would have been.
	Decisions map[idem.Decision]uint64
	Last      time.Time // when the newest delivery ended; zero: none came since the start
}

// Rates are those of all routes, in their order.
func (t *Tally) Rates() []Rate {
	now := t.clock()
	t.mu.RLock()
	defer t.mu.RUnlock()
	rates := make([]Rate, 0, len(t.order))
	for _, name := range t.order {
		decisions, last := t.routes[name].lately(now)
		rates = append(rates, Rate{name, t.modes[name], decisions, last})
	}
	return rates
}

// recent counts the decisions of one route by short steps of time, and forgets what is older than Recent.
type recent struct {
	last  int64 // the newest step in it
	steps [recentSteps]map[idem.Decision]uint64
}

func (r *recent) add(d idem.Decision, now time.Time) {
	at := now.UnixNano() / int64(recentStep)
	if at > r.last {
		for step := max(r.last, at-recentSteps) + 1; step <= at; step++ {
			clear(r.steps[step%recentSteps])
		}
		r.last = at
	}
	at = r.last // whoever looked at the clock before may come later
	if r.steps[at%recentSteps] == nil {
		r.steps[at%recentSteps] = map[idem.Decision]uint64{}
	}
	r.steps[at%recentSteps][d]++
}

func (r *route) lately(now time.Time) (map[idem.Decision]uint64, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[idem.Decision]uint64{}
	oldest := now.UnixNano()/int64(recentStep) - recentSteps + 1
	for step := max(oldest, r.recent.last-recentSteps+1); step <= r.recent.last; step++ {
		for d, n := range r.recent.steps[step%recentSteps] {
			found[d] += n
		}
	}
	return found, r.newest
}
