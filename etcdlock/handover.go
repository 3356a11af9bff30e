package etcdlock

import (
	"slices"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// How a lock is handed over. Who settles an execution writes the lock for who is first in the queue, in the same transaction
// (protocol.HandOver); these are the ways to hear of it:
//
//	this process waits there      the answer of the transaction says so, and wakes the waiter
//	another process waits there   it hears that its place is gone, and reads that it has the lock
//	the answer got lost           as if another process waited there
//
// The transaction proves that the place is there, is first, and lives on a session that does, so what the waiter then has is what a claim would have
// given it. Where nothing is known of who is first, or it is refused, the lock is freed and picked up.

// queue is what this process knows of the queue behind a lock, while somebody here waits in it. The Store's mutex owns it.
type queue struct {
	waiting int
	line    []*Place              // those who have a place, in the order in which they came
	at      int64                 // the revision of the store at which the lock was seen; 0 = never
	lock    *idem.Lock            // that it was then; nil = it was free
	head    *Place                // nobody is before it
	first   *protocol.FirstInLine // that place
	handing <-chan struct{}       // closed when the hand-over that was sent last is answered; nil = none was sent
	before  *idem.Lock            // that this process handed over then, and has; nil = head has to look
}

// lineUp lets p be told that it was handed the lock, from before it has its place.
func (s *core) lineUp(p *Place) {
	key := s.layout.Lock(p.scope)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lined[p.execution] = p
	if p.queue = s.queues[key]; p.queue == nil {
		p.queue = &queue{}
		s.queues[key] = p.queue
	}
	p.queue.waiting++
}

// entered is when p has got its place, behind who got the last one before it here. Places that were taken in one request have one revision: those who wait here
// know in which order they came.
func (s *core) entered(p *Place, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.q = revision
	if s.lined[p.execution] != p {
		return
	}
	q := p.queue
	at := len(q.line)
	for at > 0 && q.line[at-1].q > p.q { // answers may come in another order: who waits for one behind him would wait for ever
		at--
	}
	if at > 0 {
		p.before, p.since = s.layout.Queued(q.line[at-1].scope), q.line[at-1].q
	}
	q.line = slices.Insert(q.line, at, p)
}

// firstHere is who of those who wait here is first where first is; else it is first.
func (q *queue) firstHere(first *protocol.FirstInLine) *protocol.FirstInLine {
	if first == nil || len(q.line) == 0 || q.line[0].q > first.Place {
		return first
	}
	p := q.line[0]
	return &protocol.FirstInLine{Lock: *p.first, Place: p.q, Prev: p.prev}
}

// stepOut is when p waits no more.
func (s *core) stepOut(p *Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stepOutLocked(p)
}

func (s *core) stepOutLocked(p *Place) {
	if s.lined[p.execution] != p {
		return
	}
	delete(s.lined, p.execution)
	q := p.queue
	if at := slices.Index(q.line, p); at >= 0 {
		q.line = append(q.line[:at], q.line[at+1:]...)
	}
	if q.head == p {
		q.head, q.first, q.before = nil, nil, nil
	}
	if q.waiting--; q.waiting == 0 {
		delete(s.queues, s.layout.Lock(p.scope))
	}
}

// sees notes who has the lock that p waits for, and whether nobody is before p.
func (s *core) sees(p *Place, st *protocol.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := p.queue
	if s.lined[p.execution] != p {
		return
	}
	q.seesLocked(st.Lock, st.Revision)
	if first := q.firstHere(st.First); first != nil && first.Execution == p.execution {
		q.head, q.first, q.before = p, first, nil
	}
}

func (q *queue) seesLocked(l *idem.Lock, at int64) {
	if at > q.at {
		q.at, q.lock = at, l
	}
}

// latest is the revision of the lock to queue behind: as p has seen it at a revision of the store, 0 = before that is known, or as another one here
// has since, if no copy of p's event had it then. That is what p would read after a refusal.
func (s *core) latest(p *Place, behind, at int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := p.queue
	switch {
	case q.at <= max(at, behind), q.lock != nil && q.lock.Scope.Key == p.scope.Key:
		return behind
	case q.lock == nil:
		return 0
	}
	return q.lock.Revision
}

// Ahead implements idem.Ledger.
func (s *core) Ahead(scope idem.Scope) *idem.Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[s.layout.Lock(scope)]
	if q == nil || len(q.line) == 0 || q.lock == nil || q.lock.Scope.Key == scope.Key {
		return nil
	}
	l := *q.lock
	return &l
}

