package worker

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// slots bound the tries that go on at a time, and share them among routes, and within a route among
// workflows. New queues and executions that are tried again stand in the same line of their
// workflow: the first that was ready is the first that is served. While nothing reaches the
// upstream there is one slot, and a pause before it.
//
// Which route is next is weighted fair queueing with equal weights: the one with the fewest tries
// under way, of these the one that had the least slot time. A try that hangs keeps its slot for a
// bounded time (slotPatience). Then it counts against its route alone, which has never more
// under way than there are slots.
type slots struct {
	running func() int
	// busy returns for how much longer deliveries are taken to come whose senders wait; 0 = none
	// come. They have priority: see busyShare. It must not call the slots.
	busy func() time.Duration

	mu     sync.Mutex
	closed bool
	routes map[string]*routeLine // those with a place in the line, or that know how long their calls take
	taken  []*trySlot            // those that have a slot
	recent []*trySlot            // those that count against the share of the slots
	missed int                   // tries in a row of which nothing reached the upstream
	openAt time.Time             // no try before it
	again  *time.Timer           // looks at the lines when only time has to pass; nil = never needed so far

	seemsAway atomic.Bool
}

// away is how many tries in a row may miss the upstream before it counts as away.
const away = 3

// mostSilence bounds the pause between two checks whether the upstream is back.
const mostSilence = 15 * time.Second

// busyShare is the divisor of the slots while deliveries come. Each slot of that share is then
// empty for as long as it was taken, at most mostRest.
const busyShare = 8

const mostRest = 100 * time.Millisecond

// mostShare is how long a try counts against the share at most. The share protects deliveries from
// many tries that begin. One that has waited longer for its answer does not begin any more: it must
// not hold back events that could run.
const mostShare = time.Second

// trySlot is a place in the line of its workflow, and then a slot for one try after the other.
type trySlot struct {
	slots    *slots
	route    *routeLine
	workflow string
	begin    func(*trySlot)
	state    trySlotState
	since    time.Time // it has its slot
	until    time.Time // it counts against the share until then
	hangs    time.Time // it counts against its route alone from then on
}

type trySlotState uint8

const (
	trySlotWaits trySlotState = iota
	trySlotGiven
	trySlotOver
)

// joinQueue adds a place to the end of the line of a workflow. begin is called once when it has
// its slot, perhaps before joinQueue returns. It must not block, nor call the slots, and is never
// called after close.
func (s *slots) joinQueue(route, workflow string, begin func(*trySlot)) *trySlot {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &trySlot{slots: s, route: s.routeLocked(route), workflow: workflow, begin: begin}
	if !s.closed {
		s.activateLocked(t.route)
		t.route.addWaiter(t)
	}
	s.serveLocked()
	return t
}

func (s *slots) routeLocked(name string) *routeLine {
	r := s.routes[name]
	if r == nil {
		if s.routes == nil {
			s.routes = map[string]*routeLine{}
		}
		r = &routeLine{usual: firstUsual}
		s.routes[name] = r
	}
	return r
}

// activateLocked lets a route without turns begin with the least slot time of those that have some:
// a route that was idle has saved nothing up.
func (s *slots) activateLocked(r *routeLine) {
	if r.isActive() {
		return
	}
	least, others := time.Duration(0), false
	for _, o := range s.routes {
		if o.isActive() && (!others || o.used < least) {
			least, others = o.used, true
		}
	}
	r.used = max(r.used, least)
}

// giveUpSlot gives the slot back, or leaves the line. A second call does nothing.
func (t *trySlot) giveUpSlot() {
	s := t.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	switch t.state {
	case trySlotWaits:
		t.route.removeWaiter(t)
	case trySlotGiven:
		now := time.Now()
		s.taken = slices.DeleteFunc(s.taken, func(o *trySlot) bool { return o == t })
		t.route.underWay--
		t.route.used += earlierTime(now, t.hangs).Sub(t.since)
		t.until = earlierTime(t.until, now.Add(min(now.Sub(t.since), mostRest)))
	}
	t.state = trySlotOver
	s.serveLocked()
}

func earlierTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// serveWaiters gives free slots to the lines. It has to be called when running may have grown.
func (s *slots) serveWaiters() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serveLocked()
}

