package slots_test

import (
	"sync/atomic"
	"testing"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/idem"
)

const patience = etcdtest.Patience

var (
	anyRoute        = ledgertest.AnyRoute
	applied         = ledgertest.RepeatUnapplied
	byOps           = ledgertest.ByOps
	closeStore      = ledgertest.Close
	countKeys       = ledgertest.CountKeys
	eventually      = etcdtest.Eventually
	inTurn          = ledgertest.InTurn
	parkedNow       = ledgertest.ParkedNow
	limitedLock     = ledgertest.LimitedLock
	lockFor         = ledgertest.LockFor
	must            = ledgertest.Must
	mustAttempt     = ledgertest.MustAttempt
	mustClaim       = ledgertest.MustClaim
	mustEnqueue     = ledgertest.MustEnqueue
	mustPark        = ledgertest.MustPark
	mustPause       = ledgertest.MustPause
	mustResume      = ledgertest.MustResume
	mustSettle      = ledgertest.MustSettle
	parkedLock      = ledgertest.ParkedLock
	pauseOf         = ledgertest.PauseOf
	refusedAsPaused = ledgertest.MustBeRefusedAsPaused
	restNow         = ledgertest.RestNow
	slotsOf         = ledgertest.SlotsOf
	success         = ledgertest.Success
	takeNext        = ledgertest.TakeNext
	takenSlots      = ledgertest.TakenSlots
	tryClaim        = ledgertest.TryClaim
	waitsAt         = ledgertest.WaitsAt
	withSlots       = ledgertest.WithSlots
	within          = etcdtest.Within
)

// openStore opens a store that is ready, and closes it with the test.
func openStore(tb testing.TB, o etcdlock.Options) *etcdlock.Store {
	tb.Helper()
	s, err := etcdlock.Open(o)
	return ledgertest.Ready(tb, s, err)
}

// erp is a limit of so many slots, as a Store of a replica has it.
func erp(n *atomic.Int64) etcdlock.Options {
	return etcdlock.Options{Limit: func(string, idem.Slot) int { return int(n.Load()) }}
}

func limitedStore(tb testing.TB, e *etcdtest.Etcd, n *atomic.Int64) *etcdlock.Store {
	tb.Helper()
	o := erp(n)
	o.Endpoints = []string{e.Endpoint}
	return openStore(tb, o)
}
