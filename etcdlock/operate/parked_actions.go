package operate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/park"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// endOrphaned ends a parked execution that no process has, in the name of the person who cancels or
// skips it.
func (c *cancelling) endOrphaned(ctx context.Context, at *history.State) (bool, error) {
	l := *at.Lock
	if l.Cancel == nil {
		l.Cancel = &c.cancel
	}
	record := protocol.RecordOf(&l,
		idem.End{Status: idem.Aborted, Outcome: l.Parked.Outcome(), FinishedAt: c.options.Clock.Now(), Abort: l.Cancel})
	c.setChange(string(c.found.Status()), c.statusAfter(record.Status))
	found, answer, err := c.endExecution(ctx, at, &l, record, c.writer,
		func(rec protocol.Leased, cool *protocol.Cooling) protocol.Op {
			return protocol.EndUncarried(at.Keys, protocol.Revisions{Lock: l.Revision}, rec, cool,
				finish.DeadLetter(&l, record))
		})
	if found == nil && err == nil {
		c.options.Reaper.NoteAlive(l.Alive, answer)
	}
	c.found = found
	return found != nil, err
}

// Skip ends a parked execution in c's name, and keeps its request: it is a dead letter, and the
// next one of its queue runs. One that runs is asked to stop, as with Cancel. It returns
// idem.ErrNotParked, or an error of Cancel.
func (op *Operator) Skip(ctx context.Context, id idem.ExecutionID, c idem.Cancel, audit *idem.Audit) (found *idem.Found,
	before bool, err error) {
	c.Skip, c.Final = true, false
	return op.Cancel(ctx, id, c, audit)
}

// checkUnchanged returns idem.ErrMoved if the stored request of a parked execution has changed
// since the audit's SeenAt. It reads after the lock or the entry, which change with the request,
// and whose revision the transaction compares. It returns idem.ErrStoreUnavailable.
func (t *trail) checkUnchanged(ctx context.Context, at *history.State) error {
	// an attempt whose answer got lost may be what changed it; that of a job has moved the job
	if t.audit.SeenAt == 0 || t.unsure && t.audit.Step == nil {
		return nil
	}
	kvs, _, err := t.options.Pool.Keys(ctx, at.Keys.Index)
	switch {
	case err != nil:
		return commit.Unavailable(err)
	case len(kvs) == 0 || kvs[0].ModRevision > t.audit.SeenAt:
		return idem.ErrMoved
	}
	return nil
}

// RunNow lets a parked execution be tried now, whatever it waits for, and for its whole MaxAge
// again from now. One that is not the head of its queue goes on waiting for that. It returns
// idem.ErrNotParked, idem.ErrMoved, idem.ErrFinished with how it ended, idem.ErrCancelled,
// idem.ErrNoExecution or idem.ErrStoreUnavailable.
func (op *Operator) RunNow(ctx context.Context, id idem.ExecutionID, audit *idem.Audit) (found *idem.Found, err error) {
	t := op.newTrail(audit)
	err = op.repeatUntilDone(ctx, id, func(ctx context.Context, at *history.State) (done bool, err error) {
		found, err = at.Found()
		switch {
		case err != nil:
			return true, err
		case found.Lock == nil:
			return true, idem.ErrFinished
		case found.Lock.Parked == nil:
			return true, idem.ErrNotParked
		case !found.InQueue && found.Lock.Cancel != nil:
			return true, idem.ErrCancelled
		}
		if err := t.checkUnchanged(ctx, at); err != nil {
			return true, err
		}
		t.setSubject(found.Facts())
		t.setChange(string(found.Status()), string(found.Status()))
		t.run = idem.JobRun{Execution: id, Workflow: found.Workflow(), Failures: found.Lock.Parked.Failures}
		if found.InQueue { // it waits for its turn alone, and nothing in etcd says otherwise
			op.options.Parked.MakeReady(at.Keys.Lock)
			t.unsure = true
			return true, nil
		}
		next, p := *at.Lock, *at.Lock.Parked
		p.Blocked, p.NextAttempt, p.Pause, p.Asked = "", time.Time{}, 0, idem.NotToAsk
		next.Parked = &p
		found, done, err = t.rewriteLock(ctx, at, &next, p.MaxAge, func(lock, age protocol.Leased) protocol.Op {
			index := protocol.Leased{Value: protocol.EncodeIndex(protocol.IndexOf(&next))}
			return protocol.RunNow(at.Keys, protocol.Revisions{Lock: next.Revision}, lock, index, age)
		})
		return done, err
	})
	return found, t.finishAction(ctx, err)
}

// Rerun lets the event of an ended execution run again whose request was kept: a new execution, the
// last of its queue. It returns idem.ErrNoRequest, idem.ErrRequestUnavailable, idem.ErrAlive if the
// event waits or runs, idem.ErrCancelled if it was cancelled for good, idem.ErrSuperseded,
// idem.ErrNoExecution or idem.ErrStoreUnavailable.
func (op *Operator) Rerun(ctx context.Context, id idem.ExecutionID, audit *idem.Audit) (*idem.Found, error) {
	return op.rerunExecution(ctx, id, false, audit)
}

// RunAgain is Rerun for any event that has ended, also for one that was settled: its request is
// kept for all events of its route. Until the new execution has ended, duplicates meet that one; if
// it does not settle the event, they get the status of the attempt before it. An event that is
// older than what went through runs all the same.
func (op *Operator) RunAgain(ctx context.Context, id idem.ExecutionID, audit *idem.Audit) (*idem.Found, error) {
	return op.rerunExecution(ctx, id, true, audit)
}