// close ends the lines: no other place gets a slot.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, r := range s.routes {
		r.workflows, r.waits = nil, nil
	}
	if s.again != nil {
		s.again.Stop()
	}
}

func (s *slots) serveLocked() {
	for !s.closed {
		now := time.Now()
		next, wait := s.nextLocked(now)
		if next == nil {
			if wait > 0 {
				s.serveIn(wait)
			}
			return
		}
		t := next.takeNext()
		t.state, t.since, t.until, t.hangs = trySlotGiven, now, now.Add(mostShare), now.Add(next.slotPatience())
		next.underWay++
		next.pace.noteBegin(now)
		s.taken = append(s.taken, t)
		s.recent = append(s.recent, t)
		t.begin(t)
	}
}

// nextLocked returns the route of which a try may begin now. If there is none, wait is when to look
// again though nothing else has happened; 0 = no time helps.
func (s *slots) nextLocked(now time.Time) (next *routeLine, wait time.Duration) {
	most := max(s.running(), 1)
	for _, r := range s.routes {
		if len(r.workflows) == 0 || r.underWay >= most {
			continue
		}
		if closed := r.pace.waitTime(now); closed > 0 {
			wait = soonerOf(wait, closed)
			continue
		}
		if next == nil || r.isBefore(next) {
			next = r
		}
	}
	if next == nil {
		return nil, wait
	}
	free, until := s.freeLocked(now, most)
	if !free {
		return nil, soonerOf(wait, until)
	}
	return next, 0
}

// soonerOf returns the smaller of two times, of which 0 is never.
func soonerOf(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// freeLocked reports whether a try may begin now. If it may not, wait is when to look again though
// nothing else has happened; 0 = no time helps.
func (s *slots) freeLocked(now time.Time, most int) (free bool, wait time.Duration) {
	taken, soonest := s.countTaken(now)
	seemsAway := s.missed >= away
	if seemsAway {
		most, taken = 1, len(s.taken)
	}
	if taken >= most {
		return false, soonest
	}
	if wait = s.openAt.Sub(now); wait > 0 {
		return false, wait
	}
	counted, soonest := s.countRecent(now)
	if seemsAway || counted < max(most/busyShare, 1) {
		return true, 0
	}
	wait = min(s.busy(), soonest)
	return wait <= 0, wait
}

// countTaken returns how many tries count against the slots of all routes, and in how long the
// first of them does not count any more.
func (s *slots) countTaken(now time.Time) (n int, soonest time.Duration) {
	for _, t := range s.taken {
		if left := t.hangs.Sub(now); left > 0 {
			n, soonest = n+1, soonerOf(soonest, left)
		}
	}
	return n, soonest
}

// countRecent returns how many turns count against the share, and in how long the first of them
// does not count any more.
func (s *slots) countRecent(now time.Time) (n int, soonest time.Duration) {
	recent := s.recent[:0]
	for _, t := range s.recent {
		if left := t.until.Sub(now); left > 0 {
			recent, soonest = append(recent, t), soonerOf(soonest, left)
		}
	}
	clear(s.recent[len(recent):])
	s.recent = recent
	return len(recent), soonest
}

func (s *slots) serveIn(wait time.Duration) {
	if s.again == nil {
		s.again = time.AfterFunc(wait, s.serveWaiters)
		return
	}
	s.again.Reset(wait)
}

// noteOutcome records whether a try reached the upstream.
func (s *slots) noteOutcome(reached bool) {
	if reached {
		s.noteReached()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.missed++; s.missed >= away {
		s.seemsAway.Store(true)
		s.openAt = time.Now().Add(min(pauseAfter(firstPause, mostPause, s.missed-away+1), mostSilence))
	}
}

func (s *slots) noteReached() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.missed == 0 {
		return
	}
	s.missed, s.openAt = 0, time.Time{}
	s.seemsAway.Store(false)
	s.serveLocked()
}

// noteAnswer records how long a call of a route took.
func (s *slots) noteAnswer(route string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routeLocked(route).noteCall(took)
}

// noteRefusal lets a route be left alone for as long as its service has asked. It reports whether
// it was not left alone before.
func (s *slots) noteRefusal(route string, asked time.Duration) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.routeLocked(route).pace.noteRefusal(time.Now(), asked)
}
