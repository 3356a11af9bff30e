package operate_test

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
	sessionOf       = ledgertest.SessionOf
	endSession      = ledgertest.EndSession
	anyRoute        = ledgertest.AnyRoute
	awaitStop       = ledgertest.AwaitStop
	byOps           = ledgertest.ByOps
	callbackOf      = ledgertest.CallbackOf
	count           = ledgertest.Count
	eventually      = etcdtest.Eventually
	inTurn          = ledgertest.InTurn
	letterStays     = ledgertest.LetterStays
	lockFor         = ledgertest.LockFor
	must            = ledgertest.Must
	mustAttempt     = ledgertest.MustAttempt
	mustCancel      = ledgertest.MustCancel
	mustClaim       = ledgertest.MustClaim
	mustEnqueue     = ledgertest.MustEnqueue
	mustFind        = ledgertest.MustFind
	mustPark        = ledgertest.MustPark
	mustPause       = ledgertest.MustPause
	mustResume      = ledgertest.MustResume
	mustSettle      = ledgertest.MustSettle
	nothingKept     = ledgertest.MustKeepNothing
	parkedLock      = ledgertest.ParkedLock
	pauseOf         = ledgertest.PauseOf
	pauseState      = ledgertest.PauseState
	putRaw          = ledgertest.PutRaw
	refusedAsPaused = ledgertest.MustBeRefusedAsPaused
	stepsOf         = ledgertest.StepsOf
	stopped         = ledgertest.Stopped
	success         = ledgertest.Success
	takeNext        = ledgertest.TakeNext
	tryClaim        = ledgertest.TryClaim
	unknownEnd      = ledgertest.UnknownEnd
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
