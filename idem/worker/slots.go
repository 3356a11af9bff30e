package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// slots bound the tries that go on at a time, first come, first served. While nothing reaches the upstream there is one slot, and a pause
// before it.
type slots struct {
	running func() int
	// busy reports whether deliveries come whose senders wait: they have priority, and leave the tries a part of the time.
	busy func() bool

	mu      sync.Mutex
	taken   int
	line    []chan struct{} // slot waiters; closed when the slot is given
	missed  int             // tries in a row of which nothing reached the upstream
	openAt  time.Time       // no try before it
	opening *time.Timer

	seemsAway atomic.Bool
}

// away is how many tries in a row may miss the upstream before it counts as away.
const away = 3

// mostSilence bounds the pause between two checks whether the upstream is back.
const mostSilence = 15 * time.Second

// enter waits for a slot. leave gives it back, and may be called once.
func (s *slots) enter(ctx context.Context) (leave func(), err error) {
	turn := make(chan struct{})
	s.mu.Lock()
	s.line = append(s.line, turn)
	s.nextLocked()
	s.mu.Unlock()
	select {
	case <-turn:
		return s.leaver(), nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.line {
		if other == turn {
			s.line = append(s.line[:i:i], s.line[i+1:]...)
			return nil, context.Cause(ctx)
		}
	}
	s.taken-- // the slot was given just now
	s.nextLocked()
	return nil, context.Cause(ctx)
}

// busyShare is the divisor of the slots while deliveries come. Each slot is then empty for as long as it was taken.
const busyShare = 8

// mostRest bounds the time for which a slot stays empty.
const mostRest = 100 * time.Millisecond

// leaver returns the function that gives back a slot taken now.
func (s *slots) leaver() func() {
	since := time.Now()
	return func() {
		if s.busy == nil || !s.busy() {
			s.leave()
			return
		}
		time.AfterFunc(min(time.Since(since), mostRest), s.leave)
	}
}

func (s *slots) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.nextLocked()
}

// nextLocked gives free slots to waiters.
func (s *slots) nextLocked() {
	most := max(s.running(), 1)
	switch {
	case s.missed >= away:
		most = 1
	case s.busy != nil && s.busy():
		most = max(most/busyShare, 1)
	}
	for len(s.line) > 0 && s.taken < most {
		if wait := time.Until(s.openAt); wait > 0 {
			if s.opening == nil {
				s.opening = time.AfterFunc(wait, s.open)
			}
			return
		}
		close(s.line[0])
		s.line[0] = nil
		s.line = s.line[1:]
		s.taken++
	}
}

func (s *slots) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening = nil
	s.nextLocked()
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
	if s.opening != nil {
		s.opening.Stop()
		s.opening = nil
	}
	s.nextLocked()
}
