package etcdlock

import (
	"context"
	"time"

	"hooklock/etcdlock/carry"
	"hooklock/etcdlock/claim"
	"hooklock/etcdlock/queue"
	"hooklock/idem"
)

// Ledger stores locks and records for package idem/guard and the park worker. It implements
// idem.Ledger and idem.ParkLedger.
type Ledger struct {
	*core
	claims  *claim.Claims
	places  *queue.Entries
	carrier *carry.Carrier
}

var (
	_ idem.Ledger     = (*Ledger)(nil)
	_ idem.ParkLedger = (*Ledger)(nil)
)

// FirstTwin implements idem.Ledger.
func (s *Ledger) FirstTwin(ctx context.Context, t *idem.Twin) (idem.FirstTwin, error) {
	return s.claims.FirstTwin(ctx, t)
}

// Claim implements idem.Ledger.
func (s *Ledger) Claim(ctx context.Context, l idem.Lock, prev int64) (idem.RunningLock, *idem.Obstacle, error) {
	return s.claims.Claim(ctx, l, prev)
}

// Enqueue implements idem.Ledger.
func (s *Ledger) Enqueue(ctx context.Context, l idem.Lock, prev, behind int64) (idem.QueueEntry, *idem.Obstacle,
	error) {
	return s.places.Enqueue(ctx, l, prev, behind)
}

// AwaitEnd implements idem.Ledger.
func (s *Ledger) AwaitEnd(ctx context.Context, l *idem.Lock) (*idem.Obstacle, error) {
	return s.places.AwaitEnd(ctx, l)
}

// TakeParked implements idem.ParkLedger.
func (s *Ledger) TakeParked(ctx context.Context, scope idem.Scope, mine func(route string) bool) (*idem.Taken, error) {
	return s.carrier.TakeParked(ctx, scope, mine)
}

// Reap implements idem.Ledger.
func (s *Ledger) Reap(ctx context.Context, dead *idem.Lock) error { return s.reaper.Reap(ctx, dead) }

// Paused implements idem.Ledger.
func (s *Ledger) Paused(route, workflow string) *idem.Pause { return s.view.Pauses.Of(route, workflow) }

// LastSeenLock implements idem.Ledger.
func (s *Ledger) LastSeenLock(scope idem.Scope) *idem.Lock { return s.view.Queues.LockAhead(scope) }

// ReadAnswer implements idem.Ledger.
func (s *Ledger) ReadAnswer(ctx context.Context, r *idem.Record) error {
	return s.finder.ReadAnswer(ctx, r)
}

// Request implements idem.ParkLedger. It returns idem.ErrNoRequest or idem.ErrStoreUnavailable.
func (s *Ledger) Request(ctx context.Context, id idem.ExecutionID) ([]byte, error) {
	return s.finder.KeptRequest(ctx, id)
}

// DropRecord implements idem.Ledger.
func (s *Ledger) DropRecord(r *idem.Record) { s.places.DropRecord(r) }

// CountDuplicate counts a copy of an execution that was answered without running. It never blocks.
// Readers in this process see the count at once, others within a second. It lives for retention
// after the last copy. It is lost while more than 100,000 executions have copies that are not
// written.
func (s *Ledger) CountDuplicate(id idem.ExecutionID, retention time.Duration) {
	s.duplicates.Add(id, retention)
}

// NoteBadSignature lists a delivery whose signature was not valid, or counts it. It never blocks.
// Other processes can read it within a second. It calls eventID only if it lists the delivery.
func (s *Ledger) NoteBadSignature(b idem.BadSignature, eventID func() string) {
	s.signatures.NoteBadSignature(b, eventID)
}

// NoteArrival stores a delivery that was not executed. It never blocks. Other processes can read it
// within a second while etcd answers, and for retention after it. It is lost if it is of a further
// event while the arrivals of 10,000 events wait to be written.
func (s *Ledger) NoteArrival(event idem.Scope, route, eventID string, a idem.Arrival, retention time.Duration) {
	s.duplicates.NoteArrival(event, route, eventID, a, retention)
}

// Parked implements idem.ParkLedger.
func (s *Ledger) Parked(scope idem.Scope) idem.ParkedCount {
	return s.view.Parked.Count(s.layout.Lock(scope))
}

// ParkedRoutes counts the parked executions of each route that matches, over all processes.
func (s *Ledger) ParkedRoutes(match func(route string) bool) map[string]int {
	return s.view.Parked.Routes(match)
}

// DeadLetterRoutes counts the dead letters of each route, over all processes.
func (s *Ledger) DeadLetterRoutes() map[string]int { return s.view.Parked.DeadLetterRoutes() }

// IsTooOld implements idem.ParkLedger.
func (s *Ledger) IsTooOld(id idem.ExecutionID) bool { return s.view.Parked.IsTooOld(id) }

// NextReady implements idem.ParkLedger. It returns the cause of ctx, or commit.ErrClosed.
func (s *Ledger) NextReady(ctx context.Context) (scope idem.Scope, route string, err error) {
	return s.view.Parked.Next(ctx)
}

// MarkReady implements idem.ParkLedger.
func (s *Ledger) MarkReady(scope idem.Scope) {
	if scope == (idem.Scope{}) {
		s.view.Parked.MakeAllReady()
		return
	}
	s.view.Parked.MakeReady(s.layout.Lock(scope))
}
