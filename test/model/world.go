package model

// step is one step as a trace shows it.
type step struct {
	what, how  string
	who, about uint8
}

type visit func(n *state, st step)

// copy is a state to change and visit; it is used again for the next one.
func (m *model) copy(s *state) *state {
	m.scratch = *s
	return &m.scratch
}

// successors visits every state that is one step away.
func (m *model) successors(s *state, to visit) {
	m.late(s, to)
	for d := range m.deliveryCount {
		a := actor{m: m, s: s, d: d, to: to}
		a.deliver()
		a.hold()
	}
	for p := range m.processCount {
		m.process(s, p, to)
		m.carrier(s, p, to)
	}
	m.pauses(s, to)
	m.leases(s, to)
	if m.anybodyUp(s) {
		m.sweep(s, to)
		m.people(s, to)
		m.readFiles(s, to)
	}
}

// late: a transaction whose answer was lost arrives after all.
func (m *model) late(s *state, to visit) {
	for i := range s.lost {
		if s.lost[i].kind == 0 {
			continue
		}
		n := m.copy(s)
		t := n.lost[i]
		n.lost[i] = txn{}
		if m.apply(n, &t) {
			to(n, step{t.kind.String(), "is applied late", uint8(t.by.delivery()), uint8(t.by)})
		}
	}
}

// process: sessions end, are given up and opened again; processes crash and come back.
func (m *model) process(s *state, p int, to visit) {
	own := s.processes[p]
	about := step{who: uint8(p), about: uint8(own.session)}
	tell := func(n *state, what string) { about.what = what; to(n, about) }
	switch {
	case !own.up && s.left.restart > 0 && s.opened < maxSessions:
		n := m.copy(s)
		n.left.restart--
		m.openSession(n, p)
		tell(n, "process restarts")
	case !own.up || m.untouched(s, p):
		return
	case s.sessions[own.session] == 0:
		if s.opened < maxSessions {
			n := m.copy(s)
			m.openSession(n, p)
			tell(n, "process learns that its session is gone, opens the next")
		}
	default:
		if s.left.expire > 0 {
			n := m.copy(s)
			n.left.expire--
			m.loseSession(n, own.session)
			tell(n, "SESSION ENDS, its process does not know")
		}
		if s.left.unheard > 0 && s.opened < maxSessions {
			n := m.copy(s)
			n.left.unheard--
			m.openSession(n, p)
			tell(n, "process hears nothing, gives its session up, opens the next")
		}
	}
	if own.up && s.left.crash > 0 {
		n := m.copy(s)
		n.left.crash--
		n.processes[p].up = false
		for x, end := range n.known.noted {
			if int(end.by) == p+1 {
				n.known.proven[x] = proof{end.outcome, [...]session{own.session, end.session}}
				n.known.noted[x] = noted{}
			}
		}
		if m.parks() {
			n.carriers[p] = delivery{}
		}
		for d := range m.deliveryCount {
			if t := &n.deliveries[d]; t.at != idle && t.at != done && int(t.process) == p {
				t.finish(crashed)
			}
		}
		tell(n, "CRASH")
	}
}

// untouched: no delivery has come to the process yet. Such processes are all alike, so the first of
// them stands for all, and what happens to it before it has anything to lose is left out.
func (m *model) untouched(s *state, p int) bool {
	own := s.processes[p]
	return own.up && !own.met && own.session == session(p+1)
}

