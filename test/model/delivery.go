package model

import "hooklock/etcdlock/protocol"

// actor is one delivery about to make a step. What it does depends on what it knows; what etcd has
// it learns from answers.
type actor struct {
	m  *model
	s  *state
	d  int
	to visit
	// carrier is 1 + the process that carries a parked execution of the delivery; 0 = it is the
	// delivery itself.
	carrier int
}

func (a *actor) delivery() *delivery { return a.of(a.s) }

func (a *actor) of(s *state) *delivery {
	if a.carrier > 0 {
		return &s.carriers[a.carrier-1]
	}
	return &s.deliveries[a.d]
}

func (a *actor) process() *process    { return &a.s.processes[a.delivery().process] }
func (a *actor) execution() execution { return executionOf(a.d, a.delivery().ids) }
func (a *actor) event() int           { return a.m.events[a.d] }
func (a *actor) lock() int            { return a.m.lock(a.execution()) }

// stale: the process has noticed that the session of this delivery is over.
func (a *actor) stale() bool { return a.process().session != a.delivery().session }

// step is a step without etcd.
func (a *actor) step(what string, f func(n *state, t *delivery)) {
	n := a.m.copy(a.s)
	f(n, a.of(n))
	a.to(n, step{what: what, who: uint8(a.d), about: a.delivery().process})
}

func (a *actor) send(t txn, after func(n *state, t *delivery, ok bool), lost func(*state)) {
	t.by = a.execution()
	a.m.fire(a.s, t, a.d, free, func(n *state, ok bool) { after(n, a.of(n), ok) }, lost, a.to)
}

// resolve is what follows an answer that got lost, for what takes a lock or a place.
func (a *actor) resolve(n *state) { a.of(n).at = fencing }

func (a *actor) deliver() {
	switch a.delivery().at {
	case idle:
		a.arrive()
	case claiming:
		a.claim()
	case acquiring:
		a.acquire()
	case enqueueing:
		a.enqueue()
	case waiting:
		a.wait()
	case leaving:
		a.leave()
	case fencing:
		a.fence()
	case rereading:
		a.step("reads lock, record and place", a.reread)
	case claimedPhase:
		a.start()
	case running:
		a.run()
	case settling:
		a.settle()
	case releasing:
		a.release()
	case holdingOn:
		a.putHold()
	case attached:
		a.attached()
	case parkingPlace:
		a.parkPlace()
	case parkingLock:
		a.parkLock()
	case resting:
		a.rest()
	case rested:
		a.rested()
	case trying:
		a.try()
	case done:
		a.dropSlotWaiter()
	}
}

func (a *actor) arrive() {
	m, s := a.m, a.s
	for o := range a.d { // deliveries that are alike come in order
		if m.alike(o, a.d) && s.deliveries[o].at == idle {
			return
		}
	}
	for p := range m.processCount {
		if !s.processes[p].up || p > 0 && m.untouched(s, p-1) && m.untouched(s, p) {
			continue
		}
		n := m.copy(s)
		n.processes[p].met = true
		t := &n.deliveries[a.d]
		*t = delivery{at: claiming, process: uint8(p), session: s.processes[p].session,
			paused: m.breaks == pauseBeforeEpoch && s.processes[p].paused}
		if m.breaks == readsMarkBefore {
			t.newest = s.mark
		}
		switch {
		case m.byAPI[a.d]:
			t.at = acquiring
		case m.parkAlways && m.parkAtOnce[a.d], m.rests && m.latest[a.d]:
			t.at = enqueueing
		}
		for o := range m.deliveryCount { // refusals are decided in process first
			other := &s.deliveries[o]
			if o == a.d || m.events[o] != a.event() || m.none[o] != m.none[a.d] || other.at == idle ||
				other.at == done || other.at == attached || int(other.process) != p {
				continue
			}
			if m.attach[a.d] {
				t.at, t.first = attached, executionOf(o, other.ids)
			} else {
				t.finish(inFlight)
			}
			break
		}
		a.to(n, step{what: "delivery arrives", who: uint8(a.d), about: uint8(p)})
	}
}

// again: decide from the beginning, under the process's session of now.
func (a *actor) again(t *delivery) {
	*t = delivery{at: claiming, process: t.process, session: a.process().session, ids: t.ids}
	if a.m.parkAlways && a.m.parkAtOnce[a.d] || a.m.rests && a.m.latest[a.d] {
		t.at = enqueueing
	}
}

// anew: the same under a new execution ID. The old one may have been applied, and ended by others.
func (a *actor) anew(t *delivery) {
	if t.ids == idsPerArrival-1 { // as far as the model goes
		t.finish(storeUnavailable)
		return
	}
	a.again(t)
	t.ids++
}

