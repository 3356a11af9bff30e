package carry_test

import (
	"errors"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

func TestAParkedDeliveryRunsInItsTurnAndLeavesNothingBehind(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
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
		taken := takeNext(t, []*etcdlock.Store{b, a}[i])
		l := taken.Running.Lock()
		if l.Execution != want.Execution || taken.Carried || taken.TooOld || l.Parked == nil || l.Parked.Bytes == 0 {
			t.Fatalf("%d: took %+v, want %s", i, l, want.Execution)
		}
		request, err := a.Request(within(t, patience), l.Execution)
		if err != nil || string(request) != "body of "+want.EventID {
			t.Fatalf("%q %v", request, err)
		}
		mustAttempt(t, taken.Running)
		if l := taken.Running.Lock(); l.Token <= token || l.Token != l.Revision || !l.Parked.Trying ||
			l.Parked.Tries != 1 {
			t.Fatalf("after the attempt: %+v", l)
		}
		token = taken.Running.Lock().Token
		if r := mustSettle(t, taken.Running); r.Tries != 1 || r.Token != token || r.RequestKept {
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
	a, b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	first := mustClaim(t, b, lockFor("w", "first"), 0)
	l := lockFor("w", "second")
	p := mustEnqueue(t, a, l)
	behind := mustEnqueue(t, b, lockFor("w", "third"))
	if err := p.Park(within(t, patience), parkedNow("body")); err != nil {
		t.Fatal(err)
	}
	must(t, p.Leave)
	closeStore(t, a)
	mustSettle(t, first)
	taken := takeNext(t, b)
	if got := taken.Running.Lock(); got.Execution != l.Execution || got.EventID != "second" {
		t.Fatalf("%+v", got)
	}
	mustSettle(t, taken.Running)
	if err := myTurn(within(t, patience), behind); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsParkedWhileItRunsOutlivesItsProcess(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, a, lockFor("w", "event"), 0)
	p := parkedNow("body")
	p.Tries, p.Trying = 1, true
	if err := held.Park(within(t, patience), p); err != nil {
		t.Fatal(err)
	}
	token := held.Lock().Token
	closeStore(t, a)
	taken := takeNext(t, b)
	if l := taken.Running.Lock(); l.Execution != held.Lock().Execution || l.Token <= token || !taken.Carried ||
		!l.Parked.Trying {
		t.Fatalf("%+v", l)
	}
	mustSettle(t, taken.Running)
}

func TestAnExecutionThatAParkWorkerGivesUpAnotherOneTakes(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, a, l, 0)
	one := takeNext(t, a)
	must(t, one.Running.Release)
	two := takeNext(t, b)
	if two.Running.Lock().Execution != l.Execution || !two.Carried {
		t.Fatalf("%+v", two.Running.Lock())
	}
	mustSettle(t, two.Running)
}

func TestABlockedExecutionIsNotTaken(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	mustPark(t, s, parkedLock("w", "event"), 0)
	h := takeNext(t, s).Running
	leaveToAPerson(t, h)
	scope := idem.Scope{Workflow: "w"}
	if taken, err := s.TakeParked(within(t, patience), scope, anyRoute); taken != nil || err != nil {
		t.Fatalf("%+v %v", taken, err)
	}
	eventually(t, "the index says so", func() bool {
		c := s.Parked(scope)
		return c.Events == 1 && c.Blocked == 1 && c.Bytes > 0 && c.InQueue == 1
	})
}

func TestAParkWorkerContinuesUnderTheNextSession(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, etcdlock.Options{Endpoints: []string{wire.Endpoint}, SessionTTL: 2 * time.Second})
	mustPark(t, s, parkedLock("w", "event"), 0)
	h := takeNext(t, s).Running
	stopped := make(chan error, 1)
	h.OnStop(func(cause error) { stopped <- cause })
	mustAttempt(t, h)
	wire.Blackhole(true)
	if cause := <-stopped; !errors.Is(cause, idem.ErrNotRenewed) {
		t.Fatalf("stopped with %v", cause)
	}
	if err := h.Begin(); !errors.Is(err, idem.ErrLockLost) {
		t.Fatalf("it may begin: %v", err)
	}
	wire.Blackhole(false)
	p := *h.Lock().Parked
	p.Last = &idem.Evidence{Outcome: idem.Unknown, At: time.Now()}
	eventually(t, "the end of the try is written down", func() bool {
		return h.RecordTry(within(t, patience), p) == nil
	})
	mustAttempt(t, h)
	if err := h.Begin(); err != nil {
		t.Fatal(err)
	}
	mustSettle(t, h)
}
