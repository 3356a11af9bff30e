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

// Operator ends executions and lets them run again, for people. It is safe for concurrent use.
type Operator struct{ o *Options }

// NewOperator returns an operator.
func NewOperator(o *Options) *Operator { return &Operator{o} }

// Cancel asks the process or upstream that runs or holds an execution to stop, in c's name. One that waits is ABORTED at once, and so is one whose owner is
// dead. before: it had been asked already, and stays as it was first asked; only that it is for good may be added while it runs. It returns idem.ErrFinished
// with how it ended, idem.ErrMoved with where it is, idem.ErrNoExecution or idem.ErrStoreUnavailable.
func (op *Operator) Cancel(ctx context.Context, id idem.ExecutionID, c idem.Cancel) (found *idem.Found, before bool, err error) {
	scope, err := op.o.Reader.Scope(ctx, id)
	if err != nil {
		return nil, false, err
	}
	c.At = c.At.UTC().Round(time.Millisecond)
	a := &cancelling{o: op.o, id: id, scope: scope, cancel: c, writer: session.NewName()}
	err = op.o.Tasks.Repeat(ctx, a.try)
	return a.found, a.before, err
}

// cancelling is a cancel in progress.
type cancelling struct {
	o      *Options
	id     idem.ExecutionID
	scope  idem.Scope
	cancel idem.Cancel
	writer string // of the record of one that waits

	found  *idem.Found
	before bool
}

func (c *cancelling) try(ctx context.Context) (bool, error) {
	at, err := c.o.Reader.State(ctx, c.id, c.scope)
	if err != nil {
		return false, err
	}
	if c.found, err = at.Found(); err != nil {
		return true, err
	}
	switch {
	case c.cancel.Only != "" && c.found.Status() != c.cancel.Only && !c.done(at):
		return true, idem.ErrMoved
	case c.found.Place:
		return c.endWaiting(ctx, at)
	case c.found.Lock == nil:
		return true, c.ended(at)
	case c.cancel.Skip && at.Lock.Parked == nil:
		return true, idem.ErrNotParked
	case at.Orphaned:
		return c.endOrphaned(ctx, at)
	case at.Lock.Cancel != nil && (at.Lock.Cancel.Final || !c.cancel.Final):
		c.before = !c.mine(at.Lock.Cancel)
	default:
		if done, err := c.ask(ctx, at); !done {
			return false, err
		}
	}
	if !c.found.Lock.Dead && !at.Orphaned {
		return true, nil
	}
	return false, c.o.Reaper.Reap(ctx, c.found.Lock) // and read how it ended
}

// done reports whether this very cancel is what has moved it: an attempt whose answer got lost.
func (c *cancelling) done(at *history.State) bool {
	if l := c.found.Lock; l != nil {
		return l.Cancel != nil && c.mine(l.Cancel)
	}
	return at.Writer == c.writer || c.found.Record != nil && c.found.Record.Abort != nil && c.mine(c.found.Record.Abort)
}

// mine reports whether other is this cancel, or one that it made final.
func (c *cancelling) mine(other *idem.Cancel) bool {
	return other.By == c.cancel.By && other.Reason == c.cancel.Reason && other.At.Equal(c.cancel.At)
}

// ask puts the cancel into the lock.
func (c *cancelling) ask(ctx context.Context, at *history.State) (bool, error) {
	next := *at.Lock
	asked := c.cancel
	if next.Cancel != nil { // it becomes final
		asked = *next.Cancel
		asked.Final, c.before = true, true
	}
	next.Cancel = &asked
	value, err := protocol.EncodeLock(&next)
	if err != nil {
		return true, commit.Unavailable(err)
	}
	news, err := c.o.Leases.Notice(ctx, commit.NoticeLife)
	if err != nil {
		return false, err
	}
	r := commit.NewRequest(at.Keys.L, protocol.Cancel(at.Keys, protocol.Seen{L: next.Revision}, protocol.Leased{Value: value}, news), len(value))
	r.SharedLease = news.Lease
	answer, applied, err := c.o.change(ctx, r)
	if !applied {
		return false, err
	}
	next.Revision = answer.Revision
	c.found = &idem.Found{Lock: &next, Revision: answer.Revision, Duplicates: at.Duplicates}
	return true, nil
}

// endWaiting takes the execution out of the queue.
func (c *cancelling) endWaiting(ctx context.Context, at *history.State) (bool, error) {
	if c.cancel.Skip && at.Copied.Parked == nil {
		return true, idem.ErrNotParked
	}
	record := protocol.RecordOf(at.Copied, idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted, FinishedAt: c.o.Clock.Now(), Abort: &c.cancel})
	r, err := c.o.Finisher.Request(ctx, at.Copied, record, c.writer, func(rec protocol.Leased, _ *protocol.Cooling) protocol.Op {
		if at.Copied.Parked != nil {
			return protocol.EndParkedPlace(at.Keys, protocol.Seen{Q: at.Place, Prev: at.Prev}, rec, finish.DeadLetter(at.Copied, record))
		}
		return protocol.CancelWaiting(at.Keys, protocol.Seen{Q: at.Place, Prev: at.Prev}, rec)
	}, at.Keys)
	if err != nil {
		return false, err
	}
	answer, applied, err := c.o.change(ctx, r)
	if !applied {
		return false, err
	}
	c.over(record, answer, at)
	if at.Copied.Parked != nil {
		c.o.Ended(record) // no delivery waits to report it
	}
	return true, nil
}

func (c *cancelling) over(record *idem.Record, answer commit.Reply, at *history.State) {
	record.Revision = answer.Revision
	c.found = &idem.Found{Record: record, Revision: answer.Revision, Duplicates: at.Duplicates}
}

// ended tells an execution that ended because of a cancel, this one or an earlier one, from one that ended otherwise.
func (c *cancelling) ended(at *history.State) error {
	r := c.found.Record
	switch {
	case c.cancel.Skip && r != nil && r.Error != nil && r.Error.Code == protocol.CodeSkipped:
		c.before = at.Writer != c.writer
		return nil
	case r == nil || r.Status != idem.Aborted || r.Abort == nil || r.Abort.Forced || r.Abort.By == finish.Policy:
		return idem.ErrFinished
	case at.Writer == c.writer || c.mine(r.Abort):
		return nil
	case c.cancel.Final && !r.Final:
		return idem.ErrFinished
	}
	c.before = true
	return nil
}
