package model

// see takes over the newest state of the own lock, with a cancel that stands in it.
func (a *actor) see(n *state, t *delivery) {
	l := n.locks[a.lock()]
	t.l, t.cancel, t.token, t.parked, t.blocked = l.modified, l.cancel, l.token, l.parked, l.blocked
}

// start is between the claim's answer and the first byte.
func (a *actor) start() {
	t := a.delivery()
	switch {
	case a.m.byAPI[a.d]:
		a.step("client of the lock API has its lock", func(n *state, t *delivery) {
			a.m.begin(n, a.d)
			n.holders[a.d] = holder{at: holding, token: t.token, created: t.created}
			t.finish(executed)
		})
		return
	case a.stale():
		a.step("session is over before the first byte", func(_ *state, t *delivery) {
			t.at, t.answered = releasing, true
		})
		a.adopt()
		return
	case t.cancel != notCancelled:
		a.step("cancelled before the first byte", func(_ *state, t *delivery) { t.at = releasing })
		return
	}
	if a.superseded() {
		return
	}
	a.step("UPSTREAM GETS THE FIRST BYTE", func(n *state, t *delivery) {
		a.m.begin(n, a.d)
		t.at = running
	})
	if a.m.unreachable {
		a.step("upstream is not reachable", func(_ *state, t *delivery) { t.at = releasing })
	}
}

// superseded ends an execution whose event is older than one that went through, where the route
// says so.
func (a *actor) superseded() bool {
	if p := a.m.position(a.execution()); !a.m.skipStale || p == 0 || a.delivery().newest <= p {
		return false
	}
	a.step("is older than what went through", func(n *state, t *delivery) {
		t.at, t.outcome, t.stale = settling, abortedClean, true
		if n.known.unsure[a.execution()] {
			t.outcome = abortedUnsure
		}
	})
	return true
}

func (a *actor) run() {
	if a.m.parkRuns[a.d] && a.carrier == 0 {
		a.step("sender's patience is over while it runs", func(_ *state, t *delivery) {
			t.at, t.begun = parkingLock, true
		})
	}
	if a.stale() {
		a.step("session is over, call is closed", a.end(failedUnsure))
		a.adopt()
	}
	a.step("upstream answers 2xx", a.end(success))
	if a.m.cuts {
		a.step("upstream's answer is cut", a.end(failedUnsure))
	}
	if a.m.fails {
		a.step("upstream answers 500", a.end(failed))
	}
	if a.m.challenges {
		a.step("upstream asks for credentials", func(n *state, t *delivery) {
			n.known.upstream[a.execution()] = finished
			t.at, t.challenged = releasing, true
		})
	}
	if a.m.holds[a.d] {
		a.step("upstream answers 202", func(_ *state, t *delivery) { t.at = holdingOn })
	}
	if a.s.left.age > 0 {
		a.step("max_duration is reached, call is closed", func(n *state, t *delivery) {
			n.left.age--
			a.end(abortedUnsure)(n, t)
		})
	}
	if l := a.s.locks[a.lock()]; l.cancel != notCancelled && a.mine(a.s) {
		a.step("cancel is seen, call is closed", a.end(abortedUnsure))
	}
}

// end is what is known when the call is over.
func (a *actor) end(o outcome) func(n *state, t *delivery) {
	return func(n *state, t *delivery) {
		x := a.execution()
		t.at, t.outcome = settling, o
		if s := a.m.budget.proof; s > 0 && !o.unknown() && (a.carrier == 0 || o == success) {
			n.known.noted[x] = noted{1 + a.delivery().process, o, t.session}
		}
		if a.carrier > 0 && (o == failed || o == failedUnsure) {
			t.at = resting
			n.known.unsure[x] = n.known.unsure[x] || o == failedUnsure && a.mine(n)
			t.blocked = a.m.block && o == failedUnsure
		}
		if n.known.upstream[x] = finished; o.unknown() {
			n.known.upstream[x] = atWork
			n.known.excuse[x] |= callClosed
		}
	}
}

