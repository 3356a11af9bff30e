package etcdlock

import (
	"context"
	"fmt"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Follow implements idem.Ledger.
func (s *Ledger) Follow(ctx context.Context, l *idem.Lock) (*idem.Seen, error) {
	k := s.layout.Keys(l)
	ran := l.Revision // the last revision at which it is known to have had the lock; 0 = none
	for {
		st, err := history.Look(ctx, s.pool, k)
		if err != nil {
			return nil, commit.Unavailable(err)
		}
		switch {
		case st.Runs(l.Execution):
			ran = st.Revision
			if st.Lock.Dead, err = s.reaper.IsDead(ctx, st.Lock); err != nil {
				return nil, commit.Unavailable(err)
			}
			if st.Lock.Dead {
				return st.Seen(l.Scope.Key), nil
			}
			s.pool.AwaitChange(ctx, st.Revision, k.L, s.layout.Alive(st.Lock.Alive))
		case st.Waits(l.Execution):
			s.pool.AwaitChange(ctx, st.Revision, k.Q)
		case st.Unread != nil:
			return nil, commit.Unavailable(st.Unread)
		case ran == 0 || st.Ended(l.Execution) != nil, st.Revision < ran: // etcd went back, and it cannot be known any more
			return st.Seen(l.Scope.Key), nil
		default:
			seen, _, err := history.LookBack(ctx, s.pool, k, l.Execution, ran)
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

// stateIn reads the state from the answers of a transaction that was not applied.
func stateIn(refused commit.Reply) (*protocol.State, error) {
	return protocol.ReadState(refused.Responses, refused.Revision)
}