// leases that nobody keeps alive run out at any time.
func (m *model) leases(s *state, to visit) {
	for i := session(1); i <= session(s.opened); i++ {
		if s.sessions[i] != 0 && !m.kept(s, i) {
			n := m.copy(s)
			m.loseSession(n, i)
			to(n, step{what: "session that nobody keeps runs out", about: uint8(i)})
		}
	}
	for i := range m.lockCount {
		if l := s.locks[i]; s.left.old > 0 && l.parked && !l.cooling && s.ages[l.by] != aged {
			n := m.copy(s)
			n.left.old--
			n.ages[l.by] = aged
			to(n, step{what: "max_age is over", about: uint8(l.by)})
		}
	}
	for x := execution(1); x < maxExecutions; x++ {
		if s.left.answer > 0 && s.answers[x] == answerKept {
			n := m.copy(s)
			n.left.answer--
			n.answers[x] = answerLeft
			to(n, step{what: "the time of its kept answer is over", about: uint8(x)})
		}
		if h := s.holds[x]; h.modified != 0 && s.leaseLives(x, h.lease) {
			n := m.copy(s)
			m.loseHold(n, x, h.lease)
			to(n, step{what: "hold's lease runs out", about: uint8(x)})
		}
	}
}

// fire sends a transaction: it is applied or refused, and the answer comes; or the answer is lost.
// spend is for what it costs.
func (m *model) fire(s *state, t txn, who int, spend func(*state), after func(n *state, ok bool), lost func(*state),
	to visit) {
	m.look(s, &t)
	if m.sent != nil {
		m.sent(s, &t)
	}
	about := step{t.kind.String(), "is refused", uint8(who), uint8(t.by)}
	n := m.copy(s)
	spend(n)
	ok := m.apply(n, &t)
	if ok {
		about.how = "is applied"
	}
	after(n, ok)
	to(n, about)
	if s.left.ambiguous == 0 || lost == nil {
		return
	}
	n = m.copy(s)
	spend(n)
	n.left.ambiguous--
	if n.keepLost(&t) {
		lost(n)
		about.how = "LOSES ITS ANSWER"
		to(n, about)
	}
}

func free(*state)              {}
func nothing(*state)           {}
func nothingMore(*state, bool) {}

// reaping is what each process sends that meets a lock that may be dead.
func reaping(l lock) txn {
	t := txn{kind: reap, by: l.by, l: l.modified, alive: l.alive, outcome: failedUnsure, cancel: l.cancel}
	if l.cancel != notCancelled {
		t.outcome = abortedUnsure
	}
	if l.cooling {
		t.kind, t.outcome = reapCooling, 0
	}
	return t
}

// sweep: anybody may try to reap any lock at any time, also one that only seems dead. What loses
// its answer is reaping that would have been applied at once: a guess that loses its answer is one
// that was sent later.
func (m *model) sweep(s *state, to visit) {
	for i := range m.lockCount {
		l := s.locks[i]
		if l.created == 0 || l.parked && !l.cooling {
			continue
		}
		lost := nothing
		if !s.isDead(l) {
			lost = nil
		}
		t := reaping(l)
		if m.breaks == reapForgetsCancel && t.outcome == abortedUnsure {
			t.outcome, t.cancel = failedUnsure, notCancelled
		}
		m.fire(s, t, i, free, nothingMore, lost, to)
	}
}

