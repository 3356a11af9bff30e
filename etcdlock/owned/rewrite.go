package owned

import (
	"context"
	"errors"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/slots"
	"hooklock/idem"
)

// What the process that carries a parked execution writes into its lock. Each write compares the
// revision that it changes, so one whose answer got lost is sent again until the lock shows what
// became of it.

// BeginTry implements idem.RunningLock.
func (h *Lock) BeginTry(ctx context.Context, p idem.Parked, callbackHash string) error {
	l := h.Lock()
	done, paused := h.options.Pauses.Begin(l.Route, l.Scope.Workflow)
	if paused {
		return idem.ErrPaused
	}
	defer done()
	began := h.options.Clock.Instant()
	err := (&rewriting{lock: h, rewrite: &attempt{h, &p, callbackHash}, runs: true}).run(ctx)
	if err == nil {
		h.mu.Lock()
		h.since = began
		h.mu.Unlock()
		h.options.Parked.NoteTry(l.Execution)
	}
	return err
}

// attempt announces a try.
type attempt struct {
	lock         *Lock
	parked       *idem.Parked
	callbackHash string
}

func (a *attempt) changeLock(l *idem.Lock) {
	l.Parked = stillParked(l, *a.parked)
	l.Parked.Trying, l.CallbackHash, l.Steps, l.Plan = true, a.callbackHash, nil, nil
}

func (a *attempt) chooseSlots(ctx context.Context, next *idem.Lock, refused bool) ([]protocol.SlotKey, error) {
	return a.lock.options.Slots.Retake(ctx, next, a.lock.keys, refused)
}

func (*attempt) encodeLock(l *idem.Lock) ([]byte, error) { return protocol.EncodeFresh(l) }

func (*attempt) newTransaction(k protocol.Keys, at protocol.Revisions, lock protocol.Leased, _ *idem.Lock) protocol.Op {
	return protocol.Attempt(k, at, lock)
}

func (a *attempt) isIn(l *idem.Lock) bool {
	return l.Parked.Trying && l.CallbackHash == a.callbackHash
}

// RecordTry implements idem.RunningLock.
func (h *Lock) RecordTry(ctx context.Context, p idem.Parked) error {
	p.Trying = false
	return (&rewriting{lock: h, rewrite: &rest{h.options, &p}}).run(ctx)
}

// rest notes that no try is under way.
type rest struct {
	options *Options
	parked  *idem.Parked
}

func (r *rest) changeLock(l *idem.Lock) { l.Parked = stillParked(l, *r.parked) }

func (r *rest) chooseSlots(_ context.Context, next *idem.Lock, _ bool) ([]protocol.SlotKey, error) {
	return slots.Rest(r.options.Layout, next), nil
}

func (*rest) encodeLock(l *idem.Lock) ([]byte, error) { return protocol.EncodeLock(l) }

func (r *rest) newTransaction(k protocol.Keys, at protocol.Revisions, lock protocol.Leased,
	before *idem.Lock) protocol.Op {
	return protocol.Rest(k, at, lock, changedIndex(before, r.parked.Blocked))
}

func (r *rest) isIn(l *idem.Lock) bool {
	has, wants := l.Parked, r.parked
	return !has.Trying && has.Tries == wants.Tries && (has.Last == nil) == (wants.Last == nil) &&
		(wants.Last == nil || has.Last.At.Equal(wants.Last.At))
}

// stillParked is p with what is written once.
func stillParked(l *idem.Lock, p idem.Parked) *idem.Parked {
	p.Since, p.Bytes, p.MaxAge = l.Parked.Since, l.Parked.Bytes, l.Parked.MaxAge
	p.NextAttempt = p.NextAttempt.UTC().Round(time.Millisecond)
	if p.Last != nil {
		last := *p.Last
		last.At = last.At.UTC().Round(time.Millisecond)
		p.Last = &last
	}
	return &p
}

// changedIndex tells the other processes where it changes whether the execution waits for a person.
func changedIndex(before *idem.Lock, blocked string) *protocol.Leased {
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
	untilKnown
	lock *Lock
	rewrite
	runs bool // something is to be sent after it: no cancel may have been asked

	stopped, final error // of the latest attempt: why this process has to stop; and why nothing is sent any more
}

// rewrite is what a put over the own lock changes.
type rewrite interface {
	// changeLock changes a copy of the lock as it was seen last.
	changeLock(*idem.Lock)
	// chooseSlots sets next's slots, where it counts against limits, and says which it takes or
	// frees. refused: the one before was.
	chooseSlots(ctx context.Context, next *idem.Lock, refused bool) ([]protocol.SlotKey, error)
	encodeLock(*idem.Lock) ([]byte, error)
	newTransaction(k protocol.Keys, at protocol.Revisions, lock protocol.Leased, before *idem.Lock) protocol.Op
	// isIn reports whether the lock shows that an attempt whose answer got lost was applied.
	isIn(*idem.Lock) bool
}

