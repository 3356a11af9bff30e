package etcdlock

import (
	"context"
	"errors"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// newsLife is for how long a process can hear that it has to look at a lock or to drop a record. One that hears nothing for so long has lost
// its session, and with that all that it remembered.
const newsLife = time.Minute

var newsValue = []byte(`{"v":1}`)

// attempt is one try of something that people or upstreams ask for. done false: things have changed, and it is tried again, after a pause where
// err is not nil.
type attempt func(ctx context.Context) (done bool, err error)

// repeat tries until it is done, or until ctx or the Store ends; then nobody knows, and the next one to read finds out. All that is repeated is safe to
// repeat: its transaction compares what it changes.
func (s *Control) repeat(ctx context.Context, try attempt) error {
	if !s.tasks.Enter() {
		return unavailable(commit.ErrClosed)
	}
	defer s.tasks.Leave()
	ctx, cancel := s.tasks.Within(ctx)
	defer cancel()
	for pause := link.NewBackoff(); ; {
		done, err := try(ctx)
		if done {
			return err
		}
		if err == nil {
			err = context.Cause(ctx)
		} else if pause.Wait(ctx) == nil {
			continue
		}
		if errors.Is(err, idem.ErrStoreUnavailable) {
			return err
		}
		if err != nil {
			return unavailable(err)
		}
	}
}

// change sends a transaction that compares what it changes. Where it is refused, or where its answer gets lost, the caller reads again.
func (s *Control) change(ctx context.Context, r *commit.Request) (answer commit.Reply, applied bool, err error) {
	answer = s.sender.Do(ctx, r)
	s.leases.DropIfGone(r.SharedLease, answer.Err)
	return answer, answer.Err == nil && answer.Succeeded, answer.Err
}

// news is what tells processes of a change, on a lease that lasts for newsLife.
func (s *core) news(ctx context.Context) (protocol.Leased, error) {
	lease, err := s.leases.Take(ctx, newsLife, "", nil)
	return protocol.Leased{Value: newsValue, Lease: lease}, err
}

// Cancel asks whoever runs or holds an execution to stop, in c's name. One that waits is ABORTED at once, and so is one whose owner is dead.
// before: it had been asked already, and stays as it was first asked; only that it is for good may be added while it runs. The error is
// idem.ErrFinished, with how it ended, idem.ErrMoved, with where it is, idem.ErrNoExecution or idem.ErrStoreUnavailable.
func (s *Control) Cancel(ctx context.Context, id idem.ExecutionID, c idem.Cancel) (found *idem.Found, before bool, err error) {
	scope, err := s.Scope(ctx, id)
	if err != nil {
		return nil, false, err
	}
	c.At = c.At.UTC().Round(time.Millisecond)
	a := &asking{store: s, id: id, scope: scope, cancel: c, writer: session.NewName()}
	err = s.repeat(ctx, a.try)
	return a.found, a.before, err
}

// asking is a cancel on its way.
type asking struct {
	store  *Control
	id     idem.ExecutionID
	scope  idem.Scope
	cancel idem.Cancel
	writer string // of the record of one that waits

	found  *idem.Found
	before bool
}

func (a *asking) try(ctx context.Context) (bool, error) {
	at, err := a.store.State(ctx, a.id, a.scope)
	if err != nil {
		return false, err
	}
	if a.found, err = at.Found(); err != nil {
		return true, err
	}
	switch {
	case a.cancel.Only != "" && a.found.Status() != a.cancel.Only && !a.done(at):
		return true, idem.ErrMoved
	case a.found.Place:
		return a.endWaiting(ctx, at)
	case a.found.Lock == nil:
		return true, a.ended(at)
	case a.cancel.Skip && at.Lock.Parked == nil:
		return true, idem.ErrNotParked
	case at.Orphaned:
		return a.endUncarried(ctx, at)
	case at.Lock.Cancel != nil && (at.Lock.Cancel.Final || !a.cancel.Final):
		a.before = !a.mine(at.Lock.Cancel)
	default:
		if done, err := a.ask(ctx, at); !done {
			return false, err
		}
	}
	if !a.found.Lock.Dead && !at.Orphaned {
		return true, nil
	}
	return false, a.store.reaper.Reap(ctx, a.found.Lock) // and read how it ended
}

// done reports whether this very cancel is what has moved it: an attempt whose answer got lost.
func (a *asking) done(at *history.State) bool {
	if l := a.found.Lock; l != nil {
		return l.Cancel != nil && a.mine(l.Cancel)
	}
	return at.Writer == a.writer || a.found.Record != nil && a.found.Record.Abort != nil && a.mine(a.found.Record.Abort)
}

// mine reports whether c is this cancel, or one that it made final.
func (a *asking) mine(c *idem.Cancel) bool {
	return c.By == a.cancel.By && c.Reason == a.cancel.Reason && c.At.Equal(a.cancel.At)
}

// ask puts the cancel into the lock.
func (a *asking) ask(ctx context.Context, at *history.State) (bool, error) {
	next := *at.Lock
	asked := a.cancel
	if next.Cancel != nil { // it becomes final
		asked = *next.Cancel
		asked.Final, a.before = true, true
	}
	next.Cancel = &asked
	value, err := protocol.EncodeLock(&next)
	if err != nil {
		return true, unavailable(err)
	}
	news, err := a.store.news(ctx)
	if err != nil {
		return false, err
	}
	r := commit.NewRequest(at.Keys.L, protocol.Cancel(at.Keys, protocol.Seen{L: next.Revision}, protocol.Leased{Value: value}, news), len(value))
	r.SharedLease = news.Lease
	answer, applied, err := a.store.change(ctx, r)
	if !applied {
		return false, err
	}
	next.Revision = answer.Revision
	a.found = &idem.Found{Lock: &next, Revision: answer.Revision, Duplicates: at.Duplicates}
	return true, nil
}

// endWaiting takes the execution out of the queue.
func (a *asking) endWaiting(ctx context.Context, at *history.State) (bool, error) {
	if a.cancel.Skip && at.Copied.Parked == nil {
		return true, idem.ErrNotParked
	}
	record := protocol.RecordOf(at.Copied, idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted, FinishedAt: a.store.clock.Now(), Abort: &a.cancel})
	r, err := a.store.finisher.Request(ctx, at.Copied, record, a.writer, func(rec protocol.Leased, _ *protocol.Cooling) protocol.Op {
		if at.Copied.Parked != nil {
			return protocol.EndParkedPlace(at.Keys, protocol.Seen{Q: at.Place, Prev: at.Prev}, rec, finish.DeadLetter(at.Copied, record))
		}
		return protocol.CancelWaiting(at.Keys, protocol.Seen{Q: at.Place, Prev: at.Prev}, rec)
	}, at.Keys)
	if err != nil {
		return false, err
	}
	answer, applied, err := a.store.change(ctx, r)
	if !applied {
		return false, err
	}
	a.over(record, answer, at)
	if at.Copied.Parked != nil {
		a.store.ended(record, true) // nobody waits to tell of it
	}
	return true, nil
}

