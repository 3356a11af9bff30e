package view

import (
	"cmp"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Queues are those that executions of this process wait in. It is safe for concurrent use.
type Queues struct {
	layout  protocol.Layout
	watcher *Watcher // which keys are gone

	mu      sync.Mutex
	waiters map[idem.ExecutionID]*Waiter // that may be handed the lock
	of      map[string]*queue            // by the key of the lock
}

// newQueues returns queues of which nothing is known.
func newQueues(y protocol.Layout, w *Watcher) *Queues {
	return &Queues{layout: y, watcher: w, waiters: map[idem.ExecutionID]*Waiter{}, of: map[string]*queue{}}
}

// Waiter is the queue entry of an execution of this process. Only one that was registered may be
// handed the lock; Queues changes it then.
type Waiter struct {
	Execution idem.ExecutionID // the one that waits
	Scope     idem.Scope       // the lock that it waits for
	Session   *session.Session // that its entry lives on
	Revision  int64            // create revision: the order in the queue
	Prev      int64            // the revision of the event's record
	Lock      *idem.Lock       // what it says

	queue  *queue // nil = it was not registered
	before string // the entry before its own, as far as this process knows; "" = it has to look
	since  int64  // the revision at which that was made: it may have gone before this one was made
}

func (e *Waiter) entryKey() string { return e.queue.layout.Queued(e.Scope) }

// Predecessor returns the entry before e's when that was made, and its revision; "" = it has to
// look.
func (e *Waiter) Predecessor() (entry string, since int64) { return e.before, e.since }

// queue is what this process knows of the queue behind a lock, while an execution of this process
// waits in it. Queues.mu guards it.
//
// To read a queue costs etcd a look at each entry in it and at each that left since the last
// compaction, so it is read once: the watch reports the entries that come afterwards. What was read
// stays true: later entries have larger revisions, so the head stays the head until it leaves, and
// then it is the next one. If there are more entries than one read returns, or the watch missed
// some, the queue is read again when the known ones have left.
type queue struct {
	layout     protocol.Layout
	waiting    int
	places     []*Waiter           // those that have an entry, in the order of the entries
	at         int64               // the revision of the store at which the lock was seen; 0 = never
	lock       *idem.Lock          // that it was then; nil = it was free
	candidates protocol.Candidates // the first entries over all processes, as far as they are known
	pending    pending
	handing    <-chan struct{} // closed when the hand-off that was sent last is answered; nil = none was sent
	// the lock that the head waits for, as this process has made or got it; nil = the head has to
	// read it
	before *idem.Lock
}

// pending holds entries that one watch has reported and that are not merged yet: all after a
// revision, or the last of them. Candidates that were read at that revision or later are continued
// with them, because the watch may report entries before the read is answered.
type pending struct {
	watch  int // which one
	places []*protocol.Candidate
	after  int64 // 0 = nothing was reported
}

// maxPending bounds the entries that are kept for a read that is not answered yet.
const maxPending = 64

// addEntry adds an entry that a watch has reported.
func (p *pending) addEntry(kv *mvccpb.KeyValue, watch int) {
	next := protocol.CandidateAt(kv)
	// An unreadable entry must not be skipped, and a new watch may have missed entries. After
	// either, the queue has to be read up to this revision.
	if next == nil || watch != p.watch {
		p.watch, p.places, p.after = watch, nil, kv.ModRevision
		return
	}
	if p.places = append(p.places, next); len(p.places) > maxPending {
		p.after, p.places = p.places[0].Revision, p.places[1:]
	}
}

// AddReported takes new queue entries from the watch, those of one revision together.
func (qs *Queues) AddReported(places []*mvccpb.KeyValue, watch int) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	var of []*queue
	for _, kv := range places {
		if q := qs.of[string(qs.layout.LockOfPlace(kv.Key))]; q != nil {
			if q.pending.addEntry(kv, watch); !slices.Contains(of, q) {
				of = append(of, q)
			}
		}
	}
	for _, q := range of {
		q.appendReported()
	}
}

// appendReported appends the entries that the watch has reported since the last read.
func (q *queue) appendReported() {
	n := len(q.pending.places)
	if !q.isComplete() || n == 0 {
		return
	}
	candidates := q.candidates.Entries
	came := entriesAfter(q.pending.places, q.candidates.Upto)
	if len(candidates) > 0 {
		came = entriesAfter(came, candidates[0].Revision-1) // the head is a later entry than these
	}
	q.candidates = limitCandidates(protocol.Candidates{Entries: mergeEntries(candidates, came),
		Upto: max(q.candidates.Upto, q.pending.places[n-1].Revision)})
}

