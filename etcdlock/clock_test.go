package etcdlock

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
	"hooklock/idem/guard"
)

// skewed is a process whose wall clock is off by d: a Guard with its cache, on a store of its own.
func skewed(tb testing.TB, e *etcdtest.Etcd, d time.Duration) (*guard.Guard, *Store) {
	tb.Helper()
	now := func() time.Time { return time.Now().Add(d) }
	cache := guard.NewCache(0)
	s, err := Open(Options{Endpoints: []string{e.Endpoint}, OnForget: cache.Forget, OnReset: cache.Reset,
		Clock: link.Clock{Now: now, Boot: link.SystemClock().Boot}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closeStore(tb, s) })
	must(tb, s.WaitReady)
	return guard.New(guard.Options{Ledger: s, Base: tb.Context(), Cache: cache, Now: now}), s
}

// byPayload is a delivery without an event ID: its payload is its key, for payloadRetention.
func byPayload(event string, payloadRetention time.Duration) *idem.Request {
	keep := idem.StatusSet{}
	keep.Add(200, 299)
	return &idem.Request{Scope: lockFor("w", event).Scope, ByPayload: true, Policy: &idem.Policy{
		Route: "r", Strategy: idem.FailFast, Idempotency: true, PayloadRetention: payloadRetention, Keep: keep,
		ReplayBody: 100,
		OnUnknown:  idem.UnknownRetry, InFlight: idem.Conflict, OnMismatch: idem.MismatchReplay,
	}}
}

func mustRun(tb testing.TB, g *guard.Guard, r *idem.Request) idem.ExecutionID {
	tb.Helper()
	run := g.Admit(tb.Context(), r)
	if run.Execution == nil {
		tb.Fatalf("did not run: %+v", run)
	}
	if end := run.Execution.End(guard.Tried{Answer: &idem.Answer{Status: 200, Whole: true}}); !end.Recorded {
		tb.Fatalf("%+v", end)
	}
	return run.Execution.Lock().Execution
}

func TestASettledEventIsReplayedWhateverTheWallClocksSay(t *testing.T) {
	const aWhile, week = 10 * time.Minute, 7 * 24 * time.Hour
	for name, c := range map[string]struct{ settles, meets time.Duration }{
		"the copy's process is 11 minutes ahead":    {0, 11 * time.Minute},
		"the copy's process is a week ahead":        {0, week},
		"the copy's process is a week behind":       {0, -week},
		"the first one's process was a week behind": {-week, 0},
		"the first one's process was a week ahead":  {week, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := etcdtest.Start(t)
			first, firstStore := skewed(t, e, c.settles)
			second, secondStore := skewed(t, e, c.meets)
			id := mustRun(t, first, byPayload("one", aWhile))
			for i, g := range []*guard.Guard{first, second, second} { // the third answer may come from a cache
				if got := g.Admit(t.Context(), byPayload("one", aWhile)); got.Decision != idem.DecisionReplayed ||
					got.Holder != id {
					t.Errorf("copy %d: %+v", i, got)
				}
			}
			for _, s := range []*Store{firstStore, secondStore} {
				if f := mustFind(t, s, id); f.Record == nil {
					t.Errorf("people do not see the record: %+v", f)
				}
				if page, err := s.Executions(within(t, patience), idem.ExecutionQuery{}); err != nil ||
					len(page.Executions) != 1 {
					t.Errorf("people do not see the record in the list: %+v %v", page, err)
				}
			}
			if _, err := secondStore.Forget(within(t, patience), id,
				idem.Cancel{By: "ops", Reason: "try", At: time.Now()}, nil); err != nil {
				t.Errorf("people cannot forget the record: %v", err)
			}
		})
	}
}

func TestAfterItsRetentionAnEqualPayloadRunsAgain(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	a, _ := skewed(t, e, 0)
	b, _ := skewed(t, e, -7*24*time.Hour)
	const retention = 2 * time.Second
	mustRun(t, a, byPayload("one", retention))
	for name, g := range map[string]*guard.Guard{"its own process": a, "another one": b} {
		eventually(t, name+" runs it again", func() bool {
			got := g.Admit(t.Context(), byPayload("one", retention))
			if got.Execution != nil {
				got.Execution.End(guard.Tried{})
			}
			return got.Execution != nil
		})
	}
}

// TestMaxDurationOfAHoldIsCountedByEtcd: the upstream renews its hold at any replica, so no
// replica's wall clock may say that the time is up.
func TestMaxDurationOfAHoldIsCountedByEtcd(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for name, off := range map[string]time.Duration{"a week ahead": week, "a week behind": -week} {
		t.Run(name, func(t *testing.T) {
			e := etcdtest.Start(t)
			a := openStore(t, Options{Endpoints: []string{e.Endpoint}})
			_, b := skewed(t, e, off)
			l := withKey(lockFor("w", "one"))
			l.MaxDuration = time.Hour
			held := mustHold(t, a, l, 10*time.Minute)
			life := func() time.Duration {
				t.Helper()
				hold, err := e.Client.Get(within(t, patience), a.layout.Alive(protocol.HoldAlive(l.Execution)))
				if err != nil || len(hold.Kvs) != 1 {
					t.Fatalf("%+v %v", hold, err)
				}
				left, err := e.Client.TimeToLive(within(t, patience), clientv3.LeaseID(hold.Kvs[0].Lease))
				if err != nil {
					t.Fatal(err)
				}
				return time.Duration(left.GrantedTTL) * time.Second
			}
			for ttl, want := range map[time.Duration]time.Duration{20 * time.Minute: 20 * time.Minute,
				3 * time.Hour: time.Hour} {
				if _, err := b.Heartbeat(within(t, patience), callbackOf(held.Lock()), ttl); err != nil {
					t.Fatal(err)
				}
				if got := life(); got > want || got < want-time.Minute {
					t.Errorf("renewed for %v, max_duration 1h: etcd holds it for %v", ttl, got)
				}
			}
			if _, err := e.Client.Delete(within(t, patience),
				a.layout.Alive(protocol.HoldAlive(l.Execution))); err != nil {
				t.Fatal(err)
			}
			if f := mustFind(t, b, l.Execution); f.Record == nil || f.Record.Error == nil ||
				f.Record.Error.Code != finish.CodeHoldExpired {
				t.Errorf("its upstream was silent, and its max_duration is not over: %+v", f.Record)
			}
		})
	}
}
