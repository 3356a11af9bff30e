package etcdlock

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// lines knows what is parked, over all processes: it follows the index, which is small, and counts. And it says which lines to look at, because
// their first execution may be parked and without a carrier. What it says is a hint: Take reads how things stand.
//
// It begins when somebody asks for the first time. What happens to locks and queues it follows only while something is parked.
type lines struct {
	store *core
	asked chan struct{} // closed when somebody has asked
	ask   sync.Once
	some  chan struct{} // something is parked, and its line is not followed yet

	mu      sync.Mutex
	entries map[idem.ExecutionID]*entry
	lines   map[string]*line           // by the key of their lock; those in which something is parked
	under   map[string]map[string]bool // the keys of those lines whose lock is an event's own, by the key of its workflow's: a client's may hold them back
	taking  map[string]bool            // locks that somebody in this process looks at, also where the line is not known; true: and has to do so again
	ready   []*line                    // ripe, the first to be looked at first
	news    chan struct{}              // closed when ready gets its first
	bytes   int64
	events  int
	letters int
	blocked int // lines
	oldest  ages
}

// entry is a kept request.
type entry struct {
	idem.ParkedEntry
	key      string // of its lock
	revision int64
	old      bool
	spared   bool // its MaxAge ended while it was paused: it is old when its next try has begun
}

// line is a lock with what is parked before it or in it.
type line struct {
	key     string // of the lock
	scope   idem.Scope
	route   string // of its executions; "" = they are, or were, of several
	n       int    // executions
	blocked int    // of these
	ripe    bool
	behind  string // what proves alive who has the lock, as the last look found it; "" = nobody has looked, or nothing does
}

func newLines(s *core) *lines {
	return &lines{
		store: s, asked: make(chan struct{}), some: make(chan struct{}, 1), news: make(chan struct{}),
		entries: map[idem.ExecutionID]*entry{}, lines: map[string]*line{}, under: map[string]map[string]bool{}, taking: map[string]bool{},
	}
}

func (p *lines) begin() { p.ask.Do(func() { close(p.asked) }) }

// Parked implements idem.ParkLedger.
func (s *Ledger) Parked() idem.ParkedCount { return s.lines.count() }

func (p *lines) count() idem.ParkedCount {
	p.begin()
	p.mu.Lock()
	defer p.mu.Unlock()
	return idem.ParkedCount{Events: p.events, Bytes: p.bytes, Blocked: p.blocked, DeadLetters: p.letters, Oldest: p.oldestLocked()}
}

// ParkedRoutes counts the parked executions of each route that matches, over all processes.
func (s *Ledger) ParkedRoutes(match func(route string) bool) map[string]int {
	p := s.lines
	p.begin()
	p.mu.Lock()
	defer p.mu.Unlock()
	counts, matches := map[string]int{}, map[string]bool{}
	for _, e := range p.entries {
		if e.State == idem.ParkDeadLetter {
			continue
		}
		is, known := matches[e.Route]
		if !known {
			is = match(e.Route)
			matches[e.Route] = is
		}
		if is {
			counts[e.Route]++
		}
	}
	return counts
}

// Waiting implements idem.ParkLedger.
func (s *Ledger) Waiting(scope idem.Scope) int {
	p := s.lines
	p.begin()
	key := s.layout.Lock(scope)
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.lines[key]; l != nil {
		return l.n
	}
	return 0
}

// Old implements idem.ParkLedger.
func (s *Ledger) Old(id idem.ExecutionID) bool { return s.lines.isOld(id) }

func (p *lines) isOld(id idem.ExecutionID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[id]
	return e != nil && e.old && !e.spared
}

// tooOld is whether the MaxAge of an execution is over, whose age was read.
func (p *lines) tooOld(id idem.ExecutionID, young bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[id]
	return !young && (e == nil || !e.spared)
}

// tried is when a try of an execution has begun.
func (p *lines) tried(id idem.ExecutionID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[id]; e != nil {
		e.spared = false
	}
}

// pausesChanged lets all lines be looked at, and spares what grew too old while it is paused.
func (p *lines) pausesChanged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		p.spareLocked(e)
	}
	for _, l := range p.lines {
		p.ripenLocked(l)
	}
}

func (p *lines) spareLocked(e *entry) {
	if e.old && e.State != idem.ParkDeadLetter && p.store.pauses.Of(e.Route, e.Workflow) != nil {
		e.spared = true
	}
}

// countPaused counts the parked executions for each of the pauses.
func (p *lines) countPaused(states []idem.PauseState) {
	p.begin()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		for i := range states {
			if e.State != idem.ParkDeadLetter && states[i].Scope.Covers(e.Route, e.Workflow) {
				states[i].Parked++
			}
		}
	}
}

