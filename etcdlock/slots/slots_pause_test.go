package slots_test

import (
	"fmt"
	"sync"
	"testing"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestWhatIsPausedTakesNoSlotAndIsRefusedAsPausedWhetherThereIsOneOrNot(t *testing.T) {
	e := etcdtest.Start(t)
	s := limitedStore(t, e, slotsOf(1))
	p := pauseOf(t, "workflow:paused")
	mustPause(t, s, p)
	refusedAsPaused(t, s, limitedLock("paused", "a"), p)
	if taken := takenSlots(t, e); len(taken) > 0 {
		t.Fatalf("it has %v", taken)
	}
	other := mustClaim(t, s, limitedLock("other", "b"), 0) // there is one slot, so nothing here keeps it
	refusedAsPaused(t, s, limitedLock("paused", "a"), p)
	mustSettle(t, other)
}

// waitsForSlot lets l wait for a slot; the lock comes when it has one.
func waitsForSlot(t *testing.T, s *etcdlock.Store, l idem.Lock) <-chan idem.RunningLock {
	t.Helper()
	return waitsAt(t, mustEnqueue(t, s, l), l)
}

// turnsAre waits until so many wait for a slot, over all processes.
func turnsAre(t *testing.T, e *etcdtest.Etcd, s *etcdlock.Store, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d turns", n), func() bool {
		return countKeys(t, e, ledgertest.Layout.All(protocol.KindSlotWaiters)) == n
	})
}

func TestAPausedSlotWaiterGivesItsTurnToTheNextAndGetsItBack(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	a, b := limitedStore(t, e, n), limitedStore(t, e, n)
	holder := mustClaim(t, a, limitedLock("w", "runs"), 0)
	first := waitsForSlot(t, a, limitedLock("first", "a"))
	turnsAre(t, e, a, 1)
	second := waitsForSlot(t, b, limitedLock("second", "a"))
	turnsAre(t, e, a, 2)
	p := pauseOf(t, "workflow:first")
	mustPause(t, b, p)
	turnsAre(t, e, a, 1) // at once, and not when there is a slot for it
	mustSettle(t, holder)
	next := <-second
	mustResume(t, b, p)
	turnsAre(t, e, a, 1)
	third := waitsForSlot(t, b, limitedLock("third", "a"))
	turnsAre(t, e, a, 2)
	mustSettle(t, next)
	mustSettle(t, <-first) // it came before the third one
	mustSettle(t, <-third)
	turnsAre(t, e, a, 0)
}

func TestAPausedParkedExecutionGivesItsTurnToTheNextAndGetsItBack(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	a, b := limitedStore(t, e, n), limitedStore(t, e, n)
	holder := mustClaim(t, a, limitedLock("w", "runs"), 0)
	parked := withSlots(parkedLock("first", "a"))
	mustPark(t, b, parked, 0)
	got := make(chan *idem.Taken, 1)
	go func() { got <- takeNext(t, b) }()
	turnsAre(t, e, a, 1)
	second := waitsForSlot(t, a, limitedLock("second", "a"))
	turnsAre(t, e, a, 2)
	p := pauseOf(t, "workflow:first")
	mustPause(t, a, p)
	turnsAre(t, e, a, 1)
	mustSettle(t, holder)
	next := <-second
	mustResume(t, a, p)
	turnsAre(t, e, a, 1)
	mustSettle(t, next)
	taken := <-got
	mustAttempt(t, taken.Running)
	mustSettle(t, taken.Running)
	turnsAre(t, e, a, 0)
}

func TestWhatWaitsForASlotRunsInItsOrderAfterThePause(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	a, b := limitedStore(t, e, n), limitedStore(t, e, n)
	p := pauseOf(t, "route:r")
	mustPause(t, a, p)
	order := make(chan int, 3)
	var runs sync.WaitGroup
	for i, s := range []*etcdlock.Store{a, b, a} {
		held := waitsForSlot(t, s, limitedLock("w", fmt.Sprint(i)))
		runs.Go(func() {
			h := <-held
			order <- i
			if _, err := h.Settle(within(t, patience), success("")); err != nil {
				t.Error(err)
			}
		})
	}
	turnsAre(t, e, a, 0)
	mustResume(t, b, p)
	for want := range 3 {
		if i := <-order; i != want {
			t.Errorf("turn %d: %d ran", want, i)
		}
	}
	runs.Wait()
	if taken := takenSlots(t, e); len(taken) > 0 {
		t.Errorf("%v is left", taken)
	}
}
