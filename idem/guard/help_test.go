package guard

import (
	"context"
	"time"

	"hooklock/idem"
)

var (
	noon  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	later = noon.Add(time.Hour)
)

const (
	keyA = idem.Key("00000000000000aa-000000000000000000000000000000aa")
	keyB = idem.Key("00000000000000bb-000000000000000000000000000000bb")
)

func testPolicy() *idem.Policy {
	p := &idem.Policy{
		Route: "r", Strategy: idem.FailFast, Idempotency: true, Retention: 24 * time.Hour,
		PayloadRetention: time.Minute, ReplayBody: 1 << 16,
		OnMismatch: idem.MismatchReject, OnUnknown: idem.UnknownRetry,
	}
	p.Keep.Add(200, 299)
	return p
}

func unknownOutcome(r *idem.Record) {
	r.Status, r.Outcome, r.Remembered, r.Answer = idem.Failed, idem.Unknown, false, nil
}

func finalAbort(r *idem.Record) {
	r.Status, r.Outcome, r.Remembered, r.Abort, r.Final = idem.Aborted, idem.NotExecuted, false,
		&idem.Cancel{Final: true}, true
}

// quiet is the part of a Ledger that most tests do not ask: nothing is paused, no delivery waits,
// and answers are in their records.
type quiet struct{ idem.Ledger }

func (quiet) Paused(string, string) *idem.Pause              { return nil }
func (quiet) LastSeenLock(idem.Scope) *idem.Lock             { return nil }
func (quiet) ReadAnswer(context.Context, *idem.Record) error { return nil }