// adopt moves the lock to the new session of this process.
func (a *actor) adopt() {
	t, p := a.delivery(), *a.process()
	a.send(txn{kind: adopt, session: p.session, epoch: p.epoch, created: t.created, l: t.l, cancel: t.cancel,
		token: a.spelled(t), parked: t.parked, trying: t.begun || t.at == trying}, func(n *state, t *delivery, _ bool) {
		if !a.mine(n) {
			a.lose(n, t)
			return
		}
		blocked := t.blocked && t.begun // a carrier that has not written it down yet: nobody else has changed it
		a.see(n, t)
		t.blocked = t.blocked || blocked
		if n.locks[a.lock()].alive == alive(p.session) {
			t.session = p.session
		}
	}, nothing)
}

// lose: somebody else has taken the lock.
func (a *actor) lose(n *state, t *delivery) {
	if t.at == claimedPhase && a.carrier == 0 {
		t.at, t.answered = releasing, true
		return
	}
	n.known.excuse[a.execution()] |= callClosed
	a.finish(t, lockLost)
}

func (a *actor) settle() {
	t := a.delivery()
	o := t.outcome
	if t.cancel != notCancelled && o == failedUnsure {
		o = abortedUnsure
	}
	told := executed
	if t.stale {
		told = superseded
	}
	request := txn{kind: settle, created: t.created, l: t.l, outcome: o, cancel: t.cancel}
	if t.parked {
		request.kind, request.letter = settleParked, a.m.keepsLetter(o, t.cancel)
	}
	if t.tooOld {
		request.kind = settleTooOld
	}
	after := func(n *state, t *delivery, ok bool) {
		x := a.execution()
		switch rec := n.records[a.event()]; {
		case ok:
			a.finish(t, told)
		case a.mine(n):
			a.see(n, t)
			if t.tooOld { // it is not over, or what it was found out of has changed
				t.at, t.outcome, t.tooOld = rested, 0, false
			}
		case rec.modified != 0 && rec.by == x && rec.outcome == o: // an earlier attempt
			a.finish(t, told)
		default:
			if n.known.ended[x] == 0 && !n.known.accepted[x] { // a parked one may be carried on by another process
				a.m.broke(knownOutcomeKept)
			}
			n.known.wakes(x)
			a.finish(t, lockLost)
		}
	}
	a.send(request, after, nothing)
	if t.parked || a.stale() || a.m.limited() || a.paused() && a.m.breaks != handOverWhilePaused ||
		a.m.cools(&request) && a.m.breaks != handOverWithoutDelay {
		return
	}
	for e := range a.m.eventCount { // who was first when it was read is first until he goes
		q := a.s.queue[e]
		if a.m.ahead(a.s, a.lock(), q.created) > 0 && a.m.breaks != handOverToAnybody || q.created == 0 || q.parked ||
			e == a.event() || a.m.lock(q.by) != a.lock() || a.m.parkWaits[q.by.delivery()] ||
			a.m.latest[q.by.delivery()] {
			continue
		}
		grant := request
		grant.kind, grant.session, grant.epoch = handOver, t.session, a.process().epoch
		grant.next, grant.heir, grant.q, grant.prev = q.by, q.session, q.created, a.s.deliveries[q.by.delivery()].prev
		a.send(grant, after, nothing)
	}
}

// release: provably nothing reached the upstream, or it asked for credentials. A cancel that was
// asked needs its record.
func (a *actor) release() {
	t := a.delivery()
	finish := func(t *delivery) {
		switch {
		case t.answered:
			t.finish(storeUnavailable)
		case t.cancel != notCancelled:
			t.finish(aborted)
		case t.challenged:
			t.finish(executed)
		default:
			t.finish(unreachable)
		}
	}
	request := txn{kind: release, created: t.created, l: t.l}
	if t.cancel != notCancelled {
		request = txn{kind: settle, created: t.created, l: t.l, outcome: abortedClean, cancel: t.cancel}
		if t.challenged {
			request.outcome = abortedUnsure
		}
	}
	a.send(request, func(n *state, t *delivery, ok bool) {
		if !ok && a.mine(n) {
			a.see(n, t)
			return
		}
		finish(t)
	}, nothing)
}

