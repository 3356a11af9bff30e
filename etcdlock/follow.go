package etcdlock

import (
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/idem"
)

// Follow implements idem.Ledger.
func (s *Store) Follow(ctx context.Context, l *idem.Lock) (*idem.Seen, error) {
	k := s.keysOf(l)
	for {
		st, err := s.look(ctx, k)
		if err != nil {
			return nil, unavailable(err)
		}
		switch {
		case st.runs(l.Execution):
			if st.lock.Dead, err = s.isDead(ctx, st.lock); err != nil {
				return nil, unavailable(err)
			}
			if st.lock.Dead {
				return st.seen(), nil
			}
			s.watch(ctx, nil, st.revision, k.L, s.layout.alive(st.lock.Alive))
		case st.waits(l.Execution):
			s.watch(ctx, nil, st.revision, k.Q)
		case st.unread != nil:
			return nil, unavailable(st.unread)
		default:
			return st.seen(), nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("follow %s: %w", l.Execution, context.Cause(ctx))
		}
	}
}

// watch returns when one of the keys has changed after revision or when over is closed, and also when it cannot know any more: the
// caller reads again. Who waits watches only the place before its own, so that a free lock wakes one and not all.
func (s *Store) watch(ctx context.Context, over <-chan struct{}, revision int64, watched ...string) {
	client, at, err := s.pool.current()
	if err != nil {
		s.pool.failover(at)
		_ = sleep(ctx, firstPause)
		return
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	member := s.pool.members[at]
	watcher := member.watcher(client)
	changed := make(chan error, len(watched))
	for _, key := range watched {
		watching.Go(func() {
			// At a member that hangs a watch does not even begin. Both the beginning and the news end with ctx.
			news := <-watcher.Watch(ctx, key, clientv3.WithRev(revision+1))
			changed <- news.Err()
		})
	}
	select {
	case err := <-changed:
		member.afterWatch(ctx, watcher, err)
	case <-over:
	case <-s.pool.left(at):
	case <-ctx.Done():
	}
}
