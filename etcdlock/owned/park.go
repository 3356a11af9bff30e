package owned

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
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
	return (&parking{h: h, as: park.As(p, &kept), kept: &kept}).run(ctx)
}

// parking is a running execution on its way to being a parked one.
type parking struct {
	h     *Lock
	as    *idem.Parked
	kept  *idem.Kept
	tried bool // an attempt without a definite answer may have parked it
}

func (s *parking) run(ctx context.Context) error {
	h := s.h
	for pause := link.NewBackoff(); ; {
		l := h.Lock()
		switch {
		case l.Parked != nil:
			return nil
		case l.Cancel != nil:
			return idem.ErrCancelled
		}
		next, answer := s.send(ctx, l)
		err := answer.Err
		full := errors.Is(err, rpctypes.ErrNoSpace)
		switch {
		case err == nil && answer.Succeeded:
			next.Revision = answer.Revision
			h.o.Slots.Changed(l, next)
			h.See(next)
			return nil
		case err == nil || full:
			st, unread := history.Look(ctx, h.o.Pool, h.keys)
			switch {
			case unread != nil:
				s.tried, err = s.tried || full, unread
			case h.mine(st) && full && st.Lock.Parked == nil:
				return s.failed(err)
			case h.mine(st):
				h.See(st.Lock)
				continue
			case st.Runs(l.Execution) && st.Lock.Parked != nil: // and carried on by another process
				h.Stop(idem.ErrLockLost)
				h.locks.LetGo(h)
				return nil
			default:
				return idem.ErrLockLost
			}
		default:
			s.tried = s.tried || !link.Definite(err)
		}
		if park.TooLarge(err) || pause.Wait(ctx) != nil {
			return s.failed(err)
		}
	}
}

func (s *parking) failed(err error) error {
	if s.tried {
		return commit.Unknown(err)
	}
	return commit.Unavailable(err)
}

func (s *parking) send(ctx context.Context, l *idem.Lock) (*idem.Lock, commit.Reply) {
	next, k := *l, s.h.keys
	next.Parked = s.as
	if k.Slots = nil; !s.as.Trying && len(l.Slots) > 0 {
		k.Slots = slots.Rest(s.h.o.Layout, &next)
	}
	return &next, park.Send(ctx, s.h.o.Sender, s.h.o.Leases, &next, k, s.kept, func(lock protocol.Leased, keep protocol.Parking) protocol.Op {
		return protocol.ParkRunning(k, protocol.Seen{Created: l.Created, L: l.Revision}, lock, keep)
	})
}
