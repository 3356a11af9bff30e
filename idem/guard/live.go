package guard

import (
	"context"
	"sync"

	"github.com/cespare/xxhash/v2"

	"hooklock/idem"
)

// live is what this process itself is doing: per lock at most one claim under way or one execution
// running. It is why a conflict inside one process costs no call to the store. Only refusals may be
// decided from it: it says that a lock is taken, never that one is free.
type live struct{ shards [64]liveShard }

type liveShard struct {
	mu    sync.Mutex
	spots map[idem.Scope]*spot
}

// spot is the claim or the execution of one delivery at one lock.
type spot struct {
	at idem.Scope // as Scope.OfLock returns it
	// decided is closed when the claim is decided either way.
	decided chan struct{}
	lock    *idem.Lock // set before decided is closed when the claim was won
}

func (l *live) shardOf(s idem.Scope) *liveShard {
	return &l.shards[xxhash.Sum64String(s.Workflow)%uint64(len(l.shards))]
}

// enterSpot takes the spot at the lock of s, or returns the lock that an execution of this process
// holds there. It waits for a claim that is under way, because only its end tells which execution
// holds the lock.
func (l *live) enterSpot(ctx context.Context, s idem.Scope) (*spot, *idem.Lock, error) {
	s = s.OfLock()
	shard := l.shardOf(s)
	for {
		shard.mu.Lock()
		other := shard.spots[s]
		if other == nil {
			if shard.spots == nil {
				shard.spots = map[idem.Scope]*spot{}
			}
			mine := &spot{at: s, decided: make(chan struct{})}
			shard.spots[s] = mine
			shard.mu.Unlock()
			return mine, nil, nil
		}
		shard.mu.Unlock()
		select {
		case <-other.decided:
			if lock := l.lockOf(other); lock != nil {
				return nil, lock, nil
			}
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// addRunning records that the claim took the lock.
func (l *live) addRunning(s *spot, lock *idem.Lock) {
	l.replaceLock(s, lock)
	close(s.decided)
}

// noteWonLock records a lock that was won at the head of the queue. The previous holder may still
// be recorded: it is about to leave. If a claim is under way it returns nil, and until that is
// decided the store is asked.
func (l *live) noteWonLock(scope idem.Scope, lock *idem.Lock) *spot {
	scope = scope.OfLock()
	shard := l.shardOf(scope)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if other := shard.spots[scope]; other != nil && (other.lock == nil || other.lock.Token >= lock.Token) {
		return nil
	}
	if shard.spots == nil {
		shard.spots = map[idem.Scope]*spot{}
	}
	mine := &spot{at: scope, decided: make(chan struct{}), lock: lock}
	close(mine.decided)
	shard.spots[scope] = mine
	return mine
}

// leaveSpot gives the spot up; s may be nil.
func (l *live) leaveSpot(s *spot) {
	if s == nil {
		return
	}
	shard := l.shardOf(s.at)
	shard.mu.Lock()
	if shard.spots[s.at] == s {
		delete(shard.spots, s.at)
	}
	shard.mu.Unlock()
	if s.lock == nil {
		close(s.decided)
	}
}

// lockOf returns the lock that was won at a spot; nil if none was.
func (l *live) lockOf(s *spot) *idem.Lock {
	shard := l.shardOf(s.at)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return s.lock
}

// replaceLock updates the lock at a spot, because other deliveries decide on it. s may be nil.
func (l *live) replaceLock(s *spot, lock *idem.Lock) {
	if s == nil {
		return
	}
	shard := l.shardOf(s.at)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	s.lock = lock
}
