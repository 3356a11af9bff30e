package model

// Parked executions: how a delivery becomes one, and what carries them on. A process carries one at
// a time.

// finish is the end of what this actor does with the execution: a carrier is free for the next.
func (a *actor) finish(t *delivery, with answer) {
	if a.carrier > 0 {
		*t = delivery{}
		return
	}
	t.finish(with)
}

// mine: the lock is still this one's. The token of a parked one changes with an attempt whose
// answer got lost: then its own session tells.
func (a *actor) mine(n *state) bool {
	t, l := a.of(n), &n.locks[a.lock()]
	if a.m.mine(n, a.execution(), t.token) {
		return true
	}
	return t.parked && l.created != 0 && l.created == t.created && l.by == a.execution() && !l.cooling &&
		l.alive == alive(t.session)
}

// spelled is the token that a put over the own lock spells; to the mutation its create revision is
// the token.
func (a *actor) spelled(t *delivery) revision {
	if a.m.breaks == tokenNotSpelled {
		return 0
	}
	return t.token
}

// keepsLetter: the request is kept with a record that says that the event did not run to its end,
// unless somebody has cancelled it.
func (m *model) keepsLetter(o outcome, asked uint8) bool {
	return asked == skipped || asked == notCancelled && (o == failed || o == failedUnsure)
}

func settleOf(l lock, t txn) txn {
	if t.kind = settle; l.parked {
		t.kind = settleParked
	} else {
		t.letter = false
	}
	return t
}

// parkPlace: its answer is definite only as long as etcd answers. Until then the sender may be told
// that nobody knows.
func (a *actor) parkPlace() {
	t := a.delivery()
	if a.m.breaks == acceptsBefore {
		a.step("sender is told that it is accepted, too early", func(_ *state, t *delivery) { t.finish(accepted) })
	}
	a.send(txn{kind: parkWaiting, q: t.q, parked: true}, func(n *state, t *delivery, ok bool) {
		x, e, l := a.execution(), a.event(), n.locks[a.lock()]
		switch {
		case ok:
			t.finish(accepted)
		case n.records[e].by == x, l.created != 0 && l.by == x && !l.cooling:
			t.finish(a.acceptedOr(n, aborted))
		case n.sessions[t.session] == 0 && !n.known.accepted[x]:
			a.anew(t)
		default:
			t.finish(a.acceptedOr(n, aborted))
		}
	}, nothing)
	if !t.answered {
		a.step("request_timeout: the sender is told that nobody knows", func(_ *state, t *delivery) {
			t.answered = true
		})
	}
}

// acceptedOr is what the sender is told where its place has become something else: who finds a lock
// or a record of a parked execution was not answered, and is now.
func (a *actor) acceptedOr(n *state, o answer) answer {
	if n.known.accepted[a.execution()] {
		return accepted
	}
	return o
}

// parkLock parks what this process runs, or has just run. It goes on with it as a carrier.
func (a *actor) parkLock() {
	if a.stale() {
		a.step("session is over, call is closed", a.end(failedUnsure))
		return
	}
	if a.s.carriers[a.delivery().process].at != idle {
		return // as far as the model goes: a process carries one
	}
	t := a.delivery()
	a.send(txn{kind: parkRunning, session: t.session, created: t.created, l: t.l, cancel: t.cancel, parked: true,
		trying: t.begun}, func(n *state, t *delivery, ok bool) {
		switch l := n.locks[a.lock()]; {
		case a.mine(n) && l.parked:
			c := *t
			c.at, c.parked, c.l, c.cancel, c.first = running, true, l.modified, l.cancel, a.execution()
			if !t.begun {
				c.at = rested
			}
			n.carriers[t.process] = c
			t.finish(accepted)
		case a.mine(n):
			a.see(n, t)
			if t.cancel != notCancelled {
				t.at = running
			}
		default:
			a.lose(n, t)
		}
	}, nothing)
}

