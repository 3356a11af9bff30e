package etcdlock

import (
	"cmp"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/watch"
	"hooklock/idem"
)

// queues are those that executions of this process wait in. It is safe for concurrent use.
type queues struct {
	layout protocol.Layout
	hub    *watch.Watcher

	mu    sync.Mutex
	lined map[idem.ExecutionID]*Place // the executions that wait here for a lock that may be handed to them
	of    map[string]*queue           // by the key of the lock
}

func newQueues(y protocol.Layout) *queues {
	return &queues{layout: y, lined: map[idem.ExecutionID]*Place{}, of: map[string]*queue{}}
}

// queue is what this process knows of the queue behind a lock, while an execution of this process waits in it. The mutex of queues owns it.
//
// To read a queue costs etcd a look at each place in it and at each that went since the last compaction, so it is read once: who comes afterwards is heard of
// by the watch on places. What was read stays true: those who come have larger revisions, so who is first once is first until he goes, and then it is the
// next. Where more wait than a reading brings, or something was not heard, it is read again when those who are known have gone.
type queue struct {
	waiting int
	places  []*Place      // those who have a place, in the order in which they came
	at      int64         // the revision of the store at which the lock was seen; 0 = never
	lock    *idem.Lock    // that it was then; nil = it was free
	line    protocol.Line // those who are first over all processes, as far as that is known
	heard   heard
	handing <-chan struct{} // closed when the hand-over that was sent last is answered; nil = none was sent
	before  *idem.Lock      // that who is first is next behind, as this process has made or got it; nil = it has to look
}

// heard is who has taken a place, as one watch has told of it: all who did after a revision, or the last of them. A line that was read at that revision or
// later goes on with them, because the watch may tell of who comes before the reading is answered.
type heard struct {
	watch  int // which one
	places []*protocol.InLine
	after  int64 // 0 = nothing was heard
}

// maxHeard bounds who is kept for a reading that is on its way.
const maxHeard = 64

func (h *heard) hear(kv *mvccpb.KeyValue, watch int) {
	next := protocol.InLineAt(kv)
	if next == nil || watch != h.watch { // nobody is handed the lock past the one, and the other may not be the first that it should have told of
		h.watch, h.places, h.after = watch, nil, kv.ModRevision
		return
	}
	if h.places = append(h.places, next); len(h.places) > maxHeard {
		h.after, h.places = h.places[0].Place, h.places[1:]
	}
}

// came is told of places that were taken, of those of one revision together.
func (qs *queues) came(places []*mvccpb.KeyValue, watch int) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	var of []*queue
	for _, kv := range places {
		if q := qs.of[string(qs.layout.LockOfPlace(kv.Key))]; q != nil {
			if q.heard.hear(kv, watch); !slices.Contains(of, q) {
				of = append(of, q)
			}
		}
	}
	for _, q := range of {
		q.goOn()
	}
}

// goOn lets the line go on with who was heard of.
func (q *queue) goOn() {
	n := len(q.heard.places)
	if !q.followed() || n == 0 {
		return
	}
	line := q.line.Places
	came := after(q.heard.places, q.line.Upto)
	if len(line) > 0 {
		came = after(came, line[0].Place-1) // who is first now is later than they
	}
	q.line = bounded(protocol.Line{Places: merged(line, came), Upto: max(q.line.Upto, q.heard.places[n-1].Place)})
}

// bounded keeps the first of a line that is longer than a reading.
func bounded(line protocol.Line) protocol.Line {
	if len(line.Places) > protocol.LineLength {
		return protocol.Line{Places: line.Places[:protocol.LineLength]}
	}
	return line
}

// followed reports whether the line has everybody who waits, but for those whom the watch has not told of yet.
func (q *queue) followed() bool {
	return q.heard.after != 0 && q.line.Upto >= q.heard.after
}

// forget is when what was known of who waits is worth nothing.
func (q *queue) forget() { q.line, q.heard = protocol.Line{}, heard{} }

// lineUp lets p be told that it was handed the lock, from before it has its place.
func (qs *queues) lineUp(p *Place) {
	key := qs.layout.Lock(p.scope)
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.lined[p.execution] = p
	if p.queue = qs.of[key]; p.queue == nil {
		p.queue = &queue{}
		qs.of[key] = p.queue
	}
	p.queue.waiting++
}

