package etcdlock

import (
	"context"

	"hooklock/idem"
)

// Await returns when an execution is not as since shows it any more, nil being as it is now; at once when it has ended. Its status, its lock
// with steps and cancel, and its end count as changes; heartbeats and duplicates do not. When ctx ends first it returns the execution as it is.
// The error is idem.ErrNoExecution, also when it went without a trace while it was awaited, or idem.ErrStoreUnavailable.
func (s *Control) Await(ctx context.Context, id idem.ExecutionID, since *idem.Found) (*idem.Found, error) {
	var last *idem.Found
	for {
		f, err := s.Execution(ctx, id)
		switch over := ctx.Err() != nil; {
		case err == nil:
			last = f
		case last == nil || !over:
			return nil, err
		}
		if since == nil {
			since = last
		}
		if last.Lock == nil || ctx.Err() != nil || changed(since, last) {
			return last, nil //nolint:nilerr // the time was over before etcd could say more
		}
		k := s.layout.Keys(last.Lock)
		if last.Place {
			s.watch(ctx, last.Revision, k.Q)
		} else {
			s.watch(ctx, last.Revision, k.L, k.A)
		}
	}
}

// changed reports whether now is another state than before of an execution that has not ended.
func changed(before, now *idem.Found) bool {
	return before.Lock == nil || before.Place != now.Place || !now.Place && before.Lock.Revision != now.Lock.Revision || before.Status().Precedes(now.Status())
}
