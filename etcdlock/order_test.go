package etcdlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/owned"
	"hooklock/idem"
)

// ordered is what a delivery of event would put into the store that stands there in its scope.
func ordered(workflow, event, at string) idem.Lock {
	l := lockFor(workflow, event)
	l.Order = &idem.Order{ScopeKey: strings.Repeat("a", 32), Scope: "obj_1", At: at, Unit: idem.UnitSeconds}
	return l
}

// markOn is where the newest stands that went through, and which execution it was; "" = there is no
// mark.
func markOn(t *testing.T, e *etcdtest.Etcd) (position, execution string) {
	t.Helper()
	keys := keysBelow(t, e, "/hooklock/v1/marks/")
	if len(keys) == 0 {
		return "", ""
	}
	if len(keys) > 1 {
		t.Fatalf("marks %v", keys)
	}
	r, err := e.Client.Get(within(t, patience), keys[0])
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ Position, ExecutionID string }
	if err := json.Unmarshal(r.Kvs[0].Value, &v); err != nil || r.Kvs[0].Lease == 0 {
		t.Fatalf("%s on lease %d: %v", r.Kvs[0].Value, r.Kvs[0].Lease, err)
	}
	return v.Position, v.ExecutionID
}

func TestASuccessRaisesTheMarkAndAnOlderOneLeavesIt(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	for i, c := range []struct {
		at, stale, mark string
		store           *Store
	}{
		{"1700000010", "", "1700000010", a},
		{"1700000010", "", "1700000010", b}, // equal is not older
		{"1699999973", "37s", "1700000010", a},
		{"9", "1700000001s", "1700000010", b}, // as a text it would be newer
		{"1.7000000105e9", "", "1.7000000105e9", b},
		{"1700000010.4", "0.1s", "1.7000000105e9", a},
	} {
		held := mustClaim(t, c.store, ordered("w", fmt.Sprint(i), c.at), 0)
		stale := ""
		if s := held.Lock().Stale; s != nil {
			stale = s.By
			if _, newest := markOn(t, e); string(s.Than) != newest {
				t.Errorf("%s is older than %s, and the mark is of %s", c.at, s.Than, newest)
			}
		}
		r := mustSettle(t, held)
		if mark, _ := markOn(t, e); stale != c.stale || mark != c.mark || (r.Stale != nil) != (c.stale != "") {
			t.Errorf("%s is %q older, the record says %+v, and then the mark is %s; want %q and %s", c.at, stale,
				r.Stale, mark, c.stale, c.mark)
		}
	}
}