// entered is when p has got its place, behind who got the last one before it here. Places that were taken in one request have one revision: those who wait here
// know in which order they came.
func (qs *queues) entered(p *Place, revision int64) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	p.q = revision
	if qs.lined[p.execution] != p {
		return
	}
	q := p.queue
	at := len(q.places)
	for at > 0 && q.places[at-1].q > p.q { // answers may come in another order: who waits for one behind him would wait for ever
		at--
	}
	if at > 0 {
		p.before, p.since = qs.layout.Queued(q.places[at-1].scope), q.places[at-1].q
	}
	q.places = slices.Insert(q.places, at, p)
}

// found is when p has found its place, because the answer got lost. It may be handed the lock just now, by whoever has heard of the place.
func (qs *queues) found(p *Place, revision int64) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	p.q = revision
}

// othersWait reports whether others of this process have a place in the queue that p comes to.
func (qs *queues) othersWait(p *Place) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return len(p.queue.places) > 0
}

// learnLocked takes what was read of the queue together with what was known. Of places of one revision, who is first those know who wait here.
func (q *queue) learnLocked(line protocol.Line) {
	q.line = later(q.line, line)
	q.goOn()
	if len(q.line.Places) == 0 {
		return
	}
	at := slices.IndexFunc(q.places, func(p *Place) bool { return p.q == q.line.Places[0].Place })
	if at < 0 || q.isFirst(q.places[at]) {
		return
	}
	p := q.places[at]
	rest := slices.DeleteFunc(slices.Clone(q.line.Places), p.is)
	q.line.Places = append([]*protocol.InLine{protocol.NewInLine(p.key(), p.q, p.prev, p.first)}, rest...)
}

// later is what two readings of one queue say together: all who are in either, but for those before the first of the later one, who have gone. Some of the
// others may have gone, too, but what of the two is right about whom, neither says: the longer one may be the older, and the one that reaches farther up may
// be one of few. Who is lost here is passed over until the queue is read again.
func later(a, b protocol.Line) protocol.Line {
	both := protocol.Line{Upto: max(a.Upto, b.Upto)}
	switch x, y := a.Places, b.Places; {
	case len(x) == 0:
		both.Places = after(y, a.Upto)
	case len(y) == 0:
		both.Places = after(x, b.Upto)
	default:
		first := max(x[0].Place, y[0].Place)
		both.Places = merged(after(x, first-1), after(y, first-1))
	}
	return bounded(both)
}

// merged is who is in either of two sorted lines, which it leaves as they are. Mostly one has all of the other.
func merged(x, y []*protocol.InLine) []*protocol.InLine {
	if len(x) > len(y) {
		x, y = y, x
	}
	var more []*protocol.InLine
	at := 0
	for _, l := range x {
		for at < len(y) && y[at].Place < l.Place {
			at++
		}
		if !hasPlace(y[at:], l) {
			more = append(more, l)
		}
	}
	if more == nil {
		return y
	}
	all := slices.Concat(y, more)
	slices.SortStableFunc(all, func(l, m *protocol.InLine) int { return cmp.Compare(l.Place, m.Place) })
	return all
}

// after is who came behind a revision.
func after(places []*protocol.InLine, upto int64) []*protocol.InLine {
	for len(places) > 0 && places[0].Place <= upto {
		places = places[1:]
	}
	return places
}

// hasPlace looks no farther than it has to in a sorted line.
func hasPlace(line []*protocol.InLine, l *protocol.InLine) bool {
	for _, m := range line {
		if m.Place >= l.Place && (m.Place > l.Place || m.Key == l.Key) {
			return m.Place == l.Place
		}
	}
	return false
}

// isFirst reports whether nobody is before p.
func (q *queue) isFirst(p *Place) bool { return len(q.line.Places) > 0 && p.is(q.line.Places[0]) }

// is reports whether l is p, whose place may be heard of before its own answer.
func (p *Place) is(l *protocol.InLine) bool {
	return (p.q == l.Place || p.q == 0) && p.key() == l.Key
}

func (p *Place) key() string { return p.store.layout.Queued(p.scope) }

// without is when the one in a place waits no more, because it got the lock at a revision. One that came together with it may be before it in the line, and
// waits on: which of them is first, another process does not know.
func (q *queue) without(place string, got int64) {
	line := q.line.Places
	at := len(line) - 1
	for at >= 0 && (line[at].Key != place || line[at].Place >= got) { // its event may have been there before, and may have come again since
		at--
	}
	if at < 0 {
		return
	}
	from := at
	for from > 0 && line[from-1].Place == line[at].Place {
		from--
	}
	q.line.Places = line[at+1:]
	if from < at {
		q.line.Places = slices.Concat(line[from:at], line[at+1:])
	}
}

// stepOut is when p waits no more.
func (qs *queues) stepOut(p *Place) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.stepOutLocked(p)
}

