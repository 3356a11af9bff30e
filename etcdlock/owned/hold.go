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

// Hold implements idem.Held.
func (h *Lock) Hold(ctx context.Context, ttl time.Duration) error {
	h.setEnding(true)
	held, err := commit.InTime(ctx, h.o.Tasks.Start, (&holding{h: h, ttl: ttl}).run, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
	}
	return held
}

// holding is a lock on its way to a lease of its own.
type holding struct {
	h         *Lock
	ttl       time.Duration
	mayBeHeld bool // by an attempt whose answer got lost
}

// run sends until the answer is definite. From then on this process has nothing to do with the lock.
func (s *holding) run(life context.Context) error {
	h := s.h
	for pause := link.NewBackoff(); ; {
		l := h.Lock()
		next, lock, alive, err := h.o.Finisher.Hold(life, l, s.ttl, h.ran())
		if err == nil {
			r := commit.NewRequest(h.keys.L, protocol.Hold(h.keys, protocol.Seen{Created: l.Created, L: l.Revision}, lock, alive), len(lock.Value))
			r.OwnLeases, r.Unbatched = []clientv3.LeaseID{alive.Lease, clientv3.LeaseID(next.Limit)}, true
			answer := h.o.Sender.Do(life, r)
			s.mayBeHeld = s.mayBeHeld || answer.Err != nil
			var st *protocol.State
			st, err = h.o.state(life, h.keys, answer)
			switch {
			case err != nil:
			case st == nil:
				next.Revision = answer.Revision
				s.letGo(next)
				return nil
			case h.mine(st) && !st.Lock.Held:
				h.See(st.Lock)
				continue
			default:
				return s.refused(l, st)
			}
		}
		if pause.Wait(life) != nil {
			return fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
		}
	}
}

// refused says how a hold ended whose transaction was refused although nothing is left to do. An earlier attempt may have been applied, and the execution
// may have been completed since.
func (s *holding) refused(l *idem.Lock, st *protocol.State) error {
	if s.h.mine(st) {
		l = st.Lock
	}
	s.letGo(l)
	ended := st.Ended(l.Execution)
	switch {
	case l.Held:
	case !wasHeld(ended):
		return idem.ErrLockLost
	case !s.mayBeHeld: // completed before it was held, and no attempt here has reported that
		s.h.o.Ended(ended, true)
	}
	return nil
}

// letGo is when this process has nothing to do with the lock any more.
func (s *holding) letGo(as *idem.Lock) {
	s.h.locks.LetGo(s.h)
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	s.h.lock = as
}

// wasHeld reports whether a record is one that only a held execution can have, where this process has not settled it.
func wasHeld(r *idem.Record) bool {
	return r != nil && (r.Outcome == idem.Executed || r.Error != nil && r.Error.Code == finish.CodeHoldExpired)
}