// Ripe implements idem.ParkLedger. The error is the context's, or that the Store is closed.
func (s *Ledger) Ripe(ctx context.Context) (idem.Scope, string, error) {
	p := s.lines
	p.begin()
	for {
		scope, route, news := p.next()
		if news == nil {
			return scope, route, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return idem.Scope{}, "", context.Cause(ctx)
		case <-s.tasks.Life.Done():
			return idem.Scope{}, "", commit.ErrClosed
		}
	}
}

// next takes the line that has been ripe for longest; where there is none, news is closed when there is.
func (p *lines) next() (scope idem.Scope, route string, news <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.ready) > 0 {
		l := p.ready[0]
		p.ready[0] = nil
		if p.ready = p.ready[1:]; l.ripe {
			l.ripe = false
			return l.scope, l.route, nil
		}
	}
	return idem.Scope{}, "", p.news
}

// Ripen implements idem.ParkLedger.
func (s *Ledger) Ripen(scope idem.Scope) {
	if scope == (idem.Scope{}) {
		s.lines.ripenAll()
		return
	}
	s.lines.ripenLock(s.layout.Lock(scope))
}

func (p *lines) ripenAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		p.ripenLocked(l)
	}
}

func (p *lines) ripenLock(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ripenLocked(p.lines[key])
}

// freed is told of a lock that is gone: its line, and those of events whose workflow had it.
func (p *lines) freed(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ripenLocked(p.lines[key])
	for line := range p.under[key] {
		p.ripenLocked(p.lines[line])
	}
}

// ripenOf is for the line of one execution.
func (p *lines) ripenOf(id idem.ExecutionID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[id]; e != nil {
		p.ripenLocked(p.lines[e.key])
	}
}

// died is told of sessions that ended: lines whose lock one of them had, and those that nobody has looked at.
func (p *lines) died(names []string) {
	ended := map[string]bool{"": true}
	for _, name := range names {
		ended[protocol.SessionAlive(name)] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		if ended[l.behind] {
			p.ripenLocked(l)
		}
	}
}

func (p *lines) ripenLocked(l *line) {
	if l == nil || l.ripe {
		return
	}
	if _, busy := p.taking[l.key]; busy {
		p.taking[l.key] = true
		return
	}
	l.ripe = true
	if p.ready = append(p.ready, l); len(p.ready) == 1 {
		close(p.news)
		p.news = make(chan struct{})
	}
}

// enter is before a look at a line; false: another one is under way, and is made again.
func (p *lines) enter(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, busy := p.taking[key]; busy {
		p.taking[key] = true
		return false
	}
	p.taking[key] = false
	return true
}

func (p *lines) exit(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := p.taking[key]
	delete(p.taking, key)
	if again {
		p.ripenLocked(p.lines[key])
	}
}

// behind notes who has the lock of a line. One that has died before this was noted is not told of any more.
func (p *lines) behind(key, alive string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lines[key]
	if l == nil {
		return
	}
	l.behind = alive
	if alive != "" && !protocol.IsHold(alive) && !p.store.live.Has(alive) {
		time.AfterFunc(lookAgainIn, func() { p.ripenLock(key) })
	}
}

// lookAgainIn is after which time a line is looked at again whose lock's session is not known: its end may not have been heard of yet, or its
// beginning.
const lookAgainIn = time.Second

// ages are parked executions by when they were parked. Those that have ended are dropped when they come first, or when they are too many: behind one that
// waits for a person for days, none comes first.
type ages []aged

// fewAges may have ended, besides as many as there are parked executions.
const fewAges = 500

type aged struct {
	since time.Time
	id    idem.ExecutionID
}

func (a *ages) Len() int           { return len(*a) }
func (a *ages) Less(i, j int) bool { return (*a)[i].since.Before((*a)[j].since) }
func (a *ages) Swap(i, j int)      { (*a)[i], (*a)[j] = (*a)[j], (*a)[i] }
func (a *ages) Push(x any)         { *a = append(*a, x.(aged)) }
func (a *ages) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}

func (p *lines) oldestLocked() time.Time {
	for len(p.oldest) > 0 {
		first := p.oldest[0]
		if p.waitsLocked(first) {
			return first.since
		}
		heap.Pop(&p.oldest)
	}
	return time.Time{}
}

// waitsLocked reports whether what has that age is parked still.
func (p *lines) waitsLocked(a aged) bool {
	e := p.entries[a.id]
	return e != nil && e.State != idem.ParkDeadLetter && e.Since.Equal(a.since)
}

// ageLocked notes since when an execution is parked, which may be noted already.
func (p *lines) ageLocked(a aged) {
	heap.Push(&p.oldest, a)
	if len(p.oldest) <= 2*p.events+fewAges {
		return
	}
	kept := make(map[idem.ExecutionID]bool, p.events)
	p.oldest = slices.DeleteFunc(p.oldest, func(a aged) bool {
		over := kept[a.id] || !p.waitsLocked(a)
		kept[a.id] = kept[a.id] || !over
		return over
	})
	heap.Init(&p.oldest)
}
