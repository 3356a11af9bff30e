package model

// apply runs one transaction in etcd; false: refused, nothing changed.
func (m *model) apply(s *state, t *txn) bool {
	c := m.compile(t)
	if !c.passes(&s.store) {
		m.seen[t.kind].refused++
		return false
	}
	m.seen[t.kind].applied++
	m.checkBefore(s, t)
	c.run(&s.store, m.revision(s, t))
	m.noteAfter(s, t)
	m.checkPlaces(s)
	m.checkMark(s)
	return true
}

// revision is that of what t writes. Two entries may be made in one request.
func (m *model) revision(s *state, t *txn) revision {
	if m.together && t.kind == enqueue && s.queued(s.clock) {
		return s.clock
	}
	return s.next()
}

// queued reports whether a place was taken at r, so that another one may have been taken in the
// same request.
func (s *store) queued(r revision) bool {
	for e := range s.queue {
		if p := &s.queue[e]; p.created == r && p.modified == r && !p.parked {
			return true
		}
	}
	return false
}

// look adds to t what its sender knows if it has seen the lock at the revision that t names.
func (m *model) look(s *state, t *txn) {
	if t.by == 0 {
		return
	}
	if q := &s.queue[m.event(t.by)]; q.created != 0 && q.by == t.by && q.created == t.q {
		t.saw.again = q.again
	}
	l := &s.locks[m.lock(t.by)]
	if l.created == 0 || l.modified != t.l {
		return
	}
	t.saw = sight{
		by:      l.by,
		alive:   l.alive,
		token:   l.token,
		slot:    l.slot,
		cancel:  l.cancel,
		parked:  l.parked,
		trying:  l.trying,
		blocked: l.blocked,
		steps:   l.steps,
		again:   l.again,
	}
}

// checkBefore holds a transaction that passes against the promises, and notes what it means.
func (m *model) checkBefore(s *state, t *txn) {
	l, k := &s.locks[m.lockOfTxn(t)], &s.known
	switch t.kind {
	case claim, claimAsHead:
		m.checkTurn(s, t)
		m.checkPause(s)
	case acquire:
		m.checkTurn(s, t)
	case enqueue, enqueueParked:
		m.checkPlace(s, t)
	case parkWaiting, leave:
		if q := s.queue[m.event(t.by)]; q.created != 0 && q.by != t.by {
			m.broke(ownLockOnly)
		}
	case settle, settleParked:
		m.checkEndOfLock(s, t)
	case handOver:
		m.checkHandOver(s, t)
	case release:
		m.checkFreed(s, t)
	case reap, endUncarried:
		if l.created != 0 && s.isAlive(l.alive, l.by) {
			m.broke(aliveNotReaped)
		}
		if t.kind == reap && l.parked && !l.cooling {
			m.broke(parkedNotReaped)
		}
		k.excuse[t.by] |= sessionLost
		m.checkEndOfLock(s, t)
	case forceRelease, forceReleaseParked:
		k.excuse[t.by] |= sessionLost
		m.checkEndOfLock(s, t)
	case reapCooling, forceReleaseCooling: // its execution has ended before
		if t.kind == forceReleaseCooling {
			k.closed[m.lock(t.by)] = 0
		} else if l.created != 0 && s.isAlive(l.alive, l.by) {
			m.broke(aliveNotReaped)
		}
		m.checkFreed(s, t)
	case heartbeat:
		if s.holds[t.by].lease == coolingLease {
			m.broke(delayKept)
		}
		if l.by != t.by || l.created == 0 {
			m.broke(noGhost)
		}
	case guard:
		if l.created == 0 || l.by != t.by || l.cooling || s.isDead(*l) {
			m.broke(guardProves)
		}
		if l.cancel != notCancelled {
			m.broke(cancelNotLost)
		}
	case cancel:
		if l.created != 0 && l.by == t.by && !l.cooling {
			m.noteCancel(s, t)
		}
	case cancelWaiting, endParkedPlace:
		m.checkEnd(s, t)
		m.noteCancel(s, t)
	case forget:
		m.checkForget(s, t)
	case correct:
		m.checkCorrect(s, t)
	default:
		m.checkParkedBefore(s, t)
	}
}

// checkParkedBefore is checkBefore of the transactions about what is parked.
func (m *model) checkParkedBefore(s *state, t *txn) {
	l, k := &s.locks[m.lockOfTxn(t)], &s.known
	switch t.kind {
	case rerun:
		if t.letter && s.requests[t.old] != letterRequest {
			m.broke(requestStays)
		}
		if e := m.event(t.by); k.settled[e] {
			k.again[t.by] = true // and no other execution
		} else {
			k.forgotten[e] = true // a person has decided, as with a forget
		}
		m.checkPlace(s, t)
	case settleTooOld:
		if s.ages[t.by] != aged {
			m.broke(hasItsTime)
		}
		m.checkEndOfLock(s, t)
	case attempt:
		if !s.isAlive(l.alive, l.by) {
			m.broke(triesAlive)
		}
	case carry:
		if l.created != 0 && s.isAlive(l.alive, l.by) {
			m.broke(aliveNotReaped)
		}
		k.excuse[t.by] |= carriedOver
	case runNow:
		m.checkRunNow(s, t)
	case sweepLetter:
		if i := s.records[m.event(t.by)]; i.modified != 0 && i.by == t.by {
			m.broke(requestStays)
		}
	}
}

