package etcdlock

import (
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Follow implements idem.Ledger.
func (s *Store) Follow(ctx context.Context, l *idem.Lock) (*idem.Seen, error) {
	k := s.keysOf(l)
	ran := l.Revision // the last revision at which it is known to have had the lock; 0 = none
	for {
		st, err := s.look(ctx, k)
		if err != nil {
			return nil, unavailable(err)
		}
		switch {
		case st.Runs(l.Execution):
			ran = st.Revision
			if st.Lock.Dead, err = s.isDead(ctx, st.Lock); err != nil {
				return nil, unavailable(err)
			}
			if st.Lock.Dead {
				return st.Seen(l.Scope.Key), nil
			}
			s.watch(ctx, st.Revision, k.L, s.layout.Alive(st.Lock.Alive))
		case st.Waits(l.Execution):
			s.watch(ctx, st.Revision, k.Q)
		case st.Unread != nil:
			return nil, unavailable(st.Unread)
		case ran == 0 || st.Ended(l.Execution) != nil:
			return st.Seen(l.Scope.Key), nil
		default:
			seen, _ := s.lookBack(ctx, k, l.Execution, ran)
			return seen, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("follow %s: %w", l.Execution, context.Cause(ctx))
		}
	}
}

// lookBack finds how an execution ended that had the lock at revision ran, and whose record is not there now: it left none, or its record
// was replaced or forgotten since. The transaction that took it out of the lock also wrote its record, so the record's state at that
// revision tells, and which Store wrote it. What etcd has compacted it cannot tell; then nothing is known.
func (s *Store) lookBack(ctx context.Context, k protocol.Keys, id idem.ExecutionID, ran int64) (seen *idem.Seen, writer string) {
	seen = &idem.Seen{}
	client, at, err := s.pool.current()
	if err != nil {
		return seen, ""
	}
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), attemptTimeout)
	defer cancel()
	for news := range s.pool.members[at].watcher(client).Watch(ctx, k.L, clientv3.WithRev(ran+1)) {
		for _, e := range news.Events {
			if e.Type == clientv3.EventTypePut {
				if l, err := protocol.DecodeLock(e.Kv.Value); err == nil && l.Execution == id && !l.Cooling {
					continue // adopted
				}
			}
			got, err := client.Get(ctx, k.I, clientv3.WithRev(e.Kv.ModRevision))
			if err != nil {
				return seen, ""
			}
			seen.Released = true
			for _, kv := range got.Kvs {
				r, by, err := protocol.DecodeRecord(kv.Value)
				if err != nil {
					return &idem.Seen{}, ""
				}
				if r.Execution == id {
					r.Revision = kv.ModRevision
					seen.Record, seen.Released, writer = r, false, by
				}
			}
			return seen, writer
		}
		if news.Err() != nil {
			return seen, ""
		}
	}
	return seen, ""
}

// watch returns when one of the keys has changed after revision, and also when it cannot know any more: the
// caller reads again.
func (s *Store) watch(ctx context.Context, revision int64, watched ...string) {
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
	case <-s.pool.left(at):
	case <-ctx.Done():
	}
}
