package owned

import (
	"context"
	"errors"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/park"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/slots"
	"hooklock/idem"
)

// Park implements idem.Held.
func (h *Lock) Park(ctx context.Context, p idem.Parked, kept idem.Kept) error {
	if !h.o.Tasks.Enter() {
		return commit.Unavailable(commit.ErrClosed)
	}
	defer h.o.Tasks.Leave()
	as := park.As(p, &kept)
	w := &writing{
		h: h, done: func(l *idem.Lock) bool { return l.Parked != nil },
		over: func(err error) bool { return park.TooLarge(err) || link.Refuses(err) },
		send: func(ctx context.Context, l *idem.Lock) (*idem.Lock, commit.Reply, error) {
			switch {
			case l.Parked != nil:
				return nil, commit.Reply{}, errNotWanted
			case l.Cancel != nil:
				return nil, commit.Reply{}, idem.ErrCancelled
			}
			next, k := *l, h.keys
			next.Parked = as
			if k.Slots = nil; !as.Trying && len(l.Slots) > 0 {
				k.Slots = slots.Rest(h.o.Layout, &next)
			}
			answer := park.Send(ctx, h.o.Sender, h.o.Leases, &next, k, &kept, func(lock protocol.Leased, keep protocol.Parking) protocol.Op {
				return protocol.ParkRunning(k, protocol.Seen{LockCreated: l.Created, Lock: l.Revision}, lock, keep)
			})
			return &next, answer, nil
		},
	}
	before := h.Lock()
	put, st, err := w.run(ctx)
	switch {
	case put != nil:
		h.o.Slots.Changed(before, put)
		h.See(put)
		return nil
	case errors.Is(err, errNotWanted):
		return nil
	case errors.Is(err, idem.ErrCancelled):
		return err
	case err != nil && w.lost != nil:
		return commit.Unknown(err)
	case err != nil:
		return commit.Unavailable(err)
	case st.Runs(before.Execution) && st.Lock.Parked != nil: // and carried on by another process
		h.Stop(idem.ErrLockLost)
		h.locks.LetGo(h)
		return nil
	}
	return idem.ErrLockLost
}
