package etcdlock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/owned"
)

// takeTurns lets all places have the lock, each as soon as it is its turn, and calls ran for each.
func takeTurns(tb testing.TB, places []*inQueue, ran func(*inQueue)) (wait func()) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	var wg sync.WaitGroup
	for _, p := range places {
		wg.Go(func() {
			held, err := inTurn(ctx, p, p.Lock)
			if err != nil {
				tb.Errorf("%s: %v", p.Lock.Scope.Key, err)
				return
			}
			ran(p)
			if err := held.Release(ctx); err != nil {
				tb.Error(err)
			}
		})
	}
	return func() {
		wg.Wait()
		cancel()
	}
}

// crowd is waiters on some workflows, behind one holder each.
func crowd(tb testing.TB, s *Store, workflows, each int) (holders []*owned.Lock, places []*inQueue) {
	tb.Helper()
	var wg sync.WaitGroup
	holders, places = make([]*owned.Lock, workflows), make([]*inQueue, workflows*each)
	for w := range workflows {
		wg.Go(func() {
			name := fmt.Sprintf("workflow %d", w)
			holders[w] = mustClaim(tb, s, lockFor(name, "holds"), 0)
			for i := range each {
				places[w*each+i] = mustEnqueue(tb, s, lockFor(name, fmt.Sprintf("event %d", i)))
			}
		})
	}
	wg.Wait()
	if tb.Failed() { // in a goroutine, which could not end the test
		tb.FailNow()
	}
	return holders, places
}

func releaseAll(tb testing.TB, holders []*owned.Lock) {
	tb.Helper()
	var wg sync.WaitGroup
	for _, h := range holders {
		wg.Go(func() {
			if err := h.Release(within(tb, patience)); err != nil {
				tb.Error(err)
			}
		})
	}
	wg.Wait()
}

func settled(tb testing.TB, s *Store, n int) {
	tb.Helper()
	eventually(tb, fmt.Sprintf("%d watch", n), func() bool {
		subscribed, _ := s.view.Watcher.Watching()
		return subscribed == n
	})
}

func TestManyWaitersRunInOrderAndNoneIsLeftBehind(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	const workflows, each = 20, 15
	holders, places := crowd(t, s, workflows, each)
	var mu sync.Mutex
	last := map[string]int64{}
	total := 0
	wait := takeTurns(t, places, func(p *inQueue) {
		mu.Lock()
		defer mu.Unlock()
		if w := p.Lock.Scope.Workflow; p.revision < last[w] {
			t.Errorf("%s: place %d ran after %d", w, p.revision, last[w])
		} else {
			last[w] = p.revision
		}
		total++
	})
	settled(t, s, workflows*each)
	releaseAll(t, holders)
	wait()
	if total != workflows*each {
		t.Fatalf("%d of %d ran", total, workflows*each)
	}
	settled(t, s, 0)
	eventually(t, "it stops watching", func() bool { _, watching := s.view.Watcher.Watching(); return !watching })
}

func TestNoWaiterIsLeftBehindWhenTheWatchBreaks(t *testing.T) {
	e := etcdtest.Start(t)
	proxy := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{proxy.Endpoint}, SessionTTL: 10 * time.Second})
	holders, places := crowd(t, s, 4, 5)
	var ran atomic.Int32
	wait := takeTurns(t, places, func(*inQueue) { ran.Add(1) })
	settled(t, s, len(places))
	s.view.Watcher.Break(0)
	settled(t, s, len(places))
	proxy.Reset()
	for range 20 { // and history goes while they come back
		if _, err := e.Client.Put(within(t, patience), "other", ""); err != nil {
			t.Fatal(err)
		}
	}
	got, err := e.Client.Get(within(t, patience), "other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Client.Compact(within(t, patience), got.Header.Revision,
		clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	releaseAll(t, holders)
	wait()
	if n := int(ran.Load()); n != len(places) {
		t.Fatalf("%d of %d ran", n, len(places))
	}
}

func TestAFreedLockWakesOneWaiter(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	holders, places := crowd(t, s, 1, 3)
	turns := make(chan int, len(places))
	ctx, cancel := context.WithCancel(within(t, patience))
	var wg sync.WaitGroup
	for i, p := range places {
		wg.Go(func() {
			if _, err := p.Await(ctx, 0); err == nil {
				turns <- i
			}
		})
	}
	settled(t, s, len(places))
	releaseAll(t, holders)
	if first := <-turns; first != 0 {
		t.Errorf("place %d was woken", first)
	}
	settled(t, s, len(places)-1)
	select {
	case other := <-turns:
		t.Errorf("place %d was woken, too", other)
	default:
	}
	cancel()
	wg.Wait()
	for _, p := range places {
		must(t, p.Leave)
	}
}
