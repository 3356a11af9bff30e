package operate

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Finder finds executions and locks where they are now. It is safe for concurrent use.
type Finder struct{ options *Options }

// NewFinder returns a finder.
func NewFinder(o *Options) *Finder { return &Finder{o} }

// Execution returns where an execution is now. It reaps a dead one first, so that the answer is the
// truth; if etcd refuses that, the lock says that it is Dead. It returns idem.ErrNoExecution or
// idem.ErrStoreUnavailable.
func (f *Finder) Execution(ctx context.Context, id idem.ExecutionID) (*idem.Found, error) {
	scope, err := f.options.Reader.Scope(ctx, id)
	if err != nil {
		return nil, err
	}
	var at *history.State
	if _, err = f.readAfterReaping(ctx, func() (views []idem.LockView, err error) {
		if at, err = f.options.Reader.State(ctx, id, scope); err == nil && at.Runs(id) {
			views = []idem.LockView{{Lock: at.Lock}}
		}
		return views, err
	}); err != nil {
		return nil, err
	}
	found, err := at.Found()
	if err != nil {
		return nil, err
	}
	found.Attempts = at.Attempts()
	if r := found.Record; r != nil && r.Answer != nil && r.Answer.Apart {
		if err := f.ReadAnswer(ctx, r); err != nil {
			return nil, err
		}
	}
	return found, f.options.Reader.AddArrivals(ctx, found, scope)
}

// readAfterReaping returns locks as read finds them when none is dead that can be reaped. It tries
// each once: if etcd refuses that, the lock says that it is dead.
func (f *Finder) readAfterReaping(ctx context.Context, read func() ([]idem.LockView, error)) ([]idem.LockView, error) {
	for tried := map[int64]bool{}; ; {
		views, err := read()
		again := false
		for _, v := range views {
			if l := v.Lock; l.Dead && !tried[l.Revision] && f.options.Reaper.Reap(ctx, l) == nil {
				again = true
			}
			tried[v.Lock.Revision] = true
		}
		if err != nil || !again {
			return views, err
		}
	}
}

// Await returns when an execution is not as since shows it any more, and at once if it has ended; a
// since of nil is the execution as it is now. Its status, its lock with steps and cancel, and its
// end count as changes; heartbeats and duplicates do not. If ctx ends first, Await returns the
// execution as it is. It returns idem.ErrNoExecution, also if the execution went without a trace
// while it was awaited, or idem.ErrStoreUnavailable.
func (f *Finder) Await(ctx context.Context, id idem.ExecutionID, since *idem.Found) (*idem.Found, error) {
	var last *idem.Found
	for {
		found, err := f.Execution(ctx, id)
		switch over := ctx.Err() != nil; {
		case err == nil:
			last = found
		case last == nil || !over:
			return nil, err
		}
		if since == nil {
			since = last
		}
		if last.Lock == nil || ctx.Err() != nil || hasChanged(since, last) {
			return last, nil //nolint:nilerr // the time was over before etcd could say more
		}
		k := f.options.Layout.Keys(last.Lock)
		if last.InQueue {
			f.options.Pool.AwaitChange(ctx, last.Revision, k.Entry)
		} else {
			f.options.Pool.AwaitChange(ctx, last.Revision, k.Lock, k.Alive)
		}
	}
}

// hasChanged reports whether now is another state than before of an execution that has not ended.
func hasChanged(before, now *idem.Found) bool {
	return before.Lock == nil || before.InQueue != now.InQueue ||
		!now.InQueue && before.Lock.Revision != now.Lock.Revision ||
		before.Status().Precedes(now.Status())
}

// Lock returns the lock of a workflow. It reaps a dead one first, so that the answer is the truth;
// if etcd refuses that, the lock says that it is Dead. If the workflow's route has a lock.limit
// above one, it is the lock of the oldest execution. Under strategy none a workflow has no lock. It
// returns idem.ErrNoLock or idem.ErrStoreUnavailable.
func (f *Finder) Lock(ctx context.Context, workflow string) (*idem.LockView, error) {
	v, err := f.lockOf(ctx, idem.Scope{Workflow: workflow})
	if !errors.Is(err, idem.ErrNoLock) {
		return v, err
	}
	views, err := f.readAfterReaping(ctx,
		func() ([]idem.LockView, error) { return f.options.Reader.Holders(ctx, workflow) })
	if err == nil && len(views) == 0 {
		err = idem.ErrNoLock
	}
	if err != nil {
		return nil, err
	}
	for _, v := range views {
		views[0].Holders = append(views[0].Holders, v.Lock.Execution)
	}
	return &views[0], nil
}

// LockOf returns the lock that an execution of a workflow has: one of several, if its route has a
// lock.limit above one, else as Lock does.
func (f *Finder) LockOf(ctx context.Context, workflow string, id idem.ExecutionID) (*idem.LockView, error) {
	scope, err := f.options.Reader.Scope(ctx, id)
	if errors.Is(err, idem.ErrNoExecution) || err == nil && scope.Workflow != workflow {
		return nil, idem.ErrNoLock
	}
	if err != nil {
		return nil, err
	}
	v, err := f.lockOf(ctx, scope)
	if err == nil && v.Lock.Execution != id {
		return nil, idem.ErrNoLock
	}
	return v, err
}

// lockOf returns the lock of that scope.
func (f *Finder) lockOf(ctx context.Context, scope idem.Scope) (*idem.LockView, error) {
	views, err := f.readAfterReaping(ctx,
		func() ([]idem.LockView, error) { return f.options.Reader.LockAt(ctx, scope) })
	switch {
	case err != nil:
		return nil, err
	case len(views) == 0:
		return nil, idem.ErrNoLock
	}
	return &views[0], nil
}

// ReadAnswer reads the kept answer of a record that is stored apart from it. It returns
// idem.ErrStoreUnavailable.
func (f *Finder) ReadAnswer(ctx context.Context, r *idem.Record) error {
	answers, _, err := f.options.Pool.Read(ctx, clientv3.OpGet(f.options.Layout.Of(protocol.KindAnswers, r.Execution)))
	if err == nil {
		err = protocol.DecodeAnswer(protocol.First(answers[0]), r.Answer)
	}
	if err != nil {
		return commit.Unavailable(fmt.Errorf("answer of %s: %w", r.Execution, err))
	}
	return nil
}

// KeptRequest returns the stored request of an execution, as the ledger was given it. It returns
// idem.ErrNoRequest or idem.ErrStoreUnavailable.
func (f *Finder) KeptRequest(ctx context.Context, id idem.ExecutionID) ([]byte, error) {
	kvs, _, err := f.options.Pool.Keys(ctx, f.options.Layout.Of(protocol.KindRequests, id))
	switch {
	case err != nil:
		return nil, commit.Unavailable(err)
	case len(kvs) == 0:
		return nil, idem.ErrNoRequest
	}
	return kvs[0].Value, nil
}
