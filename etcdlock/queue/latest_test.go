package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/idem"
)

func TestAParkedEventIsReplacedWithItsBody(t *testing.T) {
	e, a, b := replicas(t)
	first := mustClaim(t, a, lockFor("w", "first"), 0)
	second, third, fourth, fifth := newestParked("w", "second"), newestParked("w", "third"), newestLock("w", "fourth"),
		newestParked("w", "fifth")
	mustPark(t, a, second, first.Lock().Created)
	mustPark(t, b, third, 0)
	mustBeReplaced(t, a, second, third)
	p := mustEnqueue(t, a, fourth) // one that waits with its sender
	mustBeReplaced(t, a, third, fourth)
	mustPark(t, b, fifth, 0)
	mustHear(t, p, fifth)
	for _, kind := range []string{"requests/", "parked/", "ages/", "queue/"} {
		if left := keysBelow(t, e, "/hooklock/v1/"+kind); len(left) != 1 {
			t.Errorf("of %s there are %v", kind, left)
		}
	}
	mustSettle(t, first)
	h := takeNext(t, b).Running
	if l := h.Lock(); l.Execution != fifth.Execution || l.Latest.Replaced != 3 {
		t.Errorf("took %+v", l)
	}
	mustAttempt(t, h)
	mustSettle(t, h)
	nothingKept(t, e)
}

func TestAnEntryThatIsParkedWhileItWaitsIsReplacedAndItsDuplicateDoesNotRun(t *testing.T) {
	_, a, b := replicas(t)
	first := mustClaim(t, a, lockFor("w", "first"), 0)
	second, third := newestLock("w", "second"), newestLock("w", "third")
	if err := mustEnqueue(t, a, second).Park(within(t, patience), parkedNow("body")); err != nil {
		t.Fatal(err)
	}
	p := mustEnqueue(t, b, third)
	mustBeReplaced(t, a, second, third)
	again := newestLock("w", "second")
	if p, seen, err := tryEnqueue(t, a, again, 0, 0); p != nil || err != nil || seen.Record == nil ||
		seen.Record.Superseded() != third.Execution {
		t.Errorf("its copy: %+v %v", seen, err)
	}
	mustSettle(t, first)
	if held, err := inTurn(within(t, patience), p, third); err != nil {
		t.Error(err)
	} else {
		mustSettle(t, held)
	}
}

func TestWhatIsPausedIsReplacedAndTheNewestRunsAfterwards(t *testing.T) {
	e, a, b := replicas(t)
	pause := pauseOf(t, "workflow:w")
	mustPause(t, a, pause)
	first, second, third := newestLock("w", "first"), newestParked("w", "second"), newestLock("w", "third")
	p := mustEnqueue(t, a, first)
	mustPark(t, b, second, 0)
	mustHear(t, p, second)
	p = mustEnqueue(t, b, third)
	mustBeReplaced(t, a, second, third)
	if left := keysBelow(t, e, "/hooklock/v1/queue/"); len(left) != 1 {
		t.Errorf("%v wait", left)
	}
	mustResume(t, a, pause)
	if held, err := inTurn(within(t, patience), p, third); err != nil {
		t.Error(err)
	} else {
		mustSettle(t, held)
	}
}

