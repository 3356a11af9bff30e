package worker

import (
	"sync"
	"sync/atomic"
	"time"
)

// slots bound the tries that go on at a time. There is one line for new queues and for executions
// that are tried again: the first that was ready is the first that is served. While nothing reaches
// the upstream there is one slot, and a pause before it.
type slots struct {
	running func() int
	// busy returns for how much longer deliveries are taken to come whose senders wait; 0 = none
	// come. They have priority: see busyShare. It must not call the slots.
	busy func() time.Duration

	mu     sync.Mutex
	closed bool
	line   []*turn // the first to be served first; those that have left it are skipped
	taken  int
	recent []*turn     // those that count against the share of the slots
	missed int         // tries in a row of which nothing reached the upstream
	openAt time.Time   // no try before it
	again  *time.Timer // looks at the line when only time has to pass; nil = never needed so far

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

// turn is a place in the line, and then a slot.
type turn struct {
	slots *slots
	begin func(*turn)
	state turnState
	since time.Time // it has its slot
	until time.Time // it counts against the share until then
}

type turnState uint8

const (
	turnWaits turnState = iota
	turnHasSlot
	turnOver
)

// join adds a place to the end of the line. begin is called once when the turn has its slot,
// perhaps before join returns. It must not block, nor call the slots. After close it is never
// called.
func (s *slots) join(begin func(*turn)) *turn {
	t := &turn{slots: s, begin: begin}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = append(s.line, t)
	s.serveLocked()
	return t
}

// leave gives the slot back, or leaves the line. A second call does nothing.
func (t *turn) leave() {
	s := t.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.state == turnHasSlot {
		now := time.Now()
		s.taken--
		t.until = earlier(t.until, now.Add(min(now.Sub(t.since), mostRest)))
	}
	t.state = turnOver
	s.serveLocked()
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// serve gives free slots to the line. It has to be called when running may have grown.
func (s *slots) serve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serveLocked()
}

// close ends the line: no other turn gets a slot.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.line = true, nil
	if s.again != nil {
		s.again.Stop()
	}
}

func (s *slots) serveLocked() {
	for !s.closed {
		for len(s.line) > 0 && s.line[0].state == turnOver {
			s.dropFirst()
		}
		if len(s.line) == 0 {
			return
		}
		now := time.Now()
		free, wait := s.freeLocked(now)
		switch {
		case free:
			t := s.dropFirst()
			t.state, t.since, t.until = turnHasSlot, now, now.Add(mostShare)
			s.taken++
			s.recent = append(s.recent, t)
			t.begin(t)
		case wait > 0:
			s.serveIn(wait)
			return
		default: // until a slot is given back
			return
		}
	}
}

func (s *slots) dropFirst() *turn {
	t := s.line[0]
	s.line[0] = nil
	s.line = s.line[1:]
	return t
}

// freeLocked reports whether a try may begin now. If it may not, wait is when to look again though
// nothing else has happened; 0 = no time helps.
func (s *slots) freeLocked(now time.Time) (free bool, wait time.Duration) {
	most, seemsAway := max(s.running(), 1), s.missed >= away
	if seemsAway {
		most = 1
	}
	if s.taken >= most {
		return false, 0
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

// countRecent returns how many turns count against the share, and in how long the first of them
// does not count any more.
func (s *slots) countRecent(now time.Time) (n int, soonest time.Duration) {
	recent := s.recent[:0]
	for _, t := range s.recent {
		if left := t.until.Sub(now); left > 0 {
			if len(recent) == 0 || left < soonest {
				soonest = left
			}
			recent = append(recent, t)
		}
	}
	clear(s.recent[len(recent):])
	s.recent = recent
	return len(recent), soonest
}

func (s *slots) serveIn(wait time.Duration) {
	if s.again == nil {
		s.again = time.AfterFunc(wait, s.serve)
		return
	}
	s.again.Reset(wait)
}

// outcome records whether a try reached the upstream.
func (s *slots) outcome(reached bool) {
	if reached {
		s.reached()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.missed++; s.missed >= away {
		s.seemsAway.Store(true)
		s.openAt = time.Now().Add(min(pauseAfter(s.missed-away+1), mostSilence))
	}
}

func (s *slots) reached() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.missed == 0 {
		return
	}
	s.missed, s.openAt = 0, time.Time{}
	s.seemsAway.Store(false)
	s.serveLocked()
}
