package owned

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Hold implements idem.RunningLock.
func (h *Lock) Hold(ctx context.Context, ttl time.Duration) error {
	h.setEnding(true)
	held, err := commit.InTime(ctx, h.options.Tasks.Start, func(life context.Context) error {
		return holdLock(life, h, ttl)
	}, nil)
	if err != nil {
		return commit.Unknown(h.options.Pool.Because(err))
	}
	return held
}

// holding puts a lock on a lease of its own.
type holding struct {
	untilKnown
	ttl time.Duration
}

func (o *holding) sendOnce(ctx context.Context, l *idem.Lock, w *writing) (*idem.Lock, commit.Reply, error) {
	h := w.lock
	next, lock, alive, err := h.options.Finisher.Hold(ctx, l, o.ttl, h.runTime())
	if err != nil {
		return nil, commit.Reply{Err: fmt.Errorf("%w: %w", link.ErrNotSent, err)}, nil
	}
	r := commit.NewRequest(h.keys.Lock,
		protocol.Hold(h.keys, protocol.Revisions{LockCreated: l.Created, Lock: l.Revision},
			lock, alive), len(lock.Value))
	r.OwnLeases, r.Unbatched = []clientv3.LeaseID{alive.Lease, clientv3.LeaseID(next.DeadlineLease)}, true
	return next, h.options.Sender.Do(ctx, h.withCounts(r)), nil
}

func (*holding) isDone(l *idem.Lock, _ *writing) bool { return l.Held }

// holdLock puts a lock on a lease of its own. From then on this process has nothing to do with it.
func holdLock(life context.Context, h *Lock, ttl time.Duration) error {
	w := &writing{lock: h, write: &holding{ttl: ttl}}
	put, st, err := w.run(life)
	if err != nil {
		return fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
	}
	h.locks.LetGo(h)
	if put != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lock = put
		return nil
	}
	// an earlier attempt may have been applied, and the execution may have been completed since
	ended := st.Ended(h.Lock().Execution)
	switch {
	case h.Lock().Held:
	case !wasHeld(ended):
		return idem.ErrLockLost
	case w.lost == nil: // completed before it was held, and no attempt here has reported that
		h.options.OnEnded(ended, true)
	}
	return nil
}

// wasHeld reports whether a record is one that only a held execution can have, where this process
// has not settled it.
func wasHeld(r *idem.Record) bool {
	return r != nil && (r.Outcome == idem.Executed || r.Error != nil && r.Error.Code == finish.CodeHoldExpired)
}
