package operate_test

import (
	"errors"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestNothingOfAPausedWorkflowBeginsAnywhereAndWhatRunsIsWaitedFor(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	running := mustClaim(t, a, lockFor("pay/one", "running"), 0)
	p := pauseOf(t, "workflow:pay/*")
	mustPause(t, a, p)
	refusedAsPaused(t, a, lockFor("pay/two", "x"), p)
	refusedAsPaused(t, b, lockFor("pay/three", "x"), p)
	mustSettle(t, mustClaim(t, b, lockFor("ship/one", "x"), 0))
	if got := pauseState(within(t, patience), t, b); got.Running != 1 || got.Drained() || got.By != "somebody" {
		t.Fatalf("%+v", got)
	}
	mustSettle(t, running)
	if got := pauseState(within(t, patience), t, b); !got.Drained() {
		t.Fatalf("%+v", got)
	}
	if c := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}); true { // a restart lifts nothing
		refusedAsPaused(t, c, lockFor("pay/four", "x"), p)
	}
	mustResume(t, b, p)
	if _, err := b.Resume(within(t, patience), p.Scope, nil); !errors.Is(err, idem.ErrNoPause) {
		t.Fatalf("got %v", err)
	}
}

func TestADuplicateOfASettledEventIsAnsweredWhileItIsPaused(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	mustSettle(t, mustClaim(t, s, lockFor("w", "event"), 0))
	p := pauseOf(t, "route:r")
	mustPause(t, s, p)
	_, seen, err := tryClaim(t, s, lockFor("w", "event"), 0)
	if err != nil || seen.Record == nil || seen.Paused == nil {
		t.Fatalf("%+v %v", seen, err)
	}
}

func TestWaitersRunInTheirOrderAfterThePause(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	p := pauseOf(t, "workflow:w")
	mustPause(t, a, p)
	type result struct {
		n    int
		held idem.RunningLock
		err  error
	}
	results := make(chan result, 3)
	for n, s := range []*etcdlock.Store{a, b, a} {
		l := lockFor("w", string(rune('a'+n)))
		place := mustEnqueue(t, s, l)
		go func() {
			held, err := inTurn(within(t, patience), place, l)
			results <- result{n, held, err}
		}()
	}
	if got := pauseState(within(t, patience), t, b); got.Waiting != 3 || got.Parked != 0 || !got.Drained() {
		t.Fatalf("%+v", got)
	}
	mustResume(t, b, p)
	for n := range 3 {
		r := <-results
		if r.err != nil || r.n != n {
			t.Fatalf("turn %d: %+v", n, r)
		}
		mustSettle(t, r.held)
	}
}

func TestAPauseEndsByItself(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	p := pauseOf(t, "route:r")
	p.For = time.Second
	mustPause(t, s, p)
	l := lockFor("w", "event")
	held, err := inTurn(within(t, patience), mustEnqueue(t, s, l), l)
	if err != nil {
		t.Fatal(err)
	}
	mustSettle(t, held)
}

func TestWhatIsParkedIsNeitherTakenNorTriedWhileItIsPaused(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	mustPark(t, s, parkedLock("w", "one"), 0)
	one := takeNext(t, s)
	second := parkedLock("v", "two")
	mustPark(t, s, second, 0)
	p := pauseOf(t, "route:r")
	mustPause(t, s, p)
	if err := one.Running.BeginTry(within(t, patience), *one.Running.Lock().Parked, "hash"); !errors.Is(err,
		idem.ErrPaused) {
		t.Fatalf("got %v", err)
	}
	if taken, err := s.TakeParked(within(t, patience), idem.Scope{Workflow: "v"}, anyRoute); taken != nil ||
		err != nil {
		t.Fatalf("took %+v, %v", taken, err)
	}
	if got := pauseState(within(t, patience), t, s); got.Waiting != 0 || got.Parked != 2 || !got.Drained() {
		t.Fatalf("%+v", got)
	}
	mustResume(t, s, p)
	mustAttempt(t, one.Running)
	mustSettle(t, one.Running)
	mustSettle(t, takeNext(t, s).Running)
}

func TestWhatGrowsTooOldWhileItIsPausedIsTriedOnce(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "one")
	mustPark(t, s, l, 0)
	p := pauseOf(t, "route:r")
	mustPause(t, s, p)
	other := parkedLock("another", "two")
	other.Route = "not paused"
	mustPark(t, s, other, 0)
	eventually(t, "both are known", func() bool { return s.Parked(idem.Scope{}).Events == 2 })
	// in this order, so s has heard of the first with the second
	for _, id := range []idem.ExecutionID{l.Execution, other.Execution} {
		if _, err := e.Client.Delete(within(t, patience), ledgertest.Layout.Of(protocol.KindAges, id)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both are too old", func() bool { return s.IsTooOld(other.Execution) })
	mustSettle(t, takeNext(t, s).Running)
	mustResume(t, s, p)
	taken := takeNext(t, s)
	if taken.TooOld || s.IsTooOld(l.Execution) {
		t.Fatal("it was given up without a try")
	}
	mustAttempt(t, taken.Running)
	if !s.IsTooOld(l.Execution) {
		t.Fatal("it is not too old after its try")
	}
	mustSettle(t, taken.Running)
}

func TestAnOlderReleaseDoesNotAcknowledge(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	if _, err := e.Client.Put(within(t, patience), ledgertest.Layout.Alive(protocol.SessionAlive("old")),
		`{"v":1,"holder":"old/1","since":"2026-01-01T00:00:00Z"}`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pause(within(t, patience), pauseOf(t, "route:r"), nil); err != nil {
		t.Fatal(err)
	}
	ctx := within(t, patience)
	for {
		got := pauseState(ctx, t, s)
		if len(got.Unacknowledged) == 1 && got.Unacknowledged[0] == "old/1" && !got.Drained() {
			return
		}
		if len(got.Unacknowledged) == 0 {
			t.Fatal("it counts as having heard of the pause")
		}
	}
}
