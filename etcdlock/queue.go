package etcdlock

import (
	"slices"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// queue is what this process knows of the queue behind a lock, while somebody here waits in it. The Store's mutex owns it.
//
// To read a queue costs etcd a look at each place in it and at each that went since the last compaction, so it is read for many hand-overs at once. What was
// read stays true: those who come have larger revisions, so who is first once is first until he goes, and then it is the next of the reading.
type queue struct {
	waiting int
	places  []*Place           // those who have a place, in the order in which they came
	at      int64              // the revision of the store at which the lock was seen; 0 = never
	lock    *idem.Lock         // that it was then; nil = it was free
	line    []*protocol.InLine // those who are first over all processes, as far as that is known. Nobody was before them
	handing <-chan struct{}    // closed when the hand-over that was sent last is answered; nil = none was sent
	before  *idem.Lock         // that who is first is next behind, as this process has made or got it; nil = it has to look
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
	at := len(q.places)
	for at > 0 && q.places[at-1].q > p.q { // answers may come in another order: who waits for one behind him would wait for ever
		at--
	}
	if at > 0 {
		p.before, p.since = s.layout.Queued(q.places[at-1].scope), q.places[at-1].q
	}
	q.places = slices.Insert(q.places, at, p)
}

// othersWait reports whether others of this process have a place in the queue that p comes to.
func (s *core) othersWait(p *Place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(p.queue.places) > 0
}

// learnLocked takes what was read of the queue together with what was known. Of places of one revision, who is first those know who wait here.
func (q *queue) learnLocked(line []*protocol.InLine) {
	q.line = later(q.line, line)
	if len(q.line) == 0 {
		return
	}
	at := slices.IndexFunc(q.places, func(p *Place) bool { return p.q == q.line[0].Place })
	if at < 0 || q.isFirst(q.places[at]) {
		return
	}
	p := q.places[at]
	rest := slices.DeleteFunc(slices.Clone(q.line), p.is)
	q.line = append([]*protocol.InLine{{Lock: *p.first, Place: p.q, Prev: p.prev}}, rest...)
}

// later is what two readings of one queue say together. Who is first in the later one shows that those who were before him have gone, and whoever is
// behind him in either was there then, or has come since.
func later(a, b []*protocol.InLine) []*protocol.InLine {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	case a[0].Place == b[0].Place && len(a) > len(b):
		return a
	case a[0].Place == b[0].Place:
		return b
	case a[0].Place > b[0].Place:
		a, b = b, a
	}
	at := slices.IndexFunc(a, func(l *protocol.InLine) bool { return l.Execution == b[0].Execution && l.Place == b[0].Place })
	if at >= 0 && len(a)-at > len(b) {
		return a[at:]
	}
	return b
}

// isFirst reports whether nobody is before p.
func (q *queue) isFirst(p *Place) bool { return len(q.line) > 0 && p.is(q.line[0]) }

func (p *Place) is(l *protocol.InLine) bool { return l.Execution == p.execution }

// without is who is known to wait when id waits no more, because it has the lock. One that came together with it may be before it in the line, and waits on:
// which of them is first, another process does not know.
func (q *queue) without(id idem.ExecutionID) []*protocol.InLine {
	at := slices.IndexFunc(q.line, func(l *protocol.InLine) bool { return l.Execution == id })
	from := at
	for from > 0 && q.line[from-1].Place == q.line[at].Place {
		from--
	}
	if from < at {
		return slices.Concat(q.line[from:at], q.line[at+1:])
	}
	return q.line[at+1:]
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
	if at := slices.Index(q.places, p); at >= 0 {
		q.places = append(q.places[:at], q.places[at+1:]...)
	}
	if slices.ContainsFunc(q.line, p.is) { // its place may be there for some time yet
		q.line = nil
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
	q.learnLocked(st.Line)
	q.before = nil
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
	if q == nil || len(q.places) == 0 || q.lock == nil || q.lock.Scope.Key == scope.Key {
		return nil
	}
	l := *q.lock
	return &l
}

// changed notes what this process has made of a lock, nil: it is free; and who waits for it then, as far as that is known.
func (s *core) changed(key string, l *idem.Lock, at int64, line []*protocol.InLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[key]; q != nil {
		q.seesLocked(l, at)
		q.learnLocked(line)
		if l != nil { // who has it waits no more, though it may not have heard yet
			q.line = q.without(l.Execution)
		}
		q.before = l
	}
}

// unlearn is after a hand-over or the claim of who is first was refused, or its answer got lost.
func (s *core) unlearn(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[key]; q != nil {
		q.line = nil
	}
}

// isFirst reports whether nobody is before p, and it is known who is behind it: then its queue need not be read.
func (s *core) isFirst(p *Place) bool {
	if p.queue == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.queue.isFirst(p) && len(p.queue.line) > 1
}

// goneAt is the revision at which the place of p has gone, where that was heard and who waits behind it is known: then its queue need not be read. 0 =
// it has to be.
func (s *core) goneAt(p *Place) int64 {
	if p.queue == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.IndexFunc(p.queue.line, p.is); at < 0 || at == len(p.queue.line)-1 {
		return 0
	}
	return s.hub.goneAt(s.layout.Queued(p.scope), p.q)
}

// ahead is the place that p waits for next and the revision at which that was taken, as far as this process knows without asking; "" = p has to look. It
// is told of each once.
func (s *core) ahead(p *Place) (place string, since int64) {
	if p.queue == nil {
		return "", 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := p.queue
	at := slices.IndexFunc(q.line, p.is)
	for at > 0 && q.line[at-1].Place == p.q { // those who wait here know which of them is first
		at--
	}
	for i := at - 1; i >= 0; i-- {
		other := q.line[i]
		place = s.layout.Queued(other.Scope)
		switch {
		case s.hub.goneAt(place, other.Place) != 0:
			continue
		case place == p.before && other.Place == p.since:
			return "", 0
		}
		p.before, p.since = place, other.Place
		return place, other.Place
	}
	if at > 0 {
		q.line, q.before = q.line[at:], nil
		q.learnLocked(nil)
	}
	return "", 0
}

// known is who is first in the queue behind h, and those behind him, as far as this process knows.
func (h *owned) known() []*protocol.InLine {
	h.mu.Lock()
	line := h.line
	h.mu.Unlock()
	s := h.store
	s.mu.Lock()
	if q := s.queues[h.keys.L]; q != nil {
		line = later(line, q.line)
	}
	s.mu.Unlock()
	for len(line) > 0 && s.hub.goneAt(s.layout.Queued(line[0].Scope), line[0].Place) != 0 { // who has left since costs a refusal
		line = line[1:]
	}
	return line
}
