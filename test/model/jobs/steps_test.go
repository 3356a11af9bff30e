package jobs

import "fmt"

// phase is where a process is with the job.
type phase uint8

const (
	idle      phase = iota
	taking          // it has read a job
	listing         // it is the owner, as far as it knows
	stepping        // it knows what is left
	acting          // it has read an event
	reloading       // something went otherwise
)

type process struct {
	up      bool
	session uint8 // as it believes; it may have ended
	at      phase
	prev    revision // of the job, as far as it knows
	job     job
	left    [events]bool
	event   uint8
	lock    revision
	act     bool // else the event is left alone
}

// state is everything at one moment; it has no pointers.
type state struct {
	clock     revision
	keys      [keys]key
	opened    uint8 // sessions so far
	processes [processes]process
	lost      [maxLost]txn // no answer came: may be applied at any later time, or never
	left      budget

	begun, discarded bool
	ran              [events]uint8 // how often the job has let each run
}

// budget is how often something may happen.
type budget struct{ lost, crash, expire, person, carry, stop, resume, discard, again uint8 }

type scenario struct {
	name string
	budget
	// queued: the last event waits for its turn in a queue, so that letting it run changes nothing
	// in etcd, and is a step in two transactions: the audit, and the job.
	queued bool
}

type visit func(n *state, what string)

// successors visits every state that is one step away.
func (m *model) successors(s *state, to visit) {
	for i := range s.lost {
		if n := *s; n.lost[i].kind != 0 {
			t := n.lost[i]
			if n.lost[i] = (txn{}); m.apply(&n, &t) {
				to(&n, "late: "+t.String())
			}
		}
	}
	m.people(s, to)
	m.world(s, to)
	for p := range processes {
		m.process(s, p, to)
	}
}

// send visits the state in which t is answered, and that in which its answer is lost: it may still
// be applied.
func (m *model) send(s *state, what string, t *txn, to visit, answered func(n *state, applied bool),
	lost func(n *state)) {
	n := *s
	applied := m.apply(&n, t)
	answered(&n, applied)
	to(&n, fmt.Sprintf("%s, applied %v: %s", what, applied, t))
	if s.left.lost == 0 || lost == nil {
		return
	}
	n = *s
	n.left.lost--
	for i := range n.lost {
		if n.lost[i].kind == 0 {
			n.lost[i] = *t
			break
		}
	}
	lost(&n)
	to(&n, what+", answer lost: "+t.String())
}

func (m *model) people(s *state, to visit) {
	nothing, quiet := func(*state, bool) {}, func(*state) {}
	act := func(left func(*state) *uint8, what string, t *txn) {
		n := *s
		if *left(&n) == 0 {
			return
		}
		*left(&n)--
		m.send(&n, what, t, to, nothing, quiet)
	}
	if !s.begun {
		n := *s
		n.begun = true
		m.send(&n, "a person", &txn{kind: begin}, to, nothing, nil)
	}
	if k := &s.keys[open]; k.created != 0 {
		j := jobOf(&k.value)
		j.stopped = true
		act(func(n *state) *uint8 { return &n.left.stop }, "a person", &txn{kind: stop, prev: k.modified, job: j})
	}
	if k := &s.keys[ended]; k.created != 0 {
		j := jobOf(&k.value)
		if j.stopped {
			j.stopped, j.session = false, 0
			act(func(n *state) *uint8 {
				return &n.left.resume
			}, "a person", &txn{kind: resume, prev: k.modified, job: j})
		}
		act(func(n *state) *uint8 { return &n.left.discard }, "a new job", &txn{kind: discard, prev: k.modified})
	}
	for e := range uint8(events) {
		if l := &s.keys[lock0+e]; l.value[0] == blocked {
			act(func(n *state) *uint8 {
				return &n.left.person
			}, "a person", &txn{kind: person, event: e, lock: l.modified})
		}
	}
}

// world: events run, end, block again, or get another carrier; sessions end, processes crash and
// come back.
func (m *model) world(s *state, to visit) {
	for e := range events {
		l := &s.keys[lock0+e]
		change := func(what string, index bool, phase byte, left func(*state) *uint8) {
			n := *s
			if left != nil {
				if *left(&n) == 0 {
					return
				}
				*left(&n)--
			}
			n.clock++
			n.put(lock0+e, value{phase})
			if index {
				n.put(index0+e, value{})
			}
			m.checkKeys(&n)
			to(&n, fmt.Sprint("event ", e, what))
		}
		if l.value[0] == released {
			change(" ends", true, over, nil)
			change(" blocks again", true, blocked, func(n *state) *uint8 { return &n.left.again })
		}
		if l.value[0] != over {
			change(" has another carrier", false, l.value[0], func(n *state) *uint8 { return &n.left.carry })
		}
	}
	for i := range uint8(sessions) {
		if s.left.expire > 0 && s.isAlive(i+1) {
			n := *s
			n.left.expire--
			n.keys[session0+i] = key{}
			to(&n, fmt.Sprint("session ", i+1, " ends"))
		}
	}
	for p := range processes {
		if q := &s.processes[p]; q.up && s.left.crash > 0 {
			n := *s
			n.left.crash--
			n.processes[p] = process{}
			to(&n, fmt.Sprint("process ", p, " crashes"))
		} else if s.opened < sessions-1 && (!q.up || !s.isAlive(q.session)) {
			n := *s
			n.openSession(p)
			to(&n, fmt.Sprint("process ", p, " has a new session"))
		}
	}
}

