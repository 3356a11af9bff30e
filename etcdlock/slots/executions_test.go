package slots_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestALimitBoundsTheLocksOfAllWorkflowsAndEachEndGivesItsSlotBack(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(2)
	stores := []*etcdlock.Store{limitedStore(t, e, n), limitedStore(t, e, n)}
	one := mustClaim(t, stores[0], limitedLock("w1", "a"), 0)
	two := mustClaim(t, stores[1], limitedLock("w2", "b"), 0)
	if a, b := one.Lock().Slots[0].Index, two.Lock().Slots[0].Index; a == b || a < 0 || b < 0 || a > 1 || b > 1 {
		t.Fatalf("slots %d and %d", a, b)
	}
	for i, s := range stores {
		held, seen, err := tryClaim(t, s, limitedLock("w3", fmt.Sprint(i)), 0)
		if err != nil || held != nil || seen.Full == nil || seen.Full.LimitName != "erp" || seen.Lock != nil {
			t.Fatalf("a third one at store %d: %v %+v %v", i, held, seen, err)
		}
	}
	if held, _, err := tryClaim(t, stores[0], lockFor("w4", "free"), 0); err != nil || held == nil {
		t.Fatalf("what counts against no limit: %v", err)
	}
	mustSettle(t, one)
	three := mustClaim(t, stores[1], limitedLock("w3", "again"), 0)
	if three.Lock().Slots[0].Index != one.Lock().Slots[0].Index {
		t.Errorf("it has slot %d, and %d became free", three.Lock().Slots[0].Index, one.Lock().Slots[0].Index)
	}
	must(t, two.Release)
	mustSettle(t, three)
	if left := takenSlots(t, e); len(left) > 0 {
		t.Errorf("slots are left: %v", left)
	}
}

func TestTheSlotOfADeadProcessComesBackWithItsLock(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	survivor, dying := limitedStore(t, e, n), limitedStore(t, e, n)
	mustClaim(t, dying, limitedLock("w1", "a"), 0)
	l := limitedLock("w2", "b")
	p := mustEnqueue(t, survivor, l)
	closeStore(t, dying)
	held, err := inTurn(within(t, patience), p, l)
	if err != nil || held == nil {
		t.Fatalf("the waiter: %v", err)
	}
	if taken := takenSlots(t, e); len(taken) != 1 {
		t.Errorf("taken: %v", taken)
	}
}

