package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Follow implements idem.Ledger.
func (s *Ledger) Follow(ctx context.Context, l *idem.Lock) (*idem.Seen, error) {
	k := s.layout.Keys(l)
	ran := l.Revision // the last revision at which it is known to have had the lock; 0 = none
	for {
		st, err := s.look(ctx, k)
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
		case ran == 0 || st.Ended(l.Execution) != nil, st.Revision < ran: // etcd went back, and nobody can tell any more
			return st.Seen(l.Scope.Key), nil
		default:
			seen, _, err := s.lookBack(ctx, k, l.Execution, ran)
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

// lookBack finds how an execution ended that had the lock at revision ran, and whose record is not there now: it left none, or its record
// was replaced or forgotten since. The transaction that took it out of the lock also wrote its record, so the record's state at that
// revision tells, and which Store wrote it. What etcd has compacted it cannot tell; then nothing is known. It repeats until etcd has answered: who
// takes silence for "nothing is known" calls an end of his own a lost lock (a recorded history showed it). The error is the context's.
func (s *core) lookBack(ctx context.Context, k protocol.Keys, id idem.ExecutionID, ran int64) (seen *idem.Seen, writer string, err error) {
	for pause := link.NewBackoff(); ; {
		seen, writer, err = s.tryLookBack(ctx, k, id, ran)
		if err == nil {
			return seen, writer, nil
		}
		if pause.Wait(ctx) != nil {
			return nil, "", fmt.Errorf("look back: %w", err)
		}
	}
}

func (s *core) tryLookBack(ctx context.Context, k protocol.Keys, id idem.ExecutionID, ran int64) (seen *idem.Seen, writer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, link.AttemptTimeout)
	defer cancel()
	left, err := s.leftLock(ctx, k, id, ran)
	if err != nil {
		return orCompacted(err)
	}
	answers, _, err := s.pool.Read(ctx, clientv3.OpGet(k.I, clientv3.WithRev(left)))
	if err != nil {
		return orCompacted(err)
	}
	kv := protocol.First(answers[0])
	if kv == nil {
		return &idem.Seen{Released: true}, "", nil
	}
	r, writer, err := protocol.DecodeRecord(kv)
	switch {
	case err != nil:
		return &idem.Seen{}, "", nil // as it is, for ever
	case r.Execution != id:
		return &idem.Seen{Released: true}, "", nil
	}
	r.Revision = kv.ModRevision
	return &idem.Seen{Record: r}, writer, nil
}

// orCompacted is what is seen where etcd cannot tell any more, or err.
func orCompacted(err error) (*idem.Seen, string, error) {
	if errors.Is(err, rpctypes.ErrCompacted) {
		return &idem.Seen{}, "", nil
	}
	return nil, "", err
}

// leftLock is the revision at which an execution that had the lock at revision ran left it.
func (s *core) leftLock(ctx context.Context, k protocol.Keys, id idem.ExecutionID, ran int64) (left int64, err error) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	err = s.pool.Watch(watching, link.OfWaits, link.Watch{Key: k.L, Opts: []clientv3.OpOption{clientv3.WithRev(ran + 1)}, News: func(e *clientv3.Event) {
		if left != 0 {
			return
		}
		if e.Type == clientv3.EventTypePut {
			if l, err := protocol.DecodeLock(e.Kv.Value); err == nil && l.Execution == id && !l.Cooling {
				return // adopted
			}
		}
		left = e.Kv.ModRevision
		cancel()
	}})
	switch {
	case left != 0:
		return left, nil
	case err == nil:
		err = cmp.Or(context.Cause(ctx), errUnwatched)
	}
	return 0, err
}

// errUnwatched: the member that was watched at is left for another one.
var errUnwatched = errors.New("the watch has ended")

// stateIn reads the state from the answers of a transaction that was not applied.
func stateIn(refused commit.Reply) (*protocol.State, error) {
	return protocol.ReadState(refused.Responses, refused.Revision)
}

// look reads how things stand now. It repeats until there is an answer; the error is the context's or about an unreadable value.
func (s *core) look(ctx context.Context, k protocol.Keys) (*protocol.State, error) {
	answers, revision, err := s.pool.ReadOps(ctx, protocol.LockRecordQueueAndMark(k))
	if err != nil {
		return nil, fmt.Errorf("lock and record: %w", err)
	}
	st, err := protocol.ReadState(answers, revision)
	if err == nil && k.M != "" {
		st.Mark = protocol.First(answers[len(answers)-1])
	}
	return st, err
}
