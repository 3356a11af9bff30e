package etcdlock

import (
	"context"
	"time"

	"hooklock/idem"
)

// Duplicate counts one copy of an execution that was answered without running. It never blocks; readers in this process know of it at once,
// others within a second. The count lives for retention after the copy. When more than 100,000 executions have unwritten copies at a time,
// further ones are not counted.
func (s *Ledger) Duplicate(id idem.ExecutionID, retention time.Duration) {
	s.duplicates.Add(id, retention)
}

// Arrived notes a delivery that was not executed. It never blocks; others know of it within a second, as long as the store takes
// it, and for retention after it. When 10,000 events have arrivals that are not written yet, those of further events are shed.
func (s *Ledger) Arrived(event idem.Scope, route, eventID string, a idem.Arrival, retention time.Duration) {
	s.duplicates.Arrived(event, route, eventID, a, retention)
}

// ShedArrivals is how many arrivals this process has not kept.
func (s *Store) ShedArrivals() int64 { return s.duplicates.Shed() }

// Audited notes what somebody with a token asked for. It never blocks; others know of it within a second, as long as the store takes it, and for
// idem.AuditKept. What a process is killed with before that is lost, and when 10,000 wait to be written, further ones are shed.
func (s *Control) Audited(a idem.Audit) { s.audits.Add(a) }

// Audits is a part of what somebody with a token asked for. The error is idem.ErrCursor or idem.ErrStoreUnavailable.
func (s *Control) Audits(ctx context.Context, q idem.AuditQuery) (idem.AuditPage, error) {
	return s.audits.List(ctx, q)
}

// ShedAudits is how many audits this process has not kept.
func (s *Store) ShedAudits() int64 { return s.audits.Shed() }

// Counts is what all processes have counted: of this one up to now, of others up to a minute ago. It returns idem.ErrStoreUnavailable if etcd cannot be
// read.
func (s *Control) Counts(ctx context.Context, q idem.CountQuery) (idem.CountHistory, error) {
	return s.counts.Counts(ctx, q)
}