// changed notes what this process has made of a lock; nil: it is free.
func (s *core) changed(key string, l *idem.Lock, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[key]; q != nil {
		q.seesLocked(l, at)
	}
}

// handing notes that a hand-over is out. Whoever hears of what it has done by a watch waits for done, which says all.
func (s *core) handing(key string, done <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[key]; q != nil {
		q.handing = done
	}
}

// unanswered is closed when the hand-over that is out is answered; nil: none is.
func (s *core) unanswered(p *Place) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lined[p.execution] == p {
		return nil
	}
	return s.running[p.execution]
}

// behindOurs is the lock that p is next behind, where this process has handed it over; nil: p has to look. It is told once.
func (s *core) behindOurs(p *Place) (l *idem.Lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := p.queue; q != nil && q.head == p {
		l, q.before = q.before, nil
	}
	return l
}

// take is the lock that p was found to have.
func (s *core) take(p *Place, st *protocol.State) *owned {
	l := *st.Lock
	l.StartedAt = s.clock.Now().UTC() // by our clock, as its end will be
	protocol.Judge(&l, st.Mark)
	h := s.grant(&l, st.First)
	if h == nil {
		h = s.ours(p.execution)
	}
	if h == nil { // it has stepped out
		h = newOwned(s, l, s.layout.Keys(&l), p.session)
	}
	h.see(&l)
	return h
}

// grant makes l that of who waits here for it; nil: nobody does any more. then is who is first in the queue by now.
func (s *core) grant(l *idem.Lock, then *protocol.FirstInLine) *owned {
	s.mu.Lock()
	p := s.lined[l.Execution]
	if p == nil {
		s.mu.Unlock()
		return nil
	}
	q := p.queue
	q.seesLocked(l, l.Revision)
	s.stepOutLocked(p)
	h := newOwned(s, *l, s.layout.Keys(l), p.session)
	then = q.firstHere(then)
	h.next = then
	early := s.registerLocked(h)
	if then != nil {
		if next := s.lined[then.Execution]; next != nil && next.queue == q {
			q.head, q.first, q.before = next, then, h.lock
		}
	}
	s.mu.Unlock()
	s.follows(h, p.session, early)
	return h
}

// handOver is what a settle takes along for who is first in the queue.
type handOver struct {
	first   *protocol.FirstInLine
	keys    protocol.Keys
	lock    idem.Lock
	value   protocol.Leased
	session *session // of who ends
	epoch   int64
}

// nextInLine is who the lock of l is to be handed to; nil: nobody is known, or it is freed as ever. The pauses are read after the epoch, see pauses.
func (h *owned) nextInLine(l *idem.Lock) *handOver {
	first := h.firstKnown()
	if first == nil || h.handing || l.Parked != nil || l.Held || len(l.Slots)+len(first.Slots) > 0 || l.Scope.PerEvent || first.Scope.PerEvent ||
		first.Scope.Key == l.Scope.Key || first.Scope.Workflow != l.Scope.Workflow {
		return nil
	}
	h.mu.Lock()
	next := &handOver{first: first, lock: first.Lock, session: h.session}
	h.mu.Unlock()
	if next.session == nil || next.session.err() != nil {
		return nil
	}
	next.epoch = next.session.currentEpoch()
	if h.store.pauses.of(first.Route, first.Scope.Workflow) != nil {
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

// behind notes who was first in the queue when the lock was got.
func (h *owned) behind(first *protocol.FirstInLine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next = first
}

// firstKnown is who is first in the queue behind h, as far as this process knows.
func (h *owned) firstKnown() *protocol.FirstInLine {
	h.mu.Lock()
	known := h.next
	h.mu.Unlock()
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if q := h.store.queues[h.keys.L]; q != nil && q.first != nil && (known == nil || q.first.Place > known.Place) {
		known = q.first
	}
	return known
}

// handedOver tells who waits here that it has the lock.
func (s *core) handedOver(next *handOver, created int64, answer reply) {
	l := next.lock
	l.Created, l.Revision, l.Token = created, answer.revision, answer.revision
	if next.keys.M != "" {
		protocol.Judge(&l, protocol.First(answer.Responses[len(answer.Responses)-1]))
	}
	then := protocol.FirstAt(protocol.First(answer.Responses[protocol.ReadFirstAfterHandOver]))
	s.changed(next.keys.L, &l, answer.revision)
	if s.grant(&l, then) == nil {
		if h := s.ours(l.Execution); h != nil { // it has looked, and was faster
			h.behind(then)
		}
		return
	}
	s.sender.expect(next.keys.L)
	s.hub.deleted(next.keys.Q, answer.revision)
}
