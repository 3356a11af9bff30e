package operate

import (
	"context"
	"errors"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Forget lets the event of an ended execution run again: its record is deleted, and every process drops what it remembers of it. So is the high-water mark of
// its scope, if this execution raised it last: later events are judged by those that go through from then on. It returns what is forgotten; that by did it
// stays known for 30 days. It returns idem.ErrAlive if the execution, or another one of the event, has not ended, idem.ErrSuperseded, idem.ErrNoExecution or
// idem.ErrStoreUnavailable.
func (op *Operator) Forget(ctx context.Context, id idem.ExecutionID, by idem.Cancel) (found *idem.Found, err error) {
	var forgotten *idem.Found
	err = op.repeat(ctx, id, func(ctx context.Context, at *history.State) (_ bool, err error) {
		found, err = at.Found()
		switch {
		case forgotten != nil && errors.Is(err, idem.ErrNoExecution): // an attempt whose answer got lost
			found = forgotten
			return true, nil
		case err != nil:
			return true, err
		case at.CopyRuns(at.Scope.Key) != nil || at.Copied != nil:
			return op.refuseAlive(ctx, at)
		case found.Record == nil:
			return true, idem.ErrSuperseded
		}
		news, err := op.o.Leases.Notice(ctx, commit.NoticeLife)
		if err != nil {
			return false, err
		}
		k, mark := at.Keys, protocol.MarkOf(&found.Record.Entry)
		k.M = op.o.Layout.Mark(at.Scope.Workflow, found.Record.Order)
		r := commit.NewRequest(k.L, protocol.Forget(k, protocol.Seen{Prev: at.Prev}, news, mark), len(news.Value)+len(mark))
		r.SharedLease = news.Lease
		if mark != nil {
			r.Slots = append(r.Slots, k.M)
		}
		forgotten = found
		_, applied, err := op.change(ctx, r)
		return applied, err
	})
	if err == nil {
		rec := found.Record
		op.o.Duplicates.Forgot(&rec.Entry, idem.Forgotten{Execution: rec.Execution, Status: rec.Status, Outcome: rec.Outcome, By: by.By, Reason: by.Reason, At: by.At})
	}
	return found, err
}

// refuseAlive refuses to forget what has not ended. A dead execution is reaped first, as everywhere.
func (op *Operator) refuseAlive(ctx context.Context, at *history.State) (bool, error) {
	runs := at.CopyRuns(at.Scope.Key)
	if runs == nil {
		return true, idem.ErrAlive
	}
	dead, err := op.o.Reaper.IsDead(ctx, runs)
	switch {
	case err != nil:
		return false, err
	case !dead:
		return true, idem.ErrAlive
	}
	return false, op.o.Reaper.Reap(ctx, runs)
}

// ForceRelease takes the lock of workflow away from the execution id, in by's name: a call that runs is closed, the response is lock_lost, and the record is
// ABORTED with an unknown outcome. A lock in its release delay is free at once. It returns the execution's record; or idem.ErrNoLock, idem.ErrLockLost if
// another execution has the lock, or idem.ErrStoreUnavailable.
func (op *Operator) ForceRelease(ctx context.Context, workflow string, id idem.ExecutionID, by idem.Cancel) (found *idem.Found, err error) {
	scope, err := op.o.Reader.Scope(ctx, id)
	switch {
	case errors.Is(err, idem.ErrNoExecution), err == nil && scope.Workflow != workflow:
		scope = idem.Scope{Workflow: workflow}
	case err != nil:
		return nil, err
	}
	by.At, by.Forced = by.At.UTC().Round(time.Millisecond), true
	writer := session.NewName()
	err = op.repeatIn(ctx, id, scope, func(ctx context.Context, at *history.State) (_ bool, err error) {
		switch {
		case at.Ended(id) != nil && at.Writer == writer: // an attempt whose answer got lost
			found = &idem.Found{Record: at.Record, Revision: at.Revision, Duplicates: at.Duplicates}
			return true, nil
		case at.Lock == nil:
			return true, idem.ErrNoLock
		case at.Lock.Execution != id:
			return true, idem.ErrLockLost
		case at.Lock.Cooling:
			found, _ = at.Found() // its record may have been forgotten
			_, applied, err := op.change(ctx, commit.NewRequest(at.Keys.L, protocol.ForceReleaseCooling(at.Keys, protocol.Seen{L: at.Lock.Revision}), 0).AddSlots(at.Keys))
			return applied, err
		}
		found, err = op.force(ctx, at, &by, writer)
		return found != nil, err
	})
	return found, err
}

func (op *Operator) force(ctx context.Context, at *history.State, by *idem.Cancel, writer string) (*idem.Found, error) {
	record := protocol.RecordOf(at.Lock, idem.End{Status: idem.Aborted, Outcome: idem.Unknown, FinishedAt: op.o.Clock.Now(), Abort: by})
	record.RequestKept = at.Lock.IsParked()
	news, err := op.o.Leases.Notice(ctx, commit.NoticeLife)
	if err != nil {
		return nil, err
	}
	free := *at.Lock
	free.ReleaseDelay = 0 // a person who forces it wants it free
	found, _, err := op.end(ctx, at, &free, record, writer, func(rec protocol.Leased, _ *protocol.Cooling) protocol.Op {
		if at.Lock.IsParked() {
			return protocol.ForceReleaseParked(at.Keys, protocol.Seen{L: at.Lock.Revision}, rec, news, *finish.DeadLetter(at.Lock, record))
		}
		return protocol.ForceRelease(at.Keys, protocol.Seen{L: at.Lock.Revision}, rec, news)
	})
	return found, err
}