func (a *asking) over(record *idem.Record, answer commit.Reply, at *history.State) {
	record.Revision = answer.Revision
	a.found = &idem.Found{Record: record, Revision: answer.Revision, Duplicates: at.Duplicates}
}

// ended tells an execution that ended because of a cancel, this one or an earlier one, from one that ended otherwise.
func (a *asking) ended(at *history.State) error {
	r := a.found.Record
	switch {
	case a.cancel.Skip && r != nil && r.Error != nil && r.Error.Code == protocol.CodeSkipped:
		a.before = at.Writer != a.writer
		return nil
	case r == nil || r.Status != idem.Aborted || r.Abort == nil || r.Abort.Forced || r.Abort.By == finish.Policy:
		return idem.ErrFinished
	case at.Writer == a.writer || a.mine(r.Abort):
		return nil
	case a.cancel.Final && !r.Final:
		return idem.ErrFinished
	}
	a.before = true
	return nil
}

// Forget lets the event of an ended execution run again: its record goes, and every process drops what it remembers of it. So does the mark of its scope
// that it has raised, where nothing newer went through: what comes then is judged by what goes through from then on. It returns what is
// forgotten, and it stays known for 30 days that by did. The error is idem.ErrAlive where the execution, or another one of the event, has not ended; idem.ErrSuperseded,
// idem.ErrNoExecution or idem.ErrStoreUnavailable.
func (s *Control) Forget(ctx context.Context, id idem.ExecutionID, by idem.Cancel) (found *idem.Found, err error) {
	scope, err := s.Scope(ctx, id)
	if err != nil {
		return nil, err
	}
	var forgotten *idem.Found
	err = s.repeat(ctx, func(ctx context.Context) (bool, error) {
		at, err := s.State(ctx, id, scope)
		if err != nil {
			return false, err
		}
		found, err = at.Found()
		switch {
		case forgotten != nil && errors.Is(err, idem.ErrNoExecution): // an attempt whose answer got lost
			found = forgotten
			return true, nil
		case err != nil:
			return true, err
		case at.CopyRuns(scope.Key) != nil || at.Copied != nil:
			return s.refuseAlive(ctx, at, scope.Key)
		case found.Record == nil:
			return true, idem.ErrSuperseded
		}
		news, err := s.news(ctx)
		if err != nil {
			return false, err
		}
		k, mark := at.Keys, protocol.MarkOf(&found.Record.Entry)
		k.M = s.layout.Mark(scope.Workflow, found.Record.Order)
		r := commit.NewRequest(k.L, protocol.Forget(k, protocol.Seen{Prev: at.Prev}, news, mark), len(news.Value)+len(mark))
		r.SharedLease = news.Lease
		if mark != nil {
			r.Slots = append(r.Slots, k.M)
		}
		forgotten = found
		_, applied, err := s.change(ctx, r)
		return applied, err
	})
	if err == nil {
		rec := found.Record
		s.duplicates.Forgot(&rec.Entry, idem.Forgotten{Execution: rec.Execution, Status: rec.Status, Outcome: rec.Outcome, By: by.By, Reason: by.Reason, At: by.At})
	}
	return found, err
}

