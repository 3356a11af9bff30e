package etcdlock

import (
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/idem/guard"
)

// strategies are two processes in the middle of a rolling update that takes a route from the one
// strategy to strategy none, or back.
type strategies struct {
	etcd   *etcdtest.Etcd
	locks  *guard.Guard // strategy fail_fast, unless a test says otherwise
	none   *guard.Guard
	policy idem.Policy // of the process that locks

	lockStore, noneStore *Store
}

func rollout(t *testing.T) *strategies {
	e := etcdtest.Start(t)
	r := &strategies{etcd: e, policy: idem.Policy{
		Route: "r", Strategy: idem.FailFast, Idempotency: true, Retention: time.Hour, ReplayBody: 100,
		OnUnknown: idem.UnknownRetry,
		InFlight:  idem.Conflict, OnMismatch: idem.MismatchReplay, MaxWaiting: 10, WaitTimeout: patience,
		AttachTimeout: patience,
	}}
	r.policy.Keep.Add(200, 299)
	open := func() (*guard.Guard, *Store) {
		cache := guard.NewCache(0)
		s := openStore(t, Options{Endpoints: []string{e.Endpoint}, OnForget: cache.Forget, OnReset: cache.Reset})
		return guard.New(guard.Options{Ledger: s, Base: t.Context(), Cache: cache, MaxWaiting: func() int {
			return 10
		}, RequestTimeout: patience}), s
	}
	r.locks, r.lockStore = open()
	r.none, r.noneStore = open()
	return r
}

func (r *strategies) deliver(t *testing.T, g *guard.Guard, event string) guard.Admission {
	p := r.policy
	if g == r.none {
		p.Strategy = idem.NoLock
	}
	return g.Admit(t.Context(), &idem.Request{Scope: lockFor("w", event).Scope, Policy: &p})
}

func (r *strategies) mustRun(t *testing.T, g *guard.Guard, event string) *guard.Execution {
	t.Helper()
	a := r.deliver(t, g, event)
	if a.Execution == nil {
		t.Fatalf("%s does not run: %+v", event, a)
	}
	return a.Execution
}

// each runs f twice: an update to strategy none and one back. The first copy goes to before, the
// second one to after.
func each(t *testing.T, f func(t *testing.T, r *strategies, before, after *guard.Guard)) {
	for name, none := range map[string]bool{"to none": false, "back from none": true} {
		t.Run(name, func(t *testing.T) {
			r := rollout(t)
			before, after := r.locks, r.none
			if none {
				before, after = after, before
			}
			f(t, r, before, after)
		})
	}
}

func TestADuplicateOfARunningOrHeldEventDoesNotRunUnderAnotherStrategy(t *testing.T) {
	each(t, func(t *testing.T, r *strategies, before, after *guard.Guard) {
		run := r.mustRun(t, before, "one")
		id := run.Lock().Execution
		if got := r.deliver(t, after, "one"); got.Decision != idem.DecisionInFlight || got.Holder != id {
			t.Errorf("while it runs: %+v", got)
		}
		if end := run.End(guard.Tried{Hold: time.Minute, Answer: &idem.Answer{Status: 202}}); !end.Recorded {
			t.Fatalf("%+v", end)
		}
		if got := r.deliver(t, after, "one"); got.Decision != idem.DecisionInFlight || got.Holder != id {
			t.Errorf("while it is held: %+v", got)
		}
		cb := idem.Callback{Execution: id, Token: run.Lock().Token, Key: run.CallbackKey}
		if _, err := r.lockStore.Complete(within(t, patience), cb, idem.Final{Status: idem.Success}); err != nil {
			t.Fatal(err)
		}
		if got := r.deliver(t, after, "one"); got.Decision != idem.DecisionReplayed || got.Holder != id {
			t.Errorf("after it was completed: %+v", got)
		}
	})
}

func TestOtherEventsOfTheWorkflowPassUnderStrategyNoneAllTheSame(t *testing.T) {
	t.Parallel()
	r := rollout(t)
	whole := r.mustRun(t, r.locks, "one")
	for range 3 { // the lock of the workflow changes hands between the claims
		alone := r.mustRun(t, r.none, "two")
		if got := r.deliver(t, r.locks, "three"); got.Decision != idem.DecisionLocked ||
			got.Holder != whole.Lock().Execution {
			t.Errorf("%+v", got)
		}
		whole.End(guard.Tried{})
		whole = r.mustRun(t, r.locks, "four")
		alone.End(guard.Tried{})
	}
	whole.End(guard.Tried{})
}

