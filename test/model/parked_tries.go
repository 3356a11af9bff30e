package model

// checkRequest: what is kept of x is there as long as it is needed, and no longer.
func (m *model) checkRequest(s *state, x execution) {
	k := &s.known
	switch {
	case k.accepted[x] && k.ended[x] == 0 && s.requests[x] != parkedRequest:
		m.broke(requestStays)
	case k.ended[x] != 0 && s.requests[x] != noRequest && s.requests[x] != letterRequest:
		m.broke(noRequestLeft)
	}
}

// beginTry is the first byte of a try of a parked execution.
func (m *model) beginTry(s *state, x execution, t *delivery) {
	k, i := &s.known, m.lock(x)
	current := m.mine(s, x, t.token)
	for o := execution(1); o < maxExecutions; o++ {
		if o == x || k.upstream[o] != atWork || m.lock(o) != i && m.event(o) != m.event(x) || k.excuse[o] != 0 ||
			!current {
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
			m.fire(s, txn{kind: runNow, by: l.by, l: l.modified, alive: l.alive, cancel: l.cancel, parked: true,
				trying: l.trying, token: l.token}, i,
				func(n *state) { n.left.run-- }, nothingMore, nothing, to)
		}
		if l := s.locks[i]; l.created != 0 && l.parked && !l.cooling && s.left.cancel > 0 {
			asked := cancelled
			if m.skips {
				asked = skipped
			}
			m.fire(s, txn{kind: endUncarried, by: l.by, l: l.modified, alive: l.alive, outcome: abortedUnsure,
				cancel: asked, letter: m.skips}, i,
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
		// a copy runs or waits
		if l := s.locks[m.lock(old)]; l.created != 0 && m.event(l.by) == e || s.queue[e].created != 0 {
			continue
		}
		if next != old && s.known.where[next] == nowhere && s.known.ended[next] == 0 &&
			s.deliveries[old.delivery()].at == done {
			m.fire(s, txn{kind: rerun, by: next, old: old, l: s.locks[m.lock(old)].modified, prev: i.modified,
				parked: true, letter: true, again: i.settled()}, e,
				func(n *state) { n.left.run-- }, nothingMore, nothing, to)
		}
	}
	m.runAgain(s, to)
	for x := execution(1); x < maxExecutions; x++ {
		if i := s.records[m.event(x)]; s.requests[x] == letterRequest && i.by != x {
			m.fire(s, txn{kind: sweepLetter, by: x, prev: i.modified}, int(x), free, nothingMore, nothing, to)
		}
	}
}

// runAgain: people let a settled event run again, under the ID of any of its deliveries that has
// one left: two people do not choose the same.
func (m *model) runAgain(s *state, to visit) {
	for d := range m.deliveryCount {
		e := m.events[d]
		i, next := s.records[e], executionOf(d, idsPerArrival-1)
		if s.left.again == 0 || i.modified == 0 || !i.settled() || i.final || s.deliveries[d].at != done ||
			s.known.where[next] != nowhere || s.known.ended[next] != 0 || m.isLost(s, next) {
			continue
		}
		l, o := s.locks[m.lock(next)], m.copyInOther(s, next)
		if l.created != 0 && !l.cooling && m.event(l.by) == e || o.created != 0 && !o.cooling ||
			s.queue[e].created != 0 { // a copy runs or waits
			continue
		}
		m.fire(s, txn{kind: rerun, by: next, old: i.by, l: l.modified, o: m.otherIs(s, next), prev: i.modified,
			parked: true, letter: i.letter, again: true}, e,
			func(n *state) { n.left.again-- }, nothingMore, nothing, to)
	}
}

// isLost: a transaction that makes x may still arrive.
func (m *model) isLost(s *state, x execution) bool {
	for i := range s.lost {
		if s.lost[i].kind == rerun && s.lost[i].by == x {
			return true
		}
	}
	return false
}