// rereadParked finds out what became of a delivery that was to be parked at once.
func (a *actor) rereadParked(n *state, t *delivery) {
	x, l, e := a.execution(), n.locks[a.lock()], a.event()
	told := accepted
	if t.answered {
		told = unsure
	}
	switch {
	case l.created != 0 && l.by == x, n.queue[e].created != 0 && n.queue[e].by == x, n.records[e].by == x:
		t.finish(told)
	case n.records[e].modified != t.prev: // it may have run, and a copy has written over its record
		t.finish(unsure)
	case t.answered:
		t.finish(unsure)
	default:
		a.anew(t)
	}
}

// carrier is what a process does for parked executions.
func (m *model) carrier(s *state, p int, to visit) {
	if !m.parks() || !s.processes[p].up {
		return
	}
	if t := &s.carriers[p]; t.at != idle {
		a := actor{m: m, s: s, d: t.first.delivery(), to: to, carrier: p + 1}
		a.deliver()
		return
	}
	if m.unrouted[p] {
		return
	}
	own := s.processes[p]
	for i := range m.lockCount {
		l := s.locks[i]
		if l.created == 0 || !l.parked || l.cooling {
			continue
		}
		t := txn{kind: carry, l: l.modified, alive: l.alive, cancel: l.cancel, parked: true, trying: l.trying,
			fresh: m.breaks != carryKeepsToken, token: l.token}
		switch {
		case l.alive != alive(own.session):
			m.takeUp(s, p, l.by, t, to)
		case !m.runs(s, p, l.by) && m.breaks != ownIsLeft: // an adoption that came after its carrier had let go
			t.kind, t.created = adopt, l.created
			m.takeUp(s, p, l.by, t, to)
		}
	}
	for e := range m.eventCount {
		if q := s.queue[e]; q.created != 0 && q.parked && s.locks[m.lock(q.by)].created == 0 &&
			(!own.paused || m.breaks == takenWhilePaused) {
			other := m.otherIs(s, q.by)
			if m.client(s, q.by).created != 0 { // it is waited for
				other = 0
			}
			for _, slot := range m.slotsFor(uint8(p)) {
				m.takeUp(s, p, q.by, txn{kind: claimAsHead, q: q.created, prev: s.records[e].modified, o: other,
					slot: slot, parked: true}, to)
			}
		}
	}
}

// takeUp sends what makes this process the carrier of x.
func (m *model) takeUp(s *state, p int, x execution, t txn, to visit) {
	own := s.processes[p]
	n := *s
	n.carriers[p] = delivery{at: claiming, process: uint8(p), session: own.session,
		ids: uint8(int(x-1) % idsPerArrival), first: x, parked: true, l: t.l}
	a := actor{m: m, s: &n, d: x.delivery(), to: to, carrier: p + 1}
	t.session, t.epoch = own.session, own.epoch
	a.send(t, func(n *state, c *delivery, ok bool) {
		if !ok {
			*c = delivery{}
			return
		}
		a.won(n, c)
	}, a.resolve)
}

// took is after a carrier has got the lock. What the process before it had begun is of unknown
// outcome.
func (a *actor) took(n *state, t *delivery) {
	l := &n.locks[a.lock()]
	t.at, t.cancel, t.blocked = rested, l.cancel, l.blocked
	if l.trying {
		n.known.unsure[a.execution()] = true
		t.begun = true
		if a.m.block && a.m.breaks != carrierTriesAgain {
			t.blocked = true
		}
	}
}

// rereadCarried finds out whether this process has become the carrier. Its session tells: others
// may have, too.
func (a *actor) rereadCarried(n *state, t *delivery) {
	l := n.locks[a.lock()]
	if l.created != 0 && l.by == a.execution() && !l.cooling &&
		(l.alive == alive(t.session) || a.m.breaks == anyLockIsCarried) {
		a.won(n, t)
		return
	}
	*t = delivery{}
}