func (m *model) lockOfTxn(t *txn) int {
	if t.by == 0 {
		return 0
	}
	return m.lock(t.by)
}

// noteAfter notes what is so once t is applied.
func (m *model) noteAfter(s *state, t *txn) {
	switch t.kind {
	case adopt, putHold, parkRunning:
		if s.isAlive(s.locks[m.lock(t.by)].alive, t.by) {
			s.known.excuse[t.by] &^= sessionLost
		}
	case enqueue, enqueueParked:
		if t.over != 0 && s.queue[m.event(t.by)].by != t.by {
			m.broke(hasSuccessor)
		}
	}
	switch t.kind {
	case enqueueParked, parkWaiting, parkRunning, rerun:
		s.known.accepted[t.by] = true
	}
}

// checkPlace is for what takes a place in the queue, perhaps that of another execution.
func (m *model) checkPlace(s *state, t *txn) {
	if e := m.event(t.by); s.records[e].settled() && !s.known.again[t.by] {
		m.broke(settledDoesNotWait)
	}
	if t.over == 0 {
		return
	}
	end := txn{kind: cancelWaiting, by: t.over, outcome: abortedClean, cancel: cancelledForGood}
	s.known.successor[t.over] = t.by
	m.noteCancel(s, &end)
	m.checkEnd(s, &end)
}

// checkHandOver: it ends an execution, and gives its lock to who is first in the queue.
func (m *model) checkHandOver(s *state, t *txn) {
	next := *t
	next.by, next.session, next.kind = t.next, t.heir, claimAsHead
	m.checkTurn(s, &next)
	m.checkPause(s)
	l, e := &s.locks[m.lock(t.by)], m.event(t.next)
	switch {
	case l.created != 0 && l.by != t.by, s.queue[e].created != 0 && s.queue[e].by != t.next:
		m.broke(ownLockOnly)
	case l.steps && t.l != l.modified:
		m.broke(stepsKept)
	case m.cools(t):
		m.broke(delayKept)
	}
	m.checkEnd(s, t)
}

// checkEndOfLock: it moves an execution from its lock into its event's record; the lock is free, or
// cools.
func (m *model) checkEndOfLock(s *state, t *txn) {
	if l := &s.locks[m.lock(t.by)]; l.steps && t.l != l.modified {
		m.broke(stepsKept)
	}
	m.checkEnd(s, t)
	if m.cooling(t) == nil {
		m.checkFreed(s, t)
	}
}

func (m *model) checkFreed(s *state, t *txn) {
	if l := s.locks[m.lock(t.by)]; l.created != 0 && l.by != t.by {
		m.broke(ownLockOnly)
	}
}

func (m *model) checkForget(s *state, t *txn) {
	e := m.event(t.by)
	if s.records[e].by != t.by {
		m.broke(forgetsWhatWasMeant)
	}
	if !t.letter && s.requests[t.by] == letterRequest {
		m.broke(forgottenWhole)
	}
	s.known.settled[e], s.known.final[e], s.known.forgotten[e] = false, 0, true
	if p := m.position(t.by); p != 0 && s.known.newest == p {
		s.known.newest = 0
	}
}

// checkCorrect: the service has said what became of an execution whose record says unknown.
func (m *model) checkCorrect(s *state, t *txn) {
	e, k, l := m.event(t.by), &s.known, &s.locks[m.lock(t.by)]
	if r := s.records[e]; r.by != t.by || r.outcome != failedUnsure {
		m.broke(correctsWhatWasAsked)
	}
	if t.frees {
		if !l.cooling || l.by != t.by {
			m.broke(ownLockOnly)
		}
		k.closed[m.lock(t.by)] = 0
	}
	if k.ended[t.by] = t.outcome; t.outcome == success {
		k.settled[e] = true
		k.newest = max(k.newest, m.position(t.by))
	}
}

func (m *model) checkRunNow(s *state, t *txn) {
	if l := &s.locks[m.lock(t.by)]; l.created != 0 && l.by == t.by && !l.cooling {
		if l.cancel != t.cancel {
			m.broke(cancelNotLost)
		}
		if t.l != l.modified && l.trying != t.trying {
			m.broke(knownOutcomeKept)
		}
	}
	s.known.unsure[t.by] = false
}
