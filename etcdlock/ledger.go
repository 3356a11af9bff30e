package etcdlock

import (
	"context"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Ledger is the store of locks and records as the Guard of idem needs it.
type Ledger struct{ *core }

var (
	_ idem.Ledger     = (*Ledger)(nil)
	_ idem.ParkLedger = (*Ledger)(nil)
)

// Reap implements idem.Ledger.
func (s *Ledger) Reap(ctx context.Context, dead *idem.Lock) error { return s.reaper.Reap(ctx, dead) }

// Paused implements idem.Ledger.
func (s *Ledger) Paused(route, workflow string) *idem.Pause { return s.pauses.Of(route, workflow) }

// Ahead implements idem.Ledger.
func (s *Ledger) Ahead(scope idem.Scope) *idem.Lock { return s.queues.LockAhead(scope) }

// Answer implements idem.Ledger.
func (s *Ledger) Answer(ctx context.Context, r *idem.Record) error { return s.finder.Answer(ctx, r) }

// Request implements idem.ParkLedger. It returns idem.ErrNoRequest or idem.ErrStoreUnavailable.
func (s *Ledger) Request(ctx context.Context, id idem.ExecutionID) ([]byte, error) {
	return s.finder.KeptRequest(ctx, id)
}

// Drop implements idem.Ledger.
func (s *Ledger) Drop(r *idem.Record) {
	k, at := s.layout.Keys(&idem.Lock{Entry: r.Entry}), protocol.Seen{Prev: r.Revision}
	s.tasks.Help(func(life context.Context) {
		for pause := link.NewBackoff(); at.Prev != 0; {
			news, err := s.leases.Notice(life, commit.NoticeLife)
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
