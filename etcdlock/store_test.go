package etcdlock

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = etcdtest.Patience

var (
	within     = etcdtest.Within
	eventually = etcdtest.Eventually

	must       = ledgertest.Must
	applied    = ledgertest.RepeatUnapplied
	lockFor    = ledgertest.LockFor
	keysOf     = ledgertest.Keys
	tryClaim   = ledgertest.TryClaim
	tryEnqueue = ledgertest.TryEnqueue
	mustClaim  = ledgertest.MustClaim
	mustHold   = ledgertest.MustHold
	success    = ledgertest.Success
	failure    = ledgertest.Failure
	unknownEnd = ledgertest.UnknownEnd
	mustSettle = ledgertest.MustSettle

	parkedNow   = ledgertest.ParkedNow
	parkedLock  = ledgertest.ParkedLock
	mustPark    = ledgertest.MustPark
	takeNext    = ledgertest.TakeNext
	anyRoute    = ledgertest.AnyRoute
	mustAttempt = ledgertest.MustAttempt

	withKey    = ledgertest.WithKey
	callbackOf = ledgertest.CallbackOf
	byOps      = ledgertest.ByOps
	mustFind   = ledgertest.MustFind
	mustCancel = ledgertest.MustCancel
	closeStore = ledgertest.Close
	keysBelow  = ledgertest.KeysBelow
	count      = ledgertest.Count

	mustAcquire = ledgertest.MustAcquire
	client      = ledgertest.Client
	ids         = ledgertest.IDs

	newestLock      = ledgertest.NewestLock
	pauseOf         = ledgertest.PauseOf
	mustPause       = ledgertest.MustPause
	mustResume      = ledgertest.MustResume
	refusedAsPaused = ledgertest.MustBeRefusedAsPaused
	stopped         = ledgertest.Stopped
	awaitStop       = ledgertest.AwaitStop
	stepsOf         = ledgertest.StepsOf
	nothingKept     = ledgertest.MustKeepNothing
	letterStays     = ledgertest.LetterStays
	leaveToAPerson  = ledgertest.LeaveToAPerson
	slotsOf         = ledgertest.SlotsOf
	limitedLock     = ledgertest.LimitedLock
	takenSlots      = ledgertest.TakenSlots
	countKeys       = ledgertest.CountKeys
	restNow         = ledgertest.RestNow
	withSlots       = ledgertest.WithSlots
	allExecutions   = ledgertest.AllExecutions
	allLocks        = ledgertest.AllLocks
	endedAs         = ledgertest.EndedAs
	waiters         = ledgertest.AwaitWaiters
	mustAcquireLock = ledgertest.MustAcquireLock
	putRaw          = ledgertest.PutRaw
)

// openStore opens a store that is ready, and closes it with the test.
func openStore(tb testing.TB, o Options) *Store {
	tb.Helper()
	s, err := Open(o)
	return ledgertest.Ready(tb, s, err)
}

// openReady is openStore for a test that closes the store itself.
func openReady(tb testing.TB, o Options) *Store {
	tb.Helper()
	s, err := Open(o)
	return ledgertest.Open(tb, s, err)
}

// written waits until etcd has the audits and the duplicates of s.
func written(tb testing.TB, s *Store) {
	tb.Helper()
	ctx := within(tb, patience)
	eventually(tb, "the audits are written", func() bool {
		return !s.audits.Pending() || s.audits.Write(ctx) && !s.audits.Pending()
	})
	eventually(tb, "the duplicates are written", func() bool {
		return !s.duplicates.Pending() || s.duplicates.Write(ctx) && !s.duplicates.Pending()
	})
}

