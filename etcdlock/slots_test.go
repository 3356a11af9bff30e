package etcdlock

import (
	"sync/atomic"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// erp is a limit of so many slots, as a Store of a replica has it.
func erp(n *atomic.Int64) Options {
	return Options{Limit: func(_ string, slot idem.Slot) int { return int(n.Load()) }}
}

func limitedStore(tb testing.TB, e *etcdtest.Etcd, n *atomic.Int64) *Store {
	o := erp(n)
	o.Endpoints = []string{e.Endpoint}
	return openStore(tb, o)
}

func TestATryThatIsTakenOverHasItsSlotUntilItRests(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	survivor, dying := limitedStore(t, e, n), limitedStore(t, e, n)
	mustPark(t, dying, withSlots(parkedLock("w1", "a")), 0)
	mustAttempt(t, takeNext(t, dying).Running)
	die(t, e, dying)
	taken := takeNext(t, survivor)
	if l := taken.Running.Lock(); !taken.Carried || !l.HasSlot() || len(takenSlots(t, e)) != 1 {
		t.Fatalf("carried on with %+v", l)
	}
	restNow(t, taken.Running, "nobody knows")
	if left := takenSlots(t, e); len(left) > 0 {
		t.Fatalf("what waits for a person has %v", left)
	}
	mustSettle(t, mustClaim(t, survivor, limitedLock("w2", "b"), 0))
	mustAttempt(t, taken.Running)
	mustSettle(t, taken.Running)
}

// TestAnOrderIsJudgedBesideALimit: the mark comes with the lock and its slots, past the queue and
// out of it.
func TestAnOrderIsJudgedBesideALimit(t *testing.T) {
	e := etcdtest.Start(t)
	s := limitedStore(t, e, slotsOf(1))
	both := func(event, at string) idem.Lock {
		l := ordered("w", event, at)
		l.Slots = limitedLock("w", event).Slots
		return l
	}
	first := mustClaim(t, s, both("first", "1700000010"), 0)
	waits := both("second", "1699999973")
	place := mustEnqueue(t, s, waits)
	mustSettle(t, first)
	second, err := inTurn(within(t, patience), place, waits)
	if err != nil {
		t.Fatal(err)
	}
	third := func() idem.RunningLock {
		mustSettle(t, second)
		return mustClaim(t, s, both("third", "1699999973"), 0)
	}
	for name, held := range map[string]idem.RunningLock{"out of the queue": second, "past it": third()} {
		if stale := held.Lock().Stale; stale == nil || stale.By != "37s" {
			t.Errorf("%s: %+v", name, stale)
		}
	}
}
