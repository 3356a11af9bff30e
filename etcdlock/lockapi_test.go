package etcdlock

import (
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestALockIsAcquiredRenewedAndReleasedAtAnyReplica(t *testing.T) {
	e, a, b := replicas(t)
	q := idem.AcquireRequest{Workflow: "nightly", Holder: "cron/1", TTL: time.Minute}
	got := mustAcquireLock(t, a, q)
	if l := got.Lock; l.Token == 0 || l.Holder != "cron/1" || !l.Held || time.Until(l.HoldUntil) < 50*time.Second ||
		got.CallbackKey == "" {
		t.Fatalf("%+v", got)
	}
	var taken *idem.LockHeldError
	if _, err := b.AcquireLock(within(t, patience), q); !errors.As(err, &taken) || taken.Holder == nil ||
		taken.Holder.Execution != got.Lock.Execution {
		t.Fatalf("taken: %v", err)
	}
	if _, seen, err := tryClaim(t, b, lockFor("nightly", "delivery"), 0); err != nil || seen.Lock == nil {
		t.Fatalf("a delivery passes it: %+v %v", seen, err)
	}
	cb := client(got)
	if found, err := b.Heartbeat(within(t, patience), cb, 2*time.Minute); err != nil ||
		time.Until(found.Lock.HoldUntil) < 110*time.Second {
		t.Fatalf("%+v %v", found, err)
	}
	stale := cb
	stale.Token--
	if err := b.ReleaseLock(within(t, patience), "nightly", stale); !errors.Is(err, idem.ErrStaleToken) {
		t.Fatalf("got %v", err)
	}
	if err := b.ReleaseLock(within(t, patience), "nightly", cb); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"release": a.ReleaseLock(within(t, patience), "nightly", cb),
		"renew": second(a.Heartbeat(within(t, patience), cb, 0))} {
		if !errors.Is(err, idem.ErrLockLost) {
			t.Errorf("%s after the release: %v", what, err)
		}
	}
	for _, kind := range []string{protocol.KindLocks, protocol.KindHolds, protocol.KindRecords} {
		count(t, e, a.layout.All(kind), 0)
	}
	if next := mustAcquireLock(t, b, q); next.Lock.Token <= got.Lock.Token {
		t.Errorf("token %d after %d", next.Lock.Token, got.Lock.Token)
	}
}

func TestNoLeaseIsLeftOfAHoldThatIsOver(t *testing.T) {
	e, a, b := replicas(t)
	// unlike any other lease, which replicas take when they like
	q := idem.AcquireRequest{Workflow: "nightly", TTL: 4321 * time.Second}
	leases := func() (n int) {
		got, err := e.Client.Leases(within(t, patience))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range got.Leases {
			if left, err := e.Client.TimeToLive(within(t, patience), l.ID); err == nil &&
				left.GrantedTTL == int64(q.TTL.Seconds()) {
				n++
			}
		}
		return n
	}
	got := mustAcquireLock(t, a, q)
	for range 5 {
		if _, err := b.AcquireLock(within(t, patience), q); err == nil {
			t.Fatal("two have it")
		}
	}
	eventually(t, "those of refused ones are gone", func() bool { return leases() == 1 })
	if _, err := b.Heartbeat(within(t, patience), client(got), 0); err != nil {
		t.Fatalf("and the holder's own: %v", err)
	}
	if err := b.ReleaseLock(within(t, patience), "nightly", client(got)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "that of a released one is gone", func() bool { return leases() == 0 })

	ends := map[string]func(*idem.Lock) error{
		"complete": func(l *idem.Lock) error {
			return second(b.Complete(within(t, patience), callbackOf(l), idem.Final{Status: idem.Success}))
		},
		"force release": func(l *idem.Lock) error {
			return second(b.ForceRelease(within(t, patience), "w", l.Execution, byOps(false), nil))
		},
	}
	for how, end := range ends {
		held := mustHold(t, a, withKey(lockFor("w", how)), time.Hour)
		hold, err := e.Client.Get(within(t, patience), keysOf(held).Hold)
		if err != nil || len(hold.Kvs) != 1 {
			t.Fatalf("%+v %v", hold, err)
		}
		if err := end(held.Lock()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "that of one ended by "+how+" is gone", func() bool {
			left, err := e.Client.TimeToLive(within(t, patience), clientv3.LeaseID(hold.Kvs[0].Lease))
			return err == nil && left.TTL == -1
		})
	}
}

func TestALockThatIsNotRenewedIsFreeAndItsEndIsKnown(t *testing.T) {
	t.Parallel()
	_, a, b := replicas(t)
	q := idem.AcquireRequest{Workflow: "w", Holder: "cron/1", TTL: time.Second}
	got := mustAcquireLock(t, a, q)
	q.Wait = patience
	next := mustAcquireLock(t, b, q)
	if next.Lock.Token <= got.Lock.Token {
		t.Errorf("token %d after %d", next.Lock.Token, got.Lock.Token)
	}
	if r := mustFind(t, a, got.Lock.Execution).Record; r == nil || r.Status != idem.Failed ||
		r.Outcome != idem.Unknown || r.Error.Code != finish.CodeHoldExpired {
		t.Errorf("%+v", r)
	}
	for what, err := range map[string]error{"release": a.ReleaseLock(within(t, patience), "w", client(got)),
		"renew": second(a.Heartbeat(within(t, patience), client(got), 0))} {
		if !errors.Is(err, idem.ErrLockExpired) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestALockIsWaitedForFirstComeFirstServed(t *testing.T) {
	e, a, b := replicas(t)
	running := mustClaim(t, a, lockFor("w", "one"), 0)
	q := idem.AcquireRequest{Workflow: "w", Holder: "first", TTL: time.Minute, Wait: patience}
	got := make(chan *idem.Acquired, 2)
	for i, s := range []*Store{a, b} {
		q := q
		if i == 1 {
			q.Holder = "second"
		}
		go func() {
			l, err := s.AcquireLock(within(t, patience), q)
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		waiters(t, e, int64(i+1))
	}
	mustSettle(t, running)
	first := <-got
	if first.Lock.Holder != "first" || !first.Lock.Held || first.Lock.HoldUntil.IsZero() {
		t.Fatalf("%+v", first.Lock)
	}
	if a.own.Has(first.Lock.Execution) {
		t.Error("the process takes it for its own")
	}
	if err := b.ReleaseLock(within(t, patience), "w", client(first)); err != nil {
		t.Fatal(err)
	}
	if second := <-got; second.Lock.Holder != "second" {
		t.Fatalf("%+v", second.Lock)
	}
}

func TestALockOutlivesTheProcessThatTookItForItsClient(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	got := mustAcquireLock(t, a, idem.AcquireRequest{Workflow: "w", TTL: time.Minute})
	die(t, e, a)
	b.sweeper.Everything()
	if _, err := b.Heartbeat(within(t, patience), client(got), 0); err != nil {
		t.Fatal(err)
	}
	if found, err := b.ForceRelease(within(t, patience), "w", got.Lock.Execution, byOps(false), nil); err != nil ||
		found.Status() != idem.Aborted {
		t.Fatalf("%+v %v", found, err)
	}
	if err := b.ReleaseLock(within(t, patience), "w", client(got)); !errors.Is(err, idem.ErrLockLost) {
		t.Fatalf("after the force release: %v", err)
	}
}