// limitCandidates keeps the first candidates, where there are more than one read returns.
func limitCandidates(candidates protocol.Candidates) protocol.Candidates {
	if len(candidates.Entries) > protocol.MaxCandidates {
		return protocol.Candidates{Entries: candidates.Entries[:protocol.MaxCandidates]}
	}
	return candidates
}

// isComplete reports whether the candidates are all entries, except for those that the watch has
// not reported yet.
func (q *queue) isComplete() bool {
	return q.pending.after != 0 && q.candidates.Upto >= q.pending.after
}

// forgetEntries drops the entries that are known, because they may be wrong.
func (q *queue) forgetEntries() { q.candidates, q.pending = protocol.Candidates{}, pending{} }

// Register lets e be handed the lock. It is called before e has its entry.
func (qs *Queues) Register(e *Waiter) {
	key := qs.layout.Lock(e.Scope)
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.waiters[e.Execution] = e
	if e.queue = qs.of[key]; e.queue == nil {
		e.queue = &queue{layout: qs.layout}
		qs.of[key] = e.queue
	}
	e.queue.waiting++
}

// NoteEntry notes that e has its entry, behind the last one of this process before it. Entries of
// one request have one revision: this process knows their order.
func (qs *Queues) NoteEntry(e *Waiter, revision int64) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	e.Revision = revision
	if qs.waiters[e.Execution] != e {
		return
	}
	q := e.queue
	at := len(q.places)
	// answers may come in another order: a place that waited for one behind it would wait for ever
	for at > 0 && q.places[at-1].Revision > e.Revision {
		at--
	}
	if at > 0 {
		e.before, e.since = qs.layout.Queued(q.places[at-1].Scope), q.places[at-1].Revision
	}
	q.places = slices.Insert(q.places, at, e)
}

// NoteFoundEntry notes the entry that e has found after the answer was lost. e may be handed the
// lock at the same time, by a process that knows the entry.
func (qs *Queues) NoteFoundEntry(e *Waiter, revision int64) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	e.Revision = revision
}

// OthersWait reports whether others of this process have an entry in the queue of e.
func (qs *Queues) OthersWait(e *Waiter) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return len(e.queue.places) > 0
}

// learnLocked merges what was read of the queue with what was known. Which of several entries of
// one revision is first, the process knows that made them.
func (q *queue) learnLocked(candidates protocol.Candidates) {
	q.candidates = mergeCandidates(q.candidates, candidates)
	q.appendReported()
	if len(q.candidates.Entries) == 0 {
		return
	}
	at := slices.IndexFunc(q.places, func(e *Waiter) bool { return e.Revision == q.candidates.Entries[0].Revision })
	if at < 0 || q.isFirst(q.places[at]) {
		return
	}
	e := q.places[at]
	rest := slices.DeleteFunc(slices.Clone(q.candidates.Entries), e.isEntry)
	q.candidates.Entries = append([]*protocol.Candidate{protocol.NewCandidate(e.entryKey(), e.Revision, e.Prev,
		e.Lock)},
		rest...)
}

// mergeCandidates combines two reads of the same queue. Entries before the head of the newer read
// have left it and are dropped. Others may have left, too, but neither read says which: the longer
// one may be the older, and the one that reaches farther may have few entries. An entry that is
// lost here is passed over until the queue is read again.
func mergeCandidates(a, b protocol.Candidates) protocol.Candidates {
	both := protocol.Candidates{Upto: max(a.Upto, b.Upto)}
	switch x, y := a.Entries, b.Entries; {
	case len(x) == 0:
		both.Entries = entriesAfter(y, a.Upto)
	case len(y) == 0:
		both.Entries = entriesAfter(x, b.Upto)
	default:
		first := max(x[0].Revision, y[0].Revision)
		both.Entries = mergeEntries(entriesAfter(x, first-1), entriesAfter(y, first-1))
	}
	return limitCandidates(both)
}