// rested is between two tries.
func (a *actor) rested() {
	t := a.delivery()
	if a.stale() {
		a.step("session is over, the carrier lets go", func(_ *state, t *delivery) { *t = delivery{} })
		a.adopt()
		return
	}
	if l := a.s.locks[a.lock()]; a.mine(a.s) && (l.cancel != t.cancel || l.blocked != t.blocked) {
		a.step("carrier looks at its lock again", func(n *state, t *delivery) {
			blocked := t.blocked && l.modified == t.l // as it took it, and has not written yet
			a.see(n, t)
			t.blocked = t.blocked || blocked
		})
	}
	if t.cancel != notCancelled {
		a.step("carrier ends what was cancelled", func(_ *state, t *delivery) {
			t.at, t.outcome = settling, abortedUnsure
		})
		return
	}
	if a.s.ages[a.execution()] >= aged && !a.process().paused && (!t.blocked || a.s.locks[a.lock()].blocked) {
		a.step("carrier finds it too old", func(_ *state, t *delivery) {
			t.at, t.outcome, t.tooOld = settling, failedUnsure, true
		})
	}
	if !t.blocked && !a.s.locks[a.lock()].again && a.superseded() {
		return
	}
	if a.m.letters {
		a.step("carrier gives up", func(_ *state, t *delivery) { t.at, t.outcome = settling, failedUnsure })
	}
	if a.s.left.down > 0 {
		a.step("carrier is to give it to the others", func(n *state, t *delivery) {
			n.left.down--
			t.at, t.decideAgain = resting, true
		})
	}
	if t.blocked {
		if l := a.s.locks[a.lock()]; !l.blocked && l.modified == t.l {
			a.step("carrier writes down that it waits for a person", func(_ *state, t *delivery) { t.at = resting })
		}
		return
	}
	if a.m.breaks == tryWithoutAttempt {
		a.step("carrier tries without an attempt", func(_ *state, t *delivery) { t.at = trying })
		return
	}
	if a.process().paused && a.m.breaks != triedWhilePaused {
		return
	}
	slots := a.m.slotsFor(t.process)
	if a.s.locks[a.lock()].slot != 0 || a.m.breaks == triedWithoutSlot { // it has one since it was claimed
		slots = []uint8{0}
	}
	for _, slot := range slots {
		a.send(txn{kind: attempt, session: t.session, alive: alive(t.session), created: t.created, l: t.l,
			cancel: t.cancel, parked: true, trying: true, fresh: a.m.breaks != attemptKeepsToken, token: t.token,
			slot: slot}, func(n *state, t *delivery, ok bool) {
			switch l := n.locks[a.lock()]; {
			case ok:
				a.m.checkPause(n)
				t.at, t.l, t.token = trying, l.modified, l.token
			case a.mine(n) && l.trying && !t.begun: // an earlier one, whose answer got lost
				a.see(n, t)
				t.at = trying
			case a.mine(n):
				a.see(n, t)
			default:
				*t = delivery{}
			}
		}, nothing)
	}
}

// try is between an attempt and its first byte.
func (a *actor) try() {
	if a.stale() {
		a.step("session is over before the first byte, the carrier lets go", func(_ *state, t *delivery) {
			*t = delivery{}
		})
		a.adopt()
		return
	}
	if a.delivery().cancel != notCancelled {
		a.step("cancelled before the first byte", func(_ *state, t *delivery) { t.at = rested })
		return
	}
	a.step("UPSTREAM GETS THE FIRST BYTE OF A TRY", func(n *state, t *delivery) {
		if a.m.limited() && a.mine(n) && n.locks[a.lock()].slot == 0 {
			a.m.broke(triedWithSlot)
		}
		a.m.beginTry(n, a.execution(), t)
		t.at, t.begun = running, true
	})
	if a.m.unreachable {
		a.step("upstream is not reachable", func(_ *state, t *delivery) { t.at = resting })
	}
}

