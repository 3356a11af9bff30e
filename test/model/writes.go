package model

// What each transaction does when its compares hold. A put over a key keeps its create revision, as in etcd: only a mutation puts
// over a lock. A sender writes what it knew; what it did not know is lost.

func (m *model) claimed(s *state, t *txn) {
	m.checkTurn(s, t)
	m.checkPause(s)
	if t.slot != 0 {
		s.slots[t.slot-1] = t.by
	}
	s.turns[t.by] = 0
	t.parked = t.kind == claimAsHead && s.queue[m.event(t.by)].parked && s.queue[m.event(t.by)].by == t.by
	if t.kind == claimAsHead {
		s.queue[m.event(t.by)] = place{}
	}
	m.putLock(s, t, alive(t.session))
}

func (m *model) acquired(s *state, t *txn) {
	m.checkTurn(s, t)
	m.putLock(s, t, byHold)
	s.holds[t.by] = hold{s.clock, t.lease}
}

func (m *model) putLock(s *state, t *txn, a alive) {
	l := &s.locks[m.lock(t.by)]
	r := s.next()
	created := l.created
	if created == 0 {
		created = r
	}
	token := created
	switch {
	case t.fresh:
		token = r
	case t.token != 0:
		token = t.token
	}
	slot := l.slot
	if t.kind == claim || t.kind == claimAsHead {
		slot = t.slot
	}
	*l = lock{created: created, modified: r, by: t.by, alive: a, token: token, parked: t.parked, trying: t.trying, slot: slot}
}

// update writes the sender's own lock again, with another alive key.
func (m *model) update(s *state, t *txn, a alive) {
	i := m.lock(t.by)
	steps := s.locks[i].steps && t.l == s.locks[i].modified
	blocked := s.locks[i].blocked
	m.putLock(s, t, a)
	s.locks[i].cancel, s.locks[i].steps, s.locks[i].blocked = t.cancel, steps, blocked
	if s.isAlive(a, t.by) {
		s.known.excuse[t.by] &^= sessionLost
	}
}

func (m *model) enqueued(s *state, t *txn) {
	if s.records[m.event(t.by)].outcome == success {
		m.broke(settledDoesNotWait)
	}
	p := &s.queue[m.event(t.by)]
	r := s.clock
	if !m.together || !s.queued(r) {
		r = s.next()
	}
	if p.created != 0 {
		r = p.created
	}
	if m.breaks != replacedForNobody || t.over == 0 {
		*p = place{created: r, modified: s.clock, by: t.by, session: t.session}
	}
	if t.turn {
		s.turns[t.by] = t.session
	}
	m.replaced(s, t)
}

// queued reports whether a place was taken at r, so that another one may have been taken in the same request.
func (s *store) queued(r revision) bool {
	for e := range s.queue {
		if p := &s.queue[e]; p.created == r && p.modified == r && !p.parked {
			return true
		}
	}
	return false
}

// turnTaken: a turn lives as long as the session that took it.
func (m *model) turnTaken(s *state, t *txn) {
	s.next()
	s.turns[t.by] = t.session
}

func (m *model) turnDropped(s *state, t *txn) {
	s.next()
	s.turns[t.by] = 0
}

func (m *model) left(s *state, t *txn) {
	s.next()
	if q := s.queue[m.event(t.by)]; q.created != 0 && q.by != t.by {
		m.broke(ownLockOnly)
	}
	s.queue[m.event(t.by)] = place{}
	s.turns[t.by] = 0
}

func (m *model) settled(s *state, t *txn) {
	s.next()
	m.endLock(s, t)
}

// handedOver ends an execution, and gives its lock to who is first in the queue: with a new token, over the one that there was.
func (m *model) handedOver(s *state, t *txn) {
	i, e := m.lock(t.by), m.event(t.next)
	next := *t
	next.by, next.session, next.kind = t.next, t.heir, claimAsHead
	m.checkTurn(s, &next)
	m.checkPause(s)
	l := &s.locks[i]
	switch {
	case l.created != 0 && l.by != t.by, s.queue[e].created != 0 && s.queue[e].by != t.next:
		m.broke(ownLockOnly)
	case l.steps && t.l != l.modified:
		m.broke(stepsKept)
	case m.cools(t):
		m.broke(delayKept)
	}
	r := s.next()
	m.putRecord(s, t)
	m.raise(s, t)
	token := r
	if m.breaks == handOverKeepsToken {
		token = l.token
	}
	created := l.created
	if created == 0 {
		created = r
	}
	*l = lock{created: created, modified: r, by: t.next, alive: alive(t.heir), token: token}
	s.queue[e] = place{}
}

func (m *model) released(s *state, t *txn) {
	s.next()
	m.dropLock(s, t)
}

func (m *model) adopted(s *state, t *txn) { m.update(s, t, alive(t.session)) }

func (m *model) reaped(s *state, t *txn) {
	l := s.locks[m.lock(t.by)]
	if l.created != 0 && s.isAlive(l.alive, l.by) {
		m.broke(aliveNotReaped)
	}
	if l.parked && !l.cooling {
		m.broke(parkedNotReaped)
	}
	s.next()
	s.known.excuse[t.by] |= sessionLost
	m.endLock(s, t)
}