func (a *actor) claim() {
	if a.stale() {
		a.step("goes over to the new session", func(_ *state, t *delivery) { a.again(t) })
		return
	}
	if a.paused() { // it looks, and does not claim
		a.step("looks, because its workflow is paused", a.explainRefusal)
		return
	}
	t := a.delivery()
	for _, slot := range a.m.slotsFor(t.process) {
		a.send(txn{kind: claim, session: t.session, epoch: a.process().epoch, prev: t.prev, o: t.o, slot: slot},
			func(n *state, t *delivery, ok bool) {
				switch {
				case ok:
					a.won(n, t)
				default:
					a.explainRefusal(n, t)
				}
			}, a.resolve)
	}
}

// slotsFor are the slots that a process may try to take; it may be wrong about which are free. 0 =
// there is no limit.
func (m *model) slotsFor(p uint8) []uint8 {
	if !m.limited() {
		return []uint8{0}
	}
	return []uint8{1, 2}[:m.limits[p]]
}

// enterSlotWaiters is for the first one in its queue, whose lock is free, where no slot is.
func (a *actor) enterSlotWaiters() {
	t := a.delivery()
	if a.s.turns[a.execution()] != 0 || a.m.ahead(a.s, a.lock(), t.q) > 0 || a.s.locks[a.lock()].created != 0 ||
		!a.m.full(a.s, t.process, a.execution()) {
		return
	}
	a.send(txn{kind: enterSlotWaiters, session: t.session, q: t.q}, func(_ *state, t *delivery, ok bool) {
		t.turn = t.turn || ok
	}, func(n *state) { a.of(n).turn = true })
}

// dropSlotWaiter is for an execution that waits no more. A turn that it took with its place, or
// that has become a lock, has gone with that.
func (a *actor) dropSlotWaiter() {
	if !a.delivery().turn || a.m.breaks == turnIsKept || !a.m.anybodyUp(a.s) {
		return
	}
	a.send(txn{kind: dropSlotWaiter}, func(_ *state, t *delivery, _ bool) { t.turn = false }, nil)
}

// explainRefusal goes on after a refusal, which brings lock, record and place. What they do not
// explain may be the other lock, which is read then.
func (a *actor) explainRefusal(n *state, t *delivery) {
	l, copied, client := n.locks[a.lock()], a.m.copyInOther(n, a.execution()), a.m.client(n, a.execution())
	free := l.created == 0 && n.records[a.event()].modified == t.prev && a.m.ahead(n, a.lock(), everybody) == 0
	switch {
	case free && copied.created != 0:
		a.decide(n, t, copied)
	case free && client.created != 0 && a.m.breaks != passesClient:
		a.decide(n, t, client)
	case free && a.m.otherIs(n, a.execution()) != t.o: // another event has it
		t.o = a.m.otherIs(n, a.execution())
	default:
		a.decide(n, t, l)
	}
}

func (a *actor) won(n *state, t *delivery) {
	l := n.locks[a.lock()]
	t.at, t.token, t.created, t.l, t.q = claimedPhase, l.token, l.created, l.modified, 0
	if a.m.position(a.execution()) != 0 && a.m.breaks != readsMarkBefore {
		t.newest = n.mark
	}
	if a.carrier > 0 {
		a.took(n, t)
	}
}

// decide is idem.Decide, from the lock that stands in the way, the record and the queue of one
// revision.
func (a *actor) decide(n *state, t *delivery, l lock) {
	rec, e := n.records[a.event()], a.event()
	q := n.queue[e]
	runs := l.created != 0 && !l.cooling && !n.isDead(l) && a.m.event(l.by) == e
	waits := a.m.ahead(n, a.lock(), everybody) > 0
	switch {
	case (runs || q.created != 0) && a.m.attach[a.d]:
		first := q.by
		if runs {
			first = l.by
		}
		*t = delivery{at: attached, process: t.process, ids: t.ids, first: first}
	case runs || q.created != 0:
		t.finish(inFlight)
	case rec.settled() && (a.m.breaks != leftAnswerRuns || n.answers[rec.by] != answerLeft):
		t.finish(replayed)
	case rec.final:
		t.finish(aborted)
	case rec.outcome.unknown() && a.m.block:
		t.finish(earlierUnknown)
	case a.m.exhausts(rec) && a.m.breaks != exhaustedRuns:
		t.finish(exhausted)
	case l.created == 0 && !waits && rec.modified == t.prev && n.sessions[t.session] != 0 &&
		a.m.full(n, t.process, a.execution()):
		if t.finishOr(a.m.waits[a.d], locked) {
			t.l, t.at, t.turn = 0, enqueueing, true
		}
	case n.isDead(l): // reaps it, which is a step of its own, and looks again
	case l.created == 0 && !waits && a.paused() && !a.m.waits[a.d]:
		t.finish(refusedPaused)
	case l.created == 0 && !waits && a.paused():
		t.prev, t.l, t.at = rec.modified, 0, enqueueing
	case l.created == 0 && !waits && rec.modified == t.prev && n.sessions[t.session] == 0:
		t.finish(storeUnavailable) // nothing is in the way but the session
	case l.created == 0 && !waits:
		t.prev = rec.modified
	case a.m.waits[a.d] && l == n.locks[a.lock()]: // there is no queue before the other lock
		t.prev, t.l, t.at = rec.modified, l.modified, enqueueing
	case a.m.waits[a.d] && l == a.m.client(n, a.execution()): // it waits in its own queue
		t.prev, t.l, t.o, t.at = rec.modified, 0, l.modified, enqueueing
	default:
		t.finish(locked)
	}
}

