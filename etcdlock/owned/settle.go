package owned

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/predecessor"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// ErrStoreFull means that etcd's space quota is used up, and what it refused will not be recorded.
// The execution's lock is free, its event may run again. Compact and defragment etcd or raise its
// quota, then disarm the NOSPACE alarm.
var ErrStoreFull = fmt.Errorf("%w and will not be: etcd is out of space; compact, defragment or raise the quota, "+
	"then disarm the alarm", idem.ErrNotRecorded)

// Settle implements idem.RunningLock. Under etcd's NOSPACE alarm it may return ErrStoreFull.
func (h *Lock) Settle(ctx context.Context, e idem.End) (*idem.Record, error) {
	return (&settling{lock: h, end: e}).run(ctx)
}

// Complete ends the execution of a lock of OnBehalf. It repeats until the answer is definite, or
// ctx ends. idem.ErrLockLost comes with the record of the process that was faster.
func (h *Lock) Complete(ctx context.Context, e idem.End) (*idem.Record, error) {
	e.RequestKept = true
	return (&settling{lock: h, end: e}).settleUntilDefinite(ctx, nil)
}

// settling is an end of an execution on its way to a definite answer.
type settling struct {
	lock *Lock
	end  idem.End

	given    *commit.Count // it is given up; nil = it is not
	refusals int           // how often etcd has refused its record for its size
}

// run settles for as long as ctx lives, and then goes on by itself. The usual way, one answer,
// takes no goroutine.
func (s *settling) run(ctx context.Context) (*idem.Record, error) {
	h := s.lock
	h.setEnding(true)
	if !h.options.Tasks.Enter() {
		return nil, fmt.Errorf("%w: %w", idem.ErrNotRecorded, commit.ErrClosed)
	}
	defer h.options.Tasks.Leave()
	slot := h.writeProof(&s.end)
	first, err := s.sendEnd(ctx)
	if err == nil {
		select {
		case answer := <-first.Reply:
			if answer.Applied() {
				h.options.Predecessors.Free(slot)
				return s.finishApplied(first, answer), nil
			}
			first.Reply <- answer
		case <-ctx.Done():
		}
	}
	type result struct {
		record *idem.Record
		err    error
	}
	r, err := commit.InTime(ctx, h.options.Tasks.Help, func(life context.Context) result {
		record, err := s.settleUntilDefinite(life, first)
		if !errors.Is(err, idem.ErrNotRecorded) || errors.Is(err, ErrStoreFull) { // it is definite
			h.options.Predecessors.Free(slot)
		}
		return result{record, err}
	}, func(life context.Context, late result) {
		if late.err == nil {
			h.options.OnEnded(late.record, true)
		}
		if errors.Is(late.err, idem.ErrNotOld) { // no call here waits for that any more
			_ = h.Free(life)
		}
	})
	if err != nil {
		return nil, commit.Unknown(h.options.Pool.Because(err))
	}
	return r.record, r.err
}

// conclusion is a transaction that settles.
type conclusion struct {
	*commit.Request
	record  *idem.Record
	written int  // bytes of the record
	handsOn bool // the lock of the next execution travels with it
}

// writeProof writes down for a successor of this process that its service has answered whole.
func (h *Lock) writeProof(end *idem.End) (slot int) {
	if end.Outcome != idem.Executed || end.Answer == nil {
		return predecessor.NoSlot
	}
	proof := &protocol.Proof{Execution: h.Lock().Execution, End: *end, Status: end.Answer.Status,
		Bytes: end.Answer.Bytes}
	h.mu.Lock()
	for _, count := range h.counts {
		proof.Counts = append(proof.Counts, count.Counted)
	}
	h.mu.Unlock()
	return h.options.Predecessors.Write(proof)
}