func TestClaimSettleAndReplay(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}, Holder: "h/1"})
	l := lockFor("stripe/acme", "evt_1")
	held := mustClaim(t, s, l, 0)
	if err := held.Begin(); err != nil {
		t.Fatal(err)
	}
	if held.Lock().Token == 0 || held.Lock().Token != held.Lock().Revision {
		t.Fatalf("token %d, revision %d", held.Lock().Token, held.Lock().Revision)
	}
	rec, err := held.Settle(within(t, patience), success("ok\nthere"))
	if err != nil {
		t.Fatal(err)
	}
	_, seen, err := tryClaim(t, s, lockFor("stripe/acme", "evt_1"), 0)
	if err != nil || seen == nil || seen.Record == nil {
		t.Fatalf("%+v %v", seen, err)
	}
	if seen.Lock != nil || seen.Queue || seen.RecordRevision != rec.Revision {
		t.Fatalf("%+v, record written at %d", seen, rec.Revision)
	}
	if !seen.Record.Settled() || string(seen.Record.Answer.Body) != "ok\nthere" ||
		seen.Record.Execution != l.Execution {
		t.Fatalf("%+v", seen.Record)
	}
	next := mustClaim(t, s, lockFor("stripe/acme", "evt_1"), rec.Revision)
	if next.Lock().Token <= held.Lock().Token {
		t.Fatal("the token did not grow")
	}
	must(t, next.Release)
}

func TestTwoStoresExcludeEachOther(t *testing.T) {
	e := etcdtest.Start(t)
	a := openStore(t, Options{Endpoints: []string{e.Endpoint}, Holder: "a"})
	b := openStore(t, Options{Endpoints: []string{e.Endpoint}, Holder: "b"})
	held := mustClaim(t, a, lockFor("w", "one"), 0)
	_, seen, err := tryClaim(t, b, lockFor("w", "two"), 0)
	if err != nil || seen == nil || seen.Lock == nil {
		t.Fatalf("%+v %v", seen, err)
	}
	if seen.Lock.Execution != held.Lock().Execution || seen.Lock.Dead || seen.Lock.Token != held.Lock().Token {
		t.Fatalf("%+v", seen.Lock)
	}
	must(t, held.Release)
	other := mustClaim(t, b, lockFor("w", "two"), 0)
	mustSettle(t, other)
}

func TestOfFiftyConcurrentClaimsOneHolds(t *testing.T) {
	e := etcdtest.Start(t)
	stores := []*Store{openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})}
	var wg sync.WaitGroup
	var won, seen, failed atomic.Int32
	for i := range 50 {
		wg.Go(func() {
			held, saw, err := tryClaim(t, stores[i%2], lockFor("w", "one"), 0)
			switch {
			case err != nil:
				failed.Add(1)
			case held != nil:
				won.Add(1)
			case saw.Lock != nil:
				seen.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || seen.Load() != 49 || failed.Load() != 0 {
		t.Fatalf("%d hold, %d saw the holder, %d failed", won.Load(), seen.Load(), failed.Load())
	}
}

func TestClaimsAreUnavailableWithoutASession(t *testing.T) {
	s, err := Open(Options{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	if _, _, err := s.Claim(within(t, patience), lockFor("w", "one"), 0); !errors.Is(err, idem.ErrStoreUnavailable) {
		t.Fatalf("got %v", err)
	}
	if s.Ready() == nil || s.SessionTTLRemaining() != 0 {
		t.Fatal("ready without etcd")
	}
}

func TestNoSessionOpensBesideRecordsOfAnEarlierRelease(t *testing.T) {
	e := etcdtest.Start(t)
	putRaw(t, e,
		map[string][]byte{"keys/b7b41276360564d4-a267904a46a5801e0e621bbe15d19b6d/aaaeb615e1a910d5": []byte(
			`{"v":1,"executionId":"exec_a"}` + "\n")})
	s, err := Open(Options{Endpoints: []string{e.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	for _, change, err := s.keeper.Current(); !errors.Is(err, protocol.ErrOlder); _, change, err = s.keeper.Current() {
		select {
		case <-change:
		case <-within(t, patience).Done():
			t.Fatalf("no session, because of %v", err)
		}
	}
	if _, err := e.Client.Delete(within(t, patience), s.layout.All(protocol.KindOlderRecords),
		clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	must(t, s.WaitReady)
}
