package etcdlock

import (
	"context"
	"errors"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// What the process that carries a parked execution writes into its lock. Each write compares the revision that it changes, so one whose answer
// got lost is sent again until the lock shows what became of it.

// Attempt implements idem.Held.
func (h *owned) Attempt(ctx context.Context, p idem.Parked, callbackHash string) error {
	l := h.Lock()
	done, paused := h.store.pauses.Begin(l.Route, l.Scope.Workflow)
	if paused {
		return idem.ErrPaused
	}
	defer done()
	began := h.store.clock.Instant()
	err := h.rewrite(ctx, &rewriting{
		slots: func(ctx context.Context, next *idem.Lock, refused bool) ([]protocol.SlotKey, error) {
			return h.store.slots.Retake(ctx, next, h.keys, refused, h.ripenLater)
		},
		next: func(l *idem.Lock) {
			l.Parked = h.stillParked(l, p)
			l.Parked.Trying, l.CallbackHash, l.Steps, l.Plan = true, callbackHash, nil, nil
		},
		encode: protocol.EncodeFresh,
		op: func(k protocol.Keys, at protocol.Seen, lock protocol.Leased, _ *idem.Lock) protocol.Op {
			return protocol.Attempt(k, at, lock)
		},
		done: func(l *idem.Lock) bool { return l.Parked.Trying && l.CallbackHash == callbackHash },
		runs: true,
	})
	if err == nil {
		h.mu.Lock()
		h.since = began
		h.mu.Unlock()
		h.store.parked.Tried(l.Execution)
	}
	return err
}

// Rest implements idem.Held.
func (h *owned) Rest(ctx context.Context, p idem.Parked) error {
	p.Trying = false
	return h.rewrite(ctx, &rewriting{
		slots: func(_ context.Context, next *idem.Lock, _ bool) ([]protocol.SlotKey, error) {
			return h.store.slots.Rest(next), nil
		},
		next:   func(l *idem.Lock) { l.Parked = h.stillParked(l, p) },
		encode: protocol.EncodeLock,
		op: func(k protocol.Keys, at protocol.Seen, lock protocol.Leased, before *idem.Lock) protocol.Op {
			return protocol.Rest(k, at, lock, h.announcement(before, p.Blocked))
		},
		done: func(l *idem.Lock) bool {
			return !l.Parked.Trying && l.Parked.Tries == p.Tries && (l.Parked.Last == nil) == (p.Last == nil) && (p.Last == nil || l.Parked.Last.At.Equal(p.Last.At))
		},
	})
}

// stillParked is p with what is written once.
func (h *owned) stillParked(l *idem.Lock, p idem.Parked) *idem.Parked {
	p.Since, p.Bytes, p.MaxAge = l.Parked.Since, l.Parked.Bytes, l.Parked.MaxAge
	p.NextAttempt = p.NextAttempt.UTC().Round(time.Millisecond)
	if p.Last != nil {
		last := *p.Last
		last.At = last.At.UTC().Round(time.Millisecond)
		p.Last = &last
	}
	return &p
}

// announcement tells the other processes where it changes whether the execution waits for a person.
func (h *owned) announcement(before *idem.Lock, blocked string) *protocol.Leased {
	if (before.Parked.Blocked == "") == (blocked == "") {
		return nil
	}
	next, p := *before, *before.Parked
	p.Blocked = blocked
	next.Parked = &p
	return &protocol.Leased{Value: protocol.EncodeIndex(protocol.IndexOf(&next))}
}

// rewriting is a put over the own lock.
type rewriting struct {
	next func(*idem.Lock) // changes a copy of the lock as it was seen last
	// slots sets those of next, where it counts against limits, and says which it takes or frees. refused: the one before was.
	slots  func(ctx context.Context, next *idem.Lock, refused bool) ([]protocol.SlotKey, error)
	encode func(*idem.Lock) ([]byte, error)
	op     func(k protocol.Keys, at protocol.Seen, lock protocol.Leased, before *idem.Lock) protocol.Op
	done   func(*idem.Lock) bool // the lock shows that an attempt whose answer got lost was applied
	runs   bool                  // something is to be sent after it: no cancel may have been asked
}

// rewrite sends until the answer is definite, or ctx ends. What an attempt without an answer did is found out by the next call.
func (h *owned) rewrite(ctx context.Context, w *rewriting) error {
	if !h.store.tasks.Enter() {
		return commit.Unavailable(commit.ErrClosed)
	}
	defer h.store.tasks.Leave()
	refused := false
	var lost error // of an attempt that may have been applied; nil = there is none
	for pause := link.NewBackoff(); ; {
		l, stopped, err := h.writable(ctx, w.runs, pause)
		if err != nil {
			return err
		}
		next, r, err := h.overwrite(ctx, w, l, refused)
		switch {
		case errors.Is(err, idem.ErrNoSlot) && lost != nil: // the lost attempt may have them: the next write finds out
			return commit.Unavailable(lost)
		case err != nil:
			return err
		}
		answer := h.store.sender.Do(ctx, r)
		if answer.Err == nil && answer.Succeeded {
			h.store.slots.Changed(l, next)
			return h.rewritten(next, answer.Revision, w.runs, stopped)
		}
		h.store.slots.Unchoose(next)
		if refused = answer.Err == nil; !refused && !link.Definite(answer.Err) {
			lost = answer.Err
		}
		st, err := h.refusal(ctx, answer)
		switch {
		case err != nil:
		case !h.mine(st):
			return h.lose()
		case lost != nil && w.done(st.Lock):
			h.see(st.Lock)
			return h.rewritten(nil, 0, w.runs, stopped)
		case st.Lock.Revision != l.Revision:
			h.see(st.Lock)
			continue
		} // otherwise etcd has ended its session, and this process is about to learn of it
		if pause.Wait(ctx) != nil {
			return commit.Unavailable(err)
		}
	}
}

// writable returns the lock as it was seen last, once it belongs to a live session, and why this process was told to stop, if it was. Where something is to
// be sent after the write, a cancel or a stop is an error.
func (h *owned) writable(ctx context.Context, runs bool, pause *link.Backoff) (l *idem.Lock, stopped, err error) {
	for {
		h.mu.Lock()
		session := h.session
		l, stopped = h.lock, h.stopped
		if h.unheardLocked() {
			stopped = nil
		}
		h.mu.Unlock()
		switch {
		case runs && l.Cancel != nil:
			return nil, nil, idem.ErrCancelled
		case runs && stopped != nil:
			return nil, nil, h.lose()
		case session.Err() == nil || stopped != nil:
			return l, stopped, nil
		}
		if err = h.follow(ctx); err == nil {
			err = pause.Wait(ctx)
		}
		if err != nil {
			return nil, nil, commit.Unavailable(err)
		}
	}
}

// overwrite makes the next value of l, and the transaction that puts it. refused: the one before was refused.
func (h *owned) overwrite(ctx context.Context, w *rewriting, l *idem.Lock, refused bool) (*idem.Lock, *commit.Request, error) {
	next := *l
	w.next(&next)
	k := h.store.layout.Keys(l)
	if len(l.Slots) > 0 {
		var err error
		if k.Slots, err = w.slots(ctx, &next, refused); err != nil {
			return nil, nil, err
		}
	}
	value, err := w.encode(&next)
	if err != nil {
		h.store.slots.Unchoose(&next)
		return nil, nil, commit.Unavailable(err)
	}
	op := w.op(k, protocol.Seen{Created: l.Created, L: l.Revision}, protocol.Leased{Value: value}, l)
	return &next, commit.NewRequest(k.L, op, len(value)).AddSlots(k), nil
}

// refusal reads how things stand if answer is a refusal. st is nil if the transaction was applied; err says that neither is known.
func (h *owned) refusal(ctx context.Context, answer commit.Reply) (st *protocol.State, err error) {
	if answer.Err != nil || answer.Succeeded {
		return nil, answer.Err
	}
	return history.Look(ctx, h.store.pool, h.keys)
}

// rewritten takes over what was put; nil = it was read. One that was stopped is not this process's any more, though what it knew is written.
func (h *owned) rewritten(l *idem.Lock, revision int64, fresh bool, stopped error) error {
	if l != nil {
		l.Revision = revision
		if fresh {
			l.Token = revision
		}
		h.see(l)
	}
	if stopped == nil || h.Lock().Cancel != nil {
		return nil
	}
	return h.lose()
}

// follow moves the lock to the session of now, if there is one.
func (h *owned) follow(ctx context.Context) error {
	err := h.store.keeper.WaitReady(ctx)
	if err != nil {
		return err
	}
	if to, _, err := h.store.keeper.Current(); err == nil {
		h.adopt(ctx, to)
	}
	return nil
}

// lose gives up what this process ran: another one finds the lock without a process, and takes it over.
func (h *owned) lose() error {
	h.stopNow(idem.ErrLockLost)
	h.store.letGo(h)
	h.store.parked.Mark(h.keys.L)
	return idem.ErrLockLost
}

// DeadLetter implements idem.Held.
func (h *owned) DeadLetter(ctx context.Context, e idem.End) (*idem.Record, error) {
	return h.settleAs(ctx, ending{e, true})
}

// putDown gives a parked execution up for any process: no process has its lock, and the index says so to every process. A try whose end is not written
// down is one of a process that is gone, which this one was too late to judge: it stays in the lock.
func (h *owned) putDown(life context.Context) error {
	for pause := link.NewBackoff(); ; {
		l := h.Lock()
		if l.Cancel != nil {
			return h.abort(life)
		}
		next := *l
		next.Alive = ""
		k := h.keys
		k.Slots = h.store.slots.Rest(&next)
		value, err := protocol.EncodeLock(&next)
		if err == nil {
			index := protocol.Leased{Value: protocol.EncodeIndex(protocol.IndexOf(l))}
			at := protocol.Seen{Created: l.Created, L: l.Revision}
			answer := h.store.sender.Do(life, commit.NewRequest(k.L, protocol.Rest(k, at, protocol.Leased{Value: value}, &index), len(value)).AddSlots(k))
			if err = answer.Err; err == nil && !answer.Succeeded {
				var st *protocol.State
				if st, err = history.Look(life, h.store.pool, h.keys); err == nil && h.mine(st) && st.Lock.Alive != "" {
					h.see(st.Lock)
					continue
				}
			}
		}
		if err == nil {
			h.store.letGo(h)
			h.store.parked.Mark(h.keys.L)
			return nil
		}
		if pause.Wait(life) != nil {
			return commit.Unavailable(err)
		}
	}
}

// ripenLater lets the queue behind the lock be looked at, without waiting for that.
func (h *owned) ripenLater() {
	h.store.tasks.Help(func(context.Context) { h.store.parked.Mark(h.keys.L) })
}