// sendEnd makes the transaction that ends the execution, and sends it. The lock goes to the head of
// the queue in the same transaction, unless it cools.
func (s *settling) sendEnd(ctx context.Context) (*conclusion, error) {
	lock := s.lock
	l := lock.Lock()
	c := &conclusion{record: protocol.RecordOf(l, s.end)}
	l = finish.Reduce(s.refusals, l, c.record)
	keys, next, mark := lock.options.keysOf(lock.keys, l), nextAfter(lock, l), raisedHighWaterMark(c.record)
	keys.HighWaterMark = lock.options.Layout.HighWaterMark(l.Scope.Workflow, l.Order)
	ended := &finish.Ended{Lock: l, RestsSince: lock.restsSince(), Record: c.record, Writer: lock.writer}
	request, err := lock.options.Finisher.Request(ctx, ended,
		func(rec protocol.Leased, cool *protocol.Cooling) protocol.Op {
			c.written = len(rec.Value)
			if cool != nil {
				next = nil
			}
			return s.endTransaction(l, c.record, keys, rec, cool, mark, next)
		}, keys)
	if err != nil {
		return nil, err
	}
	c.Request = lock.withCounts(request)
	if c.record.RequestKept {
		request.Counts = append(request.Counts, s.deadLetterCount(l.Route))
	}
	request.Size += len(mark)
	switch {
	case next != nil:
		c.handsOn = true
		lock.noteHandOver(request, next, l.Created)
	case len(request.OwnLeases) == 0: // it does not cool
		request.OnApplied = func(answer commit.Reply) {
			lock.options.Queues.ApplyLock(lock.keys.Lock, nil, answer.Revision, protocol.Candidates{})
		}
	}
	if l.Scope.PerEvent && mark != nil { // another event of the workflow may raise the same mark
		request.Slots = append(request.Slots, keys.HighWaterMark)
	}
	if l.Parked == nil && len(l.Slots) == 0 {
		request.Side = commit.Ends
	}
	lock.options.Sender.SendInPlace(ctx, request)
	return c, nil
}

// deadLetterCount returns the one count of this end as a dead letter: a request that is sent again
// brings the same one.
func (s *settling) deadLetterCount(route string) *commit.Count {
	if s.given == nil {
		s.given = &commit.Count{Counted: idem.Counted{Route: route, Kinds: idem.CountSetOf(idem.CountDeadLetters)}}
	}
	return s.given
}

// noteHandOver has request hand the lock, which was created at that revision, to next when it is
// applied. Until it is answered, the queue is not to be read for its head.
func (h *Lock) noteHandOver(request *commit.Request, next *handOver, created int64) {
	h.handing = true
	request.Size += len(next.value.Value)
	request.OnApplied = func(answer commit.Reply) { h.locks.endHandOver(next, created, answer) }
	request.Done = make(chan struct{})
	h.options.Queues.NoteHandOff(h.keys.Lock, request.Done)
}

// forAge: it was parked for longer than it may be, and nothing else ends it.
func (s *settling) forAge() bool {
	return s.end.RequestKept && s.end.Error != nil && s.end.Error.Code == idem.CodeTooOld
}

// endTransaction is the transaction that ends the execution of l: with the head of the queue, next,
// it hands the lock to that.
func (s *settling) endTransaction(
	l *idem.Lock, record *idem.Record, k protocol.Keys, rec protocol.Leased, cool *protocol.Cooling, markValue []byte,
	next *handOver,
) protocol.Op {
	at := protocol.Revisions{LockCreated: l.Created, Lock: l.Revision}
	var mark *protocol.Leased
	if markValue != nil {
		mark = &protocol.Leased{Value: markValue, Lease: rec.Lease}
	}
	switch {
	case l.Parked != nil && s.forAge():
		return protocol.SettleTooOld(k, at, rec, cool, finish.DeadLetter(l, record))
	case l.Parked != nil:
		return protocol.SettleParked(k, at, rec, cool, finish.DeadLetter(l, record), mark)
	case next != nil:
		k.Session, at.Epoch = next.ending.Key, next.epoch
		return protocol.HandOver(k, at, next.keys,
			protocol.Revisions{Entry: next.first.Revision, Record: next.first.Prev},
			rec,
			next.value, mark, len(next.then.Entries) == 0)
	}
	return protocol.Settle(k, at, rec, cool, mark)
}

// raisedHighWaterMark is the mark that an end raises: only what went through does.
func raisedHighWaterMark(r *idem.Record) []byte {
	if r.Status != idem.Success {
		return nil
	}
	return protocol.EncodeHighWaterMark(&r.ExecutionFacts)
}

// keysOf are those of a lock as it was seen in l: the slots of what is parked come and go.
func (o *Options) keysOf(k protocol.Keys, l *idem.Lock) protocol.Keys {
	if l.Parked != nil && len(l.Slots) > 0 {
		k.Slots = o.Layout.SlotsOf(l)
	}
	if l.Held { // since: the answer of its Hold got lost
		k.Alive = k.Hold
	}
	return k
}

func (s *settling) finishApplied(c *conclusion, answer commit.Reply) *idem.Record {
	s.lock.locks.LetGo(s.lock)
	c.record.Revision, c.record.Size = answer.Revision, c.written
	return c.record
}

