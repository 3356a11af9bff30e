package operate_test

import (
	"sync/atomic"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/idem/guard"
)

// gate is a Guard on a store of its own, with the cache that a process has.
func gate(tb testing.TB, e *etcdtest.Etcd) (*guard.Guard, *etcdlock.Store) {
	tb.Helper()
	cache := guard.NewCache(0)
	s := openStore(tb, etcdlock.Options{Endpoints: []string{e.Endpoint}, OnForget: cache.Forget, OnReset: cache.Reset})
	return guard.New(guard.Options{Ledger: s, Base: tb.Context(), Cache: cache}), s
}

func TestAForgottenEventIsDroppedFromEveryCacheWithin2s(t *testing.T) {
	e := etcdtest.Start(t)
	a, _ := gate(t, e)
	b, store := gate(t, e)
	keep := idem.StatusSet{}
	keep.Add(200, 299)
	policy := &idem.Policy{Route: "r", Strategy: idem.FailFast, Idempotency: true, Retention: time.Hour, Keep: keep,
		ReplayBody: 100, OnUnknown: idem.UnknownRetry, InFlight: idem.Conflict, OnMismatch: idem.MismatchReplay}
	deliver := func(g *guard.Guard) guard.Admission {
		return g.Admit(t.Context(), &idem.Request{Scope: lockFor("w", "one").Scope, Policy: policy})
	}
	run := deliver(a)
	if run.Execution == nil {
		t.Fatalf("%+v", run)
	}
	id := run.Execution.Lock().Execution
	if end := run.Execution.End(guard.Tried{Answer: &idem.Answer{Status: 200, Whole: true}}); !end.Recorded {
		t.Fatalf("%+v", end)
	}
	for _, g := range []*guard.Guard{a, b, b} { // the second one of b is from its cache
		if got := deliver(g); got.Decision != idem.DecisionReplayed {
			t.Fatalf("%+v", got)
		}
	}
	if _, err := store.Forget(within(t, patience), id, idem.Cancel{By: "ops", Reason: "try", At: time.Now()},
		nil); err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]*guard.Guard{"a": a, "b": b} {
		var again guard.Admission
		eventually(t, name+" runs it again", func() bool { again = deliver(g); return again.Execution != nil })
		if again.Execution.Lock().Attempt != 1 {
			t.Errorf("attempt %d of an event that was forgotten", again.Execution.Lock().Attempt)
		}
		again.Execution.End(guard.Tried{})
	}
}

func TestALostSessionEmptiesTheCacheBeforeItIsReported(t *testing.T) {
	e := etcdtest.Start(t)
	var resets atomic.Int64
	lost := make(chan int64, 10)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}, OnReset: func() {
		resets.Add(1)
	}, OnSession: func(e etcdlock.SessionEvent) {
		if !e.Opened {
			lost <- resets.Load()
		}
	}})
	before := resets.Load()
	endSession(t, e, sessionOf(t, e, s))
	select {
	case at := <-lost:
		if at <= before {
			t.Error("a session was lost, and what was remembered stays")
		}
	case <-time.After(patience):
		t.Fatal("the loss of the session was not told")
	}
}
