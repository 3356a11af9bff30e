package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Look reads the state around a lock now. It repeats until there is an answer. It returns the error
// of ctx, or that a value cannot be read.
func Look(ctx context.Context, pool *link.Pool, k protocol.Keys) (*protocol.State, error) {
	answers, revision, err := pool.ReadOps(ctx, protocol.LockRecordQueueAndHighWaterMark(k))
	if err != nil {
		return nil, fmt.Errorf("lock and record: %w", err)
	}
	st, err := protocol.ReadState(answers, revision)
	if err == nil && k.HighWaterMark != "" {
		st.HighWaterMark = protocol.First(answers[len(answers)-1])
	}
	return st, err
}

// LookBack finds how an execution ended that had the lock at revision ran, and whose record is not
// there now: it left none, or its record was replaced or forgotten since. The transaction that took
// it out of the lock also wrote its record, so the record's state at that revision says that, and
// which Store wrote it. If etcd has compacted that revision, nothing is known. LookBack repeats
// until etcd has answered: a caller that takes silence for "nothing is known" calls an end of its
// own a lost lock (a recorded history showed it). It returns the error of ctx.
func LookBack(ctx context.Context, pool *link.Pool, k protocol.Keys, id idem.ExecutionID,
	ran int64) (seen *idem.Obstacle,
	writer string, err error) {
	for pause := link.NewBackoff(); ; {
		seen, writer, err = tryLookBack(ctx, pool, k, id, ran)
		if err == nil {
			return seen, writer, nil
		}
		if pause.Wait(ctx) != nil {
			return nil, "", fmt.Errorf("look back: %w", err)
		}
	}
}

func tryLookBack(ctx context.Context, pool *link.Pool, k protocol.Keys, id idem.ExecutionID,
	ran int64) (seen *idem.Obstacle, writer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*pool.Attempt) // it reads twice
	defer cancel()
	left, err := leftLock(ctx, pool, k, id, ran)
	if err != nil {
		return orCompacted(err)
	}
	kvs, _, err := pool.Keys(ctx, k.Record, clientv3.WithRev(left))
	switch {
	case err != nil:
		return orCompacted(err)
	case len(kvs) == 0:
		return &idem.Obstacle{Released: true}, "", nil
	}
	r, writer, err := protocol.DecodeRecord(kvs[0])
	switch {
	case err != nil:
		return &idem.Obstacle{}, "", nil // as it is, for ever
	case r.Execution != id:
		return &idem.Obstacle{Released: true}, "", nil
	}
	r.Revision = kvs[0].ModRevision
	return &idem.Obstacle{Record: r}, writer, nil
}

// orCompacted returns that nothing is known if etcd has compacted the revision, else err.
func orCompacted(err error) (*idem.Obstacle, string, error) {
	if errors.Is(err, rpctypes.ErrCompacted) {
		return &idem.Obstacle{}, "", nil
	}
	return nil, "", err
}

// leftLock returns the revision at which an execution that had the lock at revision ran left it.
func leftLock(ctx context.Context, pool *link.Pool, k protocol.Keys, id idem.ExecutionID, ran int64) (left int64,
	err error) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	err = pool.Watch(watching, link.OfWaits,
		link.Watch{Key: k.Lock, Opts: []clientv3.OpOption{clientv3.WithRev(ran + 1)}, News: func(e *clientv3.Event) {
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

// errUnwatched means that the member that was watched was left for another one.
var errUnwatched = errors.New("the watch has ended")