func TestWhatDidNotGoThroughRaisesNoMark(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	failed := idem.End{Status: idem.Failed, Outcome: idem.Executed, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "upstream_status"}, Answer: &idem.Answer{Status: 500}}
	unknown := idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "upstream_timeout"}}
	superseded := idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted, FinishedAt: time.Now(),
		Abort: &idem.Cancel{By: "policy"}}
	for _, end := range []idem.End{failed, unknown, superseded} {
		l := ordered("w", string(end.Status+idem.Status(end.Outcome)), "17")
		l.ReleaseDelay = 0
		if _, err := mustClaim(t, s, l, 0).Settle(within(t, patience), end); err != nil {
			t.Fatal(err)
		}
	}
	if err := mustClaim(t, s, ordered("w", "released", "17"), 0).Release(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	forced := ordered("w", "forced", "17")
	held := mustClaim(t, s, forced, 0)
	if _, err := s.ForceRelease(within(t, patience), "w", forced.Execution, idem.Cancel{By: "ops"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Settle(within(t, patience), success("too late")); !errors.Is(err, idem.ErrLockLost) {
		t.Errorf("a lock that was taken away is settled: %v", err)
	}
	dead := ordered("w", "dead", "17")
	held = mustClaim(t, s, dead, 0)
	endSession(t, e, currentSession(t, s))
	eventually(t, "the dead lock is reaped", func() bool {
		l := *held.Lock()
		l.Dead = true
		s.own.LetGo(held)
		return s.Reap(within(t, patience), &l) == nil
	})
	if mark, of := markOn(t, e); mark != "" {
		t.Errorf("the mark is %s, of %s", mark, of)
	}
}

func TestTheEndOfAHoldRaisesTheMarkAtWhateverProcess(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustSettle(t, mustClaim(t, a, ordered("w", "first", "20"), 0))
	l := ordered("w", "older", "15")
	l.CallbackHash = idem.HashCallbackKey("key")
	held := mustClaim(t, a, l, 0)
	if err := held.Hold(within(t, patience), time.Minute); err != nil {
		t.Fatal(err)
	}
	found, err := b.Complete(within(t, patience), idem.Callback{Execution: l.Execution, Token: held.Lock().Token,
		Key: "key"}, idem.Final{Status: idem.Success})
	if err != nil || found.Record.Stale == nil || found.Record.Stale.By != "5s" {
		t.Errorf("%+v %v", found, err)
	}
	if mark, _ := markOn(t, e); mark != "20" {
		t.Errorf("the mark is %s", mark)
	}
	l = ordered("w", "newer", "25")
	l.CallbackHash = idem.HashCallbackKey("key")
	held = mustClaim(t, a, l, 0)
	if err := held.Hold(within(t, patience), time.Minute); err != nil {
		t.Fatal(err)
	}
	if mark, _ := markOn(t, e); mark != "20" {
		t.Errorf("before the end of a hold the mark is %s", mark)
	}
	if _, err := b.Complete(within(t, patience), idem.Callback{Execution: l.Execution, Token: held.Lock().Token,
		Key: "key"}, idem.Final{Status: idem.Success}); err != nil {
		t.Fatal(err)
	}
	if mark, of := markOn(t, e); mark != "25" || of != string(l.Execution) {
		t.Errorf("the mark is %s, of %s", mark, of)
	}
}

// TestALostAnswerLosesNoMark: of a claim, the mark is read with the lock that it turned out to
// have; of a settle, it is raised once.
func TestALostAnswerLosesNoMark(t *testing.T) {
	e := etcdtest.Start(t)
	s, kv := lossy(t, e)
	mustSettle(t, mustClaim(t, s, ordered("w", "newest", "20"), 0))
	kv.armed <- true
	held := mustClaim(t, s, ordered("w", "older", "15"), 0)
	if l := held.Lock(); l.Stale == nil || l.Stale.By != "5s" {
		t.Errorf("after a lost answer it is taken for fresh: %+v", l)
	}
	mustSettle(t, held)
	next := ordered("w", "next", "25")
	held = mustClaim(t, s, next, 0)
	kv.armed <- true
	mustSettle(t, held)
	if mark, of := markOn(t, e); mark != "25" || of != string(next.Execution) {
		t.Errorf("the mark is %s, of %s", mark, of)
	}
}

func TestTheOrderOfAWaiterCountsWhatRanBeforeItsTurn(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	first := mustClaim(t, a, ordered("w", "newest", "20"), 0)
	l := ordered("w", "older", "15")
	p := mustEnqueue(t, b, l)
	mustSettle(t, first)
	if err := myTurn(within(t, patience), p); err != nil {
		t.Fatal(err)
	}
	held, seen, err := p.ClaimHead(within(t, patience), l, 0)
	if held == nil {
		t.Fatalf("%+v %v", seen, err)
	}
	if s := held.Lock().Stale; s == nil || s.By != "5s" {
		t.Errorf("%+v", s)
	}
	mustSettle(t, held.(*owned.Lock))
}

func TestTheOrderOfAParkedExecutionIsCheckedAtItsTurnAndWhenItIsTakenOver(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	first := mustClaim(t, a, ordered("w", "newest", "20"), 0)
	l := ordered("w", "older", "15")
	now := parkedNow("body")
	l.Parked = &now
	mustPark(t, a, l, first.Lock().Token)
	mustSettle(t, first)
	taken := takeNext(t, a)
	if s := taken.Running.Lock().Stale; s == nil || s.By != "5s" {
		t.Errorf("when it is its turn: %+v", s)
	}
	closeStore(t, a)
	carried := takeNext(t, b)
	if s := carried.Running.Lock().Stale; !carried.Carried || s == nil || s.By != "5s" {
		t.Errorf("carried on: %v, %+v", carried.Carried, s)
	}
	mustAttempt(t, carried.Running)
	if s := carried.Running.Lock().Stale; s == nil {
		t.Error("forgotten with the try")
	}
	if r := mustSettle(t, carried.Running); r.Stale == nil || r.Stale.By != "5s" {
		t.Errorf("%+v", r.Stale)
	}
}

// TestAMarkOnlyRises: whatever comes in between, as with locks that share a mark.
func TestAMarkOnlyRises(t *testing.T) {
	e := etcdtest.Start(t)
	var all sync.WaitGroup
	for n := range 3 {
		s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
		all.Go(func() {
			for i := range 20 {
				l := ordered("w", fmt.Sprintf("%d-%d", n, i), fmt.Sprint((i*7)%20))
				l.Scope.PerEvent = true // each has a lock of its own, and all have one mark
				held, seen, err := s.Claim(t.Context(), l, 0)
				if held == nil {
					t.Errorf("%+v %v", seen, err)
					return
				}
				if _, err := held.Settle(t.Context(), success("")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if mark, _ := markOn(t, e); mark != "19" {
		t.Errorf("the mark is %s, and 19 went through", mark)
	}
}

func TestAnEventWithoutAnOrderTouchesNoMark(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	if l := lockFor("w", "one"); s.layout.Keys(&l).HighWaterMark != "" {
		t.Errorf("its keys: %+v", s.layout.Keys(&l))
	}
	mustSettle(t, mustClaim(t, s, lockFor("w", "one"), 0))
	if mark, of := markOn(t, e); mark != "" {
		t.Errorf("the mark is %s, of %s", mark, of)
	}
}

func TestAForgottenExecutionTakesItsMarkAlong(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	first, future := ordered("w", "first", "10"), ordered("w", "future", "4102444800")
	mustSettle(t, mustClaim(t, s, first, 0))
	mustSettle(t, mustClaim(t, s, future, 0))
	if _, err := s.Forget(within(t, patience), first.Execution, idem.Cancel{By: "ops", Reason: "try", At: time.Now()},
		nil); err != nil {
		t.Fatal(err)
	}
	if _, of := markOn(t, e); of != string(future.Execution) {
		t.Errorf("the mark is of %s", of)
	}
	if _, err := s.Forget(within(t, patience), future.Execution, idem.Cancel{By: "ops", Reason: "try", At: time.Now()},
		nil); err != nil {
		t.Fatal(err)
	}
	held := mustClaim(t, s, ordered("w", "next", "20"), 0)
	if stale := held.Lock().Stale; stale != nil {
		t.Errorf("what was forgotten still counts: %+v", stale)
	}
	mustSettle(t, held)
	if mark, _ := markOn(t, e); mark != "20" {
		t.Errorf("the mark is %s", mark)
	}
}

// Events of a workflow whose route has a lock.limit have locks of their own, and one mark.
func TestEventsThatOverlapRaiseOneMark(t *testing.T) {
	e := etcdtest.Start(t)
	const events = 64
	s := limitedStore(t, e, slotsOf(events))
	of := func(i int) idem.Lock {
		l := ordered("w", fmt.Sprint(i), fmt.Sprint(i))
		l.Scope.PerEvent, l.Slots = true, []idem.Slot{{LimitName: idem.OwnLimit("w"), Index: -1}}
		return l
	}
	var held []idem.RunningLock
	for i := range events {
		held = append(held, mustClaim(t, s, of(i), 0))
	}
	var ends sync.WaitGroup
	for _, h := range held {
		ends.Go(func() { mustSettle(t, h) })
	}
	ends.Wait()
	if mark, _ := markOn(t, e); mark != fmt.Sprint(events-1) {
		t.Errorf("the mark is %s", mark)
	}
	late := of(events / 2)
	late.Scope.Key, late.Execution = lockFor("w", "late").Scope.Key, lockFor("w", "late").Execution
	if h := mustClaim(t, s, late, 0); h.Lock().Stale == nil {
		t.Error("what began after the end of a newer one is not stale")
	}
}
