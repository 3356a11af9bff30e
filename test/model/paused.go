package model

// A pause: a key that no transaction compares. A process hears of it at any later time, and
// acknowledges it with a fence: what it had sent before it heard is applied by then or never will
// be, and what it sends afterwards it holds against the pause first. A session that is opened has
// read the pauses in the transaction that opens it.

// paused reports whether this delivery's process knows that its workflow is paused, when it sends
// what takes the lock.
func (a *actor) paused() bool {
	if a.m.breaks == pauseBeforeEpoch { // asked on arrival
		return a.delivery().paused
	}
	return a.process().paused
}

// pauses are the steps of people who pause and resume, and of processes that hear of it.
func (m *model) pauses(s *state, to visit) {
	if s.left.pause > 0 && !s.paused {
		n := m.copy(s)
		n.left.pause--
		n.paused, n.acked = true, [maxSessions + 1]bool{}
		to(n, step{what: "A PERSON PAUSES the workflow"})
	}
	if s.left.resume > 0 && s.paused {
		n := m.copy(s)
		n.left.resume--
		n.paused = false
		to(n, step{what: "a person resumes the workflow, or the pause's lease runs out"})
	}
	for p := range m.processCount {
		own := s.processes[p]
		if !own.up || own.paused == s.paused {
			continue
		}
		n := m.copy(s)
		n.processes[p].paused = s.paused
		if s.paused && m.breaks == ackWithoutFence {
			n.acked[own.session] = s.sessions[own.session] != 0
		}
		to(n, step{what: "process hears of the pause, or of its end", about: uint8(p)})
	}
	for p := range m.processCount {
		m.acknowledge(s, p, to)
	}
}

// acknowledge is a fence that says in the session's key what its process has heard.
func (m *model) acknowledge(s *state, p int, to visit) {
	own := s.processes[p]
	if !own.up || s.sessions[own.session] == 0 || !own.acking && (!own.paused || !s.paused || s.acked[own.session]) {
		return
	}
	m.fire(s, txn{kind: fence, session: own.session, epoch: own.epoch, seen: own.paused}, p, free,
		func(n *state, _ bool) {
			n.processes[p].epoch, n.processes[p].acking = n.sessions[own.session], false
		}, func(n *state) { n.processes[p].acking = true }, to)
}

// heard: every session that lives has acknowledged the pause.
func (s *state) heard() bool {
	if !s.paused {
		return false
	}
	for i := 1; i <= int(s.opened); i++ {
		if s.sessions[i] != 0 && !s.acked[i] {
			return false
		}
	}
	return true
}

// checkPause is for what lets something begin.
func (m *model) checkPause(s *state) {
	if s.heard() {
		m.broke(pausedRests)
	}
}

// pauseScenarios are those in which somebody pauses the workflow, and may resume it.
func pauseScenarios() []scenario {
	one := []int{0}
	others := []int{0, 1}
	return []scenario{
		bounded("pause", others, budget{ambiguous: 1, expire: 1, pause: 1}, func(sc *scenario) {}),
		bounded("pause, session given up", others, budget{ambiguous: 1, unheard: 1, pause: 1}, func(sc *scenario) {}),
		bounded("pause, wait", others, budget{ambiguous: 1, crash: 1, pause: 1, resume: 1}, func(sc *scenario) {
			all(&sc.waits)
		}),
		bounded("pause, park at once", others, budget{ambiguous: 1, pause: 1, resume: 1}, func(sc *scenario) {
			all(&sc.waits)
			all(&sc.parkAtOnce)
		}),
		bounded("pause, carry", one, budget{ambiguous: 1, crash: 1, expire: 1, pause: 1, resume: 1},
			func(sc *scenario) {
				sc.cuts = true
				first(&sc.parkRuns)
			}),
	}
}
