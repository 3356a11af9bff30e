package callback

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/owned"
	"hooklock/idem"
)

// AcquireLock takes the lock of a workflow for a client, without a delivery: it lives on a hold of
// its own, whatever happens to this process. With a wait it queues, first come, first served. The
// error is an *idem.LockHeldError, also when the time is over, idem.ErrCancelled where an operator
// ended the wait, or idem.ErrStoreUnavailable.
func (s *Callbacks) AcquireLock(ctx context.Context, q idem.AcquireRequest) (*idem.Acquired, error) {
	held, err := s.acquireNow(ctx, &q)
	var taken *idem.LockHeldError
	if q.Wait <= 0 || !errors.As(err, &taken) {
		return held, err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, q.Wait, err)
	defer cancel()
	var callbackKey string
	h, err := s.options.Locks.Await(waiting, func() (l idem.Lock) {
		l, callbackKey = s.clientLock(&q)
		return l
	})
	switch {
	case h != nil:
		return s.handOver(ctx, h.(*owned.Lock), &q, callbackKey)
	case waiting.Err() != nil && ctx.Err() == nil:
		return nil, s.findHolder(ctx, q.Workflow, taken)
	case errors.Is(err, idem.ErrCancelled):
		return nil, err
	}
	return nil, commit.Unavailable(err)
}

// handOver moves a lock that was won in the queue from the session to a hold.
func (s *Callbacks) handOver(ctx context.Context, h *owned.Lock, q *idem.AcquireRequest,
	callbackKey string) (*idem.Acquired, error) {
	if err := h.Hold(ctx, q.TTL); err != nil {
		_ = h.Release(ctx) // goes on by itself; where it was held after all that is the end of it
		return nil, commit.Unavailable(err)
	}
	l := *h.Lock()
	return &idem.Acquired{Lock: &l, CallbackKey: callbackKey}, nil
}

// findHolder returns the holder now, after the time to wait is over; or else the holder before.
func (s *Callbacks) findHolder(ctx context.Context, workflow string, before *idem.LockHeldError) error {
	st, err := history.Look(ctx, s.options.Pool,
		s.options.Layout.Keys(&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Scope: idem.Scope{Workflow: workflow}}}))
	if err != nil || st.Lock == nil {
		return before
	}
	return &idem.LockHeldError{Holder: st.Lock}
}

// clientLock returns an execution of a unique event, and its callback key.
func (s *Callbacks) clientLock(q *idem.AcquireRequest) (idem.Lock, string) {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails
	callbackKey, hash := idem.NewCallbackKey(random)
	l := s.options.Locks.Describe(q.Workflow)
	l.Holder, l.CallbackHash, l.HoldTTL = q.Holder, hash, q.TTL
	return l, callbackKey
}

// acquireNow takes the lock, if it is free and has no waiter.
func (s *Callbacks) acquireNow(ctx context.Context, q *idem.AcquireRequest) (*idem.Acquired, error) {
	if !s.options.Tasks.Enter() {
		return nil, commit.Unavailable(commit.ErrClosed)
	}
	defer s.options.Tasks.Leave()
	ctx, cancel := s.options.Tasks.Within(ctx)
	defer cancel()
	var callbackKey string
	taken := &idem.LockHeldError{}
	held, err := idem.ClaimLock(ctx, func() (held idem.RunningLock, seen *idem.Obstacle, err error) {
		held, seen, callbackKey, err = s.claimForClient(ctx, q)
		return held, seen, err
	}, func(seen *idem.Obstacle) (dead *idem.Lock, over bool) {
		if seen.Lock != nil && seen.Lock.Dead {
			return seen.Lock, false
		}
		taken.Holder = seen.Lock
		return nil, true
	}, s.options.Reaper.Reap)
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(err, idem.ErrStoreUnavailable):
		return nil, commit.Unavailable(err)
	case err != nil:
		return nil, err
	case held == nil:
		return nil, taken
	}
	return &idem.Acquired{Lock: held.Lock(), CallbackKey: callbackKey}, nil
}

// claimForClient claims a lock that lives on a hold of its own.
func (s *Callbacks) claimForClient(ctx context.Context, q *idem.AcquireRequest) (_ idem.RunningLock, _ *idem.Obstacle,
	callbackKey string, _ error) {
	l, callbackKey := s.clientLock(q)
	session, _, err := s.options.Claims.Prepare(&l)
	if err != nil {
		return nil, nil, "", err
	}
	next, lock, alive, err := s.options.Finisher.Hold(ctx, &l, q.TTL, 0)
	if err != nil {
		return nil, nil, "", commit.Unavailable(err)
	}
	held, seen, err := s.options.Claims.ClaimHeld(ctx, next, session, lock, alive)
	if held == nil && err == nil || errors.Is(err, idem.ErrNotClaimed) { // and never will be
		s.options.Sender.Drop(alive.Lease)
	}
	return held, seen, callbackKey, err
}

// ReleaseLock gives a lock of the lock API back. Nothing of it is left, unless a cancel was asked,
// which needs its record. The error is idem.ErrLockLost, idem.ErrLockExpired, idem.ErrStaleToken,
// idem.ErrCallbackKey, idem.ErrLockHeld where the lock is a delivery's, or
// idem.ErrStoreUnavailable.
func (s *Callbacks) ReleaseLock(ctx context.Context, workflow string, cb idem.Callback) error {
	cb.Workflow = workflow
	return s.options.Tasks.Repeat(ctx, func(ctx context.Context) (bool, error) {
		at, _, err := s.readCurrentLock(ctx, &cb)
		switch {
		case errors.Is(err, idem.ErrStoreUnavailable):
			return false, err
		case err != nil && !errors.Is(err, idem.ErrCancelled):
			return true, asClient(err)
		case !ofLockAPI(at.Lock):
			return true, idem.ErrLockHeld
		}
		err = s.options.Own.OnBehalf(*at.Lock, at.Keys).Free(ctx)
		if errors.Is(err, idem.ErrCancelled) { // its record is written, and the lock is free
			err = nil
		}
		return true, err
	})
}

// asClient is the error for a client of the lock API: its lock is all that it knows.
func asClient(err error) error {
	if errors.Is(err, idem.ErrNoExecution) || errors.Is(err, idem.ErrFinished) {
		return fmt.Errorf("%w: %w", idem.ErrLockLost, err)
	}
	return err
}

// ofLockAPI reports whether l was acquired over the lock API: no route has led there.
func ofLockAPI(l *idem.Lock) bool { return l.Held && l.Route == "" }
