package model

func (m *model) keep(s *state, t *txn) {
	s.requests[t.by], s.ages[t.by] = parkedRequest, young
	s.known.accepted[t.by] = true
}

// unpark is after an end: a letter keeps the request.
func (m *model) unpark(s *state, t *txn) {
	s.requests[t.by], s.ages[t.by] = noRequest, young
	if t.letter {
		s.requests[t.by] = letterRequest
	}
}

func (m *model) enqueuedParked(s *state, t *txn) {
	m.enqueued(s, t)
	p := &s.queue[m.event(t.by)]
	p.session, p.parked = 0, true
	m.keep(s, t)
}

func (m *model) parkedWaiting(s *state, t *txn) {
	p := &s.queue[m.event(t.by)]
	r := s.next()
	if p.created != 0 {
		if p.by != t.by {
			m.broke(ownLockOnly)
		}
		r = p.created
	}
	*p = place{created: r, modified: s.clock, by: t.by, parked: true}
	m.keep(s, t)
}

func (m *model) parkedRunning(s *state, t *txn) {
	m.update(s, t, alive(t.session))
	if !t.trying {
		m.freeSlot(s, t)
	}
	m.keep(s, t)
}

// freeSlot is for a lock that rests.
func (m *model) freeSlot(s *state, t *txn) {
	if l := &s.locks[m.lock(t.by)]; l.slot != 0 && m.breaks != restKeepsSlot {
		s.slots[l.slot-1], l.slot = 0, 0
	}
}

// attempted takes back no excuse: that the process before may still be at work stays true until this try begins.
func (m *model) attempted(s *state, t *txn) {
	if l := s.locks[m.lock(t.by)]; !s.isAlive(l.alive, l.by) {
		m.broke(triesAlive)
	}
	excuse := s.known.excuse[t.by]
	m.update(s, t, alive(t.session))
	s.known.excuse[t.by] = excuse
	if t.slot != 0 {
		s.slots[t.slot-1], s.locks[m.lock(t.by)].slot = t.by, t.slot
	}
	s.locks[m.lock(t.by)].blocked = false
}

func (m *model) rested(s *state, t *txn) {
	excuse := s.known.excuse[t.by]
	m.update(s, t, alive(t.session))
	s.known.excuse[t.by] = excuse
	m.freeSlot(s, t)
	s.locks[m.lock(t.by)].blocked = t.letter
}

func (m *model) carried(s *state, t *txn) {
	l := s.locks[m.lock(t.by)]
	if l.created != 0 && s.isAlive(l.alive, l.by) {
		m.broke(aliveNotReaped)
	}
	excuse := s.known.excuse[t.by]
	m.update(s, t, alive(t.session))
	s.known.excuse[t.by] = excuse | carriedOver
}

func (m *model) settledParked(s *state, t *txn) {
	m.settled(s, t)
	m.unpark(s, t)
}

func (m *model) settledTooOld(s *state, t *txn) {
	if s.ages[t.by] != aged {
		m.broke(hasItsTime)
	}
	m.settledParked(s, t)
}

func (m *model) endedUncarried(s *state, t *txn) {
	l := s.locks[m.lock(t.by)]
	if l.created != 0 && s.isAlive(l.alive, l.by) {
		m.broke(aliveNotReaped)
	}
	s.next()
	s.known.excuse[t.by] |= sessionLost
	m.endLock(s, t)
	m.unpark(s, t)
}

func (m *model) endedParkedPlace(s *state, t *txn) {
	m.waiterCancelled(s, t)
	m.unpark(s, t)
}

func (m *model) forcedParked(s *state, t *txn) {
	m.forced(s, t)
	m.unpark(s, t)
}

// ranNow wrote over a lock that its sender had read.
func (m *model) ranNow(s *state, t *txn) {
	l := &s.locks[m.lock(t.by)]
	if l.created == 0 || l.by != t.by || l.cooling {
		m.putLock(s, t, t.alive)
	} else {
		if l.cancel != t.cancel {
			m.broke(cancelNotLost)
		}
		if t.l != l.modified && l.trying != t.trying {
			m.broke(knownOutcomeKept)
		}
		l.modified, l.blocked = s.next(), false
	}
	s.known.unsure[t.by] = false
	if s.ages[t.by] == aged {
		s.ages[t.by] = agedAndAnew
	}
	s.requests[t.by] = max(s.requests[t.by], parkedRequest)
}

