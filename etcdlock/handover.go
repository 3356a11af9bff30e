package etcdlock

import (
	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/queue"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// How a lock is handed off. The transaction that settles an execution also writes the lock for the head of the queue (protocol.HandOver). The new owner learns
// of it so:
//
//	it waits in this process      the answer of the transaction says so, and the waiter wakes
//	it waits in another process   that sees that its entry is gone, and reads that it has the lock
//	the answer got lost           as if it waited in another process
//
// The transaction proves that the entry is there, and lives on a session that does. That it is the head this process knows: it was once, and no entry can come
// before it (see queue). So the new owner has what a claim would have given it. If the head is not known, or the transaction is refused, the lock is freed and
// claimed.

// handed returns the lock that p was handed; nil = none.
func (s *core) handed(p *Place) *owned {
	if s.queues.Left(&p.entry) {
		return s.own.of(p.entry.Execution)
	}
	return nil
}

// take returns the lock that p was found to have.
func (s *core) take(p *Place, st *protocol.State) *owned {
	l := *st.Lock
	l.StartedAt = s.clock.Now().UTC() // by our clock, as its end will be
	protocol.Judge(&l, st.Mark)
	h := s.grant(&l, st.Line)
	if h == nil {
		h = s.own.of(p.entry.Execution)
	}
	if h == nil { // it is not registered any more
		h = newOwned(s, l, s.layout.Keys(&l), p.entry.Session)
	}
	h.see(&l)
	return h
}

// grant makes l the lock of the place that waits here for it; nil = none does any more. then are the entries that are known behind it.
func (s *core) grant(l *idem.Lock, then protocol.Line) (h *owned) {
	var of *session.Session
	var early bool
	if s.queues.Grant(l, then, func(p *queue.Entry, behind protocol.Line) {
		of = p.Session
		h = newOwned(s, *l, s.layout.Keys(l), of)
		h.line = behind
		early = s.own.add(h)
	}) {
		s.follows(h, of, early)
	}
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

// nextInLine returns what hands the lock of l to the head of the queue; nil = the head is not known, or the lock is to be freed. The pauses are read after the
// epoch, see pauses.
func (h *owned) nextInLine(l *idem.Lock) *handOver {
	if h.handing {
		h.store.queues.Unlearn(h.keys.L)
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
	return h.store.queues.Known(h.keys.L, line)
}

// behind notes the queue as it was when the lock was taken.
func (h *owned) behind(line protocol.Line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.line = line
}

// handedOver wakes the place that waits here for the lock that it has now.
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
	s.queues.Changed(next.keys.L, &l, answer.Revision, then)
	if s.grant(&l, then) == nil {
		if h := s.own.of(l.Execution); h != nil { // it has looked, and was faster
			h.behind(then)
		}
		return
	}
	s.sender.ExpectEnd(next.keys.L)
	s.hub.Deleted(next.keys.Q, answer.Revision)
}