func TestADuplicateAttachesToAnExecutionUnderAnotherStrategy(t *testing.T) {
	each(t, func(t *testing.T, r *strategies, before, after *guard.Guard) {
		r.policy.InFlight = idem.Attach
		run := r.mustRun(t, before, "one")
		answers := make(chan guard.Admission, 1)
		go func() { answers <- r.deliver(t, after, "one") }()
		eventually(t, "the copy waits", func() bool { n, _ := after.Waiting(); return n == 1 })
		run.End(guard.Tried{Answer: &idem.Answer{Status: 200, Whole: true}})
		if got := <-answers; got.Decision != idem.DecisionAttached || got.Holder != run.Lock().Execution {
			t.Errorf("%+v", got)
		}
	})
}

func TestADuplicateOfAWaitingEventDoesNotRunUnderStrategyNone(t *testing.T) {
	r := rollout(t)
	r.policy.Strategy = idem.Wait
	other := r.mustRun(t, r.locks, "other")
	waited := make(chan guard.Admission, 1)
	go func() { waited <- r.deliver(t, r.locks, "one") }()
	waiters(t, r.etcd, 1)
	if got := r.deliver(t, r.none, "one"); got.Decision != idem.DecisionInFlight || got.Holder == "" {
		t.Errorf("while it waits: %+v", got)
	}
	other.End(guard.Tried{})
	got := <-waited
	if got.Execution == nil {
		t.Fatalf("%+v", got)
	}
	got.Execution.End(guard.Tried{Answer: &idem.Answer{Status: 200, Whole: true}})
	if got := r.deliver(t, r.none, "one"); got.Decision != idem.DecisionReplayed {
		t.Errorf("after it ran: %+v", got)
	}
}

func TestADuplicateDoesNotWaitWhileItsEventRunsUnderStrategyNone(t *testing.T) {
	r := rollout(t)
	r.policy.Strategy = idem.Wait
	run := r.mustRun(t, r.none, "one")
	other := r.mustRun(t, r.locks, "other")
	if got := r.deliver(t, r.locks, "one"); got.Decision != idem.DecisionInFlight ||
		got.Holder != run.Lock().Execution {
		t.Errorf("%+v", got)
	}
	run.End(guard.Tried{Answer: &idem.Answer{Status: 200, Whole: true}})
	if got := r.deliver(t, r.locks, "one"); got.Decision != idem.DecisionReplayed {
		t.Errorf("%+v", got)
	}
	other.End(guard.Tried{})
}

func TestADeadDuplicateUnderAnotherStrategyIsReapedAndItsReleaseDelayKept(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *strategies, before, after *guard.Guard) {
		r.policy.ReleaseDelay = time.Hour
		run := r.mustRun(t, before, "one")
		dies := r.lockStore
		if before == r.none {
			dies = r.noneStore
		}
		endSession(t, r.etcd, currentSession(t, dies))
		run.End(guard.Tried{Sent: true, Failure: idem.Failure{Code: "test"}})
		r.policy.Strategy = idem.Wait // also who would wait is refused: there is no queue before the other lock
		if got := r.deliver(t, after, "one"); got.Decision != idem.DecisionLocked &&
			got.Decision != idem.DecisionInFlight {
			t.Errorf("%+v", got)
		}
		r.etcd.Expire(t, "/hooklock/v1/holds/")
		eventually(t, "it runs again after the delay", func() bool {
			got := r.deliver(t, after, "one")
			if got.Execution != nil && got.Execution.Lock().Attempt != 2 {
				t.Errorf("attempt %d", got.Execution.Lock().Attempt)
			}
			return got.Execution != nil
		})
	})
}

func TestAnEventThatRunsUnderAnotherStrategyIsNotForgotten(t *testing.T) {
	each(t, func(t *testing.T, r *strategies, before, after *guard.Guard) {
		first := r.mustRun(t, before, "one")
		first.End(guard.Tried{Answer: &idem.Answer{Status: 500, Whole: true}}) // may run again
		second := r.mustRun(t, after, "one")
		if _, err := r.lockStore.Forget(within(t, patience), first.Lock().Execution,
			idem.Cancel{By: "ops", Reason: "try", At: time.Now()}, nil); err == nil {
			t.Error("its record was forgotten while it runs")
		}
		second.End(guard.Tried{})
	})
}
