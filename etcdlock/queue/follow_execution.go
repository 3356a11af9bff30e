package queue

import (
	"context"
	"fmt"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/idem"
)

// AwaitEnd is that of idem.Ledger.
func (s *Entries) AwaitEnd(ctx context.Context, l *idem.Lock) (*idem.Obstacle, error) {
	k := s.options.Layout.Keys(l)
	ran := l.Revision // the last revision at which it is known to have had the lock; 0 = none
	for {
		st, err := history.Look(ctx, s.options.Pool, k)
		if err != nil {
			return nil, commit.Unavailable(err)
		}
		switch {
		case st.Runs(l.Execution):
			ran = st.Revision
			if st.Lock.Dead, err = s.options.Reaper.IsDead(ctx, st.Lock); err != nil {
				return nil, commit.Unavailable(err)
			}
			if st.Lock.Dead {
				return st.Obstacle(l.Scope.Key), nil
			}
			s.options.Pool.AwaitChange(ctx, st.Revision, k.Lock, s.options.Layout.Alive(st.Lock.Alive))
		case st.Waits(l.Execution):
			s.options.Pool.AwaitChange(ctx, st.Revision, k.Entry)
		case st.Unread != nil:
			return nil, commit.Unavailable(st.Unread)
		case ran == 0 || st.Ended(l.Execution) != nil, st.Revision < ran:
			// etcd went back, and it cannot be known any more
			return st.Obstacle(l.Scope.Key), nil
		default:
			seen, _, err := history.LookBack(ctx, s.options.Pool, k, l.Execution, ran)
			if err != nil {
				return nil, commit.Unavailable(err)
			}
			return seen, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("follow %s: %w", l.Execution, context.Cause(ctx))
		}
	}
}
