package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// owned is a lock that this process holds. It implements idem.Held.
type owned struct {
	store  *core
	keys   protocol.Keys
	writer string // marks the record that it writes
	// worked: it acts for another process, which may have called the upstream.
	worked bool

	mu      sync.Mutex
	since   link.Instant     // when this process got it, or the latest try of a parked one began
	lock    *idem.Lock       // as last seen in etcd; replaced, never changed
	session *session.Session // that vouches for it
	ending  bool             // Settle or Release was called: no call runs any more
	line    protocol.Line    // the known waiters when it got the lock
	handing bool             // handing it over was tried
	rewound bool             // etcd went back since it was taken: its later states are lost
	stopped error            // why the call has to stop
	onStop  func(error)
}

var _ idem.Held = (*owned)(nil)

func newOwned(s *core, l idem.Lock, k protocol.Keys, session *session.Session) *owned {
	writer := s.writer
	if session != nil { // most records have it as the end of their holder, and need not say it twice
		writer = session.Name
	}
	return &owned{store: s, keys: k, writer: writer, since: s.clock.Instant(), lock: &l, session: session}
}

// keysOf are the keys of the lock as it was seen in l: the slots of what is parked come and go.
func (h *owned) keysOf(l *idem.Lock) protocol.Keys {
	k := h.keys
	if l.Parked != nil && len(l.Slots) > 0 {
		k.Slots = h.store.layout.SlotsOf(l)
	}
	if l.Held { // since: the answer of its Hold got lost
		k.A = k.H
	}
	return k
}

// ran is for how long its upstream may have been at work.
func (h *owned) ran() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.store.clock.Since(h.since)
}

// Lock implements idem.Held.
func (h *owned) Lock() *idem.Lock {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lock
}

// Begin implements idem.Held.
func (h *owned) Begin() error {
	h.mu.Lock()
	lock, session, stopped := h.lock, h.session, h.stopped
	h.mu.Unlock()
	switch err := session.Err(); {
	case stopped != nil:
		return stopped
	case lock.Cancel != nil:
		return idem.ErrCancelled
	case err != nil && lock.Parked != nil: // the next session adopts it, if no other process was faster
		return fmt.Errorf("%w: %w: %w", idem.ErrLockLost, idem.ErrUnheard, err)
	case err != nil:
		return fmt.Errorf("%w: %w", idem.ErrLockLost, err)
	}
	return nil
}

// OnStop implements idem.Held.
func (h *owned) OnStop(f func(error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onStop = f
	if h.stopped != nil {
		cause := h.stopped
		h.store.tasks.Help(func(context.Context) { f(cause) })
	}
}

// stopNow tells the running call to stop, once.
func (h *owned) stopNow(cause error) {
	h.mu.Lock()
	f := h.onStop
	if h.stopped != nil || h.ending {
		f = nil
	}
	if h.stopped == nil || h.unheardLocked() {
		h.stopped = cause
	}
	h.mu.Unlock()
	if f != nil {
		f(cause)
	}
}

// unheardLocked reports whether a parked execution stopped only because its session could not be confirmed. A call that ran was closed then; the
// execution itself goes on under the next session, if no other process was faster.
func (h *owned) unheardLocked() bool {
	return h.lock.Parked != nil && errors.Is(h.stopped, idem.ErrUnheard)
}

func (h *owned) boundTo(s *session.Session) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session == s
}

// see takes over the newest state of the own lock, with a cancel that stands in it.
func (h *owned) see(l *idem.Lock) {
	h.mu.Lock()
	if l.Stale == nil {
		l.Stale = h.lock.Stale // was found as the lock was taken, and is written with what is put next
	}
	if l.Token == h.lock.Token { // the process that handed it over may have another clock
		l.StartedAt = h.lock.StartedAt
	}
	if l.Revision >= h.lock.Revision { // equal where a claim's answer was lost: the same lock, but with what was put into it meanwhile
		h.lock = l
	}
	h.mu.Unlock()
	if l.Cancel != nil {
		h.stopNow(idem.ErrCancelled)
	}
}

// lookAgain reads the lock after another process has changed it.
func (h *owned) lookAgain(life context.Context) {
	st, err := history.Look(life, h.store.pool, h.keys)
	switch {
	case err != nil: // the end of the call finds out
	case h.mine(st):
		h.see(st.Lock)
	default:
		h.taken()
	}
}