func (m *model) reran(s *state, t *txn) {
	if s.requests[t.old] != letterRequest {
		m.broke(requestStays)
	}
	s.requests[t.old] = noRequest
	s.known.forgotten[m.event(t.by)] = true // a person has decided, as with a forget
	m.enqueuedParked(s, t)
}

func (m *model) swept(s *state, t *txn) {
	if i := s.records[m.event(t.by)]; i.modified != 0 && i.by == t.by {
		m.broke(requestStays)
	}
	s.next()
	s.requests[t.by] = noRequest
}

// checkRequest: what is kept of x is there as long as it is needed, and no longer.
func (m *model) checkRequest(s *state, x execution) {
	k := &s.known
	switch {
	case k.accepted[x] && k.ended[x] == 0 && s.requests[x] != parkedRequest:
		m.broke(requestStays)
	case k.ended[x] != 0 && s.requests[x] == parkedRequest:
		m.broke(noRequestLeft)
	}
}

// beginTry is the first byte of a try of a parked execution.
func (m *model) beginTry(s *state, x execution, t *delivery) {
	k, i := &s.known, m.lock(x)
	current := m.mine(s, x, t.token)
	for o := execution(1); o < maxExecutions; o++ {
		if o == x || k.upstream[o] != atWork || m.lock(o) != i && m.event(o) != m.event(x) || k.excuse[o] != 0 || !current {
			continue
		}
		m.broke(oneLiveHolder)
	}
	if k.upstream[x] == atWork && k.excuse[x] == 0 && current {
		m.broke(oneCarrier)
	}
	if !current && k.excuse[x] == 0 && k.ended[x] == 0 && t.token > k.token[i] {
		m.broke(oneCarrier)
	}
	if t.token <= k.token[i] { // the upstream turns it away
		if current {
			m.broke(tokensGrow)
		}
		return
	}
	k.token[i] = t.token
	if current {
		k.excuse[x] = 0
		m.checkMayRun(s, x)
		m.checkJudged(s, x, t.newest)
		if m.block && k.unsure[x] {
			m.broke(unknownIsBlocked)
		}
	}
	k.upstream[x] = atWork
	if !current {
		k.excuse[x] |= callClosed
	}
}

// keptRequests: people let them run again, and what is kept with no record is swept.
func (m *model) keptRequests(s *state, to visit) {
	for i := range m.lockCount {
		if l := s.locks[i]; l.parked && !l.cooling && l.blocked && s.left.run > 0 {
			m.fire(s, txn{kind: runNow, by: l.by, l: l.modified, alive: l.alive, cancel: l.cancel, parked: true, trying: l.trying, token: l.token}, i,
				func(n *state) { n.left.run-- }, nothingMore, nothing, to)
		}
		if l := s.locks[i]; l.created != 0 && l.parked && !l.cooling && s.left.cancel > 0 {
			asked := cancelled
			if m.skips {
				asked = skipped
			}
			m.fire(s, txn{kind: endUncarried, by: l.by, l: l.modified, alive: l.alive, outcome: abortedUnsure, cancel: asked, letter: m.skips}, i,
				func(n *state) { n.left.cancel-- }, nothingMore, nothing, to)
		}
	}
	for e := range m.eventCount {
		i := s.records[e]
		if i.modified == 0 || s.requests[i.by] != letterRequest || s.left.run == 0 {
			continue
		}
		old := i.by
		next := execution(old.delivery()*idsPerArrival + idsPerArrival)
		if l := s.locks[m.lock(old)]; l.created != 0 && m.event(l.by) == e || s.queue[e].created != 0 { // a copy runs or waits
			continue
		}
		if next != old && s.known.where[next] == nowhere && s.known.ended[next] == 0 && s.deliveries[old.delivery()].at == done {
			m.fire(s, txn{kind: rerun, by: next, old: old, l: s.locks[m.lock(old)].modified, prev: i.modified, parked: true}, e,
				func(n *state) { n.left.run-- }, nothingMore, nothing, to)
		}
	}
	for x := execution(1); x < maxExecutions; x++ {
		if i := s.records[m.event(x)]; s.requests[x] == letterRequest && i.by != x {
			m.fire(s, txn{kind: sweepLetter, by: x, prev: i.modified}, int(x), free, nothingMore, nothing, to)
		}
	}
}
