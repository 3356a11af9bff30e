package etcdlock

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/owned"
	"hooklock/idem"
)

func TestAParkedEventThatHasFailedBeforeRunsAgain(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	first := mustClaim(t, s, lockFor("w", "event"), 0)
	if _, err := first.Settle(within(t, patience), failedEnd()); err != nil {
		t.Fatal(err)
	}
	st, err := history.Look(within(t, patience), s.pool, keysOf(first))
	if err != nil {
		t.Fatal(err)
	}
	if _, seen, err := s.Enqueue(within(t, patience), parkedLock("w", "event"), st.Prev, 0); seen != nil || err != nil {
		t.Fatalf("park: %+v %v", seen, err)
	}
	held := takeNext(t, s).Running
	mustAttempt(t, held)
	if r := mustSettle(t, held); r.Status != idem.Success {
		t.Errorf("%+v", r)
	}
}

func TestAParkWorkerThatLostItsSessionGetsAnError(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	a, b := openStore(t, Options{Endpoints: []string{wire.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustPark(t, a, parkedLock("w", "event"), 0)
	one := takeNext(t, a)
	mustAttempt(t, one.Running)
	wire.Blackhole(true)
	revoke(t, e, a)
	two := takeNext(t, b)
	if two.Running.Lock().Token <= one.Running.Lock().Token {
		t.Fatal("the token did not grow")
	}
	mustAttempt(t, two.Running)
	wire.Blackhole(false)
	p := *one.Running.Lock().Parked
	if err := one.Running.RecordTry(within(t, patience), p); !errors.Is(err, idem.ErrLockLost) {
		t.Fatalf("got %v", err)
	}
	if err := one.Running.BeginTry(within(t, patience), p, "x"); !errors.Is(err, idem.ErrLockLost) {
		t.Fatalf("got %v", err)
	}
	mustSettle(t, two.Running)
}

// revoke ends the session of s in etcd, before s knows.
func revoke(tb testing.TB, e *etcdtest.Etcd, s *Store) {
	tb.Helper()
	session, _, err := s.keeper.Current()
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := e.Client.Revoke(within(tb, patience), session.Lease); err != nil {
		tb.Fatal(err)
	}
}

// TestAHoldOfAParkedExecutionHasTheMaxDurationOfItsTry: how long it waited before, for its upstream
// or for a person, is not the upstream's work.
func TestAHoldOfAParkedExecutionHasTheMaxDurationOfItsTry(t *testing.T) {
	e := etcdtest.Start(t)
	clock := link.SystemClock()
	boot, ago := clock.Boot, atomic.Int64{}
	clock.Boot = func() time.Duration { return boot() - time.Duration(ago.Load()) }
	// which is not renewed meanwhile
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}, Clock: clock, SessionTTL: time.Hour})
	l := parkedLock("w", "event")
	l.MaxDuration = time.Hour
	mustPark(t, s, l, 0)
	ago.Store(int64(2 * time.Hour))
	h := takeNext(t, s).Running.(*owned.Lock)
	ago.Store(0)
	mustAttempt(t, h)
	if err := h.Hold(within(t, patience), 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	found := mustFind(t, s, l.Execution)
	if found.Lock == nil || !found.Lock.Held || time.Until(found.Lock.HoldUntil) < 9*time.Minute {
		t.Errorf("held: %+v", found.Lock)
	}
	left, err := s.finisher.TimeLeft(within(t, patience), found.Lock)
	if err != nil || left < 50*time.Minute {
		t.Errorf("max_duration ends in %v, %v", left, err)
	}
}
