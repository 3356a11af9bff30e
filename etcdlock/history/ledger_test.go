package history_test

import (
	"testing"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
)

const patience = etcdtest.Patience

var (
	sessionOf     = ledgertest.SessionOf
	allExecutions = ledgertest.AllExecutions
	allLocks      = ledgertest.AllLocks
	closeStore    = ledgertest.Close
	count         = ledgertest.Count
	endedAs       = ledgertest.EndedAs
	eventually    = etcdtest.Eventually
	ids           = ledgertest.IDs
	lockFor       = ledgertest.LockFor
	mustClaim     = ledgertest.MustClaim
	mustEnqueue   = ledgertest.MustEnqueue
	mustFind      = ledgertest.MustFind
	mustSettle    = ledgertest.MustSettle
	putRaw        = ledgertest.PutRaw
	success       = ledgertest.Success
	within        = etcdtest.Within
)

// openStore opens a store that is ready, and closes it with the test.
func openStore(tb testing.TB, o etcdlock.Options) *etcdlock.Store {
	tb.Helper()
	s, err := etcdlock.Open(o)
	return ledgertest.Ready(tb, s, err)
}
