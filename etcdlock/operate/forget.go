package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Forget lets the event of an ended execution run again: its record is deleted, and every process
// drops what it remembers of it. So is the high-water mark of its scope, if this execution raised
// it last: later events are judged by those that go through from then on. It returns what is
// forgotten; that by did it stays known for 30 days, unless by.Erase: then how the event arrived is
// deleted as well. Of a dead letter the stored request is deleted as well, wherever it is, before
// Forget returns. It returns idem.ErrNotErased if that failed outside of etcd: the event is
// forgotten then. Else it returns idem.ErrAlive if the execution, or another one of the event, has
// not ended, idem.ErrSuperseded, idem.ErrNoExecution or idem.ErrStoreUnavailable.
func (op *Operator) Forget(ctx context.Context, id idem.ExecutionID, by idem.Cancel,
	audit *idem.Audit) (found *idem.Found, err error) {
	f := &forgetting{trail: op.newTrail(audit), by: by}
	err = op.repeatUntilDone(ctx, id, func(ctx context.Context, at *history.State) (_ bool, err error) {
		found, err = at.Found()
		switch {
		case f.forgotten != nil && errors.Is(err, idem.ErrNoExecution): // an attempt whose answer got lost
			found = f.forgotten
			return true, nil
		case err != nil:
			return true, err
		case at.CopyRuns(at.Scope.Key) != nil || at.Copied != nil:
			return op.refuseAlive(ctx, at)
		case found.Record == nil:
			return true, idem.ErrSuperseded
		}
		return f.tryOnce(ctx, at, found)
	})
	if err = f.finishAction(ctx, err); err != nil {
		return found, err
	}
	if err := f.eraseRequest(ctx, id, f.request); err != nil {
		return found, fmt.Errorf("%w: %w", idem.ErrNotErased, err)
	}
	return found, nil
}

// forgetting is a forget in progress.
type forgetting struct {
	*trail
	by        idem.Cancel
	forgotten *idem.Found // by the last attempt
	request   []byte      // what etcd had of its stored request; nil = there was none
}

// tryOnce sends the transaction that forgets the record of found, with what shows the event from
// then on.
func (f *forgetting) tryOnce(ctx context.Context, at *history.State, found *idem.Found) (done bool, err error) {
	rec, k := found.Record, at.Keys
	f.request = nil
	if rec.RequestKept {
		if f.request, err = f.requestOf(ctx, k); err != nil {
			return false, err
		}
	}
	news, err := f.options.Leases.Notice(ctx, commit.NoticeLife)
	if err != nil {
		return false, err
	}
	mark := protocol.EncodeHighWaterMark(&rec.ExecutionFacts)
	k.HighWaterMark = f.options.Layout.HighWaterMark(at.Scope.Workflow, rec.Order)
	r := commit.NewRequest(k.Lock, protocol.Forget(k, protocol.Revisions{Record: at.Prev}, news, mark, rec.RequestKept),
		len(news.Value)+len(mark))
	r.SharedLease = news.Lease
	if mark != nil {
		r.Slots = append(r.Slots, k.HighWaterMark)
	}
	f.setSubject(&rec.ExecutionFacts)
	f.forgotten = found
	if f.by.Erase {
		f.setChange(string(found.Status()), "erased")
		names, err := f.eraseTwins(ctx, rec.Key)
		if err != nil {
			return false, err
		}
		r.Txn = protocol.Erased(r.Txn, append(names, f.options.Layout.Arrivals(rec.Scope),
			f.options.Layout.Duplicates(rec.Execution))...)
		_, applied, err := f.sendWithAudit(ctx, r)
		if applied {
			f.options.Duplicates.Erase(rec.Scope, rec.Execution)
		}
		return applied, err
	}
	f.setChange(string(found.Status()), "forgotten")
	shown, err := f.options.Duplicates.NoteForgotten(ctx, &rec.ExecutionFacts, idem.Forgotten{
		Execution: rec.Execution, Status: rec.Status, Outcome: rec.Outcome, By: f.by.By, Reason: f.by.Reason,
		At: f.by.At,
	})
	if err != nil {
		return false, err
	}
	addNote(r, shown)
	_, applied, err := f.sendWithAudit(ctx, r)
	f.options.Duplicates.EndNote(shown, err)
	return applied, err
}

