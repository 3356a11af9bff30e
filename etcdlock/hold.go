package etcdlock

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

// Hold implements idem.Held.
func (h *owned) Hold(ctx context.Context, ttl time.Duration) error {
	h.startEnding()
	held, err := commit.InTime(ctx, h.store.tasks.Start, func(life context.Context) error { return h.hold(life, ttl) }, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
	}
	return held
}

// hold sends until the answer is definite. From then on this process has nothing to do with the lock.
func (h *owned) hold(life context.Context, ttl time.Duration) error {
	mayBeHeld := false // by an attempt whose answer got lost
	for pause := link.NewBackoff(); ; {
		l := h.Lock()
		next, lock, alive, err := h.store.finisher.Hold(life, l, ttl, h.ran())
		if err == nil {
			r := commit.NewRequest(h.keys.L, protocol.Hold(h.keys, protocol.Seen{Created: l.Created, L: l.Revision}, lock, alive), len(lock.Value))
			r.OwnLeases, r.Unbatched = []clientv3.LeaseID{alive.Lease, clientv3.LeaseID(next.Limit)}, true
			answer := h.store.sender.Do(life, r)
			mayBeHeld = mayBeHeld || answer.Err != nil
			var st *protocol.State
			st, err = h.refusal(life, answer)
			switch {
			case err != nil:
			case st == nil:
				next.Revision = answer.Revision
				h.letGo(next)
				return nil
			case h.mine(st) && !st.Lock.Held:
				h.see(st.Lock)
				continue
			default:
				return h.heldBefore(l, st, mayBeHeld)
			}
		}
		if pause.Wait(life) != nil {
			return fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
		}
	}
}

// heldBefore says how a hold ended whose transaction was refused although nothing is left to do. An earlier attempt may have been applied, and the execution
// may have been completed since.
func (h *owned) heldBefore(l *idem.Lock, st *protocol.State, mayBeHeld bool) error {
	if h.mine(st) {
		l = st.Lock
	}
	h.letGo(l)
	ended := st.Ended(l.Execution)
	switch {
	case l.Held:
	case !wasHeld(ended):
		return idem.ErrLockLost
	case !mayBeHeld: // completed before it was held, and no attempt here has reported that
		h.store.ended(ended, true)
	}
	return nil
}

// dropLater ends a lease that no key is on any more and that no transaction will use, on behalf of what runs; 0 = there is none. Otherwise etcd
// would carry it until it runs out, which for a lock that is taken every minute with a TTL of a day is a thousand of them.
func (s *core) dropLater(id clientv3.LeaseID) {
	if id != 0 {
		s.tasks.Help(func(life context.Context) { s.pool.Drop(life, id) })
	}
}

// letGo is when this process has nothing to do with the lock any more.
func (h *owned) letGo(as *idem.Lock) {
	h.store.letGo(h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lock = as
}

// wasHeld reports whether a record is one that only a held execution can have, where this process has not settled it.
func wasHeld(r *idem.Record) bool {
	return r != nil && (r.Outcome == idem.Executed || r.Error != nil && r.Error.Code == finish.CodeHoldExpired)
}
