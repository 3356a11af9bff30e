package etcdlock

import (
	"context"

	"hooklock/idem"
)

// Await returns when an execution is not as since shows it any more, nil being as it is now; at once when it has ended. Its status, its lock
// with steps and cancel, and its end count as changes; heartbeats and duplicates do not. When ctx ends first it returns the execution as it is.
// The error is idem.ErrNoExecution, also when it went without a trace while it was awaited, or idem.ErrStoreUnavailable.
func (s *Store) Await(ctx context.Context, id idem.ExecutionID, since *idem.Found) (*idem.Found, error) {
	var last *idem.Found
	for {
		f, err := s.Execution(ctx, id)
		switch {
		case err != nil && last != nil && ctx.Err() != nil:
			return last, nil // the time was over before etcd could say more
		case err != nil:
			return nil, err
		case f.Lock == nil || since != nil && changed(since, f):
			return f, nil
		}
		if last = f; since == nil {
			since = f
		}
		k := s.keysOf(f.Lock)
		if f.Place {
			s.watch(ctx, f.Revision, k.Q)
		} else {
			s.watch(ctx, f.Revision, k.L, k.A)
		}
		if ctx.Err() != nil {
			return last, nil
		}
	}
}

// changed reports whether now is another state than before of an execution that has not ended.
func changed(before, now *idem.Found) bool {
	return before.Lock == nil || before.Place != now.Place || !now.Place && before.Lock.Revision != now.Lock.Revision || before.Status().Precedes(now.Status())
}