// people cancel, force, guard and forget, through any process.
func (m *model) people(s *state, to visit) {
	if m.parks() {
		m.keptRequests(s, to)
	}
	asked := cancelled
	switch {
	case m.final:
		asked = cancelledForGood
	case m.skips:
		asked = skipped
	}
	for i := range m.lockCount {
		l := s.locks[i]
		if l.created == 0 {
			continue
		}
		ours := !l.cooling || m.breaks == coolingIsMine
		if s.left.cancel > 0 && l.cancel == notCancelled && ours {
			m.fire(s, txn{kind: cancel, by: l.by, l: l.modified, alive: l.alive, cancel: asked}, i,
				func(n *state) { n.left.cancel-- }, nothingMore, nothing, to)
		}
		if s.left.guard > 0 && l.cancel == notCancelled && ours {
			m.fire(s, txn{kind: guard, by: l.by, created: l.created, l: l.modified, alive: l.alive}, i,
				func(n *state) { n.left.guard-- }, nothingMore, nothing, to)
		}
		if s.left.force > 0 {
			t := txn{kind: forceRelease, by: l.by, l: l.modified, outcome: abortedUnsure, cancel: l.cancel}
			switch {
			case l.cooling && m.breaks != forceRecordsCooling:
				t.kind, t.outcome = forceReleaseCooling, 0
			case l.parked:
				t.kind, t.letter = forceReleaseParked, true
			}
			m.fire(s, t, i, func(n *state) { n.left.force-- }, nothingMore, nothing, to)
		}
	}
	for e := range m.eventCount {
		if q := s.queue[e]; s.left.cancel > 0 && q.created != 0 {
			t := txn{kind: cancelWaiting, by: q.by, q: q.created, prev: s.records[e].modified, outcome: abortedClean,
				cancel: asked}
			if q.parked {
				t.kind, t.letter = endParkedPlace, asked == skipped
			}
			m.fire(s, t, e,
				func(n *state) { n.left.cancel-- }, nothingMore, nothing, to)
		}
		m.askService(s, e, to)
		if i := s.records[e]; i.modified != 0 && s.left.forget > 0 {
			m.fire(s, txn{kind: forget, by: i.by, prev: i.modified, letter: s.requests[i.by] == letterRequest &&
				m.breaks != forgetKeepsLetter}, e, func(n *state) {
				n.left.forget--
			}, nothingMore, nothing, to)
		}
	}
}

// readFiles: a process finds in the file of a dead one how an execution ended: its answer had come
// whole. It settles it where it still has its lock, and corrects a record that says unknown. The
// last is done by the process itself, too, if it lives and has lost the lock.
func (m *model) readFiles(s *state, to visit) {
	for x := execution(1); x < maxExecutions && s.left.proof > 0; x++ {
		end := s.known.proven[x]
		if end.outcome == 0 {
			continue
		}
		read := func(n *state) { n.left.proof--; n.known.proven[x] = proof{} }
		l, e := s.locks[m.lock(x)], m.event(x)
		switch {
		case l.created != 0 && l.by == x && !l.cooling:
			mine := end.sessions[0] != 0 && (l.alive == alive(end.sessions[0]) || l.alive == alive(end.sessions[1]))
			if !mine && m.breaks != provesForOthers {
				continue // another process carries it on by now
			}
			t := settleOf(l, txn{by: x, created: l.created, l: l.modified, outcome: end.outcome, cancel: l.cancel})
			t.letter = l.parked && m.keepsLetter(end.outcome, l.cancel)
			m.fire(s, t, e, read, nothingMore, nothing, to)
		case s.records[e].by == x:
			m.correctRecord(s, e, end.outcome, read, to)
		}
	}
}

// askService: a process asks the service what became of an event of unknown outcome, when that is
// not at work any more, or has done what it will be asked about.
func (m *model) askService(s *state, e int, to visit) {
	if s.left.ask == 0 {
		return
	}
	said := failed
	if s.known.upstream[s.records[e].by] != notCalled {
		said = success
	}
	m.correctRecord(s, e, said, func(n *state) { n.left.ask-- }, to)
}

// correctRecord corrects a record that says unknown, unless a later attempt of its event runs or
// waits.
func (m *model) correctRecord(s *state, e int, end outcome, spend func(*state), to visit) {
	i := s.records[e]
	if i.modified == 0 || i.outcome != failedUnsure {
		return
	}
	l := s.locks[m.lock(i.by)]
	o := m.copyInOther(s, i.by)
	again := l.created != 0 && !l.cooling && m.event(l.by) == e || o.created != 0 && !o.cooling
	if (again || s.queue[e].created != 0) && m.breaks != correctsBesideCopy {
		return
	}
	t := txn{kind: correct, by: i.by, prev: i.modified, l: l.modified, o: o.modified, outcome: end}
	t.frees = l.created != 0 && l.cooling && l.by == i.by
	m.fire(s, t, e, spend, nothingMore, nothing, to)
}
