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

// parking makes the execution of a lock a parked one.
type parking struct {
	as   *idem.Parked
	kept *idem.StoredRequest

	count *commit.Count
}

func (p *parking) sendOnce(ctx context.Context, l *idem.Lock, w *writing) (*idem.Lock, commit.Reply, error) {
	switch {
	case l.Parked != nil:
		return nil, commit.Reply{}, errNotWanted
	case l.Cancel != nil:
		return nil, commit.Reply{}, idem.ErrCancelled
	}
	o := w.lock.options
	next, k := *l, w.lock.keys
	next.Parked = p.as
	if k.Slots = nil; !p.as.Trying && len(l.Slots) > 0 {
		k.Slots = slots.Rest(o.Layout, &next)
	}
	counts := w.lock.withCounts(&commit.Request{Counts: []*commit.Count{p.count}}).Counts
	answer := park.Send(ctx, o.Sender, o.Leases, &next, k, p.kept, counts,
		func(lock protocol.Leased, keep protocol.Parking) protocol.Op {
			return protocol.ParkRunning(k, protocol.Revisions{LockCreated: l.Created, Lock: l.Revision}, lock, keep)
		})
	return &next, answer, nil
}

func (*parking) isDone(l *idem.Lock, _ *writing) bool { return l.Parked != nil }

func (*parking) isFinal(err error) bool { return park.TooLarge(err) || link.Refuses(err) }

// Park implements idem.RunningLock.
func (h *Lock) Park(ctx context.Context, p idem.Parked) error {
	if !h.options.Tasks.Enter() {
		return commit.Unavailable(commit.ErrClosed)
	}
	defer h.options.Tasks.Leave()
	before := h.Lock()
	as := park.As(p)
	w := &writing{lock: h, write: &parking{as, p.Kept, park.CountOf(before.Route)}}
	put, st, err := w.run(ctx)
	switch {
	case put != nil:
		h.LeaveCounts()
		h.options.Slots.ApplyLockChange(before, put)
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
		accepted := *h.Lock()
		accepted.Parked = as
		h.See(&accepted)
		h.Stop(idem.ErrLockLost)
		h.locks.LetGo(h)
		return nil
	}
	return idem.ErrLockLost
}