// settleUntilDefinite sends until the answer is definite: the transaction can be applied once only,
// because it takes the lock away that it compares. sent is under way already, or nil.
func (s *settling) settleUntilDefinite(life context.Context, sent *conclusion) (*idem.Record, error) {
	h, write := s.lock, &ending{settling: s, sent: sent}
	found, st, err := (&writing{lock: h, write: write}).run(life)
	switch {
	case err != nil && write.unrecorded:
		return nil, s.freeWithoutRecord(life)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
	case st != nil:
		return s.resolveEarlierEnd(life, st)
	case write.answer.Applied():
		return s.finishApplied(write.latest, write.answer), nil
	}
	h.See(found)
	h.setEnding(false)
	return nil, idem.ErrNotOld
}

// ending is the write of a settle.
type ending struct {
	settling   *settling
	sent       *conclusion // is under way already; nil = none is
	latest     *conclusion // with its answer
	answer     commit.Reply
	unrecorded bool // the end will never be in etcd
}

func (e *ending) sendOnce(ctx context.Context, l *idem.Lock, _ *writing) (*idem.Lock, commit.Reply, error) {
	next, o := *l, e.settling.lock.options
	if e.latest, e.sent = e.sent, nil; e.latest == nil {
		var err error
		if e.latest, err = e.settling.sendEnd(ctx); err != nil {
			return nil, commit.Reply{Err: fmt.Errorf("%w: %w", link.ErrNotSent, err)}, nil
		}
	}
	e.answer = o.Sender.Await(ctx, e.latest.Request)
	o.Leases.DropIfGone(e.latest.SharedLease, e.answer.Err)
	o.Leases.DropIfGone(e.latest.AnswerLease, e.answer.Err)
	if link.TooLarge(e.answer.Err) {
		e.settling.recordLess(e.latest)
	}
	return &next, e.answer, nil
}

// isDone is about an execution that was to end for its age: it is not too old, or what that was
// concluded from has changed.
func (e *ending) isDone(_ *idem.Lock, w *writing) bool { return w.refused && e.settling.forAge() }

func (e *ending) isFinal(err error) bool {
	e.unrecorded = e.settling.needsNoRecord(err)
	return e.unrecorded
}

// recordLess is called when etcd has refused c for its size: it would do so for ever. The next
// attempt hands no lock over, and if this one did not either, less is recorded.
func (s *settling) recordLess(c *conclusion) {
	if c.handsOn {
		return
	}
	if s.refusals++; s.refusals == 1 {
		s.lock.options.OnReduced(c.record, c.Size)
	}
}

// needsNoRecord reports whether err says that etcd is full, and nothing depends on this end: the
// event may run again anyway. A kept answer waits for space instead, and so does an unknown
// outcome.
func (s *settling) needsNoRecord(err error) bool {
	l := s.lock.Lock()
	return errors.Is(err, rpctypes.ErrNoSpace) && s.end.Outcome == idem.Executed && !s.end.Remembered &&
		l.Cancel == nil &&
		l.Parked == nil
}

// resolveEarlierEnd tells an end of this process, whose answer got lost, from one that another
// process wrote. Where the event has run again since, our record is not there any more, and etcd is
// asked how it was. If that process wrote unknown, because this one was frozen or cut off, that is
// corrected by what this one knows.
func (s *settling) resolveEarlierEnd(life context.Context, st *protocol.State) (*idem.Record, error) {
	h := s.lock
	h.locks.LetGo(h)
	h.mu.Lock()
	l, rewound := h.lock, h.rewound
	h.mu.Unlock()
	if st.Runs(l.Execution) { // another process carries it on
		return nil, idem.ErrLockLost
	}
	record, writer := st.Ended(l.Execution), st.Writer
	if record == nil && !rewound {
		var seen *idem.Obstacle
		var err error
		if seen, writer, err = history.LookBack(life, h.options.Pool, h.keys, l.Execution, l.Revision); err != nil {
			return nil, fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
		}
		record = seen.Record
	}
	// the upstream itself has completed it
	if record != nil && (writer == h.writer || !h.worked && record.Outcome == idem.Executed) {
		return record, nil
	}
	if record != nil && record.Outcome == idem.Unknown && s.end.Outcome == idem.Executed && !h.worked {
		switch corrected, err := h.options.Correct(life, l, s.end); {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
		case corrected != nil:
			return corrected, nil
		}
	}
	return record, idem.ErrLockLost
}

// freeWithoutRecord is for a store that is full: it lets deletions through, and no process can
// claim meanwhile.
func (s *settling) freeWithoutRecord(life context.Context) error {
	switch err := s.lock.Free(life); {
	case err == nil:
		s.lock.options.OnEnded(protocol.RecordOf(s.lock.Lock(), s.end), false)
	case !errors.Is(err, idem.ErrLockLost):
		return fmt.Errorf("%w: %w", idem.ErrNotRecorded, err)
	}
	return ErrStoreFull
}
