package wire

// What tests ask, and the program does not.

func (u *Upstream) idleNow() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.idle)
}

// partingNow counts the connections that are left to their service.
func (u *Upstream) partingNow() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.parting)
}

// evidence is how far the exchange has come: AnswerWhole after Read gave io.EOF.
func (r *Rest) evidence() Evidence {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exchange.evidence
}

func (t *Tunnels) running() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}