// The oldest queue entry is first, each workflow has one slot while others wait, and a later claim
// is refused.
func TestSlotsAreGivenInTheOrderOfArrivalOverAllWorkflows(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	stores := []*etcdlock.Store{limitedStore(t, e, n), limitedStore(t, e, n)}
	holder := mustClaim(t, stores[0], limitedLock("w", "first"), 0)
	const waiters = 8
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	for i := range waiters {
		l := limitedLock(fmt.Sprintf("w%d", i), "a")
		p := mustEnqueue(t, stores[i%2], l)
		wg.Go(func() {
			held, err := inTurn(within(t, patience), p, l)
			if err != nil || held == nil {
				t.Errorf("%d: %v", i, err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			if _, err := held.Settle(within(t, patience), success("")); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "all turns", func() bool {
		return countKeys(t, e, ledgertest.Layout.All(protocol.KindSlotWaiters)) == waiters
	})
	if _, seen, err := tryClaim(t, stores[1], limitedLock("late", "x"), 0); err != nil || seen == nil ||
		seen.Full == nil {
		t.Errorf("who came later: %+v %v", seen, err)
	}
	mustSettle(t, holder)
	wg.Wait()
	if !slices.IsSorted(order) || len(order) != waiters {
		t.Errorf("they ran in the order %v", order)
	}
	eventually(t, "no turns", func() bool {
		return countKeys(t, e, ledgertest.Layout.All(protocol.KindSlotWaiters)) == 0
	})
	if left := takenSlots(t, e); len(left) > 0 {
		t.Errorf("slots are left: %v", left)
	}
}

func TestARaisedLimitLetsWaitersInAndALoweredOneEndsNoExecution(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	s := limitedStore(t, e, n)
	one := mustClaim(t, s, limitedLock("w1", "a"), 0)
	got := waitsForSlot(t, s, limitedLock("w2", "b"))
	eventually(t, "its turn", func() bool {
		return countKeys(t, e, ledgertest.Layout.All(protocol.KindSlotWaiters)) == 1
	})
	n.Store(2)
	two := <-got
	n.Store(1)
	for _, held := range []idem.RunningLock{one, two} {
		if err := held.Begin(); err != nil {
			t.Errorf("cut off: %v", err)
		}
	}
	if _, seen, err := tryClaim(t, s, limitedLock("w3", "c"), 0); err != nil || seen == nil || seen.Full == nil {
		t.Errorf("a third: %+v %v", seen, err)
	}
	for _, held := range []idem.RunningLock{one, two} {
		mustSettle(t, held)
	}
}

func TestASlotWaiterThatGivesUpLeavesNoKey(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	s := limitedStore(t, e, n)
	holder := mustClaim(t, s, limitedLock("w1", "a"), 0)
	l := limitedLock("w2", "b")
	p := mustEnqueue(t, s, l)
	ctx, cancel := context.WithCancel(within(t, patience))
	done := make(chan error, 1)
	go func() { _, err := inTurn(ctx, p, l); done <- err }()
	eventually(t, "its turn", func() bool {
		return countKeys(t, e, ledgertest.Layout.All(protocol.KindSlotWaiters)) == 1
	})
	cancel()
	if err := <-done; err == nil {
		t.Error("it got the lock")
	}
	must(t, p.Leave)
	eventually(t, "no turns", func() bool {
		return countKeys(t, e, ledgertest.Layout.All(protocol.KindSlotWaiters)) == 0
	})
	mustSettle(t, holder)
	eventually(t, "the slot is free for the next one, when the watch has said so", func() bool {
		held, _, err := tryClaim(t, s, limitedLock("w3", "c"), 0)
		if err != nil {
			t.Fatal(err)
		}
		return held != nil
	})
}

func TestAParkedExecutionWaitsForASlotInItsTurn(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	a, b := limitedStore(t, e, n), limitedStore(t, e, n)
	first := mustClaim(t, a, limitedLock("w1", "first"), 0)
	parked := parkedLock("w2", "second")
	parked.Slots = limitedLock("", "").Slots
	mustPark(t, b, parked, 0)
	scope, _, err := b.NextReady(within(t, patience))
	if err != nil {
		t.Fatal(err)
	}
	if taken, err := b.TakeParked(within(t, patience), scope, anyRoute); taken != nil ||
		err != nil && !errors.Is(err, idem.ErrNotClaimed) {
		t.Fatalf("it is taken without a slot: %+v %v", taken, err)
	}
	got := make(chan *idem.Taken, 1)
	go func() { got <- takeNext(t, b) }()
	eventually(t, "its turn", func() bool {
		return countKeys(t, e, ledgertest.Layout.All(protocol.KindSlotWaiters)) == 1
	})
	if _, seen, err := tryClaim(t, a, limitedLock("w3", "later"), 0); err != nil || seen == nil || seen.Full == nil {
		t.Errorf("who came later: %+v %v", seen, err)
	}
	mustSettle(t, first)
	taken := <-got
	if l := taken.Running.Lock(); l.Execution != parked.Execution || l.Slots[0].Index != 0 {
		t.Fatalf("took %+v", l)
	}
	mustAttempt(t, taken.Running)
	mustSettle(t, taken.Running)
	if left := takenSlots(t, e); len(left) > 0 {
		t.Errorf("slots are left: %v", left)
	}
}

func TestASkippedSlotWaiterLeavesNoKey(t *testing.T) {
	e := etcdtest.Start(t)
	s := limitedStore(t, e, slotsOf(1))
	first := mustClaim(t, s, limitedLock("w1", "first"), 0)
	l := parkedLock("w2", "second")
	l.Slots = limitedLock("", "").Slots
	mustPark(t, s, l, 0)
	ctx, stop := context.WithCancel(within(t, patience))
	defer stop()
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for {
			scope, _, err := s.NextReady(ctx)
			if err != nil {
				return
			}
			_, _ = s.TakeParked(ctx, scope, anyRoute)
		}
	}()
	eventually(t, "its turn", func() bool {
		return countKeys(t, e, ledgertest.Layout.All(protocol.KindSlotWaiters)) == 1
	})
	stop()
	<-looked
	if _, _, err := s.Skip(within(t, patience), l.Execution, byOps(false), nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is a dead letter", func() bool { return s.Parked(idem.Scope{}).DeadLetters == 1 })
	eventually(t, "its turn is given up", func() bool {
		return countKeys(t, e, ledgertest.Layout.All(protocol.KindSlotWaiters)) == 0
	})
	mustSettle(t, first)
}

func TestAHoldKeepsItsSlotAndAForceReleaseGivesItBack(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	s := limitedStore(t, e, n)
	held := mustClaim(t, s, limitedLock("w1", "a"), 0)
	if err := held.Hold(within(t, patience), time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, seen, err := tryClaim(t, s, limitedLock("w2", "b"), 0); err != nil || seen == nil || seen.Full == nil {
		t.Fatalf("beside a hold: %+v %v", seen, err)
	}
	page, err := s.Slots(within(t, patience), idem.LockQuery{})
	if err != nil || len(page.Slots) != 1 || page.Slots[0].Execution != held.Lock().Execution ||
		page.Slots[0].Of != 1 || page.Slots[0].LimitName != "erp" {
		t.Errorf("who has which: %+v %v", page, err)
	}
	if _, err := s.ForceRelease(within(t, patience), "w1", held.Lock().Execution, idem.Cancel{By: "test"},
		nil); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, limitedLock("w2", "b"), 0)
}

func TestWhatIsParkedHasASlotOnlyWhileItIsTried(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	a, b := limitedStore(t, e, n), limitedStore(t, e, n)
	first := mustClaim(t, a, limitedLock("w1", "first"), 0)
	parked := parkedNow("body")
	parked.Tries, parked.Trying = 1, true
	if err := first.Park(within(t, patience), parked); err != nil {
		t.Fatal(err)
	}
	if _, seen, err := tryClaim(t, b, limitedLock("w2", "a"), 0); err != nil || seen == nil || seen.Full == nil {
		t.Fatalf("beside a call that goes on: %+v %v", seen, err)
	}
	restNow(t, first, "a person has to look")
	if taken := takenSlots(t, e); len(taken) > 0 || first.Lock().HasSlot() {
		t.Fatalf("what waits for a person has %v, %+v", taken, first.Lock().Slots)
	}
	second := mustClaim(t, b, limitedLock("w2", "b"), 0)
	p := *first.Lock().Parked
	if err := first.BeginTry(within(t, patience), p, "hash"); !errors.Is(err, idem.ErrNoSlot) {
		t.Fatalf("a try without a slot: %v", err)
	}
	mustSettle(t, second)
	p.Tries++
	err := idem.ErrNoSlot
	for errors.Is(err, idem.ErrNoSlot) { // what was ready before says nothing of the slot
		if _, _, unready := a.NextReady(within(t, patience)); unready != nil {
			t.Fatalf("nothing says that there is a slot: %v", unready)
		}
		err = first.BeginTry(within(t, patience), p, "hash")
	}
	if err != nil {
		t.Fatal(err)
	}
	if l := first.Lock(); l.Slots[0].Index != 0 || len(takenSlots(t, e)) != 1 {
		t.Errorf("it is tried with %+v", l.Slots)
	}
	mustSettle(t, first)
	if left := takenSlots(t, e); len(left) > 0 {
		t.Errorf("slots are left: %v", left)
	}
}

func TestWhatIsParkedAfterItsTryOrIsGivenToOthersHasNoSlot(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(1)
	a, b := limitedStore(t, e, n), limitedStore(t, e, n)
	first := mustClaim(t, a, limitedLock("w1", "first"), 0)
	parked := parkedNow("body")
	parked.Tries, parked.Last = 1, &idem.Evidence{At: time.Now(), Outcome: idem.NotExecuted}
	if err := first.Park(within(t, patience), parked); err != nil {
		t.Fatal(err)
	}
	if taken := takenSlots(t, e); len(taken) > 0 {
		t.Fatalf("what is parked after its try has %v", taken)
	}
	mustAttempt(t, first)
	restNow(t, first, "")
	mustAttempt(t, first)
	must(t, first.Release)
	if taken := takenSlots(t, e); len(taken) > 0 {
		t.Fatalf("what is given to others has %v", taken)
	}
	taken := takeNext(t, b)
	mustAttempt(t, taken.Running)
	if len(takenSlots(t, e)) != 1 {
		t.Error("it is tried without a slot")
	}
	mustSettle(t, taken.Running)
}

// TestOneEventNeverRunsTwiceWhileALimitOfItsWorkflowIsReloaded: before it a claim takes the
// workflow's lock, and after it the event's own.
func TestOneEventNeverRunsTwiceWhileALimitOfItsWorkflowIsReloaded(t *testing.T) {
	e := etcdtest.Start(t)
	s := limitedStore(t, e, slotsOf(3))
	const rounds = 60
	var wg sync.WaitGroup
	for i := range rounds {
		before := lockFor(fmt.Sprint("w", i), "a")
		after := before
		after.Scope.PerEvent, after.Slots = true,
			[]idem.Slot{{LimitName: idem.OwnLimit(before.Scope.Workflow), Index: -1}}
		after.Execution = lockFor(before.Scope.Workflow, "a").Execution
		won := make(chan idem.RunningLock, 2)
		for _, l := range []idem.Lock{before, after} {
			wg.Go(func() {
				var held idem.RunningLock
				if err := applied(func() (err error) {
					held, _, err = s.Claim(within(t, patience), l, 0)
					return err
				}); err != nil {
					t.Error(err)
				}
				won <- held
			})
		}
		wg.Go(func() {
			if a, b := <-won, <-won; (a == nil) == (b == nil) {
				t.Errorf("%d: both run, or none: %v %v", i, a != nil, b != nil)
			}
		})
	}
	wg.Wait()
}

func TestTheSlotOfAProcessThatWasKilledComesBackAsItsLockDoes(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	n := slotsOf(1)
	survivor := limitedStore(t, e, n)
	w := etcdtest.NewWire(t, e.Endpoint)
	o := erp(n)
	o.Endpoints, o.SessionTTL = []string{w.Endpoint}, 2*time.Second
	dying := openStore(t, o)
	t.Cleanup(func() { w.Blackhole(false) })
	mustClaim(t, dying, limitedLock("w1", "a"), 0)
	w.Blackhole(true)
	l := limitedLock("w2", "b")
	p := mustEnqueue(t, survivor, l)
	got := make(chan error, 1)
	go func() { _, err := inTurn(within(t, patience), p, l); got <- err }()
	eventually(t, "the dead lock is reaped", func() bool { return len(takenSlots(t, e)) == 0 || len(got) > 0 })
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}
