package etcdlock

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Ledger is the store of locks and records as package idem/guard needs it.
type Ledger struct{ *core }

var (
	_ idem.Ledger     = (*Ledger)(nil)
	_ idem.ParkLedger = (*Ledger)(nil)
)

// Reap implements idem.Ledger.
func (s *Ledger) Reap(ctx context.Context, dead *idem.Lock) error { return s.reaper.Reap(ctx, dead) }

// Paused implements idem.Ledger.
func (s *Ledger) Paused(route, workflow string) *idem.Pause { return s.view.Pauses.Of(route, workflow) }

// Ahead implements idem.Ledger.
func (s *Ledger) Ahead(scope idem.Scope) *idem.Lock { return s.view.Queues.LockAhead(scope) }

// Answer implements idem.Ledger.
func (s *Ledger) Answer(ctx context.Context, r *idem.Record) error { return s.finder.Answer(ctx, r) }

// Request implements idem.ParkLedger. It returns idem.ErrNoRequest or idem.ErrStoreUnavailable.
func (s *Ledger) Request(ctx context.Context, id idem.ExecutionID) ([]byte, error) {
	return s.finder.KeptRequest(ctx, id)
}

// Drop implements idem.Ledger.
func (s *Ledger) Drop(r *idem.Record) {
	k, at := s.layout.Keys(&idem.Lock{Entry: r.Entry}), protocol.Seen{Record: r.Revision}
	s.tasks.Help(func(life context.Context) {
		for pause := link.NewBackoff(); at.Record != 0; {
			news, err := s.leases.Notice(life, commit.NoticeLife)
			if err == nil {
				dropping := commit.NewRequest(k.Lock, protocol.Forget(k, at, news, nil, false), len(news.Value))
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

// Duplicate counts one copy of an execution that was answered without running. It never blocks. Readers in this process know of it at once, others within a
// second. The count lives for retention after the copy. While more than 100,000 executions have unwritten copies, further ones are not counted.
func (s *Ledger) Duplicate(id idem.ExecutionID, retention time.Duration) {
	s.duplicates.Add(id, retention)
}

// Arrived notes a delivery that was not executed. It never blocks. Other processes can read it within a second, as long as etcd takes it, and for retention
// after it. While 10,000 events have arrivals that are not written yet, those of further events are shed.
func (s *Ledger) Arrived(event idem.Scope, route, eventID string, a idem.Arrival, retention time.Duration) {
	s.duplicates.Arrived(event, route, eventID, a, retention)
}

// Follow implements idem.Ledger.
func (s *Ledger) Follow(ctx context.Context, l *idem.Lock) (*idem.Seen, error) {
	k := s.layout.Keys(l)
	ran := l.Revision // the last revision at which it is known to have had the lock; 0 = none
	for {
		st, err := history.Look(ctx, s.pool, k)
		if err != nil {
			return nil, commit.Unavailable(err)
		}
		switch {
		case st.Runs(l.Execution):
			ran = st.Revision
			if st.Lock.Dead, err = s.reaper.IsDead(ctx, st.Lock); err != nil {
				return nil, commit.Unavailable(err)
			}
			if st.Lock.Dead {
				return st.Seen(l.Scope.Key), nil
			}
			s.pool.AwaitChange(ctx, st.Revision, k.Lock, s.layout.Alive(st.Lock.Alive))
		case st.Waits(l.Execution):
			s.pool.AwaitChange(ctx, st.Revision, k.Entry)
		case st.Unread != nil:
			return nil, commit.Unavailable(st.Unread)
		case ran == 0 || st.Ended(l.Execution) != nil, st.Revision < ran: // etcd went back, and it cannot be known any more
			return st.Seen(l.Scope.Key), nil
		default:
			seen, _, err := history.LookBack(ctx, s.pool, k, l.Execution, ran)
			if err != nil {
				return nil, commit.Unavailable(err)
			}
			return seen, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("follow %s: %w", l.Execution, context.Cause(ctx))
		}
	}
}

// prepare makes l the lock of the live session, and its value.
func (s *core) prepare(l *idem.Lock) (*session.Session, []byte, error) {
	session, err := s.assign(l)
	if err != nil {
		return nil, nil, err
	}
	value, err := protocol.EncodeLock(l)
	if err != nil {
		return nil, nil, commit.Unavailable(err)
	}
	return session, value, nil
}

// assign makes l the lock of the live session.
func (s *core) assign(l *idem.Lock) (*session.Session, error) {
	session, _, err := s.keeper.Current()
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	if len(l.Scope.Workflow) > protocol.MaxWorkflowBytes {
		return nil, commit.Unavailable(fmt.Errorf("workflow of %d bytes, at most %d: %w", len(l.Scope.Workflow), protocol.MaxWorkflowBytes, protocol.ErrTooLarge))
	}
	if !utf8.ValidString(l.Scope.Workflow) { // its value could not spell it
		return nil, commit.Unavailable(fmt.Errorf("workflow %q: give UTF-8", l.Scope.Workflow))
	}
	l.Alive = protocol.SessionAlive(session.Name)
	if l.Holder == "" {
		l.Holder = session.Holder()
	}
	return session, nil
}
