package guard

import (
	"sync"
	"time"

	"hooklock/idem"
)

// quotas bound the new events of each route, so that a flood of made-up ones cannot fill the ledger
// that all routes share. The zero value is ready. It holds one bucket for each route that has a
// bound.
type quotas struct {
	mu     sync.Mutex
	routes map[string]*quota
}

// quota is a bucket with one token for each new event that may come now: at most those of one
// second, and less than none while more came than may.
type quota struct {
	tokens float64
	at     time.Time
}

// takeToken takes a token for one new event of p's route, or returns how long it takes until there
// is one.
func (q *quotas) takeToken(p *idem.Policy, now time.Time) (wait time.Duration, ok bool) {
	if p.NewPerSecond == 0 {
		return 0, true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.refillQuota(p, now)
	if b.tokens < 1 {
		return time.Duration((1 - b.tokens) / float64(p.NewPerSecond) * float64(time.Second)), false
	}
	b.tokens--
	return 0, true
}

// addTokens adds n tokens, which may be negative, without a check.
func (q *quotas) addTokens(p *idem.Policy, n float64, now time.Time) {
	if p.NewPerSecond == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.refillQuota(p, now)
	b.tokens = min(b.tokens+n, float64(p.NewPerSecond))
}

func (q *quotas) refillQuota(p *idem.Policy, now time.Time) *quota {
	most := float64(p.NewPerSecond)
	b := q.routes[p.Route]
	if b == nil {
		if q.routes == nil {
			q.routes = map[string]*quota{}
		}
		b = &quota{tokens: most, at: now}
		q.routes[p.Route] = b
	}
	if since := now.Sub(b.at); since > 0 {
		b.tokens, b.at = min(b.tokens+since.Seconds()*most, most), now
	}
	return b
}