// fence makes a claim or an enqueueing without an answer fail for ever, if it has not been applied.
func (a *actor) fence() {
	t := a.delivery()
	if !t.answered && a.carrier == 0 {
		a.step("request_timeout: the sender gets 503", func(_ *state, t *delivery) { t.answered = true })
	}
	if a.m.breaks == noFence || a.s.sessions[t.session] == 0 {
		a.step("session is gone, needs no fence", func(_ *state, t *delivery) { t.at = rereading })
		return
	}
	epoch := a.process().epoch
	if a.stale() {
		epoch = a.s.sessions[t.session]
	}
	seen := a.process().paused && !a.stale() || a.s.acked[t.session]
	a.send(txn{kind: fence, session: t.session, epoch: epoch, seen: seen}, func(n *state, t *delivery, _ bool) {
		t.at = rereading
		if p := &n.processes[t.process]; p.session == t.session {
			p.epoch = n.sessions[t.session]
		}
	}, nothing)
}

// reread finds out what became of it.
func (a *actor) reread(n *state, t *delivery) {
	x, l, e := a.execution(), n.locks[a.lock()], a.event()
	switch {
	case a.carrier > 0:
		a.rereadCarried(n, t)
	case t.parked:
		a.rereadParked(n, t)
	case l.created != 0 && l.by == x && !l.cooling:
		a.won(n, t)
		if a.m.breaks != rereadMissesCancel {
			t.cancel = l.cancel
		}
		if t.answered {
			t.at = releasing
			if a.m.breaks == lateLockIsKept {
				t.finish(storeUnavailable)
			}
		}
	case n.queue[e].created != 0 && n.queue[e].by == x:
		t.at, t.q, t.o = waiting, n.queue[e].created, 0
		if t.answered {
			t.at = leaving
		}
	case n.records[e].by == x:
		t.finish(lockLost)
	case t.answered:
		t.finish(storeUnavailable)
	case a.m.byAPI[a.d]:
		t.finish(storeUnavailable)
	case a.m.breaks == sameIDAgain:
		a.again(t)
	default:
		a.anew(t)
	}
}

func (a *actor) enqueue() {
	if a.stale() {
		a.step("goes over to the new session", func(_ *state, t *delivery) { a.again(t) })
		return
	}
	t := a.delivery()
	if a.m.latest[a.d] && !t.looked {
		a.lookAround()
		return
	}
	request := txn{kind: enqueue, session: t.session, epoch: a.process().epoch, l: t.l, prev: t.prev, o: t.o,
		turn: t.turn, last: t.last, over: t.over, overQ: t.overQ, overParked: t.overParked}
	if a.m.parkAtOnce[a.d] {
		request.kind, request.parked, request.turn = enqueueParked, true, false
	}
	a.send(request, func(n *state, t *delivery, ok bool) {
		l, e := n.locks[a.lock()], a.event()
		t.looked, t.last, t.over, t.overQ, t.overParked = false, 0, 0, 0, false
		switch {
		case ok && a.m.parkAtOnce[a.d]:
			t.finish(accepted)
		case ok:
			t.at, t.q, t.l, t.o = waiting, n.queue[e].created, 0, 0
		case n.sessions[t.session] == 0:
			t.finish(storeUnavailable)
		case request.parked && a.m.parkAlways, a.m.rests && a.m.latest[a.d]:
			a.decidePark(n, t)
		case a.m.copyInOther(n, a.execution()).created != 0:
			t.at, t.l = claiming, 0
			a.decide(n, t, a.m.copyInOther(n, a.execution()))
		case n.queue[e].created == 0 && n.records[e].modified == t.prev &&
			(l.created == 0 || l.cooling || a.m.event(l.by) != e):
			t.l, t.o = l.modified, a.m.otherIs(n, a.execution()) // the lock has changed hands, and no copy has it
		default:
			t.at, t.l = claiming, 0
		}
	}, func(n *state) {
		a.resolve(n)
		a.of(n).parked = request.parked
	})
}