// mergeEntries returns the entries of two sorted lines, which it does not change. Mostly one has
// all of the other.
func mergeEntries(x, y []*protocol.Candidate) []*protocol.Candidate {
	if len(x) > len(y) {
		x, y = y, x
	}
	var more []*protocol.Candidate
	at := 0
	for _, l := range x {
		for at < len(y) && y[at].Revision < l.Revision {
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
	slices.SortStableFunc(all, func(l, m *protocol.Candidate) int { return cmp.Compare(l.Revision, m.Revision) })
	return all
}

// entriesAfter returns the entries that came after a revision.
func entriesAfter(places []*protocol.Candidate, upto int64) []*protocol.Candidate {
	for len(places) > 0 && places[0].Revision <= upto {
		places = places[1:]
	}
	return places
}

// hasPlace looks no farther than it has to in a sorted list.
func hasPlace(candidates []*protocol.Candidate, l *protocol.Candidate) bool {
	for _, m := range candidates {
		if m.Revision >= l.Revision && (m.Revision > l.Revision || m.Key == l.Key) {
			return m.Revision == l.Revision
		}
	}
	return false
}

// isFirst reports whether e is known to be the head.
func (q *queue) isFirst(e *Waiter) bool {
	return len(q.candidates.Entries) > 0 && e.isEntry(q.candidates.Entries[0])
}

// isEntry reports whether l is the entry of e, which may be reported before its own answer.
func (e *Waiter) isEntry(l *protocol.Candidate) bool {
	return (e.Revision == l.Revision || e.Revision == 0) && e.entryKey() == l.Key
}

// dropUpTo drops the entry of an execution that got the lock at a revision, and those before it.
// One of the same revision may be before it, and stays: which of them is first, another process
// does not know.
func (q *queue) dropUpTo(place string, got int64) {
	candidates := q.candidates.Entries
	at := len(candidates) - 1
	// its event may have been there before, and may have come again since
	for at >= 0 && (candidates[at].Key != place || candidates[at].Revision >= got) {
		at--
	}
	if at < 0 {
		return
	}
	from := at
	for from > 0 && candidates[from-1].Revision == candidates[at].Revision {
		from--
	}
	q.candidates.Entries = candidates[at+1:]
	if from < at {
		q.candidates.Entries = slices.Concat(candidates[from:at], candidates[at+1:])
	}
}

// Unregister is called when e does not wait any more.
func (qs *Queues) Unregister(e *Waiter) {
	if e.queue == nil {
		return
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.unregisterLocked(e)
}

func (qs *Queues) unregisterLocked(e *Waiter) {
	if qs.waiters[e.Execution] != e {
		return
	}
	delete(qs.waiters, e.Execution)
	q := e.queue
	if at := slices.Index(q.places, e); at >= 0 {
		q.places = append(q.places[:at], q.places[at+1:]...)
	}
	if slices.ContainsFunc(q.candidates.Entries, e.isEntry) { // its entry may be there for some time yet
		q.candidates = protocol.Candidates{}
	}
	if q.waiting--; q.waiting == 0 {
		delete(qs.of, qs.layout.Lock(e.Scope))
	}
}

// Sees notes which lock e waits for, and the entries before e.
func (qs *Queues) Sees(e *Waiter, st *protocol.State) {
	if e.queue == nil {
		return
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := e.queue
	if qs.waiters[e.Execution] != e {
		return
	}
	q.seesLocked(st.Lock, st.Revision)
	q.learnLocked(st.Candidates)
	q.before = nil
}

func (q *queue) seesLocked(l *idem.Lock, at int64) {
	if at > q.at {
		q.at, q.lock = at, l
	}
}

// Latest returns the revision of the lock to queue behind: behind, as e has seen it at a revision
// of the store (0 = before that is known); or what others here have seen since, if no copy of e's
// event had the lock then. That is what e would read after a refusal.
func (qs *Queues) Latest(e *Waiter, behind, at int64) int64 {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := e.queue
	switch {
	case q.at <= max(at, behind), q.lock != nil && q.lock.Scope.Key == e.Scope.Key:
		return behind
	case q.lock == nil:
		return 0
	}
	return q.lock.Revision
}

// LockAhead returns the lock that others of this process wait for in the queue of scope, as it was
// seen last; nil = none do, or it is free, or a copy of the same event has it.
func (qs *Queues) LockAhead(scope idem.Scope) *idem.Lock {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.of[qs.layout.Lock(scope)]
	if q == nil || len(q.places) == 0 || q.lock == nil || q.lock.Scope.Key == scope.Key {
		return nil
	}
	l := *q.lock
	return &l
}

// ApplyLock notes what this process has made of a lock, nil = it is free, and the queue behind it,
// as far as that is known.
func (qs *Queues) ApplyLock(key string, l *idem.Lock, at int64, candidates protocol.Candidates) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.of[key]; q != nil {
		q.seesLocked(l, at)
		q.learnLocked(candidates)
		if l != nil { // its owner does not wait any more, though it may not know yet
			q.dropUpTo(qs.layout.Queued(l.Scope), l.Revision)
		}
		q.before = l
	}
}

// Unlearn is called after a hand-off or a claim of the head was refused, or its answer was lost.
func (qs *Queues) Unlearn(key string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.of[key]; q != nil {
		q.candidates = protocol.Candidates{}
	}
}

// IsHead reports whether e is the head, and the entries behind it are known: then its queue need
// not be read.
func (qs *Queues) IsHead(e *Waiter) bool {
	if e.queue == nil {
		return false
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return e.queue.isFirst(e) && (len(e.queue.candidates.Entries) > 1 || e.queue.isComplete())
}

// GoneAt returns the revision at which the entry of e was deleted, if that was reported and the
// entries behind it are known: then its queue need not be read. 0 = it has to be.
func (qs *Queues) GoneAt(e *Waiter) int64 {
	if e.queue == nil {
		return 0
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if at := slices.IndexFunc(e.queue.candidates.Entries, e.isEntry); at < 0 ||
		at == len(e.queue.candidates.Entries)-1 && !e.queue.isComplete() {
		return 0
	}
	return qs.watcher.GoneAt(e.entryKey(), e.Revision)
}

// Ahead is what an entry waits for next, as far as this process knows without asking etcd;
// the zero value: it has to read.
type Ahead struct {
	// closed when a hand-off that was sent is answered: then all that a watch says of it is known.
	// nil = each is
	Answer   <-chan struct{}
	Lock     *idem.Lock // that this process has handed off, and the entry is the head
	Entry    string     // the predecessor
	Revision int64      // at which the lock or the predecessor was there
}

// Ahead returns each lock and each predecessor once.
func (qs *Queues) Ahead(e *Waiter) (a Ahead) {
	if e.queue == nil {
		return a
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := e.queue
	if q.handing != nil {
		select {
		case <-q.handing:
		default:
			return Ahead{Answer: q.handing}
		}
	}
	if q.before != nil && q.isFirst(e) {
		// e was there when the queue was read, which may be before the lock was taken: a cancel
		// between would be missed.
		a.Lock, a.Revision, q.before = q.before, min(q.before.Revision, e.Revision), nil
		return a
	}
	a.Entry, a.Revision = qs.predecessorLocked(e)
	return a
}

func (qs *Queues) predecessorLocked(e *Waiter) (entry string, since int64) {
	q := e.queue
	candidates := q.candidates.Entries
	at := slices.IndexFunc(candidates, e.isEntry)
	for at > 0 && candidates[at-1].Revision == e.Revision { // this process knows which of them is first
		at--
	}
	for i := at - 1; i >= 0; i-- {
		other := candidates[i]
		entry = other.Key
		switch {
		case qs.watcher.GoneAt(entry, other.Revision) != 0:
			continue
		case entry == e.before && other.Revision == e.since:
			return "", 0
		}
		e.before, e.since = entry, other.Revision
		return entry, other.Revision
	}
	if at > 0 {
		q.candidates.Entries, q.before = candidates[at:], nil
		q.learnLocked(protocol.Candidates{})
	}
	return "", 0
}

// Known adds what this process knows of the queue behind a lock to the candidates that were read
// with it: the head of the queue, and those behind it.
func (qs *Queues) Known(lock string, candidates protocol.Candidates) protocol.Candidates {
	qs.mu.Lock()
	if q := qs.of[lock]; q != nil {
		candidates = mergeCandidates(candidates, q.candidates)
	}
	qs.mu.Unlock()
	// an entry that has left since costs a refusal
	for len(candidates.Entries) > 0 && qs.watcher.GoneAt(candidates.Entries[0].Key,
		candidates.Entries[0].Revision) != 0 {
		candidates.Entries = candidates.Entries[1:]
	}
	return candidates
}

// Forget drops all that is known by a revision.
func (qs *Queues) Forget() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, q := range qs.of {
		q.at, q.lock, q.before = 0, nil, nil
		q.forgetEntries()
	}
}

// NoteHandOff notes that a hand-off was sent. A waiter that learns of its effect by a watch waits
// for done, after which all of it is known.
func (qs *Queues) NoteHandOff(key string, done <-chan struct{}) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.of[key]; q != nil {
		q.handing = done
	}
}

// Left reports whether e was registered and is not any more: it may have been granted the lock.
func (qs *Queues) Left(e *Waiter) bool {
	if e.queue == nil {
		return false
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.waiters[e.Execution] != e
}

// Grant gives l to the entry that waits here for it; false = none does any more. then are the
// entries that are known behind it. granted is called with all that are known, before Left says so;
// it must not block.
func (qs *Queues) Grant(l *idem.Lock, then protocol.Candidates,
	granted func(e *Waiter, behind protocol.Candidates)) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	e := qs.waiters[l.Execution]
	if e == nil {
		return false
	}
	q := e.queue
	q.seesLocked(l, l.Revision)
	q.dropUpTo(qs.layout.Queued(l.Scope), l.Revision)
	qs.unregisterLocked(e)
	ours := *l
	q.before = &ours
	q.learnLocked(then)
	granted(e, q.candidates)
	return true
}

// Waiting returns how many entries may be handed a lock.
func (qs *Queues) Waiting() int {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return len(qs.waiters)
}
