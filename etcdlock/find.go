package etcdlock

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Execution is where an execution is now. What it meets dead it buries first, so that the answer is the truth; where etcd takes no burial now,
// the lock says that it is Dead. The error is idem.ErrNoExecution or idem.ErrStoreUnavailable.
func (s *Control) Execution(ctx context.Context, id idem.ExecutionID) (*idem.Found, error) {
	scope, err := s.Scope(ctx, id)
	if err != nil {
		return nil, err
	}
	for buried := int64(0); ; {
		at, err := s.State(ctx, id, scope)
		if err != nil {
			return nil, err
		}
		if at.Runs(id) && at.Lock.Dead && at.Lock.Revision != buried {
			buried = at.Lock.Revision
			if s.reaper.Reap(ctx, at.Lock) == nil {
				continue
			}
		}
		found, err := at.Found()
		if err != nil {
			return nil, err
		}
		found.Attempts = at.Attempts()
		if r := found.Record; r != nil && r.Answer != nil && r.Answer.Apart {
			if err := s.Answer(ctx, r); err != nil {
				return nil, err
			}
		}
		return found, s.AddArrivals(ctx, found, scope)
	}
}

// Lock is the lock of a workflow. A dead one it buries first, so that the answer is the truth; where etcd takes no burial now, the lock says
// that it is Dead. Of a workflow whose route has a lock.limit above one it is the lock of the oldest execution. Under strategy none a workflow has no
// lock. The error is idem.ErrNoLock or idem.ErrStoreUnavailable.
func (s *Control) Lock(ctx context.Context, workflow string) (*idem.LockView, error) {
	v, err := s.lockOf(ctx, idem.Scope{Workflow: workflow})
	if errors.Is(err, idem.ErrNoLock) {
		return s.oldestOf(ctx, workflow)
	}
	return v, err
}

// LockOf is the lock that an execution of a workflow has: one of several, where its route has a lock.limit above one. It is Lock otherwise.
func (s *Control) LockOf(ctx context.Context, workflow string, id idem.ExecutionID) (*idem.LockView, error) {
	scope, err := s.Scope(ctx, id)
	if errors.Is(err, idem.ErrNoExecution) || err == nil && scope.Workflow != workflow {
		return nil, idem.ErrNoLock
	}
	if err != nil {
		return nil, err
	}
	v, err := s.lockOf(ctx, scope)
	if err == nil && v.Lock.Execution != id {
		return nil, idem.ErrNoLock
	}
	return v, err
}

// lockOf is the lock of that scope.
func (s *Control) lockOf(ctx context.Context, scope idem.Scope) (*idem.LockView, error) {
	for buried := int64(0); ; {
		answers, revision, err := s.pool.Read(ctx, clientv3.OpGet(s.layout.Lock(scope)))
		if err != nil {
			return nil, unavailable(err)
		}
		kv := protocol.First(answers[0])
		if kv == nil {
			return nil, idem.ErrNoLock
		}
		l, err := protocol.LockAt(kv)
		if err != nil {
			return nil, unavailable(err)
		}
		views := []idem.LockView{{Lock: l}}
		if err := s.Describe(ctx, views, revision); err != nil {
			return nil, unavailable(err)
		}
		if !l.Dead || l.Revision == buried || s.reaper.Reap(ctx, l) != nil {
			return &views[0], nil //nolint:nilerr // etcd takes no burial now, and the lock says that it is dead
		}
		buried = l.Revision
	}
}

// oldestOf is the lock of the execution that has had one of the slots of a workflow for longest, with all that have one. The dead it buries first, as Lock
// does.
func (s *Control) oldestOf(ctx context.Context, workflow string) (*idem.LockView, error) {
	for tried := map[int64]bool{}; ; {
		views, err := s.Holders(ctx, workflow)
		switch {
		case err != nil:
			return nil, err
		case len(views) == 0:
			return nil, idem.ErrNoLock
		case s.buryOnce(ctx, views, tried):
			continue
		}
		for _, v := range views {
			views[0].Holders = append(views[0].Holders, v.Lock.Execution)
		}
		return &views[0], nil
	}
}

// buryOnce buries the dead that were not tried before, by revision, and reports whether there were any.
func (s *Control) buryOnce(ctx context.Context, views []idem.LockView, tried map[int64]bool) (buried bool) {
	for _, v := range views {
		if l := v.Lock; l.Dead && !tried[l.Revision] && s.reaper.Reap(ctx, l) == nil {
			buried = true
		}
		tried[v.Lock.Revision] = true
	}
	return buried
}

// Answer implements idem.Ledger.
func (s *core) Answer(ctx context.Context, r *idem.Record) error {
	answers, _, err := s.pool.Read(ctx, clientv3.OpGet(s.layout.Answer(r.Execution)))
	if err == nil {
		err = protocol.DecodeAnswer(protocol.First(answers[0]), r.Answer)
	}
	if err != nil {
		return unavailable(fmt.Errorf("answer of %s: %w", r.Execution, err))
	}
	return nil
}