func (w *rewriting) sendOnce(ctx context.Context, _ *idem.Lock, writes *writing) (next *idem.Lock, answer commit.Reply,
	_ error) {
	var l *idem.Lock
	if l, w.stopped, w.final = w.awaitWritable(ctx); w.final == nil {
		next, answer, w.final = w.overwriteLock(ctx, l, writes.refused)
	}
	return next, answer, w.final
}

func (w *rewriting) isDone(l *idem.Lock, writes *writing) bool {
	return writes.lost != nil && w.isIn(l)
}

// run sends until the answer is definite, or ctx ends. What an attempt without an answer did is
// found out by the next call.
func (w *rewriting) run(ctx context.Context) error {
	h := w.lock
	if !h.options.Tasks.Enter() {
		return commit.Unavailable(commit.ErrClosed)
	}
	defer h.options.Tasks.Leave()
	writes := &writing{lock: h, write: w}
	put, _, err := writes.run(ctx)
	switch {
	case errors.Is(w.final, idem.ErrNoSlot) && writes.lost != nil:
		// the lost attempt may have them: the next write finds out
		return commit.Unavailable(writes.lost)
	case w.final != nil:
		return w.final
	case err != nil:
		return commit.Unavailable(err)
	case put == nil:
		return h.letGoAsLost()
	}
	if !w.runs {
		h.LeaveCounts()
	}
	h.See(put)
	if w.stopped == nil || h.Lock().Cancel != nil {
		return nil
	}
	return h.letGoAsLost() // it is not this process's any more, though what it knew is written
}

// awaitWritable returns the lock as it was seen last, once it belongs to a live session, and why
// this process was told to stop, if it was. Where something is to be sent after the write, a cancel
// or a stop is an error.
func (w *rewriting) awaitWritable(ctx context.Context) (l *idem.Lock, stopped, err error) {
	h := w.lock
	for pause := link.NewBackoff(); ; {
		h.mu.Lock()
		session := h.session
		l, stopped = h.lock, h.stopped
		if h.unheardLocked() {
			stopped = nil
		}
		h.mu.Unlock()
		switch {
		case w.runs && l.Cancel != nil:
			return nil, nil, idem.ErrCancelled
		case w.runs && stopped != nil:
			return nil, nil, h.letGoAsLost()
		case session.Err() == nil || stopped != nil:
			return l, stopped, nil
		}
		if err = w.moveToSession(ctx); err == nil {
			err = pause.Wait(ctx)
		}
		if err != nil {
			return nil, nil, commit.Unavailable(err)
		}
	}
}

// overwriteLock puts what l becomes. refused: the attempt before was refused.
func (w *rewriting) overwriteLock(ctx context.Context, l *idem.Lock, refused bool) (_ *idem.Lock, answer commit.Reply,
	err error) {
	o := w.lock.options
	next := *l
	w.changeLock(&next)
	k := o.Layout.Keys(l)
	if len(l.Slots) > 0 {
		if k.Slots, err = w.chooseSlots(ctx, &next, refused); err != nil {
			return nil, answer, err
		}
	}
	value, err := w.encodeLock(&next)
	if err != nil {
		o.Slots.Unchoose(&next)
		return nil, answer, commit.Unavailable(err)
	}
	op := w.newTransaction(k, protocol.Revisions{LockCreated: l.Created, Lock: l.Revision},
		protocol.Leased{Value: value}, l)
	request := commit.NewRequest(k.Lock, op, len(value)).AddSlots(k)
	if !w.runs {
		w.lock.withCounts(request)
	}
	if answer = o.Sender.Do(ctx, request); !answer.Applied() {
		o.Slots.Unchoose(&next)
		return nil, answer, nil
	}
	o.Slots.ApplyLockChange(l, &next)
	if w.runs {
		next.Token = answer.Revision
	}
	return &next, answer, nil
}

// moveToSession moves the lock to the session of now, if there is one.
func (w *rewriting) moveToSession(ctx context.Context) error {
	err := w.lock.options.Keeper.WaitReady(ctx)
	if err != nil {
		return err
	}
	if to, _, err := w.lock.options.Keeper.Current(); err == nil {
		(&adopting{lock: w.lock, to: to}).run(ctx)
	}
	return nil
}