// wait is what a delivery does that has its entry, as the code decides it. Whether others are
// before it, or have the lock, it may be wrong about: any claim as head may be sent.
func (a *actor) wait() {
	e := a.event()
	known := a.known()
	switch protocol.WhileQueued(&known) {
	case protocol.Lost:
		if known.Where == protocol.Ended || known.Where == protocol.Gone {
			a.step("place is lost with the session", func(_ *state, t *delivery) { a.anew(t) })
			return
		}
		a.step("session is over, leaves its place", func(_ *state, t *delivery) { t.at, t.decideAgain = leaving, true })
	case protocol.FindLock:
		a.step("waiter finds that it has the lock", func(_ *state, t *delivery) { t.at = rereading })
	case protocol.LockLost:
		a.step("waiter finds that it had the lock, and lost it", func(_ *state, t *delivery) {
			t.finish(storeUnavailable)
		})
	case protocol.Cancelled:
		a.step("waiter finds that it was cancelled", func(n *state, t *delivery) {
			if x := a.execution(); n.records[e].by == x {
				t.finish(n.endOfPlace(x))
				return
			} else if n.known.ended[x] == 0 { // otherwise a copy has written over its record
				a.m.broke(placeKept)
			}
			t.finish(aborted)
		})
	case protocol.AwaitPause:
		a.hangOn()
	case protocol.AwaitSlot:
		a.hangOn()
		a.enterSlotWaiters()
		a.claimAsHead()
	case protocol.TakeLock:
		a.hangOn()
		a.claimAsHead()
	}
}

// known is what the delivery has read, and that it takes itself for the head of the queue, and the
// lock for free.
func (a *actor) known() protocol.Known {
	t, x, l, rec := a.delivery(), a.execution(), a.s.locks[a.lock()], a.s.records[a.event()]
	known := protocol.Known{Reported: true, SessionOver: a.stale(), Vouched: a.s.sessions[t.session] != 0,
		Limited: a.m.limited()}
	known.Paused = a.paused() && a.m.breaks != turnWhilePaused
	switch {
	case a.s.queue[a.event()].created == t.q:
		known.Where = protocol.Queued
	case l.created != 0 && l.by == x && !l.cooling:
		known.Where = protocol.Locking
	case rec.by == x:
		known.Where, known.Began = protocol.Ended, rec.outcome != abortedClean
	default:
		known.Where = protocol.Gone
	}
	return known
}

// hangOn are the steps of a delivery whose entry is there, and of its sender.
func (a *actor) hangOn() {
	if a.m.breaks == toldTooEarly && a.newerComes() {
		a.step("sender is told that a newer one waits, too early", func(_ *state, t *delivery) {
			t.finish(replacedByNewer)
		})
	}
	if a.m.parkWaits[a.d] {
		a.step("sender's patience is over while it waits", func(_ *state, t *delivery) { t.at = parkingPlace })
	}
	if a.s.left.hangUp > 0 {
		a.step("sender hangs up", func(n *state, t *delivery) { n.left.hangUp--; t.at, t.left = leaving, true })
	}
}

func (a *actor) claimAsHead() {
	t, x, l := a.delivery(), a.execution(), a.s.locks[a.lock()]
	for _, slot := range a.m.slotsFor(t.process) {
		lost := a.resolve
		if a.m.ahead(a.s, a.lock(), t.q) > 0 || l.created != 0 || a.m.client(a.s, x).created != 0 ||
			slot != 0 && a.s.slots[slot-1] != 0 {
			lost = nil // a guess is refused
		}
		a.send(txn{kind: claimAsHead, session: t.session, epoch: a.process().epoch, q: t.q, prev: t.prev, o: t.o,
			slot: slot}, a.tookTurn, lost)
	}
}

func (a *actor) tookTurn(n *state, t *delivery, ok bool) {
	e := a.event()
	switch rec := n.records[e]; {
	case ok:
		a.won(n, t)
	case n.queue[e].created != t.q, a.m.ahead(n, a.lock(), t.q) > 0:
	case a.m.decided(rec):
		t.at, t.decideAgain = leaving, true
	case a.m.client(n, a.execution()).created != 0: // it waits for that
		t.prev, t.o = rec.modified, 0
	default:
		t.prev, t.o = rec.modified, a.m.otherIs(n, a.execution())
	}
}

func (a *actor) leave() {
	t := a.delivery()
	a.send(txn{kind: leave, q: t.q}, func(n *state, t *delivery, ok bool) {
		x, e, l := a.execution(), a.event(), n.locks[a.lock()]
		switch {
		case !ok && n.queue[e].created == t.q:
		case !ok && l.created != 0 && l.by == x: // the claim as head arrived after all
			t.at, t.answered = rereading, true
		case n.records[e].by == x:
			t.finish(aborted)
		case t.decideAgain && !t.left && !t.answered:
			a.anew(t)
		case t.answered:
			t.finish(storeUnavailable)
		default:
			t.finish(hungUp)
		}
	}, nothing)
}