func (qs *queues) stepOutLocked(p *Place) {
	if qs.lined[p.execution] != p {
		return
	}
	delete(qs.lined, p.execution)
	q := p.queue
	if at := slices.Index(q.places, p); at >= 0 {
		q.places = append(q.places[:at], q.places[at+1:]...)
	}
	if slices.ContainsFunc(q.line.Places, p.is) { // its place may be there for some time yet
		q.line = protocol.Line{}
	}
	if q.waiting--; q.waiting == 0 {
		delete(qs.of, qs.layout.Lock(p.scope))
	}
}

// sees notes who has the lock that p waits for, and whether nobody is before p.
func (qs *queues) sees(p *Place, st *protocol.State) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := p.queue
	if qs.lined[p.execution] != p {
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
func (qs *queues) latest(p *Place, behind, at int64) int64 {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := p.queue
	switch {
	case q.at <= max(at, behind), q.lock != nil && q.lock.Scope.Key == p.scope.Key:
		return behind
	case q.lock == nil:
		return 0
	}
	return q.lock.Revision
}

// lockAhead returns the lock that others of this process wait for in the queue of scope, as it was seen last; nil = none do, or it is free, or a copy of the
// same event has it.
func (qs *queues) lockAhead(scope idem.Scope) *idem.Lock {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.of[qs.layout.Lock(scope)]
	if q == nil || len(q.places) == 0 || q.lock == nil || q.lock.Scope.Key == scope.Key {
		return nil
	}
	l := *q.lock
	return &l
}

// changed notes what this process has made of a lock, nil: it is free; and who waits for it then, as far as that is known.
func (qs *queues) changed(key string, l *idem.Lock, at int64, line protocol.Line) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.of[key]; q != nil {
		q.seesLocked(l, at)
		q.learnLocked(line)
		if l != nil { // who has it waits no more, though it may not have heard yet
			q.without(qs.layout.Queued(l.Scope), l.Revision)
		}
		q.before = l
	}
}

// unlearn is after a hand-over or the claim of who is first was refused, or its answer got lost.
func (qs *queues) unlearn(key string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.of[key]; q != nil {
		q.line = protocol.Line{}
	}
}

// isFirst reports whether nobody is before p, and it is known who is behind it: then its queue need not be read.
func (qs *queues) isFirst(p *Place) bool {
	if p.queue == nil {
		return false
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return p.queue.isFirst(p) && (len(p.queue.line.Places) > 1 || p.queue.followed())
}

// goneAt is the revision at which the place of p has gone, where that was heard and who waits behind it is known: then its queue need not be read. 0 =
// it has to be.
func (qs *queues) goneAt(p *Place) int64 {
	if p.queue == nil {
		return 0
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if at := slices.IndexFunc(p.queue.line.Places, p.is); at < 0 || at == len(p.queue.line.Places)-1 && !p.queue.followed() {
		return 0
	}
	return qs.hub.GoneAt(p.key(), p.q)
}

// ahead is the place that p waits for next and the revision at which that was taken, as far as this process knows without asking; "" = p has to look. It
// is told of each once.
func (qs *queues) ahead(p *Place) (place string, since int64) {
	if p.queue == nil {
		return "", 0
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := p.queue
	line := q.line.Places
	at := slices.IndexFunc(line, p.is)
	for at > 0 && line[at-1].Place == p.q { // those who wait here know which of them is first
		at--
	}
	for i := at - 1; i >= 0; i-- {
		other := line[i]
		place = other.Key
		switch {
		case qs.hub.GoneAt(place, other.Place) != 0:
			continue
		case place == p.before && other.Place == p.since:
			return "", 0
		}
		p.before, p.since = place, other.Place
		return place, other.Place
	}
	if at > 0 {
		q.line.Places, q.before = line[at:], nil
		q.learnLocked(protocol.Line{})
	}
	return "", 0
}

// known adds what this process knows of the queue behind a lock to the line that was read with it: the head of the queue, and those behind it.
func (qs *queues) known(lock string, line protocol.Line) protocol.Line {
	qs.mu.Lock()
	if q := qs.of[lock]; q != nil {
		line = later(line, q.line)
	}
	qs.mu.Unlock()
	for len(line.Places) > 0 && qs.hub.GoneAt(line.Places[0].Key, line.Places[0].Place) != 0 { // an entry that has left since costs a refusal
		line.Places = line.Places[1:]
	}
	return line
}

// forget drops all that is known by a revision.
func (qs *queues) forget() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, q := range qs.of {
		q.at, q.lock, q.before = 0, nil, nil
		q.forget()
	}
}
