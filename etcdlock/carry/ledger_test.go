package carry_test

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
	sessionOf      = ledgertest.SessionOf
	anyRoute       = ledgertest.AnyRoute
	closeStore     = ledgertest.Close
	eventually     = etcdtest.Eventually
	keysBelow      = ledgertest.KeysBelow
	leaveToAPerson = ledgertest.LeaveToAPerson
	lockFor        = ledgertest.LockFor
	must           = ledgertest.Must
	mustAttempt    = ledgertest.MustAttempt
	mustCancel     = ledgertest.MustCancel
	mustClaim      = ledgertest.MustClaim
	mustEnqueue    = ledgertest.MustEnqueue
	mustFind       = ledgertest.MustFind
	mustPark       = ledgertest.MustPark
	mustSettle     = ledgertest.MustSettle
	myTurn         = ledgertest.MyTurn
	parkedLock     = ledgertest.ParkedLock
	parkedNow      = ledgertest.ParkedNow
	takeNext       = ledgertest.TakeNext
	tryClaim       = ledgertest.TryClaim
	within         = etcdtest.Within
)

// openStore opens a store that is ready, and closes it with the test.
func openStore(tb testing.TB, o etcdlock.Options) *etcdlock.Store {
	tb.Helper()
	s, err := etcdlock.Open(o)
	return ledgertest.Ready(tb, s, err)
}