// refuseAlive refuses to forget what has not ended. A dead execution is reaped first, as
// everywhere.
func (op *Operator) refuseAlive(ctx context.Context, at *history.State) (bool, error) {
	runs := at.CopyRuns(at.Scope.Key)
	if runs == nil {
		return true, idem.ErrAlive
	}
	dead, err := op.options.Reaper.IsDead(ctx, runs)
	switch {
	case err != nil:
		return false, err
	case !dead:
		return true, idem.ErrAlive
	}
	return false, op.options.Reaper.Reap(ctx, runs)
}

// ForceRelease takes the lock of workflow away from the execution id, in by's name: a call that
// runs is closed, the response is lock_lost, and the record is ABORTED with an unknown outcome, or
// if it is parked with that of its tries. A lock in its release delay is free at once. It returns
// the execution's record; or idem.ErrNoLock, idem.ErrLockLost if another execution has the lock, or
// idem.ErrStoreUnavailable.
func (op *Operator) ForceRelease(ctx context.Context, workflow string, id idem.ExecutionID, by idem.Cancel,
	audit *idem.Audit) (found *idem.Found, err error) {
	scope, err := op.options.Reader.Scope(ctx, id)
	switch {
	case errors.Is(err, idem.ErrNoExecution), err == nil && scope.Workflow != workflow:
		scope = idem.Scope{Workflow: workflow}
	case err != nil:
		return nil, err
	}
	by.At, by.Forced = by.At.UTC().Round(time.Millisecond), true
	writer := session.NewName()
	t := op.newTrail(audit)
	t.audit.Workflow, t.audit.Execution = workflow, id
	freed := false // an attempt to free a cooling lock got no answer
	err = op.repeatIn(ctx, id, scope, func(ctx context.Context, at *history.State) (_ bool, err error) {
		switch {
		case at.Ended(id) != nil && at.Writer == writer: // an attempt whose answer got lost
			found = &idem.Found{Record: at.Record, Revision: at.Revision, Duplicates: at.Duplicates}
			return true, nil
		case at.Lock == nil && freed:
			return true, nil
		case at.Lock == nil:
			return true, idem.ErrNoLock
		case at.Lock.Execution != id:
			return true, idem.ErrLockLost
		case at.Lock.Cooling:
			status := idem.Failed
			if found, _ = at.Found(); found != nil { // its record may have been forgotten
				status = found.Status()
			}
			t.setChange("locked by "+string(id), "free, execution "+string(status))
			_, applied, err := t.sendWithAudit(ctx, commit.NewRequest(at.Keys.Lock,
				protocol.ForceReleaseCooling(at.Keys, protocol.Revisions{Lock: at.Lock.Revision}), 0).AddSlots(at.Keys))
			freed = freed || err != nil
			return applied, err
		}
		t.setChange("locked by "+string(id), "free, execution "+string(idem.Aborted))
		found, err = t.forceRelease(ctx, at, &by, writer)
		return found != nil, err
	})
	return found, t.finishAction(ctx, err)
}

func (t *trail) forceRelease(ctx context.Context, at *history.State, by *idem.Cancel, writer string) (*idem.Found,
	error) {
	outcome := idem.Unknown
	if at.Lock.IsParked() {
		outcome = at.Lock.Parked.Outcome()
	}
	record := protocol.RecordOf(at.Lock,
		idem.End{Status: idem.Aborted, Outcome: outcome, FinishedAt: t.options.Clock.Now(), Abort: by})
	record.RequestKept = at.Lock.IsParked()
	news, err := t.options.Leases.Notice(ctx, commit.NoticeLife)
	if err != nil {
		return nil, err
	}
	free := *at.Lock
	free.ReleaseDelay = 0 // a person who forces it wants it free
	found, _, err := t.endExecution(ctx, at, &free, record, writer,
		func(rec protocol.Leased, _ *protocol.Cooling) protocol.Op {
			if at.Lock.IsParked() {
				return protocol.ForceReleaseParked(at.Keys, protocol.Revisions{Lock: at.Lock.Revision}, rec, news,
					*finish.DeadLetter(at.Lock, record))
			}
			return protocol.ForceRelease(at.Keys, protocol.Revisions{Lock: at.Lock.Revision}, rec, news)
		})
	return found, err
}
