package etcdlock

import (
	"context"
	"errors"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// Workflows whose route has a lock.limit above one.

// ownLimitLock counts against the limit of its workflow.
func ownLimitLock(workflow, event string) idem.Lock {
	l := lockFor(workflow, event)
	l.Scope.PerEvent, l.Slots = true, []idem.Slot{{Limit: idem.OwnLimit(workflow), N: -1}}
	return l
}

func TestAPlaceWhoseTimeIsOverTellsTheOldestThatHasASlotThen(t *testing.T) {
	e := etcdtest.Start(t)
	s := limitedStore(t, e, slotsOf(2))
	oldest, second := mustClaim(t, s, ownLimitLock("w", "oldest"), 0), mustClaim(t, s, ownLimitLock("w", "second"), 0)
	next := ownLimitLock("w", "next")
	before, p := mustEnqueue(t, s, next), mustEnqueue(t, s, ownLimitLock("w", "p"))
	ctx, giveUp := context.WithCancel(within(t, patience))
	type result struct {
		seen *idem.Seen
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		seen, err := p.Await(ctx, 0)
		ended <- result{seen, err}
	}()
	eventually(t, "both turns", func() bool { return countKeys(t, e, s.layout.Turns()) == 2 })
	mustSettle(t, oldest)
	if held, err := inTurn(within(t, patience), before, next); held == nil {
		t.Fatal(err)
	}
	eventually(t, "that to be heard of", func() bool { return s.slots.oldest(idem.OwnLimit("w")) == second.Lock().Execution })
	giveUp()
	r := <-ended
	if r.seen == nil || r.seen.Full == nil || r.seen.Oldest != second.Lock().Execution || !errors.Is(r.err, context.Canceled) {
		t.Errorf("%+v %v", r.seen, r.err)
	}
}

func TestTheSlotsOfAWorkflowAreShownWithoutThoseOfTheDead(t *testing.T) {
	e := etcdtest.Start(t)
	n := slotsOf(3)
	s, dying := limitedStore(t, e, n), limitedStore(t, e, n)
	dead := mustClaim(t, dying, ownLimitLock("w", "dead"), 0)
	mustClaim(t, dying, ownLimitLock("w", "dead, too"), 0)
	lives := mustClaim(t, s, ownLimitLock("w", "lives"), 0)
	closeStore(t, dying)
	eventually(t, "the death to be heard of", func() bool { return !s.live.has(dead.Lock().Alive) })
	v, err := s.Lock(within(t, patience), "w")
	if err != nil || v.Lock.Execution != lives.Lock().Execution || len(v.Holders) != 1 || v.Of != 3 {
		t.Errorf("%+v %v", v, err)
	}
	mustSettle(t, lives)
	if v, err := s.Lock(within(t, patience), "w"); !errors.Is(err, idem.ErrNoLock) {
		t.Errorf("%+v %v", v, err)
	}
}

func TestALockOfSeveralSaysHowManyWaitForItsWorkflow(t *testing.T) {
	e := etcdtest.Start(t)
	s := limitedStore(t, e, slotsOf(1))
	mustClaim(t, s, ownLimitLock("w", "runs"), 0)
	for _, event := range []string{"a", "b"} {
		mustEnqueue(t, s, ownLimitLock("w", event))
	}
	if v, err := s.Lock(within(t, patience), "w"); err != nil || v.Waiting != 2 {
		t.Errorf("%+v %v", v, err)
	}
	if all, err := s.Locks(within(t, patience), idem.LockQuery{Limit: 10}); err != nil || len(all.Locks) != 1 || all.Locks[0].Waiting != 2 {
		t.Errorf("%+v %v", all, err)
	}
}