// rest writes down how a try ended; decideAgain: and gives the lock to the others.
func (a *actor) rest() {
	t := a.delivery()
	to := alive(t.session)
	if t.decideAgain {
		to = alive(0)
	}
	a.send(txn{kind: rest, session: session(to), created: t.created, l: t.l, cancel: t.cancel, parked: true,
		token: a.spelled(t), letter: t.blocked}, func(n *state, t *delivery, ok bool) {
		l := n.locks[a.lock()]
		switch {
		case t.decideAgain && l.created == t.created && l.by == a.execution() && l.alive == 0 && l.token == t.token,
			!ok && !a.mine(n):
			*t = delivery{}
		case ok:
			a.see(n, t)
			t.at, t.begun = rested, false
		default:
			blocked := t.blocked
			a.see(n, t)
			t.blocked = blocked
		}
	}, nothing)
}

// carriersRest: no carrier has anything to do, and nothing is there to be carried.
func (m *model) carriersRest(s *state) bool {
	able := false
	for i := range m.lockCount {
		for p := range m.processCount {
			l := s.locks[i]
			if l.parked && !l.cooling && l.alive == alive(s.processes[p].session) && s.processes[p].up &&
				!m.unrouted[p] && !m.carries(s, l.by) && m.breaks != ownIsLeft {
				return false
			}
		}
	}
	for p := range m.processCount {
		switch t := &s.carriers[p]; {
		case t.at == rested && t.blocked && s.locks[m.lock(t.first)].blocked && t.cancel == notCancelled &&
			s.locks[m.lock(t.first)].cancel == notCancelled:
		case t.at != idle:
			return false
		case s.processes[p].up && !m.unrouted[p]:
			able = true
		}
	}
	if !able {
		return true
	}
	for i := range m.lockCount {
		if s.uncarried(s.locks[i]) {
			return false
		}
	}
	for e := range m.eventCount {
		q := s.queue[e]
		if q.created != 0 && q.parked && s.locks[m.lock(q.by)].created == 0 &&
			m.ahead(s, m.lock(q.by), q.created) == 0 {
			return false
		}
	}
	return true
}

// behindParked: who waits there waits for a person, or for a process that has the route.
func (m *model) behindParked(s *state, d int) bool {
	e := m.events[d]
	if s.locks[m.lockOf[e]].parked {
		return true
	}
	for o := range m.eventCount {
		if q := s.queue[o]; q.created != 0 && q.parked && q.created < s.queue[e].created && m.lockOf[o] == m.lockOf[e] {
			return true
		}
	}
	return false
}

// decidePark is idem.Decide for who is parked in any case: only what there is of its own event is
// in the way.
func (a *actor) decidePark(n *state, t *delivery) {
	x, e := a.execution(), a.event()
	rec, l, other := n.records[e], n.locks[a.lock()], a.m.copyInOther(n, x)
	switch {
	case n.queue[e].created != 0, l.created != 0 && !l.cooling && a.m.event(l.by) == e, other.created != 0:
		t.finish(inFlight)
	case rec.settled():
		t.finish(replayed)
	case rec.final:
		t.finish(aborted)
	case rec.outcome.unknown() && a.m.block:
		t.finish(earlierUnknown)
	case a.m.exhausts(rec):
		t.finish(exhausted)
	default:
		t.prev, t.l, t.o = rec.modified, l.modified, a.m.otherIs(n, x)
	}
}

// runs reports whether a delivery of p still runs x, which has been parked without its knowing.
func (m *model) runs(s *state, p int, x execution) bool {
	t := &s.deliveries[x.delivery()]
	return t.at != idle && t.at != done && int(t.process) == p && executionOf(x.delivery(), t.ids) == x
}

// carries reports whether a process has x.
func (m *model) carries(s *state, x execution) bool {
	for p := range m.processCount {
		if t := &s.carriers[p]; t.at != idle && t.first == x {
			return true
		}
	}
	return false
}

// processOf is the process whose session a lock names.
func (m *model) processOf(s *state, a alive) int {
	for p := range m.processCount {
		if alive(s.processes[p].session) == a {
			return p
		}
	}
	return 0
}
