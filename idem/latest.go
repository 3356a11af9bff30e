package idem

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

// superseded is what a delivery gets that a newer one has replaced while it waited.
func superseded(r *Record) Verdict {
	return Verdict{Decision: DecisionSuperseded, Holder: r.Execution, Record: r, WhileWaiting: true}
}
