package owned

import (
	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/etcdlock/view"
	"hooklock/idem"
)

// How a lock is handed off. The transaction that settles an execution also writes the lock for the
// head of the queue (protocol.HandOver). The new owner learns of it so:
//
//	it waits in this process      the answer of the transaction says so, and the waiter wakes
//	it waits in another process   that sees that its entry is gone, and reads that it has the lock
//	the answer got lost           as if it waited in another process
//
// The transaction proves that the entry is there, and lives on a session that does. That it is the
// head this process knows: it was once, and no entry can come before it (see view.Queues). So the
// new owner has what a claim would have given it. If the head is not known, or the transaction is
// refused, the lock is freed and claimed.

// Handed returns the lock that the entry of a waiter was handed; nil = none.
func (s *Locks) Handed(e *view.Waiter) *Lock {
	if s.options.Queues.Left(e) {
		return s.Of(e.Execution)
	}
	return nil
}

// Take returns the lock that e was found to have.
func (s *Locks) Take(e *view.Waiter, st *protocol.State) *Lock {
	l := *st.Lock
	l.StartedAt = s.options.Clock.Now().UTC() // by our clock, as its end will be
	protocol.Judge(&l, st.HighWaterMark)
	h := s.grantLock(&l, st.Candidates)
	if h == nil {
		h = s.Of(e.Execution)
	}
	if h == nil { // it is not registered any more
		h = s.Make(l, s.options.Layout.Keys(&l), e.Session)
	}
	h.See(&l)
	return h
}

// grantLock makes l the lock of the entry that waits here for it; nil = none does any more. then
// are the entries that are known behind it.
func (s *Locks) grantLock(l *idem.Lock, then protocol.Candidates) (h *Lock) {
	var of *session.Session
	var early bool
	if s.options.Queues.Grant(l, then, func(e *view.Waiter, behind protocol.Candidates) {
		of = e.Session
		h = s.Make(*l, s.options.Layout.Keys(l), of)
		h.candidates = behind
		early = s.storeLock(h)
	}) {
		s.checkTakenLock(h, of, early)
	}
	return h
}

// handOver is what a settle writes for the head of the queue.
type handOver struct {
	first  *protocol.Candidate
	then   protocol.Candidates // the entries known behind it; none = the transaction reads them
	keys   protocol.Keys
	lock   idem.Lock
	value  protocol.Leased
	ending *session.Session // of the execution that ends
	epoch  int64
}

// nextAfter returns what hands the lock of l to the head of the queue; nil = the head is not known,
// or the lock is to be freed. The pauses are read after the epoch, see view.Pauses.
func nextAfter(h *Lock, l *idem.Lock) *handOver {
	if h.handing {
		h.options.Queues.Unlearn(h.keys.Lock)
		return nil
	}
	if l.Parked != nil || l.Held || len(l.Slots) > 0 || l.Scope.PerEvent {
		return nil
	}
	candidates := h.Known()
	if len(candidates.Entries) == 0 {
		return nil
	}
	first := candidates.Entries[0]
	waits := first.Lock()
	if waits == nil || len(waits.Slots) > 0 || waits.Scope.PerEvent || waits.Scope.Key == l.Scope.Key ||
		waits.Scope.Workflow != l.Scope.Workflow {
		return nil
	}
	_, of, _ := h.currentState()
	next := &handOver{first: first, then: protocol.Candidates{Entries: candidates.Entries[1:], Upto: candidates.Upto},
		lock:   *waits,
		ending: of}
	if next.ending == nil || next.ending.Err() != nil {
		return nil
	}
	next.epoch = next.ending.Epoch()
	if h.options.Pauses.Of(waits.Route, waits.Scope.Workflow) != nil {
		return nil
	}
	next.lock.StartedAt = h.options.Clock.Now().UTC()
	value, err := protocol.EncodeFresh(&next.lock)
	if err != nil {
		return nil // it finds out itself
	}
	next.keys, next.value.Value = h.options.Layout.Keys(&next.lock), value
	return next
}

// Known returns the head of the queue behind h and those behind it, as far as this process knows.
func (h *Lock) Known() protocol.Candidates {
	h.mu.Lock()
	candidates := h.candidates
	h.mu.Unlock()
	return h.options.Queues.Known(h.keys.Lock, candidates)
}

// Behind notes the queue as it was when the lock was taken.
func (h *Lock) Behind(candidates protocol.Candidates) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.candidates = candidates
}

// endHandOver wakes the place that waits here for the lock that it has now.
func (s *Locks) endHandOver(next *handOver, created int64, answer commit.Reply) {
	l := next.lock
	l.Created, l.Revision, l.Token = created, answer.Revision, answer.Revision
	if next.keys.HighWaterMark != "" {
		protocol.Judge(&l, protocol.First(answer.Responses[len(answer.Responses)-1]))
	}
	then := next.then
	if len(then.Entries) == 0 {
		then = protocol.CandidatesAt(answer.Responses[protocol.ReadCandidatesAfterHandOver], answer.Revision)
	}
	s.options.Queues.ApplyLock(next.keys.Lock, &l, answer.Revision, then)
	if s.grantLock(&l, then) == nil {
		if h := s.Of(l.Execution); h != nil { // it has looked, and was faster
			h.Behind(then)
		}
		return
	}
	s.options.Sender.ExpectEnd(next.keys.Lock)
	s.options.Watcher.WakeFor(next.keys.Entry, answer.Revision)
}
