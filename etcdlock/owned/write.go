package owned

import (
	"cmp"
	"context"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// writing is a write over the own lock on its way to a definite answer. Each attempt compares the
// revision that it changes, so one whose answer got lost is sent again until the lock shows what
// became of it.
type writing struct {
	lock *Lock
	write

	refused bool  // the latest attempt was
	lost    error // of an attempt that may have been applied; nil = there is none
}

// write is what is written.
type write interface {
	// sendOnce sends what l, the lock as it was seen last, becomes. After an error nothing is sent
	// any more.
	sendOnce(ctx context.Context, l *idem.Lock, w *writing) (next *idem.Lock, answer commit.Reply, err error)
	// isDone reports whether l shows that an attempt was applied.
	isDone(l *idem.Lock, w *writing) bool
	// isFinal reports whether an attempt with that error is the last one.
	isFinal(error) bool
}

// untilKnown is a write that goes on after each error.
type untilKnown struct{}

func (untilKnown) isFinal(error) bool { return false }

// run sends until it is known what became of it. It returns the lock as it was put, or found if an
// attempt without an answer has put it; else the state in which the lock is not this one's any
// more. The error is that of sendOnce, or why the last attempt came to nothing.
func (w *writing) run(ctx context.Context) (put *idem.Lock, st *protocol.State, err error) {
	h := w.lock
	for pause, same := link.NewBackoff(), false; ; {
		l := h.Lock()
		next, answer, err := w.sendOnce(ctx, l, w)
		switch {
		case err != nil:
			return nil, nil, err
		case answer.Applied():
			next.Revision = answer.Revision
			return next, nil, nil
		}
		before := w.lost
		if w.refused, err = answer.Err == nil, answer.Err; !w.refused && !link.Definite(err) {
			w.lost = err
		}
		if w.refused || !link.Fencing(err) { // then reading tells
			st, unread := history.Look(ctx, h.options.Pool, h.keys)
			switch {
			case unread != nil:
				err = unread
			case !h.isOwnIn(st):
				return nil, st, nil
			case w.isDone(st.Lock, w):
				return st.Lock, nil, nil
			case st.Lock.Revision != l.Revision || w.refused && !same: // what is sent next may be another transaction
				w.lost, same = before, st.Lock.Revision == l.Revision
				h.See(st.Lock)
				continue
			default: // etcd is full, or has ended the session
				w.lost = before
			}
		}
		if w.isFinal(err) || pause.Wait(ctx) != nil {
			return nil, nil, cmp.Or(err, context.Cause(ctx))
		}
	}
}
