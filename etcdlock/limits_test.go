package etcdlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestAFullStoreRefusesClaimsAndQueueEntriesAndSaysWhatToDo(t *testing.T) {
	e := etcdtest.StartWithQuota(t, 1<<20)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, lockFor("busy", "one"), 0)
	e.Fill(t)
	_, _, claimed := s.Claim(within(t, patience), lockFor("new", "one"), 0)
	_, _, queued := s.Enqueue(within(t, patience), lockFor("busy", "two"), 0, 0)
	for what, err := range map[string]error{"claim": claimed, "place": queued} {
		if !errors.Is(err, idem.ErrStoreUnavailable) ||
			!strings.Contains(err.Error(),
				"compact and defragment it or raise its quota, then disarm the NOSPACE alarm") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	// Nothing of them is left behind, and who runs is not disturbed.
	for _, prefix := range []string{s.layout.All(protocol.KindQueue), s.layout.All(protocol.KindLocks) +
		protocol.Hash16("new")} {
		got, err := e.Client.Get(within(t, patience), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil || got.Count != 0 {
			t.Errorf("%s: %v %v", prefix, got, err)
		}
	}
	if err := held.Begin(); err != nil {
		t.Error(err)
	}
	e.MakeRoom(t)
	eventually(t, "claims pass again", func() bool {
		next, _, err := s.Claim(within(t, patience), lockFor("new", "two"), 0)
		if err != nil {
			return false
		}
		return next.Release(within(t, patience)) == nil
	})
}

func TestAFullStoreStillSaysHowAnEventEndedAndWhatRuns(t *testing.T) {
	e := etcdtest.StartWithQuota(t, 1<<20)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	rec, err := mustClaim(t, s, lockFor("w", "ended"), 0).Settle(within(t, patience), success("ok"))
	if err != nil {
		t.Fatal(err)
	}
	held := mustClaim(t, s, lockFor("busy", "one"), 0)
	e.Fill(t)
	claims := func(l idem.Lock) *idem.Obstacle {
		t.Helper()
		_, seen, err := tryClaim(t, s, l, 0)
		if err != nil || seen == nil {
			t.Fatalf("%+v %v", seen, err)
		}
		return seen
	}
	if seen := claims(lockFor("w", "ended")); seen.RecordRevision != rec.Revision || !seen.Record.Settled() {
		t.Errorf("%+v", seen)
	}
	if seen := claims(lockFor("busy", "two")); seen.Lock == nil || seen.Lock.Execution != held.Lock().Execution {
		t.Errorf("%+v", seen)
	}
	if _, seen, err := tryEnqueue(t, s, lockFor("w", "ended"), 0, 0); err != nil || seen == nil ||
		seen.RecordRevision != rec.Revision {
		t.Errorf("%+v %v", seen, err)
	}
	if _, _, err := s.Claim(within(t, patience), lockFor("w", "ended"), rec.Revision); !errors.Is(err,
		idem.ErrStoreUnavailable) {
		t.Errorf("it ran again: %v", err)
	}
}

func TestInAFullStoreAnEndThatIsNotKeptFreesItsLock(t *testing.T) {
	e := etcdtest.StartWithQuota(t, 1<<20)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := lockFor("w", "one")
	held := mustClaim(t, s, l, 0)
	e.Fill(t)
	if _, err := held.Settle(within(t, patience), failure()); !errors.Is(err, ErrStoreFull) ||
		!errors.Is(err, idem.ErrNotRecorded) {
		t.Fatalf("got %v", err)
	}
	st, err := history.Look(within(t, patience), s.pool, keysOf(held))
	if err != nil || st.Lock != nil || st.Record != nil {
		t.Fatalf("%+v %v", st, err)
	}
}

func TestInAFullStoreAKeptAnswerIsRecordedOnceThereIsRoomAndNothingRunsMeanwhile(t *testing.T) {
	e := etcdtest.StartWithQuota(t, 1<<20)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	e.Fill(t)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := held.Settle(ctx, success("the answer")); !errors.Is(err, idem.ErrNotRecorded) ||
		errors.Is(err, ErrStoreFull) {
		t.Fatalf("got %v", err)
	}
	_, seen, err := tryClaim(t, other, lockFor("w", "two"), 0)
	if err == nil && (seen == nil || seen.Lock == nil) {
		t.Fatalf("another event runs: %+v", seen)
	}
	e.MakeRoom(t)
	eventually(t, "the record", func() bool {
		st, err := history.Look(within(t, patience), s.pool, keysOf(held))
		return err == nil && st.Lock == nil && st.Record != nil && string(st.Record.Answer.Body) == "the answer"
	})
}

func TestAFullStoreKeepsItsSessionsAndOpensNone(t *testing.T) {
	t.Parallel()
	e := etcdtest.StartWithQuota(t, 1<<20)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}, SessionTTL: 5 * time.Second})
	before := currentSession(t, s)
	e.Fill(t)
	began := time.Now()
	eventually(t, "a renewal past the first TTL", func() bool {
		return before.Confirmed().At.Sub(began) > 5*time.Second
	})
	if currentSession(t, s) != before {
		t.Error("another session")
	}
	late, err := Open(Options{Endpoints: []string{e.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, late) })
	eventually(t, "the reason why there is no session", func() bool {
		return strings.Contains(late.Ready().Error(), "disarm the NOSPACE alarm")
	})
	e.MakeRoom(t)
	if err := late.WaitReady(within(t, patience)); err != nil {
		t.Error(err)
	}
}

