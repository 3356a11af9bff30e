package etcdlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Workflows whose route has a lock.limit above one.

// ownLimitLock counts against the limit of its workflow.
func ownLimitLock(workflow, event string) idem.Lock {
	l := lockFor(workflow, event)
	l.Scope.PerEvent, l.Slots = true, []idem.Slot{{LimitName: idem.OwnLimit(workflow), Index: -1}}
	return l
}

func TestAWaiterThatTimesOutNamesTheOldestExecutionWithASlot(t *testing.T) {
	e := etcdtest.Start(t)
	s := limitedStore(t, e, slotsOf(2))
	oldest, second := mustClaim(t, s, ownLimitLock("w", "oldest"), 0), mustClaim(t, s, ownLimitLock("w", "second"), 0)
	next := ownLimitLock("w", "next")
	before, p := mustEnqueue(t, s, next), mustEnqueue(t, s, ownLimitLock("w", "p"))
	ctx, giveUp := context.WithCancel(within(t, patience))
	type result struct {
		seen *idem.Obstacle
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		seen, err := p.Await(ctx, 0)
		ended <- result{seen, err}
	}()
	eventually(t, "both turns", func() bool { return countKeys(t, e, s.layout.All(protocol.KindSlotWaiters)) == 2 })
	mustSettle(t, oldest)
	if held, err := inTurn(within(t, patience), before, next); held == nil {
		t.Fatal(err)
	}
	eventually(t, "that to be heard of", func() bool {
		return s.view.Slots.Oldest(idem.OwnLimit("w")) == second.Lock().Execution
	})
	giveUp()
	r := <-ended
	if r.seen == nil || r.seen.Full == nil || r.seen.Oldest != second.Lock().Execution ||
		!errors.Is(r.err, context.Canceled) {
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
	eventually(t, "the death to be heard of", func() bool { return !s.view.Sessions.Has(dead.Lock().Alive) })
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
	if all, err := s.Locks(within(t, patience), idem.LockQuery{PageSize: 10}); err != nil || len(all.Locks) != 1 ||
		all.Locks[0].Waiting != 2 {
		t.Errorf("%+v %v", all, err)
	}
}

func TestALockOfAClientHoldsBackWhatSeveralOfMayRun(t *testing.T) {
	e := etcdtest.Start(t)
	s, other := limitedStore(t, e, slotsOf(2)), limitedStore(t, e, slotsOf(2))
	got := mustAcquireLock(t, other, idem.AcquireRequest{Workflow: "w", TTL: time.Hour})
	_, seen, err := tryClaim(t, s, ownLimitLock("w", "refused"), 0)
	if err != nil || seen == nil || seen.Lock == nil || seen.Lock.Execution != got.Lock.Execution || seen.Lock.Dead {
		t.Fatalf("%+v %v", seen, err)
	}
	l := ownLimitLock("w", "waits")
	p := mustEnqueue(t, s, l)
	ctx, stop := context.WithCancel(within(t, patience))
	waits := make(chan error, 1)
	go func() {
		_, err := p.Await(ctx, 0)
		waits <- err
	}()
	onClient := func(n int) func() bool {
		return func() bool {
			return s.view.Watcher.Waiters(s.layout.Lock(idem.Scope{Workflow: "w"})) == n
		}
	}
	eventually(t, "it to wait for the client's lock", onClient(1))
	gaveUp := make(chan *idem.Obstacle, 1)
	short, giveUp := context.WithCancel(within(t, patience))
	impatient := mustEnqueue(t, s, ownLimitLock("w", "gives up"))
	go func() {
		seen, _ := impatient.Await(short, 0)
		gaveUp <- seen
	}()
	eventually(t, "another one to wait, too", onClient(2))
	giveUp()
	if seen := <-gaveUp; seen == nil || seen.Lock == nil || seen.Lock.Execution != got.Lock.Execution {
		t.Errorf("%+v", seen)
	}
	parks := ownLimitLock("w", "parks")
	now := parkedNow("body")
	parks.Parked = &now
	mustPark(t, s, parks, 0)
	if scope, _, err := s.NextReady(within(t, patience)); err != nil {
		t.Fatal(err)
	} else if taken, err := s.TakeParked(within(t, patience), scope, anyRoute); taken != nil || err != nil {
		t.Fatalf("%+v %v", taken, err)
	}
	if err := other.ReleaseLock(within(t, patience), "w", client(got)); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil {
		t.Fatal(err)
	}
	stop()
	if held, err := inTurn(within(t, patience), p, l); held == nil {
		t.Fatal(err)
	}
	if taken := takeNext(t, s); taken.Running.Lock().Execution != parks.Execution {
		t.Errorf("%+v", taken)
	}
}

func TestAClientThatIsFasterThanTheHeadOfAnEventsQueueHoldsItBack(t *testing.T) {
	e := etcdtest.Start(t)
	s, other := limitedStore(t, e, slotsOf(2)), limitedStore(t, e, slotsOf(2))
	client := lockFor("w", "client")
	client.Route = ""
	before := mustEnqueue(t, other, client)
	l := ownLimitLock("w", "event")
	p := mustEnqueue(t, s, l)
	if seen, err := p.Await(within(t, patience), 0); err != nil || seen.Lock != nil {
		t.Fatalf("%+v %v", seen, err)
	}
	first, err := inTurn(within(t, patience), before, client)
	if first == nil {
		t.Fatal(err)
	}
	held, seen, err := p.ClaimHead(within(t, patience), l, 0)
	if held != nil || err != nil || seen.Lock == nil || seen.Lock.Execution != client.Execution {
		t.Fatalf("%v %+v %v", held, seen, err)
	}
	must(t, first.Release)
	if held, err := inTurn(within(t, patience), p, l); held == nil {
		t.Fatal(err)
	}
}

// While an update takes a route to a lock.limit above one, an event of another replica may have the
// workflow's lock: it is no client's, and does not hold back who waits.
func TestAnEventWithTheWorkflowsLockHoldsNoOtherBack(t *testing.T) {
	e := etcdtest.Start(t)
	s := limitedStore(t, e, slotsOf(2))
	mustClaim(t, s, lockFor("w", "before the update"), 0)
	l := ownLimitLock("w", "after it")
	if held, err := inTurn(within(t, patience), mustEnqueue(t, s, l), l); held == nil {
		t.Fatal(err)
	}
}

func TestTheLockOfADeadClientHoldsNothingBack(t *testing.T) {
	e := etcdtest.Start(t)
	s, dying := limitedStore(t, e, slotsOf(2)), limitedStore(t, e, slotsOf(2))
	client := lockFor("w", "client")
	client.Route = ""
	mustClaim(t, dying, client, 0)
	l := ownLimitLock("w", "event")
	p := mustEnqueue(t, s, l)
	closeStore(t, dying)
	if held, err := inTurn(within(t, patience), p, l); held == nil {
		t.Fatal(err)
	}
}

func TestEachExecutionsOwnLockCanBeRead(t *testing.T) {
	e := etcdtest.Start(t)
	s := limitedStore(t, e, slotsOf(2))
	mustClaim(t, s, ownLimitLock("w", "oldest"), 0)
	own := mustClaim(t, s, ownLimitLock("w", "own"), 0).Lock()
	if v, err := s.LockOf(within(t, patience), "w", own.Execution); err != nil || v.Lock.Execution != own.Execution ||
		v.Of != 2 || v.Lock.Slots[0].Index != own.Slots[0].Index {
		t.Errorf("%+v %v", v, err)
	}
	alone := mustClaim(t, s, lockFor("alone", "event"), 0).Lock()
	if v, err := s.LockOf(within(t, patience), "alone", alone.Execution); err != nil ||
		v.Lock.Execution != alone.Execution {
		t.Errorf("%+v %v", v, err)
	}
	for workflow, id := range map[string]idem.ExecutionID{"w": lockFor("w", "own").Execution, "alone": own.Execution,
		"free": alone.Execution} {
		if v, err := s.LockOf(within(t, patience), workflow, id); !errors.Is(err, idem.ErrNoLock) {
			t.Errorf("%s: %+v %v", workflow, v, err)
		}
	}
}
