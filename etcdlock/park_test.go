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
	if seen, err := s.EnqueueParked(within(t, patience), parkedLock("w", "event"), st.Prev, 0, keep("body")); seen != nil || err != nil {
		t.Fatalf("park: %+v %v", seen, err)
	}
	held := takeNext(t, s).Held
	mustAttempt(t, held)
	if r := mustSettle(t, held); r.Status != idem.Success {
		t.Errorf("%+v", r)
	}
}

func TestAParkedDeliveryRunsInItsTurnAndLeavesNothingBehind(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	first := mustClaim(t, a, lockFor("w", "first"), 0)
	second, third := parkedLock("w", "second"), parkedLock("w", "third")
	mustPark(t, a, second, first.Lock().Created)
	mustPark(t, b, third, 0)
	if held, seen, err := tryClaim(t, b, lockFor("w", "pushes in"), 0); held != nil || err != nil {
		t.Fatalf("%v %+v %v", held, seen, err)
	}
	mustSettle(t, first)
	token := first.Lock().Token
	for i, want := range []idem.Lock{second, third} {
		taken := takeNext(t, []*Store{b, a}[i])
		l := taken.Held.Lock()
		if l.Execution != want.Execution || taken.Carried || taken.TooOld || l.Parked == nil || l.Parked.Bytes == 0 {
			t.Fatalf("%d: took %+v, want %s", i, l, want.Execution)
		}
		request, err := a.Request(within(t, patience), l.Execution)
		if err != nil || string(request) != "body of "+want.EventID {
			t.Fatalf("%q %v", request, err)
		}
		mustAttempt(t, taken.Held)
		if l := taken.Held.Lock(); l.Token <= token || l.Token != l.Revision || !l.Parked.Trying || l.Parked.Tries != 1 {
			t.Fatalf("after the attempt: %+v", l)
		}
		token = taken.Held.Lock().Token
		if r := mustSettle(t, taken.Held); r.Tries != 1 || r.Token != token || r.RequestKept {
			t.Fatalf("%+v", r)
		}
		if _, err := a.Request(within(t, patience), want.Execution); !errors.Is(err, idem.ErrNoRequest) {
			t.Fatalf("its request is still there: %v", err)
		}
	}
	for _, kind := range []string{"requests/", "parked/", "ages/", "locks/", "queue/"} {
		if left := keysBelow(t, e, "/hooklock/v1/"+kind); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestAWaiterKeepsItsPositionWhenItIsParkedAndItsSessionIsGone(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	first := mustClaim(t, b, lockFor("w", "first"), 0)
	l := lockFor("w", "second")
	p := mustEnqueue(t, a, l)
	behind := mustEnqueue(t, b, lockFor("w", "third"))
	if err := p.Park(within(t, patience), parkedNow(), keep("body")); err != nil {
		t.Fatal(err)
	}
	must(t, p.Leave)
	closeStore(t, a)
	mustSettle(t, first)
	taken := takeNext(t, b)
	if got := taken.Held.Lock(); got.Execution != l.Execution || got.EventID != "second" {
		t.Fatalf("%+v", got)
	}
	mustSettle(t, taken.Held)
	if err := myTurn(within(t, patience), behind); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsParkedWhileItRunsOutlivesItsProcess(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, a, lockFor("w", "event"), 0)
	p := parkedNow()
	p.Tries, p.Trying = 1, true
	if err := held.Park(within(t, patience), p, keep("body")); err != nil {
		t.Fatal(err)
	}
	token := held.Lock().Token
	closeStore(t, a)
	taken := takeNext(t, b)
	if l := taken.Held.Lock(); l.Execution != held.Lock().Execution || l.Token <= token || !taken.Carried || !l.Parked.Trying {
		t.Fatalf("%+v", l)
	}
	mustSettle(t, taken.Held)
}

func TestAParkWorkerThatLostItsSessionGetsAnError(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	a, b := openStore(t, Options{Endpoints: []string{wire.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustPark(t, a, parkedLock("w", "event"), 0)
	one := takeNext(t, a)
	mustAttempt(t, one.Held)
	wire.Blackhole(true)
	revoke(t, e, a)
	two := takeNext(t, b)
	if two.Held.Lock().Token <= one.Held.Lock().Token {
		t.Fatal("the token did not grow")
	}
	mustAttempt(t, two.Held)
	wire.Blackhole(false)
	p := *one.Held.Lock().Parked
	if err := one.Held.Rest(within(t, patience), p); !errors.Is(err, idem.ErrLockLost) {
		t.Fatalf("got %v", err)
	}
	if err := one.Held.Attempt(within(t, patience), p, "x"); !errors.Is(err, idem.ErrLockLost) {
		t.Fatalf("got %v", err)
	}
	mustSettle(t, two.Held)
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

func TestAnExecutionThatAParkWorkerGivesUpAnotherOneTakes(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, a, l, 0)
	one := takeNext(t, a)
	must(t, one.Held.Release)
	two := takeNext(t, b)
	if two.Held.Lock().Execution != l.Execution || !two.Carried {
		t.Fatalf("%+v", two.Held.Lock())
	}
	mustSettle(t, two.Held)
}

func TestABlockedExecutionIsNotTaken(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustPark(t, s, parkedLock("w", "event"), 0)
	h := takeNext(t, s).Held
	leaveToAPerson(t, h)
	scope := idem.Scope{Workflow: "w"}
	if taken, err := s.Take(within(t, patience), scope, anyRoute); taken != nil || err != nil {
		t.Fatalf("%+v %v", taken, err)
	}
	eventually(t, "the index says so", func() bool {
		c := s.Parked()
		return c.Events == 1 && c.Blocked == 1 && c.Bytes > 0 && s.Waiting(scope) == 1
	})
}

func TestAParkWorkerContinuesUnderTheNextSession(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{wire.Endpoint}, SessionTTL: minTTL})
	mustPark(t, s, parkedLock("w", "event"), 0)
	h := takeNext(t, s).Held
	stopped := make(chan error, 1)
	h.OnStop(func(cause error) { stopped <- cause })
	mustAttempt(t, h)
	wire.Blackhole(true)
	if cause := <-stopped; !errors.Is(cause, idem.ErrUnheard) {
		t.Fatalf("stopped with %v", cause)
	}
	if err := h.Begin(); !errors.Is(err, idem.ErrLockLost) {
		t.Fatalf("it may begin: %v", err)
	}
	wire.Blackhole(false)
	p := *h.Lock().Parked
	p.Last = &idem.Evidence{Outcome: idem.Unknown, At: time.Now()}
	eventually(t, "the end of the try is written down", func() bool { return h.Rest(within(t, patience), p) == nil })
	mustAttempt(t, h)
	if err := h.Begin(); err != nil {
		t.Fatal(err)
	}
	mustSettle(t, h)
}

// TestAHoldOfAParkedExecutionHasTheMaxDurationOfItsTry: how long it waited before, for its upstream or for a person, is not the upstream's work.
func TestAHoldOfAParkedExecutionHasTheMaxDurationOfItsTry(t *testing.T) {
	e := etcdtest.Start(t)
	clock := link.SystemClock()
	boot, ago := clock.Boot, atomic.Int64{}
	clock.Boot = func() time.Duration { return boot() - time.Duration(ago.Load()) }
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}, Clock: clock, SessionTTL: time.Hour}) // which is not renewed meanwhile
	l := parkedLock("w", "event")
	l.MaxDuration = time.Hour
	mustPark(t, s, l, 0)
	ago.Store(int64(2 * time.Hour))
	h := takeNext(t, s).Held.(*owned.Lock)
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
