package etcdlock

import (
	"context"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/test/fault/cluster"
	"hooklock/test/history"
)

// This shows what the fence is for, and that the histories would tell if it were broken: without it a claim that was given up lands
// later, on a lock that is free by then, and stays there for ever.
func TestWithoutTheFenceHistoriesAreIllegal(t *testing.T) {
	t.Parallel()
	tries := 30
	if testing.Short() {
		tries = 3
	}
	for range tries {
		switch v := unfencedHistory(t, 4*time.Second).CheckExclusion(20 * time.Second); v {
		case history.Illegal:
			return
		default:
			t.Logf("not found this time: %v", v)
		}
	}
	if testing.Short() {
		t.Skipf("not found in %d tries; the long form tries more often", tries)
	}
	t.Fatalf("the fence was taken out and %d histories did not show it", tries)
}

// unfencedHistory has many locks and no records: a record would keep most of the late claims out.
func unfencedHistory(t *testing.T, d time.Duration) *history.History {
	t.Helper()
	e := etcdtest.Start(t)
	load := history.Load{Clients: 12, Workflows: 40}
	var wires []*etcdtest.Wire
	for range 2 {
		a, b := etcdtest.NewWire(t, e.Endpoint), etcdtest.NewWire(t, e.Endpoint)
		s := openStore(t, Options{Endpoints: []string{a.Endpoint, b.Endpoint}, SessionTTL: time.Minute})
		s.unfenced = true
		load.Ledgers, wires = append(load.Ledgers, idem.Ledger(s)), append(wires, a, b)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		cluster.Hiccup(ctx, wires)
	}()
	h := history.Run(ctx, load)
	<-done
	t.Logf("%+v", h.Counts())
	return h
}
