package history_test

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/test/fault/cluster"
)

// tenure is when an execution had its slot for certain: from the answer to its claim until its end
// was asked for.
type tenure struct{ from, to time.Time }

// tenures are what clients note of theirs.
type tenures struct {
	mu  sync.Mutex
	all []*tenure
}

func (h *tenures) begin() *tenure {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &tenure{from: now}
	h.all = append(h.all, t)
	return t
}

// most is how many there were at one time.
func (h *tenures) most() (most int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	type edge struct {
		at time.Time
		by int
	}
	var edges []edge
	for _, t := range h.all {
		edges = append(edges, edge{t.from, 1})
		if !t.to.IsZero() { // else it is under way
			edges = append(edges, edge{t.to, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.by - b.by // who ended just then made room
	})
	n := 0
	for _, e := range edges {
		n += e.by
		most = max(most, n)
	}
	return most
}

// slotClient claims, or waits, and ends what it got, until ctx ends. A mortal one leaves everything
// as it is then.
func slotClient(ctx context.Context, id int, ledger idem.Ledger, h *tenures, mortal bool) {
	random := rand.New(rand.NewPCG(uint64(id), 7))
	for n := 0; ctx.Err() == nil; n++ {
		workflow := fmt.Sprintf("w%d-%d", id, n)
		key, _ := idem.RandomKey(crand.Reader)
		l := idem.Lock{ExecutionFacts: idem.ExecutionFacts{
			Execution: idem.NewExecutionID(workflow, key, [4]byte{byte(random.IntN(256)), byte(random.IntN(256)),
				byte(n), byte(id)}), Scope: idem.Scope{Workflow: workflow, Key: key},
			Attempt: 1, StartedAt: time.Now(), Retention: time.Minute,
			Slots: []idem.Slot{{LimitName: "erp", Rule: "erp", Index: -1}},
		}}
		patient, done := context.WithTimeout(ctx, 1500*time.Millisecond)
		var held idem.RunningLock
		if random.IntN(2) == 0 {
			held, _, _ = ledger.Claim(patient, l, 0)
		} else if place, _, err := ledger.Enqueue(patient, l, 0, 0); err == nil && place != nil {
			for held == nil && patient.Err() == nil {
				if _, err = place.Await(patient, 0); err != nil {
					break
				}
				held, _, _ = place.ClaimHead(patient, l, 0)
			}
			if held == nil && !mortal {
				_ = place.Leave(context.WithoutCancel(ctx))
			}
		}
		done()
		if held == nil {
			continue
		}
		mine := h.begin()
		pass(ctx, time.Duration(random.IntN(30))*time.Millisecond)
		h.mu.Lock()
		mine.to = time.Now()
		h.mu.Unlock()
		if mortal && ctx.Err() != nil {
			return
		}
		ending, over := context.WithTimeout(context.WithoutCancel(ctx), patience)
		if mortal {
			over()
			ending, over = context.WithTimeout(ctx, patience)
		}
		if random.IntN(2) == 0 {
			_ = held.Release(ending)
		} else {
			_, _ = held.Settle(ending, idem.End{Status: idem.Success, Outcome: idem.Executed, FinishedAt: time.Now()})
		}
		over()
	}
}

// TestNeverMoreHaveASlotThanTheLargestLimitSays: replicas with limits that differ and change, lost
// answers and requests, and processes that die.
func TestNeverMoreHaveASlotThanTheLargestLimitSays(t *testing.T) {
	const largest = 4
	e := etcdtest.Start(t)
	limits := make([]atomic.Int64, 3)
	for i := range limits {
		limits[i].Store(largest)
	}
	stores, wires := limitedReplicas(t, e, limits)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var h tenures
	var wg sync.WaitGroup
	wg.Go(func() { cluster.Disturb(ctx, wires) })
	wg.Go(func() { // reloads
		for n := int64(0); ctx.Err() == nil; n++ {
			for i := range limits {
				limits[i].Store(1 + (n+int64(i))%largest)
			}
			pass(ctx, 200*time.Millisecond)
		}
	})
	for i := range 18 {
		wg.Go(func() { slotClient(ctx, i, stores[i%len(stores)], &h, false) })
	}
	end := time.Now().Add(length(9 * time.Second))
	for deaths := 1; deaths <= 2 || time.Now().Before(end) || deaths <= 30 && h.most() < 2; deaths++ {
		liveAndDie(ctx, t, e, largest, 100*deaths, &h)
		pass(ctx, time.Second) // others get their turn
	}
	cancel()
	wg.Wait()
	t.Logf("%d had a slot, %d at one time", len(h.all), h.most())
	if most := h.most(); most > largest {
		t.Errorf("%d had a slot at one time, and no limit was more than %d", most, largest)
	}
	if h.most() < 2 {
		t.Error("the history says nothing: no two had a slot at one time")
	}
	for _, w := range wires {
		w.Blackhole(false)
	}
	for _, s := range stores[1:] {
		closed(s)
	}
	// What those left goes with their locks, by the one that is left.
	noSlotIsLeft(t, e)
}

// liveAndDie is a process that claims for a while and is gone then, with what it has.
func liveAndDie(ctx context.Context, t *testing.T, e *etcdtest.Etcd, most, id int, h *tenures) {
	t.Helper()
	w := etcdtest.NewWire(t, e.Endpoint)
	s, err := etcdlock.Open(etcdlock.Options{Endpoints: []string{w.Endpoint}, SessionTTL: 2 * time.Second,
		Limit: func(string, idem.Slot) int {
			return most
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Blackhole(false); closed(s) })
	ready, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.WaitReady(ready); err != nil {
		t.Error(err)
		return
	}
	life, die := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() { slotClient(life, id+i, s, h, true) })
	}
	pass(ctx, 700*time.Millisecond)
	w.Blackhole(true)
	die()
	wg.Wait()
}

func noSlotIsLeft(t *testing.T, e *etcdtest.Etcd) {
	t.Helper()
	ctx, over := context.WithTimeout(context.Background(), patience)
	defer over()
	for {
		r, err := e.Client.Get(ctx, "/hooklock/v1/slots/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		switch {
		case err != nil:
			t.Fatalf("slots are left that nobody has: %v", err)
		case r.Count == 0:
			return
		}
		pass(ctx, 20*time.Millisecond)
	}
}

// pass lets time go by.
func pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// limitedReplicas are stores with a limit each, over two wires each.
func limitedReplicas(t *testing.T, e *etcdtest.Etcd, limits []atomic.Int64) (stores []*etcdlock.Store,
	wires []*etcdtest.Wire) {
	t.Helper()
	for i := range limits {
		a, b := etcdtest.NewWire(t, e.Endpoint), etcdtest.NewWire(t, e.Endpoint)
		s, err := etcdlock.Open(etcdlock.Options{Endpoints: []string{a.Endpoint, b.Endpoint}, SessionTTL: time.Minute,
			Limit: func(string, idem.Slot) int { return int(limits[i].Load()) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for _, w := range []*etcdtest.Wire{a, b} {
				w.Blackhole(false)
			}
			closed(s)
		})
		ready, cancel := context.WithTimeout(context.Background(), patience)
		err = s.WaitReady(ready)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		stores, wires = append(stores, s), append(wires, a, b)
	}
	return stores, wires
}

func closed(s *etcdlock.Store) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = s.Close(ctx)
}
