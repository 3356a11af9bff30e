package etcdlock

import (
	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// How a lock is handed over. Who settles an execution writes the lock for who is first in the queue, in the same transaction
// (protocol.HandOver); these are the ways to hear of it:
//
//	this process waits there      the answer of the transaction says so, and wakes the waiter
//	another process waits there   it hears that its place is gone, and reads that it has the lock
//	the answer got lost           as if another process waited there
//
// The transaction proves that the place is there, and lives on a session that does. That it is first this process knows: it was once, and nobody can come
// before it (see queue). So what the waiter then has is what a claim would have given it. Where nothing is known of who is first, or it is refused, the
// lock is freed and picked up.

// handing notes that a hand-over is out. Whoever hears of what it has done by a watch waits for done, which says all.
func (qs *queues) handing(key string, done <-chan struct{}) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.of[key]; q != nil {
		q.handing = done
	}
}

// unanswered is closed when the hand-over that is out is answered; nil: none is.
func (qs *queues) unanswered(p *Place) <-chan struct{} {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if p.queue == nil || p.queue.handing == nil {
		return nil
	}
	select {
	case <-p.queue.handing:
		return nil
	default:
		return p.queue.handing
	}
}

// handed is the lock that p was told of; nil = none.
func (s *core) handed(p *Place) *owned {
	if p.queue == nil {
		return nil
	}
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	if s.queues.lined[p.execution] == p {
		return nil
	}
	return s.own.of(p.execution)
}

// behindOurs is the lock that p is next behind, where this process has handed it over; nil: p has to look. It is told once.
func (qs *queues) behindOurs(p *Place) (l *idem.Lock) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := p.queue; q != nil && q.isFirst(p) {
		l, q.before = q.before, nil
	}
	return l
}

// take is the lock that p was found to have.
func (s *core) take(p *Place, st *protocol.State) *owned {
	l := *st.Lock
	l.StartedAt = s.clock.Now().UTC() // by our clock, as its end will be
	protocol.Judge(&l, st.Mark)
	h := s.grant(&l, st.Line)
	if h == nil {
		h = s.own.of(p.execution)
	}
	if h == nil { // it has stepped out
		h = newOwned(s, l, s.layout.Keys(&l), p.session)
	}
	h.see(&l)
	return h
}

// grant makes l that of who waits here for it; nil: nobody does any more. then is who is known to wait behind.
func (s *core) grant(l *idem.Lock, then protocol.Line) *owned {
	s.queues.mu.Lock()
	p := s.queues.lined[l.Execution]
	if p == nil {
		s.queues.mu.Unlock()
		return nil
	}
	q := p.queue
	q.seesLocked(l, l.Revision)
	q.without(s.layout.Queued(l.Scope), l.Revision)
	s.queues.stepOutLocked(p)
	h := newOwned(s, *l, s.layout.Keys(l), p.session)
	q.before = h.lock
	q.learnLocked(then)
	h.line = q.line
	early := s.own.add(h) // before the mutex is free: see handed
	s.queues.mu.Unlock()
	s.follows(h, p.session, early)
	return h
}

// handOver is what a settle writes for the head of the queue.
type handOver struct {
	first   *protocol.InLine
	then    protocol.Line // the entries known behind it; none = the transaction reads them
	keys    protocol.Keys
	lock    idem.Lock
	value   protocol.Leased
	session *session.Session // of the execution that ends
	epoch   int64
}

// nextInLine is who the lock of l is to be handed to; nil: nobody is known, or it is freed as ever. The pauses are read after the epoch, see pauses.
func (h *owned) nextInLine(l *idem.Lock) *handOver {
	if h.handing {
		h.store.queues.unlearn(h.keys.L)
		return nil
	}
	if l.Parked != nil || l.Held || len(l.Slots) > 0 || l.Scope.PerEvent {
		return nil
	}
	line := h.known()
	if len(line.Places) == 0 {
		return nil
	}
	first := line.Places[0]
	waits := first.Lock()
	if waits == nil || len(waits.Slots) > 0 || waits.Scope.PerEvent || waits.Scope.Key == l.Scope.Key || waits.Scope.Workflow != l.Scope.Workflow {
		return nil
	}
	h.mu.Lock()
	next := &handOver{first: first, then: protocol.Line{Places: line.Places[1:], Upto: line.Upto}, lock: *waits, session: h.session}
	h.mu.Unlock()
	if next.session == nil || next.session.Err() != nil {
		return nil
	}
	next.epoch = next.session.Epoch()
	if h.store.pauses.Of(waits.Route, waits.Scope.Workflow) != nil {
		return nil
	}
	next.lock.StartedAt = h.store.clock.Now().UTC()
	value, err := protocol.EncodeFresh(&next.lock)
	if err != nil {
		return nil // it finds out itself
	}
	next.keys, next.value.Value = h.store.layout.Keys(&next.lock), value
	return next
}

// known returns the head of the queue behind h and those behind it, as far as this process knows.
func (h *owned) known() protocol.Line {
	h.mu.Lock()
	line := h.line
	h.mu.Unlock()
	return h.store.queues.known(h.keys.L, line)
}

// behind notes who waited when the lock was got.
func (h *owned) behind(line protocol.Line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.line = line
}

// handedOver tells who waits here that it has the lock.
func (s *core) handedOver(next *handOver, created int64, answer commit.Reply) {
	l := next.lock
	l.Created, l.Revision, l.Token = created, answer.Revision, answer.Revision
	if next.keys.M != "" {
		protocol.Judge(&l, protocol.First(answer.Responses[len(answer.Responses)-1]))
	}
	then := next.then
	if len(then.Places) == 0 {
		then = protocol.LineAt(answer.Responses[protocol.ReadLineAfterHandOver], answer.Revision)
	}
	s.queues.changed(next.keys.L, &l, answer.Revision, then)
	if s.grant(&l, then) == nil {
		if h := s.own.of(l.Execution); h != nil { // it has looked, and was faster
			h.behind(then)
		}
		return
	}
	s.sender.ExpectEnd(next.keys.L)
	s.hub.Deleted(next.keys.Q, answer.Revision)
}
