package guard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"hooklock/idem"
)

func TestSecondDeliveryWaitsForTheClaimAndThenKnowsTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l live
		first, _, err := l.enterSpot(t.Context(), idem.Scope{Workflow: "w", Key: keyA})
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *idem.Lock)
		go func() {
			_, lock, _ := l.enterSpot(t.Context(), idem.Scope{Workflow: "w", Key: keyB})
			got <- lock
		}()
		synctest.Wait()
		l.addRunning(first, &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_1"}})
		if lock := <-got; lock == nil || lock.Execution != "exec_1" {
			t.Errorf("got %v", lock)
		}
		l.leaveSpot(first)
		if mine, lock, _ := l.enterSpot(t.Context(), idem.Scope{Workflow: "w"}); mine == nil {
			t.Errorf("the lock is free again, got %v", lock)
		}
	})
}

func TestSecondDeliveryMayTryWhenTheFirstClaimFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l live
		first, _, _ := l.enterSpot(t.Context(), idem.Scope{Workflow: "w", Key: keyA})
		got := make(chan *spot)
		go func() {
			mine, _, _ := l.enterSpot(t.Context(), idem.Scope{Workflow: "w", Key: keyB})
			got <- mine
		}()
		synctest.Wait()
		l.leaveSpot(first)
		if <-got == nil {
			t.Error("refused, though nobody holds the lock")
		}
	})
}

func TestWaitingForAClaimEndsWithItsContext(t *testing.T) {
	var l live
	if _, _, err := l.enterSpot(t.Context(), idem.Scope{Workflow: "w"}); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, _, err := l.enterSpot(ctx, idem.Scope{Workflow: "w"}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestLocksPerEventDoNotMeet(t *testing.T) {
	var l live
	for _, s := range []idem.Scope{{Workflow: "w", Key: keyA, PerEvent: true},
		{Workflow: "w", Key: keyB, PerEvent: true}, {Workflow: "w"}} {
		if mine, _, err := l.enterSpot(t.Context(), s); mine == nil || err != nil {
			t.Errorf("%v: %v %v", s, mine, err)
		}
	}
}

// Under the race detector: the first waiter may note its lock while the claim of another one is
// being decided.
func TestALockOfTheQueueIsNotedWhileAClaimIsDecided(t *testing.T) {
	var l live
	claims, _, err := l.enterSpot(t.Context(), idem.Scope{Workflow: "w", Key: keyA})
	if err != nil {
		t.Fatal(err)
	}
	noted := make(chan *spot)
	go func() {
		noted <- l.noteWonLock(idem.Scope{Workflow: "w", Key: keyB},
			&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Token: 1}})
	}()
	l.addRunning(claims, &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Token: 2}})
	if <-noted != nil {
		t.Error("the older lock is noted")
	}
}

// What is handed a lock in the queue is noted before the one that had it leaves; never in place of
// a newer one, or of a claim under way.
func TestALockThatWasWonInTheQueueTakesThePlaceOfAnOlderOne(t *testing.T) {
	lock := func(token int64) *idem.Lock { return &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Token: token}} }
	scope := idem.Scope{Workflow: "w"}
	for _, c := range []struct {
		token int64
		want  bool
	}{{4, false}, {5, false}, {6, true}} {
		var l live
		if l.noteWonLock(scope, lock(5)) == nil {
			t.Fatal("nothing was noted, and it was refused")
		}
		if got := l.noteWonLock(scope, lock(c.token)) != nil; got != c.want {
			t.Errorf("token %d after 5: noted %v", c.token, got)
		}
	}
	var l live
	claims, _, err := l.enterSpot(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	if l.noteWonLock(scope, lock(9)) != nil {
		t.Error("it took the place of a claim under way")
	}
	l.leaveSpot(claims)
	if l.noteWonLock(scope, lock(9)) == nil {
		t.Error("the claim is over, and it was refused")
	}
}
