package callback_test

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
	byOps           = ledgertest.ByOps
	callbackOf      = ledgertest.CallbackOf
	client          = ledgertest.Client
	eventually      = etcdtest.Eventually
	failure         = ledgertest.Failure
	lockFor         = ledgertest.LockFor
	mustAcquireLock = ledgertest.MustAcquireLock
	mustCancel      = ledgertest.MustCancel
	mustClaim       = ledgertest.MustClaim
	mustFind        = ledgertest.MustFind
	mustHold        = ledgertest.MustHold
	mustSettle      = ledgertest.MustSettle
	stepsOf         = ledgertest.StepsOf
	success         = ledgertest.Success
	tryClaim        = ledgertest.TryClaim
	unknownEnd      = ledgertest.UnknownEnd
	waiters         = ledgertest.AwaitWaiters
	withKey         = ledgertest.WithKey
	within          = etcdtest.Within
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
