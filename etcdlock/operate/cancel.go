package operate

import (
	"context"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Cancel asks the process or upstream that runs or holds an execution to stop, in c's name. One
// that waits is ABORTED at once, and so is one whose owner is dead. before: it had been asked
// already, and stays as it was first asked; only that it is for good may be added while it runs. It
// returns idem.ErrFinished with how it ended, idem.ErrMoved with where it is, idem.ErrNoExecution
// or idem.ErrStoreUnavailable.
func (op *Operator) Cancel(ctx context.Context, id idem.ExecutionID, c idem.Cancel,
	audit *idem.Audit) (found *idem.Found, before bool, err error) {
	c.At = c.At.UTC().Round(time.Millisecond)
	a := &cancelling{trail: op.newTrail(audit), cancel: c, writer: session.NewName()}
	err = op.repeatUntilDone(ctx, id, a.tryOnce)
	if a.nothing = err == nil && a.before && !a.asked; a.nothing {
		a.setChange(string(a.found.Status()), a.statusAfter(a.found.Status()))
	}
	return a.found, a.before, a.finishAction(ctx, err)
}

// cancelling is a cancel in progress.
type cancelling struct {
	*trail
	cancel idem.Cancel
	writer string // of the record of one that waits

	found  *idem.Found
	before bool
	asked  bool // it was put into the lock, at least as final
}

func (c *cancelling) tryOnce(ctx context.Context, at *history.State) (_ bool, err error) {
	if c.found, err = at.Found(); err != nil {
		return true, err
	}
	c.setSubject(c.found.Facts())
	if l := c.found.Lock; c.cancel.Skip && l != nil && l.IsParked() {
		if err := c.checkUnchanged(ctx, at); err != nil {
			return true, err
		}
	}
	switch {
	case c.cancel.Only != "" && c.found.Status() != c.cancel.Only && !c.hasMoved(at):
		return true, idem.ErrMoved
	case c.found.InQueue:
		return c.endWaiting(ctx, at)
	case c.found.Lock == nil:
		return true, c.checkEnded(at)
	case c.cancel.Skip && at.Lock.Parked == nil:
		return true, idem.ErrNotParked
	case at.Orphaned:
		return c.endOrphaned(ctx, at)
	case at.Lock.Cancel != nil && (at.Lock.Cancel.Final || !c.cancel.Final):
		c.before = !c.isSameCancel(at.Lock.Cancel)
	default:
		if done, err := c.writeCancel(ctx, at); !done || err != nil {
			return done, err
		}
	}
	if !c.found.Lock.Dead && !at.Orphaned {
		return true, nil
	}
	return false, c.options.Reaper.Reap(ctx, c.found.Lock) // and read how it ended
}

// hasMoved reports whether this very cancel is what has moved it: an attempt whose answer got lost.
func (c *cancelling) hasMoved(at *history.State) bool {
	if l := c.found.Lock; l != nil {
		return l.Cancel != nil && c.isSameCancel(l.Cancel)
	}
	return at.Writer == c.writer || c.found.Record != nil && c.found.Record.Abort != nil &&
		c.isSameCancel(c.found.Record.Abort)
}

// isSameCancel reports whether other is this cancel, or one that it made final.
func (c *cancelling) isSameCancel(other *idem.Cancel) bool {
	return other.By == c.cancel.By && other.Reason == c.cancel.Reason && other.At.Equal(c.cancel.At)
}

// writeCancel puts the cancel into the lock.
func (c *cancelling) writeCancel(ctx context.Context, at *history.State) (bool, error) {
	next := *at.Lock
	asked := c.cancel
	if next.Cancel != nil { // it becomes final
		asked = *next.Cancel
		asked.Final, c.before = true, true
	}
	next.Cancel = &asked
	c.setChange(string(c.found.Status()), c.statusAfter(idem.CancelRequested))
	found, done, err := c.rewriteLock(ctx, at, &next, commit.NoticeLife, func(lock, news protocol.Leased) protocol.Op {
		return protocol.Cancel(at.Keys, protocol.Revisions{Lock: next.Revision}, lock, news)
	})
	c.found, c.asked = found, done || err != nil
	return done, err
}

// statusAfter is how the audit says what becomes of the execution.
func (c *cancelling) statusAfter(s idem.Status) string {
	if c.cancel.Final && !c.cancel.Skip {
		return string(s) + " for good"
	}
	return string(s)
}

// endWaiting takes the execution out of the queue.
func (c *cancelling) endWaiting(ctx context.Context, at *history.State) (bool, error) {
	if c.cancel.Skip && at.Copied.Parked == nil {
		return true, idem.ErrNotParked
	}
	record := protocol.RecordOf(at.Copied,
		idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted, FinishedAt: c.options.Clock.Now(), Abort: &c.cancel})
	c.setChange(string(idem.Pending), c.statusAfter(record.Status))
	found, _, err := c.endExecution(ctx, at, at.Copied, record, c.writer,
		func(rec protocol.Leased, _ *protocol.Cooling) protocol.Op {
			if at.Copied.Parked != nil {
				return protocol.EndParkedPlace(at.Keys, protocol.Revisions{Entry: at.Place, Record: at.Prev}, rec,
					finish.DeadLetter(at.Copied, record))
			}
			return protocol.CancelWaiting(at.Keys, protocol.Revisions{Entry: at.Place, Record: at.Prev}, rec)
		})
	c.found = found
	return found != nil, err
}

// checkEnded tells an execution that ended because of a cancel, this one or an earlier one, from
// one that ended otherwise.
func (c *cancelling) checkEnded(at *history.State) error {
	r := c.found.Record
	switch {
	case c.cancel.Skip && r != nil && r.Error != nil && r.Error.Code == protocol.CodeSkipped:
		c.before = at.Writer != c.writer
		return nil
	case r == nil || r.Status != idem.Aborted || r.Abort == nil || r.Abort.Forced || r.Abort.By == finish.Policy:
		return idem.ErrFinished
	case at.Writer == c.writer || c.isSameCancel(r.Abort):
		return nil
	case c.cancel.Final && !r.Final:
		return idem.ErrFinished
	}
	c.before = true
	return nil
}
