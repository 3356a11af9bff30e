package queue_test

import (
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/idem"
)

const patience = etcdtest.Patience

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	sessionOf      = ledgertest.SessionOf
	endSession     = ledgertest.EndSession
	byOps          = ledgertest.ByOps
	eventually     = etcdtest.Eventually
	failure        = ledgertest.Failure
	inTurn         = ledgertest.InTurn
	keysBelow      = ledgertest.KeysBelow
	limitedLock    = ledgertest.LimitedLock
	lockFor        = ledgertest.LockFor
	must           = ledgertest.Must
	mustAttempt    = ledgertest.MustAttempt
	mustBeReplaced = ledgertest.MustBeReplaced
	mustCancel     = ledgertest.MustCancel
	mustClaim      = ledgertest.MustClaim
	mustEnqueue    = ledgertest.MustEnqueue
	mustFind       = ledgertest.MustFind
	mustHear       = ledgertest.MustHear
	mustPark       = ledgertest.MustPark
	mustPause      = ledgertest.MustPause
	mustResume     = ledgertest.MustResume
	mustSettle     = ledgertest.MustSettle
	newestLock     = ledgertest.NewestLock
	newestParked   = ledgertest.NewestParked
	nothingKept    = ledgertest.MustKeepNothing
	parkedNow      = ledgertest.ParkedNow
	pauseOf        = ledgertest.PauseOf
	slotsOf        = ledgertest.SlotsOf
	success        = ledgertest.Success
	takeNext       = ledgertest.TakeNext
	tryClaim       = ledgertest.TryClaim
	tryEnqueue     = ledgertest.TryEnqueue
	unknownEnd     = ledgertest.UnknownEnd
	within         = etcdtest.Within
)

// openStore opens a store that is ready, and closes it with the test.
func openStore(tb testing.TB, o etcdlock.Options) *etcdlock.Store {
	tb.Helper()
	s, err := etcdlock.Open(o)
	return ledgertest.Ready(tb, s, err)
}

// replicas are two stores on one etcd.
func replicas(tb testing.TB) (e *etcdtest.Etcd, a, b *etcdlock.Store) {
	tb.Helper()
	e = etcdtest.Start(tb)
	return e, openStore(tb, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(tb, etcdlock.Options{Endpoints: []string{e.Endpoint}})
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