func TestACompactionUnderAWaiterMissesNothing(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	proxy := etcdtest.NewWire(t, e.Endpoint) // the waiter's way to etcd
	waiting := openStore(t, Options{Endpoints: []string{proxy.Endpoint}, SessionTTL: 30 * time.Second})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	place := mustEnqueue(t, waiting, lockFor("w", "two"))
	turn := make(chan error, 1)
	go func() {
		_, err := place.Await(within(t, patience), 0)
		turn <- err
	}()
	// While the waiter hears nothing, the lock is freed and the history of it thrown away: its
	// watch cannot go on where it was.
	proxy.Blackhole(true)
	mustSettle(t, held)
	e.Compact(t)
	proxy.Reset()
	proxy.Blackhole(false)
	if err := <-turn; err != nil {
		t.Fatal(err)
	}
	if _, _, err := place.ClaimHead(within(t, patience), place.Lock, 0); err != nil {
		t.Fatal(err)
	}
}

func TestAWatchFromARevisionThatIsCompactedEndsAtOnce(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	e.Compact(t)
	ctx := within(t, patience)
	s.pool.AwaitChange(ctx, 1, "never changes") // it returns, and its caller reads again
	if ctx.Err() != nil {
		t.Fatal("it waited for news that have been thrown away")
	}
}

func TestACompactionUnderTheWatchOfSessionsMissesNoDeathAndNoForget(t *testing.T) {
	e := etcdtest.Start(t)
	proxy := etcdtest.NewWire(t, e.Endpoint)
	dropped := make(chan struct{}, 1)
	o := Options{Endpoints: []string{proxy.Endpoint}, SessionTTL: 30 * time.Second, OnReset: func() {
		select {
		case dropped <- struct{}{}:
		default:
		}
	}}
	s := openStore(t, o)
	dead := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, dead, lockFor("w", "one"), 0)
	name := currentSession(t, dead).Name
	eventually(t, "the other session is known", func() bool { return s.view.Sessions.Has(protocol.SessionAlive(name)) })
	for len(dropped) > 0 {
		<-dropped
	}
	proxy.Blackhole(true)
	held.Stop(idem.ErrLockLost) // its process is gone, as far as anybody can see: it adopts nothing
	endSession(t, e, currentSession(t, dead))
	if _, err := e.Client.Put(within(t, patience), s.layout.All(protocol.KindForgets)+"exec_x", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Client.Delete(within(t, patience), s.layout.All(protocol.KindForgets)+"exec_x"); err != nil {
		t.Fatal(err)
	}
	e.Compact(t)
	proxy.Reset()
	proxy.Blackhole(false)
	eventually(t, "the death is known", func() bool { return !s.view.Sessions.Has(protocol.SessionAlive(name)) })
	select {
	case <-dropped: // whoever caches records drops them all: the forget itself cannot be seen any more
	case <-time.After(patience):
		t.Fatal("nobody was told that forgets may have been missed")
	}
	eventually(t, "the dead process's lock is reaped", func() bool {
		st, err := history.Look(within(t, patience), s.pool, keysOf(held))
		return err == nil && st.Record != nil
	})
}
