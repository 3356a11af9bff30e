package operate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestACancelStopsTheOwnerAtAnotherReplica(t *testing.T) {
	_, a, b := replicas(t)
	held := mustClaim(t, a, lockFor("w", "one"), 0)
	causes := stopped(held)
	began := time.Now()
	found := mustCancel(t, b, held.Lock().Execution, byOps(false))
	awaitStop(t, causes, idem.ErrCancelled)
	t.Logf("from the call of Cancel to OnStop: %v", time.Since(began))
	if found.Status() != idem.CancelRequested {
		t.Errorf("status %s", found.Status())
	}
	rec, err := held.Settle(within(t, patience), unknownEnd())
	if err != nil || rec.Status != idem.Aborted || rec.Outcome != idem.Unknown || rec.Error != nil ||
		rec.Abort == nil || rec.Abort.By != "ops" ||
		rec.Abort.Reason != "wrong customer" || rec.Abort.At.IsZero() || rec.Final {
		t.Fatalf("%+v %v", rec, err)
	}
}

func TestACancelArrivesAlsoAfterABrokenWatch(t *testing.T) {
	e := etcdtest.Start(t)
	proxy := etcdtest.NewWire(t, e.Endpoint)
	a, b := openStore(t, etcdlock.Options{Endpoints: []string{proxy.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, a, lockFor("w", "one"), 0)
	causes := stopped(held)
	proxy.Blackhole(true)
	mustCancel(t, b, held.Lock().Execution, byOps(false))
	revision := mustFind(t, b, held.Lock().Execution).Revision
	if _, err := e.Client.Compact(within(t, patience), revision); err != nil { // the watch cannot begin where it broke
		t.Fatal(err)
	}
	proxy.Reset()
	proxy.Blackhole(false)
	awaitStop(t, causes, idem.ErrCancelled)
}

func TestACancelAskedTwiceStaysAsItWasFirstAsked(t *testing.T) {
	_, a, b := replicas(t)
	held := mustClaim(t, a, lockFor("w", "one"), 0)
	id := held.Lock().Execution
	first := mustCancel(t, b, id, byOps(false))
	again, before, err := a.Cancel(within(t, patience), id, idem.Cancel{By: "somebody else", At: time.Now()}, nil)
	if err != nil || !before || again.Lock.Cancel.By != "ops" || again.Lock.Revision != first.Lock.Revision {
		t.Fatalf("%+v %v %v", again, before, err)
	}
	// That it is for good may be added.
	again, before, err = a.Cancel(within(t, patience), id,
		idem.Cancel{By: "somebody else", At: time.Now(), Final: true}, nil)
	if err != nil || !before || again.Lock.Cancel.By != "ops" || !again.Lock.Cancel.Final {
		t.Fatalf("%+v %v %v", again, before, err)
	}
	if _, err := held.Settle(within(t, patience), unknownEnd()); err != nil {
		t.Fatal(err)
	}
	again, before, err = b.Cancel(within(t, patience), id, byOps(false), nil)
	if err != nil || !before || again.Status() != idem.Aborted || !again.Record.Final {
		t.Fatalf("after its end: %+v %v %v", again, before, err)
	}
}

func TestACancelOfAWaitingExecutionEndsItAtOnce(t *testing.T) {
	_, a, b := replicas(t)
	running := mustClaim(t, a, lockFor("w", "one"), 0)
	l := lockFor("w", "two")
	p := mustEnqueue(t, a, l)
	waited := make(chan error, 1)
	var seen *idem.Obstacle
	go func() {
		var err error
		seen, err = p.Await(within(t, patience), 0)
		waited <- err
	}()
	found := mustCancel(t, b, l.Execution, byOps(true))
	if r := found.Record; r == nil || r.Status != idem.Aborted || r.Outcome != idem.NotExecuted ||
		r.Abort.By != "ops" || !r.Final {
		t.Fatalf("%+v", found)
	}
	if err := <-waited; !errors.Is(err, idem.ErrCancelled) || seen.Record == nil ||
		seen.Record.Execution != l.Execution || seen.Record.Outcome != idem.NotExecuted {
		t.Fatalf("the waiter: %+v %v", seen, err)
	}
	must(t, p.Leave)
	if again, before, err := a.Cancel(within(t, patience), l.Execution, byOps(false), nil); err != nil || !before ||
		again.Record == nil {
		t.Fatalf("again: %+v %v %v", again, before, err)
	}
	if running.Lock().Cancel != nil {
		t.Error("the running one was cancelled, too")
	}
}

func TestAWaiterWhoseRecordIsGoneKnowsThatItWasCancelled(t *testing.T) {
	_, a, b := replicas(t)
	mustClaim(t, a, lockFor("w", "one"), 0)
	l := lockFor("w", "two")
	p := mustEnqueue(t, a, l)
	mustCancel(t, b, l.Execution, byOps(false))
	if _, err := b.Forget(within(t, patience), l.Execution, idem.Cancel{By: "ops", Reason: "try", At: time.Now()},
		nil); err != nil {
		t.Fatal(err)
	}
	seen, err := p.Await(within(t, patience), 0)
	if !errors.Is(err, idem.ErrCancelled) || seen.Record == nil || seen.Record.Outcome != idem.NotExecuted ||
		seen.Record.Execution != l.Execution {
		t.Fatalf("%+v %v", seen, err)
	}
}

func TestWhatHasEndedCannotBeCancelled(t *testing.T) {
	_, a, b := replicas(t)
	held := mustClaim(t, a, lockFor("w", "one"), 0)
	mustSettle(t, held)
	if found, _, err := b.Cancel(within(t, patience), held.Lock().Execution, byOps(true), nil); !errors.Is(err,
		idem.ErrFinished) || found.Status() != idem.Success {
		t.Fatalf("%+v %v", found, err)
	}
	if _, _, err := b.Cancel(within(t, patience), lockFor("w", "never").Execution, byOps(false), nil); !errors.Is(err,
		idem.ErrNoExecution) {
		t.Fatalf("got %v", err)
	}
	if _, _, err := b.Cancel(within(t, patience), "exec_nonsense", byOps(false), nil); !errors.Is(err,
		idem.ErrNoExecution) {
		t.Fatalf("got %v", err)
	}
}

func TestTheFirstTerminalStatusWins(t *testing.T) {
	_, a, b := replicas(t)
	for name, c := range map[string]struct {
		cancelFirst bool
		end         idem.End
		want        idem.Status
	}{
		"settle, then cancel":                        {false, success(""), idem.Success},
		"cancel, then a whole answer":                {true, success(""), idem.Success},
		"cancel, then the call is closed":            {true, unknownEnd(), idem.Aborted},
		"an end that nobody knows of, then a cancel": {false, unknownEnd(), idem.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			held := mustClaim(t, a, lockFor(name, "one"), 0)
			id := held.Lock().Execution
			if c.cancelFirst {
				mustCancel(t, b, id, byOps(true))
			}
			if _, err := held.Settle(within(t, patience), c.end); err != nil {
				t.Fatal(err)
			}
			if !c.cancelFirst {
				if found, _, err := b.Cancel(within(t, patience), id, byOps(true), nil); !errors.Is(err,
					idem.ErrFinished) || found.Status() != c.want {
					t.Fatalf("%+v %v", found, err)
				}
			}
			found := mustFind(t, b, id)
			if found.Status() != c.want || found.Record.Final != c.cancelFirst {
				t.Fatalf("%+v", found.Record)
			}
		})
	}
}

func TestStepsThatHadNotBegunAreSkippedByACancel(t *testing.T) {
	_, a, b := replicas(t)
	held := mustClaim(t, a, withKey(lockFor("w", "one")), 0)
	cb := callbackOf(held.Lock())
	for _, step := range []string{"fetch", "charge"} {
		if _, err := b.Guard(within(t, patience), cb, step, []string{"fetch", "charge", "mail"}); err != nil {
			t.Fatal(err)
		}
	}
	asked := mustCancel(t, b, cb.Execution, byOps(false))
	if got := stepsOf(asked.AllSteps()); got != "fetch done, charge running, mail skipped" {
		t.Errorf("while it is being cancelled: %s", got)
	}
	rec, err := held.Settle(within(t, patience), unknownEnd())
	if err != nil || stepsOf(rec.Steps) != "fetch done, charge running, mail skipped" {
		t.Fatalf("%s %v", stepsOf(rec.Steps), err)
	}
}

func TestAForgottenEventMayRunAgainOnEveryReplica(t *testing.T) {
	e := etcdtest.Start(t)
	forgot := make(chan idem.ExecutionID, 64)
	o := etcdlock.Options{Endpoints: []string{e.Endpoint}, OnForget: func(id idem.ExecutionID) { forgot <- id }}
	a, b := openStore(t, o), openStore(t, o)
	held := mustClaim(t, a, lockFor("w", "one"), 0)
	id := held.Lock().Execution
	if _, err := b.Forget(within(t, patience), id, idem.Cancel{By: "ops", Reason: "try", At: time.Now()},
		nil); !errors.Is(err, idem.ErrAlive) {
		t.Fatalf("while it runs: %v", err)
	}
	mustSettle(t, held)
	found, err := b.Forget(within(t, patience), id, idem.Cancel{By: "ops", Reason: "try", At: time.Now()}, nil)
	if err != nil || found.Record == nil || found.Record.Execution != id {
		t.Fatalf("%+v %v", found, err)
	}
	for range 2 {
		select {
		case got := <-forgot:
			if got != id {
				t.Fatalf("forgot %s", got)
			}
		case <-time.After(patience):
			t.Fatal("a replica was never told")
		}
	}
	if _, err := b.Forget(within(t, patience), id, idem.Cancel{By: "ops", Reason: "try", At: time.Now()},
		nil); !errors.Is(err, idem.ErrNoExecution) {
		t.Fatalf("again: %v", err)
	}
	if err := mustClaim(t, a, lockFor("w", "one"), 0).Release(within(t, patience)); err != nil {
		t.Fatal(err)
	}
}

func TestAForceReleaseTellsTheOwnerThatItsLockIsLost(t *testing.T) {
	_, a, b := replicas(t)
	l := lockFor("w/1:ä", "one")
	l.ReleaseDelay = time.Hour
	held := mustClaim(t, a, l, 0)
	causes := stopped(held)
	if _, err := b.ForceRelease(within(t, patience), "w/1:ä", lockFor("w/1:ä", "two").Execution, byOps(false),
		nil); !errors.Is(err, idem.ErrLockLost) {
		t.Fatalf("of another execution: %v", err)
	}
	found, err := b.ForceRelease(within(t, patience), "w/1:ä", l.Execution, byOps(false), nil)
	if err != nil || found.Status() != idem.Aborted || found.Record.Outcome != idem.Unknown ||
		found.Record.Abort.By != "ops" || !found.Record.Abort.Forced {
		t.Fatalf("%+v %v", found, err)
	}
	awaitStop(t, causes, idem.ErrLockLost)
	rec, err := held.Settle(within(t, patience), success(""))
	if !errors.Is(err, idem.ErrLockLost) || rec == nil || rec.Status != idem.Aborted {
		t.Fatalf("the owner's end: %+v %v", rec, err)
	}
	if _, err := b.ForceRelease(within(t, patience), "w/1:ä", l.Execution, byOps(false), nil); !errors.Is(err,
		idem.ErrNoLock) {
		t.Fatalf("of a free lock: %v", err)
	}
	mustClaim(t, b, lockFor("w/1:ä", "two"), 0) // it does not cool
}

func TestAForceReleaseReachesItsOwnProcess(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	causes := stopped(held)
	if _, err := s.ForceRelease(within(t, patience), "w", held.Lock().Execution, byOps(false), nil); err != nil {
		t.Fatal(err)
	}
	awaitStop(t, causes, idem.ErrLockLost)
	if _, err := held.Settle(within(t, patience), unknownEnd()); !errors.Is(err, idem.ErrLockLost) {
		t.Fatalf("got %v", err)
	}
}

func TestAForceReleaseOpensALockThatCools(t *testing.T) {
	e, a, b := replicas(t)
	l := lockFor("w", "one")
	l.ReleaseDelay = time.Hour
	held := mustClaim(t, a, l, 0)
	rec, err := held.Settle(within(t, patience), unknownEnd())
	if err != nil {
		t.Fatal(err)
	}
	found, err := b.ForceRelease(within(t, patience), "w", l.Execution, byOps(false), nil)
	if err != nil || found.Status() != idem.Failed {
		t.Fatalf("%+v %v", found, err)
	}
	if got := mustFind(t, a, l.Execution); got.Record.Revision != rec.Revision {
		t.Errorf("its record was written over: %+v", got.Record)
	}
	count(t, e, ledgertest.Layout.All(protocol.KindHolds), 0)
	mustClaim(t, b, lockFor("w", "two"), 0)
}

func TestACancelOfACallerThatHasGoneIsUnavailable(t *testing.T) {
	_, a, _ := replicas(t)
	held := mustClaim(t, a, lockFor("w", "one"), 0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := a.Cancel(ctx, held.Lock().Execution, byOps(false), nil); !errors.Is(err, idem.ErrStoreUnavailable) {
		t.Fatalf("got %v", err)
	}
}