// taken is called when another process has the lock, or has ended it. The end of a delivery finds that out, and forgets the lock; a resting one has no end.
func (h *owned) taken() {
	if h.Lock().Parked == nil {
		h.stopNow(idem.ErrLockLost)
		return
	}
	_ = h.lose()
}

func (h *owned) startEnding() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ending = true
}

func (h *owned) goOn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ending = false
}

// mine reports whether the lock in etcd is still this one's. The token of a parked execution changes with an attempt, also where its answer got
// lost: then the session tells, because this process takes nothing up that it has.
func (h *owned) mine(st *protocol.State) bool {
	h.mu.Lock()
	l, session := h.lock, h.session
	h.mu.Unlock()
	if !st.Runs(l.Execution) || st.Lock.Created != l.Created {
		return false
	}
	return st.Lock.Token == l.Token || session != nil && st.Lock.Alive == protocol.SessionAlive(session.Name)
}

// Settle implements idem.Held. Under etcd's NOSPACE alarm it may return ErrStoreFull. The usual way, one answer, takes no goroutine.
func (h *owned) Settle(ctx context.Context, e idem.End) (*idem.Record, error) {
	return h.settleAs(ctx, ending{End: e})
}

// ending is how an execution ends.
type ending struct {
	idem.End
	letter bool // its request is kept, where it is parked
}

// forAge: it was parked for longer than it may be, and nothing else ends it.
func (e *ending) forAge() bool { return e.letter && e.Error != nil && e.Error.Code == idem.CodeTooOld }

