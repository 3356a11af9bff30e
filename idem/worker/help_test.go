package worker

import (
	"context"
	"time"

	"hooklock/idem"
)

func testPolicy() *idem.Policy {
	p := &idem.Policy{
		Route: "r", Strategy: idem.FailFast, Idempotency: true, Retention: 24 * time.Hour, ReplayBody: 1 << 16,
		OnMismatch: idem.MismatchReject, OnUnknown: idem.UnknownRetry,
	}
	p.Keep.Add(200, 299)
	return p
}

// oneLock is a Ledger with one lock, which is always free, and its RunningLock.
type oneLock struct {
	idem.Ledger
	lock idem.Lock
}

func (*oneLock) Paused(string, string) *idem.Pause  { return nil }
func (*oneLock) LastSeenLock(idem.Scope) *idem.Lock { return nil }
func (o *oneLock) Claim(_ context.Context, l idem.Lock, _ int64) (idem.RunningLock, *idem.Obstacle, error) {
	o.lock = l
	return o, nil, nil
}
func (o *oneLock) Lock() *idem.Lock                                    { return &o.lock }
func (o *oneLock) Begin() error                                        { return nil }
func (*oneLock) Count(idem.Counted)                                    {}
func (o *oneLock) OnStop(func(error))                                  {}
func (o *oneLock) Hold(context.Context, time.Duration) error           { return nil }
func (o *oneLock) Release(context.Context) error                       { return nil }
func (o *oneLock) Park(context.Context, idem.Parked) error             { return nil }
func (o *oneLock) BeginTry(context.Context, idem.Parked, string) error { return nil }
func (o *oneLock) RecordTry(context.Context, idem.Parked) error        { return nil }
func (o *oneLock) Settle(_ context.Context, e idem.End) (*idem.Record, error) {
	return &idem.Record{End: e}, nil
}

// roomy is a Ledger in which nothing is parked.
type roomy struct{ idem.ParkLedger }

func (roomy) MarkReady(idem.Scope)              {}
func (roomy) Paused(string, string) *idem.Pause { return nil }
