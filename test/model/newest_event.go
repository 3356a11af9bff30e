package model

// Strategy latest: who takes a place replaces the one that waits, in one transaction. It has read
// the queue before, so the transaction compares that nobody has come since and that who is to be
// replaced still waits. What is replaced is ended for good: a copy of it, which comes later than
// what replaced it, must not run.

// lookAround reads the queue. While the lock is free, the first in it may be about to take it: it
// is replaced, or it is left.
func (a *actor) lookAround() {
	free := a.s.locks[a.lock()].created == 0
	look := func(replaces bool) {
		a.step("reads the queue", func(n *state, t *delivery) {
			t.looked, t.last, t.over, t.overQ, t.overParked = true, 0, 0, 0, false
			for e := range a.m.eventCount {
				q := &n.queue[e]
				if q.created == 0 || a.m.lock(q.by) != a.lock() {
					continue
				}
				t.last = max(t.last, q.created)
				if e != a.event() && a.m.latest[q.by.delivery()] &&
					(replaces || a.m.ahead(n, a.lock(), q.created) > 0) {
					t.over, t.overQ, t.overParked = q.by, q.modified, q.parked
				}
			}
		})
	}
	look(true)
	if free {
		look(false)
	}
}

// endOfPlace is what the sender of x is told whose place has become a record.
func (s *state) endOfPlace(x execution) answer {
	if s.known.successor[x] != 0 {
		return replacedByNewer
	}
	return aborted
}

// newerComes: somebody is about to replace it.
func (a *actor) newerComes() bool {
	for d := range a.m.deliveryCount {
		if t := &a.s.deliveries[d]; t.at == enqueueing && t.over == a.execution() {
			return true
		}
	}
	return false
}

// checkLatest is for every state.
func (m *model) checkLatest(s *state) {
	for i := range m.lockCount {
		waiting := 0
		for e := range m.eventCount {
			if q := &s.queue[e]; q.created != 0 && m.latest[q.by.delivery()] && m.lock(q.by) == i {
				waiting++
			}
		}
		if waiting > 1 && s.locks[i].created != 0 {
			m.broke(oneWaits)
		}
	}
}