func (h *owned) settleAs(ctx context.Context, e ending) (*idem.Record, error) {
	h.startEnding()
	if !h.store.tasks.Enter() {
		return nil, fmt.Errorf("%w: %w", idem.ErrNotRecorded, commit.ErrClosed)
	}
	defer h.store.tasks.Leave()
	first, err := h.conclude(ctx, e)
	if err == nil {
		select {
		case answer := <-first.Reply:
			if answer.Err == nil && answer.Succeeded {
				return h.concluded(first, answer), nil
			}
			first.Reply <- answer
		case <-ctx.Done():
		}
	}
	type result struct {
		record *idem.Record
		err    error
	}
	r, err := commit.InTime(ctx, h.store.tasks.Help, func(life context.Context) result {
		record, err := h.settle(life, e, first)
		return result{record, err}
	}, func(life context.Context, late result) {
		if late.err == nil {
			h.store.ended(late.record, true)
		}
		if errors.Is(late.err, idem.ErrNotOld) { // no call here waits for that any more
			_ = h.putDown(life)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
	}
	return r.record, r.err
}

// conclusion is a settle on its way.
type conclusion struct {
	*commit.Request
	record  *idem.Record
	written int // bytes of the record
}

func (h *owned) conclude(ctx context.Context, e ending) (*conclusion, error) {
	l := h.Lock()
	c := &conclusion{record: protocol.RecordOf(l, e.End)}
	if l.Parked != nil && e.letter && c.record.Status == idem.Failed {
		c.record.RequestKept = true
	}
	keys, next, mark := h.keysOf(l), h.nextInLine(l), markOf(c.record)
	keys.M = h.store.layout.Mark(l.Scope.Workflow, l.Order)
	r, err := h.store.finisher.Request(ctx, l, c.record, h.writer, func(rec protocol.Leased, cool *protocol.Cooling) protocol.Op {
		c.written = len(rec.Value)
		if cool != nil {
			next = nil
		}
		return settleOp(l, &e, c.record, keys, rec, cool, mark, next)
	}, keys)
	if err != nil {
		return nil, err
	}
	c.Request = r
	r.Size += len(mark)
	switch {
	case next != nil:
		r.Size += len(next.value.Value)
		h.handing = true
		r.OnApplied = func(answer commit.Reply) { h.store.handedOver(next, l.Created, answer) }
		r.Done = make(chan struct{})
		h.store.queues.HandOffSent(h.keys.L, r.Done)
	case len(r.OwnLeases) == 0: // it does not cool
		r.OnApplied = func(answer commit.Reply) { h.store.queues.Changed(h.keys.L, nil, answer.Revision, protocol.Line{}) }
	}
	if l.Scope.PerEvent && mark != nil { // another event of the workflow may raise the same mark
		r.Slots = append(r.Slots, keys.M)
	}
	if l.Parked == nil && len(l.Slots) == 0 {
		r.Side = commit.Ends
	}
	h.store.sender.Send(r)
	return c, nil
}

// settleOp is the transaction that ends the execution of l: with the head of the queue, next, it hands the lock to that.
func settleOp(
	l *idem.Lock, e *ending, record *idem.Record, k protocol.Keys, rec protocol.Leased, cool *protocol.Cooling, markValue []byte, next *handOver,
) protocol.Op {
	at := protocol.Seen{Created: l.Created, L: l.Revision}
	var mark *protocol.Leased
	if markValue != nil {
		mark = &protocol.Leased{Value: markValue, Lease: rec.Lease}
	}
	switch {
	case l.Parked != nil && e.forAge():
		return protocol.SettleTooOld(k, at, rec, cool, finish.DeadLetter(l, record))
	case l.Parked != nil:
		return protocol.SettleParked(k, at, rec, cool, finish.DeadLetter(l, record), mark)
	case next != nil:
		k.S, at.Epoch = next.session.Key, next.epoch
		return protocol.HandOver(k, at, next.keys, protocol.Seen{Q: next.first.Place, Prev: next.first.Prev}, rec, next.value, mark, len(next.then.Places) == 0)
	}
	return protocol.Settle(k, at, rec, cool, mark)
}

// markOf is the mark that an end raises: only what went through does.
func markOf(r *idem.Record) []byte {
	if r.Status != idem.Success {
		return nil
	}
	return protocol.MarkOf(&r.Entry)
}

func (h *owned) concluded(c *conclusion, answer commit.Reply) *idem.Record {
	h.store.letGo(h)
	c.record.Revision, c.record.Size = answer.Revision, c.written
	return c.record
}

// settle sends until the answer is definite: the transaction can be applied once only, because it takes the lock away that it
// compares. sent is under way already, or nil.
func (h *owned) settle(life context.Context, e ending, sent *conclusion) (*idem.Record, error) {
	for pause := link.NewBackoff(); ; sent = nil {
		var err error
		if sent == nil {
			sent, err = h.conclude(life, e)
		}
		var st *protocol.State
		if err == nil {
			answer := h.store.sender.Await(life, sent.Request)
			if st, err = h.refusal(life, answer); err == nil && st == nil {
				return h.concluded(sent, answer), nil
			}
			h.store.leases.DropIfGone(sent.SharedLease, err)
			h.store.leases.DropIfGone(sent.AnswerLease, err)
		}
		switch {
		case err == nil && !h.mine(st):
			return h.endedBy(life, st)
		case err == nil:
			h.see(st.Lock)
			if e.forAge() { // it is not too old, or what that was concluded from has changed
				h.goOn()
				return nil, idem.ErrNotOld
			}
			continue
		case errors.Is(err, rpctypes.ErrNoSpace) && e.Outcome == idem.Executed && !e.Kept && h.Lock().Cancel == nil && h.Lock().Parked == nil:
			return nil, h.freeWithoutRecord(life, e.End)
		}
		if pause.Wait(life) != nil {
			return nil, fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
		}
	}
}

// endedBy tells an end that is ours, whose answer got lost, from one that another process wrote. Where the event has run again since, our
// record is not there any more, and etcd is asked how it was.
func (h *owned) endedBy(life context.Context, st *protocol.State) (*idem.Record, error) {
	l := h.Lock()
	h.store.letGo(h)
	if st.Runs(l.Execution) { // another process carries it on
		return nil, idem.ErrLockLost
	}
	record, writer := st.Ended(l.Execution), st.Writer
	if record == nil && !h.isRewound() {
		var seen *idem.Seen
		var err error
		if seen, writer, err = history.LookBack(life, h.store.pool, h.keys, l.Execution, l.Revision); err != nil {
			return nil, fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
		}
		record = seen.Record
	}
	if record != nil && (writer == h.writer || !h.worked && record.Outcome == idem.Executed) { // the upstream itself has completed it
		return record, nil
	}
	return record, idem.ErrLockLost
}

// freeWithoutRecord is for a store that is full: it lets deletions through. It is only for an end that nothing depends on: the
// event may run again anyway. A kept answer waits for space instead, and so does an unknown outcome; no process can claim meanwhile.
func (h *owned) freeWithoutRecord(life context.Context, e idem.End) error {
	switch err := h.release(life); {
	case err == nil:
		h.store.ended(protocol.RecordOf(h.Lock(), e), false)
	case !errors.Is(err, idem.ErrLockLost):
		return fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
	}
	return ErrStoreFull
}

// Release implements idem.Held. ErrCancelled: a cancel was asked, so the execution ended as ABORTED instead. ErrLockLost: its record
// says that another process ended it.
func (h *owned) Release(ctx context.Context) error {
	h.startEnding()
	released, err := commit.InTime(ctx, h.store.tasks.Start, h.release, func(_ context.Context, late error) {
		if late == nil && h.Lock().Parked == nil || errors.Is(late, idem.ErrCancelled) {
			end := idem.End{Status: idem.Failed, Outcome: idem.NotExecuted, FinishedAt: h.store.clock.Now()}
			h.store.ended(protocol.RecordOf(h.Lock(), end), true)
		}
	})
	if err != nil {
		return commit.Unavailable(err)
	}
	return released
}

// release sends until the answer is definite. A lock that is not ours any more needs no release: an earlier attempt has done it, or it was reaped, and
// then there is a record.
func (h *owned) release(life context.Context) error {
	for pause := link.NewBackoff(); ; {
		l := h.Lock()
		if l.Cancel != nil {
			return h.abort(life)
		}
		if l.Parked != nil {
			return h.putDown(life)
		}
		k := h.keysOf(l)
		answer := h.store.sender.Do(life, commit.NewRequest(k.L, protocol.Release(k, protocol.Seen{L: l.Revision}), 0).AddSlots(k))
		st, err := h.refusal(life, answer)
		switch {
		case err != nil:
			if pause.Wait(life) != nil {
				return commit.Unavailable(fmt.Errorf("release: %w", err))
			}
		case st != nil && h.mine(st):
			h.see(st.Lock)
		default:
			h.store.letGo(h)
			if st != nil && st.Ended(l.Execution) != nil {
				return idem.ErrLockLost
			}
			return nil
		}
	}
}

// abort ends an execution that was cancelled and is released: the cancel needs its record.
func (h *owned) abort(life context.Context) error {
	end := idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted, FinishedAt: h.store.clock.Now()}
	switch l := h.Lock(); {
	case l.Parked != nil:
		end.Outcome = l.Parked.Outcome()
	case h.worked:
		end.Outcome = idem.Unknown
	}
	_, err := h.settle(life, ending{End: end}, nil)
	if err == nil {
		return idem.ErrCancelled
	}
	return err
}

// adopt moves the lock to a new session, for as long as the call runs and the session lives. Another process may have reaped it since the
// old session went.
func (h *owned) adopt(life context.Context, to *session.Session) {
	for pause := link.NewBackoff(); ; {
		h.mu.Lock()
		l, over := *h.lock, h.ending || h.stopped != nil && !h.unheardLocked() || h.session == to
		h.mu.Unlock()
		if over || to.Err() != nil {
			return
		}
		k := h.keys
		k.S = to.Key
		at := protocol.Seen{Epoch: to.Epoch(), Created: l.Created, L: l.Revision}
		l.Alive, l.Holder = protocol.SessionAlive(to.Name), to.Holder()
		value, err := protocol.EncodeLock(&l)
		if err != nil {
			h.taken()
			return
		}
		answer := h.store.sender.Do(life, commit.NewRequest(k.L, protocol.Adopt(k, at, protocol.Leased{Value: value}), len(value)))
		switch {
		case answer.Err == nil && answer.Succeeded:
			l.Revision = answer.Revision
			h.adopted(&l, to)
			return
		case answer.Err == nil:
			if st, err := history.Look(life, h.store.pool, h.keys); err == nil && h.adoptRefused(st, to) {
				return
			}
		}
		if pause.Wait(life) != nil {
			return
		}
	}
}

func (h *owned) adopted(l *idem.Lock, by *session.Session) {
	h.mu.Lock()
	h.session = by
	if h.unheardLocked() {
		h.stopped = nil
	}
	h.mu.Unlock()
	h.see(l)
}

// adoptRefused reports whether nothing is left to adopt: an earlier attempt has done it, or another process has the lock.
func (h *owned) adoptRefused(st *protocol.State, to *session.Session) bool {
	switch {
	case !h.mine(st):
		h.taken()
		return true
	case st.Lock.Alive == protocol.SessionAlive(to.Name):
		h.adopted(st.Lock, to)
		return true
	}
	h.see(st.Lock)
	return false
}
