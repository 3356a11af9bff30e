package idem

import "time"

// Strategy latest: of the events that wait in a workflow the newest runs, and the others are
// superseded. A superseded event never runs, so that a duplicate of it, which may come after the
// newer one has run, does not undo that.

// newSeries returns the Series of a new queue entry; nil under another strategy. Under Observe
// nothing waits for a newer one.
func (p *Policy) newSeries() *Series {
	switch {
	case p.Strategy != Latest:
		return nil
	case p.Observe:
		return &Series{}
	}
	return &Series{Quiet: p.Quiet, MaxWait: p.MaxWait}
}

// clocksApart is how far the clocks of two replicas may differ. A larger difference means that a
// clock was set.
const clocksApart = time.Minute

// Rests returns for how long the head of the queue does not take a free lock yet; at most 0: it
// takes it. A time by which a clock was set back is not waited for.
func (s *Series) Rests(now time.Time) time.Duration {
	left := s.NotBefore.Sub(now)
	if left > s.NotBefore.Sub(s.Since)+clocksApart {
		return 0
	}
	return left
}

// supersededVerdict returns the verdict for a delivery that a newer one has replaced while it
// waited.
func supersededVerdict(r *Record) Verdict {
	return Verdict{Decision: DecisionSuperseded, Holder: r.Execution, Record: r, WhileWaiting: true}
}