// thawed frees a cooling lock; its execution has ended before.
func (m *model) thawed(s *state, t *txn) {
	l := s.locks[m.lock(t.by)]
	switch {
	case t.kind == forceReleaseCooling:
		s.known.closed[m.lock(t.by)] = 0
	case l.created != 0 && s.isAlive(l.alive, l.by):
		m.broke(aliveNotReaped)
	}
	s.next()
	m.dropLock(s, t)
}

func (m *model) fenced(s *state, t *txn) {
	s.sessions[t.session], s.acked[t.session] = s.next(), t.seen
}

func (m *model) held(s *state, t *txn) {
	m.update(s, t, byHold)
	s.holds[t.by] = hold{s.clock, t.lease}
	s.known.excuse[t.by] &^= sessionLost
}

func (m *model) beaten(s *state, t *txn) {
	if s.holds[t.by].lease == coolingLease {
		m.broke(delayKept)
	}
	s.holds[t.by] = hold{s.next(), t.lease}
	if l := &s.locks[m.lock(t.by)]; l.by != t.by || l.created == 0 {
		m.broke(noGhost)
	}
}

func (m *model) guarded(s *state, t *txn) {
	l := &s.locks[m.lock(t.by)]
	if l.created == 0 || l.by != t.by || l.cooling || s.isDead(*l) {
		m.broke(guardProves)
	}
	if l.cancel != notCancelled {
		m.broke(cancelNotLost)
	}
	if l.created != 0 {
		l.modified, l.steps = s.next(), true
	}
}

// cancelAsked wrote over a lock that its sender had read: on one that has changed it puts an execution where it no longer is.
func (m *model) cancelAsked(s *state, t *txn) {
	l := &s.locks[m.lock(t.by)]
	if l.created == 0 || l.by != t.by || l.cooling {
		m.putLock(s, t, t.alive)
		return
	}
	l.modified, l.cancel = s.next(), t.cancel
	m.noteCancel(s, t)
}

func (m *model) waiterCancelled(s *state, t *txn) {
	s.next()
	s.queue[m.event(t.by)] = place{}
	m.putRecord(s, t)
	m.noteCancel(s, t)
}

func (m *model) forgotten(s *state, t *txn) {
	e := m.event(t.by)
	if s.records[e].by != t.by {
		m.broke(forgetsWhatWasMeant)
	}
	s.next()
	s.records[e] = record{}
	switch {
	case t.letter:
		s.requests[t.by] = noRequest
	case s.requests[t.by] == letterRequest:
		m.broke(forgottenWhole)
	}
	s.known.settled[e], s.known.final[e], s.known.forgotten[e] = false, 0, true
	if p := m.position(t.by); p != 0 && (s.mark == p || m.breaks == forgetDropsAnyMark) {
		s.mark = 0
	}
	if p := m.position(t.by); p != 0 && s.known.newest == p {
		s.known.newest = 0
	}
}

func (m *model) forced(s *state, t *txn) {
	s.next()
	s.known.excuse[t.by] |= sessionLost
	m.endLock(s, t)
}

// endLock moves an execution from its lock into its event's record; the lock is free, or cools.
func (m *model) endLock(s *state, t *txn) {
	l := &s.locks[m.lock(t.by)]
	if l.steps && t.l != l.modified {
		m.broke(stepsKept)
	}
	m.putRecord(s, t)
	m.raise(s, t)
	if !m.cools(t) || m.breaks == endWithoutDelay && t.kind == settle || m.breaks == reapWithoutDelay && t.kind == reap {
		m.dropLock(s, t)
		return
	}
	steps := l.steps
	if l.created == 0 {
		l.created = s.clock
	}
	if m.breaks == slotFreedEarly && l.slot != 0 {
		s.slots[l.slot-1] = 0
	}
	*l = lock{created: l.created, modified: s.clock, by: t.by, alive: byHold, cooling: true, steps: steps, token: l.token, slot: l.slot}
	s.holds[t.by] = hold{s.clock, coolingLease}
}

// raise is part of an end: its compares are on M alone, and whatever they find the execution ends.
func (m *model) raise(s *state, t *txn) {
	p := m.position(t.by)
	switch {
	case p == 0, m.breaks == successRaisesLater, t.outcome != success && m.breaks != anyEndRaises:
	case s.mark < p || m.breaks == raisesBlindly:
		s.mark = p
	}
}

func (m *model) dropLock(s *state, t *txn) {
	if l := s.locks[m.lock(t.by)]; l.created != 0 && l.by != t.by {
		m.broke(ownLockOnly)
	}
	if slot := s.locks[m.lock(t.by)].slot; slot != 0 && m.breaks != slotIsKept {
		s.slots[slot-1] = 0
	}
	if s.locks[m.lock(t.by)].alive == byHold && m.breaks != holdIsKept {
		s.holds[t.by] = hold{}
	}
	s.locks[m.lock(t.by)] = lock{}
}

func (m *model) putRecord(s *state, t *txn) {
	m.checkEnd(s, t)
	final := t.cancel == cancelledForGood
	if m.breaks == finalOnlyWhereAborted && t.outcome != abortedClean && t.outcome != abortedUnsure {
		final = false
	}
	if m.breaks == forceForgetsFinal && t.kind == forceRelease {
		final = false
	}
	if m.apart && t.outcome == success && m.breaks != answerLater {
		s.answers[t.by] = answerKept
	}
	s.records[m.event(t.by)] = record{modified: s.clock, by: t.by, outcome: t.outcome, final: final, letter: t.letter}
}
