package idem

import "time"

// Strategy latest: of those that wait in a workflow the newest runs, and the others are told so. An event that is replaced never runs, so that a copy of
// it, which may come after the newer one has run, does not undo that.

// rests reports whether a delivery waits also where the lock is free, because a newer one may come. Where everything is forwarded, nobody is made to wait
// for that.
func (p *Policy) rests() bool { return p.Quiet > 0 && !p.Observe }

// series is what a place in the queue says; nil under another strategy.
func (p *Policy) series() *Series {
	switch {
	case p.Strategy != Latest:
		return nil
	case p.Observe:
		return &Series{}
	}
	return &Series{Quiet: p.Quiet, MaxWait: p.MaxWait}
}

// clocksApart is how far a replica's clock may be from that of whoever made a place. What says more was made before a clock was set.
const clocksApart = time.Minute

// Rests is for how long who is first in the queue does not take the lock yet, although that is free; at most 0: it takes it. An hour by which a clock was set
// back is not waited for.
func (s *Series) Rests(now time.Time) time.Duration {
	left := s.NotBefore.Sub(now)
	if left > s.NotBefore.Sub(s.Since)+clocksApart {
		return 0
	}
	return left
}

// superseded is what a delivery gets that a newer one has replaced while it waited.
func superseded(r *Record) Verdict {
	return Verdict{Decision: DecisionSuperseded, Holder: r.Execution, Record: r, WhileWaiting: true}
}
