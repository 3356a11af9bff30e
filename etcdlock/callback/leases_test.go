package callback_test

import (
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/owned"
	"hooklock/idem"
)

// leases is how many there are.
func leases(tb testing.TB, e *etcdtest.Etcd) int {
	tb.Helper()
	all, err := e.Client.Leases(within(tb, patience))
	if err != nil {
		tb.Fatal(err)
	}
	return len(all.Leases)
}

// holding is one execution and what its upstream and others do, until it has ended.
type holding struct {
	a, b *etcdlock.Store
	own  *owned.Lock
	cb   idem.Callback
}

func (h *holding) complete(t *testing.T, s *etcdlock.Store) {
	t.Helper()
	if _, err := s.Complete(within(t, patience), h.cb, idem.Final{Status: idem.Success}); err != nil {
		t.Error(err)
	}
}

// TestAHoldThatHasEndedLeavesNoLease: a lease of a hold of a day would stay for a day.
func TestAHoldThatHasEndedLeavesNoLease(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(t *testing.T, h *holding){
		"completed": func(t *testing.T, h *holding) {
			_ = h.own.Hold(within(t, patience), time.Hour)
			h.complete(t, h.b)
		},
		"completed before the answer that asks for it has come": func(t *testing.T, h *holding) {
			h.complete(t, h.b)
			_ = h.own.Hold(within(t, patience), time.Hour)
		},
		"guarded elsewhere before the answer that asks for it has come": func(t *testing.T, h *holding) {
			if _, err := h.b.Guard(within(t, patience), h.cb, "step", nil); err != nil {
				t.Error(err)
			}
			_ = h.own.Hold(within(t, patience), time.Hour)
			h.complete(t, h.b)
		},
		"renewed by many at once": func(t *testing.T, h *holding) {
			_ = h.own.Hold(within(t, patience), time.Hour)
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					s := []*etcdlock.Store{h.a, h.b}[i%2]
					if _, err := s.Heartbeat(within(t, patience), h.cb, 0); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			h.complete(t, h.a)
		},
		"renewed while it is completed": func(t *testing.T, h *holding) {
			_ = h.own.Hold(within(t, patience), time.Hour)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { _, _ = h.b.Heartbeat(within(t, patience), h.cb, 0) })
			}
			wg.Go(func() { h.complete(t, h.a) })
			wg.Wait()
		},
		"forced open while it is renewed": func(t *testing.T, h *holding) {
			_ = h.own.Hold(within(t, patience), time.Hour)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { _, _ = h.b.Heartbeat(within(t, patience), h.cb, 0) })
			}
			l := h.own.Lock()
			if _, err := h.a.ForceRelease(within(t, patience), l.Scope.Workflow, l.Execution, byOps(false),
				nil); err != nil {
				t.Error(err)
			}
			wg.Wait()
		},
		"settled with a release delay that is forced open": func(t *testing.T, h *holding) {
			if _, err := h.own.Settle(within(t, patience), unknownEnd()); err != nil {
				t.Error(err)
			}
			l := h.own.Lock()
			if _, err := h.a.ForceRelease(within(t, patience), l.Scope.Workflow, l.Execution, byOps(false),
				nil); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, a, b := replicas(t)
			// the shared leases of records and news come with it
			warm := mustHold(t, a, withKey(lockFor("w", "warm")), time.Hour)
			if _, err := a.ForceRelease(within(t, patience), "w", warm.Lock().Execution, byOps(false),
				nil); err != nil {
				t.Fatal(err)
			}
			other := mustHold(t, b, withKey(lockFor("w", "warm too")), time.Hour)
			if _, err := b.ForceRelease(within(t, patience), "w", other.Lock().Execution, byOps(false),
				nil); err != nil {
				t.Fatal(err)
			}
			before := 0
			eventually(t, "the leases of these are gone", func() bool { before = leases(t, e); return before <= 2+4 })
			l := withKey(lockFor("w", "one"))
			l.ReleaseDelay, l.MaxDuration = time.Hour, 2*time.Hour
			own := mustClaim(t, a, l, 0)
			f(t, &holding{a, b, own, callbackOf(own.Lock())})
			eventually(t, "its leases are gone", func() bool { return leases(t, e) <= before })
		})
	}
}