func (a *actor) putHold() {
	t := a.delivery()
	a.send(txn{kind: putHold, created: t.created, l: t.l, cancel: t.cancel, token: a.spelled(t), parked: t.parked,
		trying: t.begun || t.at == trying}, func(n *state, t *delivery, ok bool) {
		switch mine := a.mine(n); {
		case ok, mine && n.locks[a.lock()].alive == byHold:
			n.holders[a.d] = holder{at: holding, token: t.token, created: t.created}
			a.finish(t, executed)
		case mine:
			a.see(n, t)
		default:
			a.lose(n, t)
		}
	}, nothing)
}

// acquire is the claim of a client of the lock API: its lock lives on a hold, not on the session.
func (a *actor) acquire() {
	if a.stale() {
		a.step("goes over to the new session", func(_ *state, t *delivery) { t.session = a.process().session })
		return
	}
	t := a.delivery()
	a.send(txn{kind: acquire, session: t.session, epoch: a.process().epoch}, func(n *state, t *delivery, ok bool) {
		l := n.locks[a.lock()]
		switch {
		case ok:
			a.won(n, t)
		case n.isDead(l):
		case l.created == 0 && a.m.ahead(n, a.lock(), everybody) == 0:
			t.finish(storeUnavailable)
		default:
			t.finish(locked)
		}
	}, a.resolve)
}

// hold is what the holder of a held lock does, through any replica: heartbeat, complete, or, for a
// client of the lock API, renew and release; and what a replica does to it at max_duration.
func (a *actor) hold() {
	h := a.s.holders[a.d]
	if h.at != holding && h.at != completing || !a.m.anybodyUp(a.s) {
		return
	}
	x, created := a.execution(), h.created
	if !a.m.mine(a.s, x, h.token) {
		n := a.m.copy(a.s)
		n.holders[a.d].at, n.known.upstream[x] = over, finished
		a.to(n, step{what: "holder is told 412", who: uint8(a.d)})
		return
	}
	l := a.s.locks[a.lock()]
	// else 412 lock_expired
	if own := a.s.holds[x]; own.modified != 0 && h.at == holding && a.s.left.beat > 0 && h.used < coolingLease-1 {
		a.beat(txn{kind: heartbeat, by: x, created: created, h: own.modified, lease: h.used + 1})
	}
	if a.s.left.age > 0 {
		a.m.fire(a.s, settleOf(l, txn{by: x, created: created, l: l.modified, outcome: abortedUnsure, cancel: l.cancel,
			letter: a.m.keepsLetter(abortedUnsure, l.cancel)}), a.d,
			func(n *state) { n.left.age--; n.known.excuse[x] |= callClosed }, nothingMore, nothing, a.to)
	}
	ends := []txn{{kind: settle, outcome: success, cancel: l.cancel}}
	switch {
	case a.m.byAPI[a.d] && l.cancel != notCancelled:
		ends[0].outcome = abortedUnsure
	case a.m.byAPI[a.d]:
		ends[0].kind = release
	case a.m.fails:
		ends = append(ends, txn{kind: settle, outcome: failed, cancel: l.cancel})
	}
	for _, t := range ends {
		t.by, t.created, t.l = x, created, l.modified
		if t.kind == settle {
			t = settleOf(l, t)
			t.letter = l.parked && a.m.keepsLetter(t.outcome, l.cancel)
		}
		a.m.fire(a.s, t, a.d, free, func(n *state, ok bool) {
			n.holders[a.d].at, n.known.upstream[x] = completing, finished
			if ok {
				n.holders[a.d].at = over
			}
		}, func(n *state) { n.holders[a.d].at, n.known.upstream[x] = completing, finished }, a.to)
	}
}

func (a *actor) beat(t txn) {
	a.m.fire(a.s, t, a.d, func(n *state) { n.left.beat--; n.holders[a.d].used++ }, func(n *state, ok bool) {
		n.holders[a.d].lease = t.lease
		if !ok {
			n.holders[a.d].at = over
		}
	}, nothing, a.to)
}