func (s *state) openSession(p int) {
	s.opened++
	s.clock++
	s.put(session0+int(s.opened)-1, value{})
	s.processes[p].up, s.processes[p].session = true, s.opened
}

func (m *model) process(s *state, p int, to visit) {
	q := s.processes[p]
	if !q.up {
		return
	}
	name := fmt.Sprint("process ", p)
	goTo := func(what string, change func(q *process)) {
		n := *s
		change(&n.processes[p])
		to(&n, name+what)
	}
	k := &s.keys[open]
	switch q.at {
	case idle:
		if k.created != 0 {
			goTo(" reads the job", func(q *process) { q.at, q.prev, q.job = taking, k.modified, jobOf(&k.value) })
		}
	case taking:
		t := &txn{kind: take, prev: q.prev, job: q.job}
		if t.job.session = q.session; q.job.session != q.session {
			t.gone = q.job.session
		}
		m.send(s, name, t, to, func(n *state, applied bool) {
			n.processes[p] = process{up: true, session: q.session}
			if applied {
				n.processes[p].at, n.processes[p].prev, n.processes[p].job = listing, n.clock, t.job
			}
		}, func(n *state) { n.processes[p] = process{up: true, session: q.session} })
	case listing:
		m.list(s, p, name, to)
	case stepping:
		m.count(s, p, name, to)
		for e := range uint8(events) {
			if q.left[e] {
				goTo(fmt.Sprint(" reads event ", e), func(q *process) {
					l := &s.keys[lock0+e]
					q.at, q.event, q.lock = acting, e, l.modified
					q.act = l.value[0] == blocked && (s.keys[index0+e].modified <= q.job.until || m.breaks == actsOnAll)
				})
				return
			}
		}
		if s.runs() == 0 {
			m.store(s, p, name, &txn{kind: finish, prev: q.prev, job: q.job}, idle, to)
		}
	case acting:
		m.act(s, p, name, to)
	case reloading:
		goTo(" reads its job again", func(q *process) {
			if j := jobOf(&k.value); k.created != 0 && j.session == q.job.session {
				q.at, q.prev, q.job = listing, k.modified, j
				return
			}
			*q = process{up: true, session: q.session}
		})
	}
}

// store sends a transaction about the job alone.
func (m *model) store(s *state, p int, name string, t *txn, then phase, to visit) {
	m.send(s, name, t, to, func(n *state, applied bool) {
		q := &n.processes[p]
		if q.at = reloading; applied {
			q.at, q.prev, q.job = then, n.clock, t.job
		}
		if q.at == idle {
			*q = process{up: true, session: q.session}
		}
	}, func(n *state) { n.processes[p].at = reloading })
}

// list looks what is left, and notes how much that is, or what has changed since.
func (m *model) list(s *state, p int, name string, to visit) {
	q := s.processes[p]
	t := &txn{kind: put, prev: q.prev, job: q.job}
	if t.job.until == 0 {
		t.job.until = s.clock
	}
	found := uint8(0)
	q.left = [events]bool{}
	for e := range uint8(events) {
		q.left[e] = e >= q.job.next && s.keys[lock0+e].value[0] == blocked && s.keys[index0+e].modified <= t.job.until
		if q.left[e] {
			found++
		}
	}
	changed := uint8(0)
	if q.job.until == 0 {
		t.job.matched = found
	} else if m.breaks != forgetsChange {
		changed = q.job.matched - q.job.acted - found
	}
	n := *s
	n.processes[p].left = q.left
	if q.job.until != 0 && changed == 0 {
		n.processes[p].at = stepping
		to(&n, name+" lists what is left")
		return
	}
	t.job.acted, t.job.refused = t.job.acted+changed, t.job.refused+changed
	m.store(&n, p, name, t, stepping, to)
}

// count counts the ends of what the job follows.
func (m *model) count(s *state, p int, name string, to visit) {
	q := &s.processes[p]
	for e := range events {
		if phase := s.keys[lock0+e].value[0]; s.keys[run0+e].created != 0 && phase != released {
			t := &txn{kind: put, prev: q.prev, job: q.job}
			t.count[e] = true
			t.job.ended++
			m.store(s, p, name, t, stepping, to)
			return
		}
	}
}

// act makes a step, or notes that there is none.
func (m *model) act(s *state, p int, name string, to visit) {
	q := s.processes[p]
	t := &txn{kind: step, prev: q.prev, job: q.job, event: q.event, lock: q.lock}
	t.job.next, t.job.acted = q.event+1, q.job.acted+1
	n := *s
	switch n.processes[p].left[q.event] = false; {
	case !q.act:
		t.kind, t.job.refused = put, q.job.refused+1
		m.store(&n, p, name, t, stepping, to)
		return
	case m.queued && q.event == events-1:
		t.kind, t.follow = put, true
		m.store(&n, p, name, t, stepping, to)
		return
	}
	m.send(&n, name, t, to, func(n *state, applied bool) {
		switch q := &n.processes[p]; {
		case applied:
			q.at, q.prev, q.job = stepping, n.clock, t.job
		case n.keys[open].modified != t.prev:
			q.at = reloading
		default:
			q.at, q.left[t.event] = stepping, true // it reads again
		}
	}, func(n *state) { n.processes[p].at, n.processes[p].left[t.event] = stepping, true })
}