func TestASlotWaiterIsNotReplacedAndTheEntryBehindItIs(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	s := limitedStore(t, e, n)
	other := mustClaim(t, s, limitedLock("other", "x"), 0)
	var locks []idem.Lock
	var places []*ledgertest.InQueue
	for _, event := range []string{"first", "second", "third"} {
		l := limitedLock("w", event)
		l.Latest = &idem.Series{}
		locks, places = append(locks, l), append(places, mustEnqueue(t, s, l))
	}
	mustHear(t, places[1], locks[2])
	if err := places[1].Leave(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	third := make(chan error, 1)
	go func() {
		held, err := inTurn(within(t, patience), places[2], locks[2])
		if err == nil {
			_, err = held.Settle(within(t, patience), success("third"))
		}
		third <- err
	}()
	mustSettle(t, other)
	held, err := inTurn(within(t, patience), places[0], locks[0])
	if err != nil {
		t.Fatal(err)
	}
	mustSettle(t, held)
	if err := <-third; err != nil {
		t.Error(err)
	}
	for _, kind := range []string{"turns/", "slots/", "queue/"} {
		eventually(t, kind+" are gone", func() bool { return len(keysBelow(t, e, "/hooklock/v1/"+kind)) == 0 })
	}
}

func TestACancelledEntryIsNotReplacedAndTheNextReplacesNone(t *testing.T) {
	_, a, b := replicas(t)
	first := mustClaim(t, a, lockFor("w", "first"), 0)
	second, third := newestLock("w", "second"), newestLock("w", "third")
	p := mustEnqueue(t, a, second)
	mustCancel(t, b, second.Execution, byOps(false))
	if seen, err := p.Await(within(t, patience), 0); !errors.Is(err, idem.ErrCancelled) ||
		seen.Record.Superseded() != "" {
		t.Errorf("%+v %v", seen, err)
	}
	p = mustEnqueue(t, b, third)
	mustSettle(t, first)
	held, err := inTurn(within(t, patience), p, third)
	if err != nil {
		t.Fatal(err)
	}
	if l := held.Lock(); l.Latest != nil && l.Latest.Replaced != 0 {
		t.Errorf("%+v", l.Latest)
	}
	mustSettle(t, held)
}

func TestARerunIsNotReplacedAndReplacesNone(t *testing.T) {
	_, a, b := replicas(t)
	dead := newestParked("w", "dead")
	mustPark(t, a, dead, 0)
	h := takeNext(t, a).Running
	mustAttempt(t, h)
	end := unknownEnd()
	end.RequestKept = true
	if _, err := h.Settle(within(t, patience), end); err != nil {
		t.Fatal(err)
	}
	first := mustClaim(t, a, lockFor("w", "first"), 0)
	waits, newer := newestLock("w", "waits"), newestLock("w", "newer")
	mustEnqueue(t, a, waits)
	again, err := b.Rerun(within(t, patience), dead.Execution, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustEnqueue(t, b, newer)
	mustBeReplaced(t, a, waits, newer)
	mustSettle(t, first)
	if l := takeNext(t, b).Running.Lock(); l.Execution != again.Lock.Execution {
		t.Errorf("took %+v", l)
	}
}

func TestWithOrdersTheScopesDoNotReplaceEachOther(t *testing.T) {
	_, a, _ := replicas(t)
	first := mustClaim(t, a, lockFor("w", "first"), 0)
	at := func(event, mark, position string) idem.Lock {
		l := newestLock("w", event)
		l.Order = &idem.Order{ScopeKey: mark, At: position}
		return l
	}
	x1, y1, x2 := at("x1", "x", "1"), at("y1", "y", "9"), at("x2", "x", "2")
	mustEnqueue(t, a, x1)
	mustEnqueue(t, a, y1)
	mustEnqueue(t, a, x2)
	mustBeReplaced(t, a, x1, x2)
	if mustFind(t, a, y1.Execution).Lock == nil {
		t.Error("y1 does not wait any more")
	}
	if p, seen, err := tryEnqueue(t, a, at("x0", "x", "0"), 0, 0); p != nil || err != nil || seen.Newer == nil ||
		seen.Newer.Execution != x2.Execution {
		t.Errorf("one that is older than who waits: %+v %v", seen, err)
	}
	mustSettle(t, first)
}

func TestAParkedOneRestsForTheQuietAndRunsByItself(t *testing.T) {
	t.Parallel()
	_, a, b := replicas(t)
	first, second := newestParked("w", "first"), newestParked("w", "second")
	first.Latest.Quiet, first.Latest.MaxWait = time.Hour, time.Hour
	second.Latest.Quiet, second.Latest.MaxWait = time.Second, time.Hour
	mustPark(t, a, first, 0)
	began := time.Now()
	mustPark(t, b, second, 0)
	mustBeReplaced(t, a, first, second)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, _, err := a.NextReady(ctx); err != nil {
		t.Fatal(err)
	}
	if l := takeNext(t, b).Running.Lock(); l.Execution != second.Execution || time.Since(began) < time.Second {
		t.Errorf("took %+v after %s", l, time.Since(began))
	}
}