// Drop implements idem.Ledger.
func (s *Ledger) Drop(r *idem.Record) {
	k, at := s.layout.Keys(&idem.Lock{Entry: r.Entry}), protocol.Seen{Prev: r.Revision}
	s.tasks.Help(func(life context.Context) {
		for pause := link.NewBackoff(); at.Prev != 0; {
			news, err := s.news(life)
			if err == nil {
				dropping := commit.NewRequest(k.L, protocol.Forget(k, at, news, nil), len(news.Value))
				dropping.SharedLease = news.Lease
				err = s.sender.Do(life, dropping).Err
				s.leases.DropIfGone(news.Lease, err)
			}
			if err == nil || pause.Wait(life) != nil {
				return
			}
		}
	})
}

// refuseAlive refuses to forget what has not ended. Who is dead is buried first, as everywhere.
func (s *Control) refuseAlive(ctx context.Context, at *history.State, event idem.Key) (bool, error) {
	runs := at.CopyRuns(event)
	if runs == nil {
		return true, idem.ErrAlive
	}
	dead, err := s.reaper.IsDead(ctx, runs)
	switch {
	case err != nil:
		return false, err
	case !dead:
		return true, idem.ErrAlive
	}
	return false, s.reaper.Reap(ctx, runs)
}

// ForceRelease takes the lock of workflow away from the execution id, in by's name: a call that runs is closed, its sender is told lock_lost, and
// its record is ABORTED with an unknown outcome. A lock that cools is free at once. It returns the execution's record. The error is
// idem.ErrNoLock, idem.ErrLockLost where another execution has the lock, or idem.ErrStoreUnavailable.
func (s *Control) ForceRelease(ctx context.Context, workflow string, id idem.ExecutionID, by idem.Cancel) (found *idem.Found, err error) {
	scope, err := s.Scope(ctx, id)
	switch {
	case errors.Is(err, idem.ErrNoExecution), err == nil && scope.Workflow != workflow:
		scope = idem.Scope{Workflow: workflow}
	case err != nil:
		return nil, err
	}
	by.At, by.Forced = by.At.UTC().Round(time.Millisecond), true
	writer := session.NewName()
	err = s.repeat(ctx, func(ctx context.Context) (bool, error) {
		at, err := s.State(ctx, id, scope)
		switch {
		case err != nil:
			return false, err
		case at.Ended(id) != nil && at.Writer == writer: // an attempt whose answer got lost
			found = &idem.Found{Record: at.Record, Revision: at.Revision, Duplicates: at.Duplicates}
			return true, nil
		case at.Lock == nil:
			return true, idem.ErrNoLock
		case at.Lock.Execution != id:
			return true, idem.ErrLockLost
		case at.Lock.Cooling:
			found, _ = at.Found() // its record may have been forgotten
			_, applied, err := s.change(ctx, commit.NewRequest(at.Keys.L, protocol.ForceReleaseCooling(at.Keys, protocol.Seen{L: at.Lock.Revision}), 0).AddSlots(at.Keys))
			return applied, err
		}
		var applied bool
		found, applied, err = s.force(ctx, at, &by, writer)
		return applied, err
	})
	return found, err
}

func (s *Control) force(ctx context.Context, at *history.State, by *idem.Cancel, writer string) (*idem.Found, bool, error) {
	record := protocol.RecordOf(at.Lock, idem.End{Status: idem.Aborted, Outcome: idem.Unknown, FinishedAt: s.clock.Now(), Abort: by})
	record.RequestKept = at.Lock.IsParked()
	news, err := s.news(ctx)
	if err != nil {
		return nil, false, err
	}
	free := *at.Lock
	free.ReleaseDelay = 0 // whoever forces wants it free
	r, err := s.finisher.Request(ctx, &free, record, writer, func(rec protocol.Leased, _ *protocol.Cooling) protocol.Op {
		if at.Lock.IsParked() {
			return protocol.ForceReleaseParked(at.Keys, protocol.Seen{L: at.Lock.Revision}, rec, news, *finish.DeadLetter(at.Lock, record))
		}
		return protocol.ForceRelease(at.Keys, protocol.Seen{L: at.Lock.Revision}, rec, news)
	}, at.Keys)
	if err != nil {
		return nil, false, err
	}
	answer, applied, err := s.change(ctx, r)
	if !applied {
		return nil, false, err
	}
	record.Revision = answer.Revision
	s.ended(record, true)
	return &idem.Found{Record: record, Revision: answer.Revision, Duplicates: at.Duplicates}, true, nil
}