func (op *Operator) rerunExecution(ctx context.Context, id idem.ExecutionID, again bool,
	audit *idem.Audit) (found *idem.Found,
	err error) {
	t := op.newTrail(audit)
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	err = op.repeatUntilDone(ctx, id, func(ctx context.Context, at *history.State) (bool, error) {
		next := idem.NewExecutionID(at.Scope.Workflow, at.Scope.Key, random)
		at.ID = next // an attempt whose answer got lost
		var err error
		if found, err = at.Found(); err == nil {
			return true, nil
		}
		at.ID = id
		found, err = at.Found()
		switch {
		case err != nil:
			return true, err
		case at.CopyRuns(at.Scope.Key) != nil, at.Copied != nil:
			return true, idem.ErrAlive
		case found.Record == nil:
			return true, idem.ErrSuperseded
		case !found.Record.RequestKept && !again:
			return true, idem.ErrNoRequest
		case found.Record.Final:
			return true, idem.ErrCancelled
		}
		t.setSubject(found.Facts())
		t.setChange(string(found.Status()), string(idem.Pending)+" as "+string(next))
		t.run = idem.JobRun{Execution: next, Workflow: at.Scope.Workflow}
		found, err = t.tryRerun(ctx, at, next, again)
		return found != nil || errors.Is(err, idem.ErrNoRequest) || errors.Is(err, idem.ErrRequestUnavailable), err
	})
	return found, t.finishAction(ctx, err)
}

// storedRequest is the request of an ended execution as that of the next one.
type storedRequest struct {
	idem.StoredRequest
	runs *idem.ParkedEntry // how the next one runs
	old  []byte            // what etcd has of that of the ended one; nil = it is not there
}

// rekeepRequest makes of the request of an ended execution that of the next one. It returns
// idem.ErrNoRequest or idem.ErrRequestUnavailable.
func (t *trail) rekeepRequest(ctx context.Context, at *history.State, next idem.ExecutionID) (s storedRequest,
	err error) {
	if !at.Record.RequestKept {
		s.StoredRequest, s.runs, err = t.options.Archived(ctx, at.Record, next)
		return s, unavailableRequest(err)
	}
	answers, _, err := t.options.Pool.Read(ctx, clientv3.OpGet(at.Keys.Request), clientv3.OpGet(at.Keys.Index))
	if err != nil {
		return s, err
	}
	request, letter := protocol.First(answers[0]), protocol.First(answers[1])
	if request == nil || letter == nil { // it was swept, or run again, a moment ago
		return s, idem.ErrNoRequest
	}
	if s.runs, err = protocol.DecodeIndex(letter.Value); err != nil {
		return s, commit.Unavailable(err)
	}
	s.old = request.Value
	s.StoredRequest, err = t.options.Rekeep(ctx, at.Record.Execution, next,
		idem.StoredRequest{Value: request.Value, Bytes: s.runs.Bytes})
	return s, unavailableRequest(err)
}

func unavailableRequest(err error) error {
	if err == nil || errors.Is(err, idem.ErrNoRequest) {
		return err
	}
	return fmt.Errorf("%w: %w", idem.ErrRequestUnavailable, err)
}

// tryRerun returns nil if things have changed, or if the answer was lost.
func (t *trail) tryRerun(ctx context.Context, at *history.State, next idem.ExecutionID, again bool) (*idem.Found,
	error) {
	stored, err := t.rekeepRequest(ctx, at, next)
	if err != nil {
		return nil, err
	}
	l := nextAttempt(at.Record, stored.runs, next, t.options.Clock.Now())
	l.Parked.Bytes = stored.Bytes
	if again || at.Record.Settled() {
		l.Parked.On = idem.ParkAgain
	}
	value, err := protocol.EncodeLock(l)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	keep, err := park.Prepare(ctx, t.options.Leases, l, &stored.StoredRequest)
	if err != nil {
		return nil, err
	}
	news, err := t.options.Leases.Notice(ctx, commit.NoticeLife)
	if err != nil {
		return nil, err
	}
	k := t.options.Layout.Keys(l)
	seen := protocol.Revisions{Lock: at.LockRevision(), OtherLock: at.OtherRevision(), Record: at.Prev}
	r := commit.NewRequest(k.Lock, protocol.Rerun(k, seen, protocol.Leased{Value: value}, news, keep, at.Keys),
		len(value)+len(stored.Value)).AddOtherLock(k, l)
	r.SharedLease = keep.Age.Lease
	answer, applied, err := t.sendWithAudit(ctx, r)
	t.options.Leases.DropIfGone(news.Lease, err)
	if !applied {
		return nil, err
	}
	if stored.old != nil {
		_ = t.eraseRequest(ctx, at.Record.Execution, stored.old) // else it is swept
	}
	return &idem.Found{Lock: l, InQueue: true, Revision: answer.Revision}, nil
}

// nextAttempt returns the next execution of the event of r.
func nextAttempt(r *idem.Record, was *idem.ParkedEntry, id idem.ExecutionID, now time.Time) *idem.Lock {
	l := &idem.Lock{
		ExecutionFacts: r.ExecutionFacts, MaxDuration: was.MaxDuration, ReleaseDelay: was.ReleaseDelay,
		ReplayBody: was.ReplayBody, ReplayFor: was.ReplayFor, Question: was.Question,
		Parked: &idem.Parked{Since: now.UTC().Round(time.Millisecond), On: idem.ParkFailed, MaxAge: was.MaxAge},
	}
	l.Execution, l.CallbackHash, l.StartedAt, l.Steps, l.Token, l.Stale = id, "", now, nil, 0, nil
	l.Attempt, l.Earlier = r.Attempt+1, r.EarlierForNext(r.Parts)
	l.Slots = slices.Clone(r.Slots)
	for i := range l.Slots {
		l.Slots[i].Index = -1
	}
	return l
}
