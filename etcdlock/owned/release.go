package owned

import (
	"context"
	"errors"
	"fmt"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/slots"
	"hooklock/idem"
)

// Release implements idem.RunningLock. ErrCancelled: a cancel was asked, so the execution ended as
// ABORTED instead. ErrLockLost: its record says that another process ended it.
func (h *Lock) Release(ctx context.Context) error {
	h.setEnding(true)
	released, err := commit.InTime(ctx, h.options.Tasks.Start, h.Free, func(_ context.Context, late error) {
		if late == nil && h.Lock().Parked == nil || errors.Is(late, idem.ErrCancelled) {
			end := idem.End{Status: idem.Failed, Outcome: idem.NotExecuted, FinishedAt: h.options.Clock.Now()}
			h.options.OnEnded(protocol.RecordOf(h.Lock(), end), true)
		}
	})
	if err != nil {
		return commit.Unavailable(h.options.Pool.Because(err))
	}
	return released
}

// GiveBack is Free for a lock whose caller is gone. Where an operator has ended the execution, or
// asked for that, it has no lock either.
func (h *Lock) GiveBack(life context.Context) error {
	h.setEnding(true)
	err := h.Free(life)
	if errors.Is(err, idem.ErrCancelled) || errors.Is(err, idem.ErrLockLost) {
		return nil
	}
	return err
}

// Free sends until the answer is definite. A lock that this process has lost needs no release: an
// earlier attempt has done it, or it was reaped, and then there is a record. A parked execution
// keeps its lock, without a process.
func (h *Lock) Free(life context.Context) error {
	free := &freeing{}
	_, st, err := (&writing{lock: h, write: free}).run(life)
	switch {
	case errors.Is(err, idem.ErrCancelled):
		return endCancelled(life, h)
	case err != nil:
		return commit.Unavailable(fmt.Errorf("release: %w", err))
	}
	h.locks.LetGo(h)
	switch {
	case free.parked:
		h.options.Parked.MakeReady(h.keys.Lock)
	case st != nil && st.Ended(h.Lock().Execution) != nil:
		return idem.ErrLockLost
	}
	return nil
}

// freeing releases a lock, or gives a parked execution up for any process.
type freeing struct {
	untilKnown
	parked bool // the latest attempt was about a parked execution
}

func (f *freeing) sendOnce(ctx context.Context, l *idem.Lock, w *writing) (*idem.Lock, commit.Reply, error) {
	if l.Cancel != nil {
		return nil, commit.Reply{}, idem.ErrCancelled
	}
	f.parked = l.Parked != nil
	next, r, err := w.lock.options.releaseRequest(w.lock.keys, l)
	if err != nil {
		return nil, commit.Reply{Err: fmt.Errorf("%w: %w", link.ErrNotSent, err)}, nil
	}
	return next, w.lock.options.Sender.Do(ctx, r), nil
}

func (*freeing) isDone(l *idem.Lock, _ *writing) bool { return l.Parked != nil && l.Alive == "" }

// releaseRequest returns what l becomes, and the transaction that releases it, or gives a parked
// execution up for any process: no process has its lock then, and the index says so to every
// process. A try whose end is not written down is one of a process that is gone, which this one was
// too late to judge: it stays in the lock.
func (o *Options) releaseRequest(k protocol.Keys, l *idem.Lock) (*idem.Lock, *commit.Request, error) {
	next := *l
	if l.Parked == nil {
		k = o.keysOf(k, l)
		return &next, commit.NewRequest(k.Lock, protocol.Release(k, protocol.Revisions{Lock: l.Revision}),
				0).AddSlots(k),
			nil
	}
	next.Alive = ""
	k.Slots = slots.Rest(o.Layout, &next)
	value, err := protocol.EncodeLock(&next)
	if err != nil {
		return nil, nil, err
	}
	index := protocol.Leased{Value: protocol.EncodeIndex(protocol.IndexOf(l))}
	at := protocol.Revisions{LockCreated: l.Created, Lock: l.Revision}
	return &next, commit.NewRequest(k.Lock, protocol.Rest(k, at, protocol.Leased{Value: value}, &index),
		len(value)).AddSlots(k), nil
}

// endCancelled ends an execution that was cancelled and is released: the cancel needs its record.
func endCancelled(life context.Context, h *Lock) error {
	end := idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted, FinishedAt: h.options.Clock.Now()}
	switch l := h.Lock(); {
	case l.Parked != nil:
		end.Outcome = l.Parked.Outcome()
	case h.worked:
		end.Outcome = idem.Unknown
	}
	_, err := (&settling{lock: h, end: end}).settleUntilDefinite(life, nil)
	if err == nil {
		return idem.ErrCancelled
	}
	return err
}
