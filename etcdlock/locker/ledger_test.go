package locker_test

import (
	"testing"

	"go.uber.org/goleak"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
)

const patience = etcdtest.Patience

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	sessionOf   = ledgertest.SessionOf
	endSession  = ledgertest.EndSession
	closeStore  = ledgertest.Close
	eventually  = etcdtest.Eventually
	left        = ledgertest.Left
	lockFor     = ledgertest.LockFor
	must        = ledgertest.Must
	mustAcquire = ledgertest.MustAcquire
	mustEnqueue = ledgertest.MustEnqueue
	waiters     = ledgertest.AwaitWaiters
	within      = etcdtest.Within
)

// openStore opens a store that is ready, and closes it with the test.
func openStore(tb testing.TB, o etcdlock.Options) *etcdlock.Store {
	tb.Helper()
	s, err := etcdlock.Open(o)
	return ledgertest.Ready(tb, s, err)
}

// openReady is openStore for a test that closes the store itself.
func openReady(tb testing.TB, o etcdlock.Options) *etcdlock.Store {
	tb.Helper()
	s, err := etcdlock.Open(o)
	return ledgertest.Open(tb, s, err)
}
