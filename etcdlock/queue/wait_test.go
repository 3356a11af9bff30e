package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestWaitersRunInTheOrderOfArrivalOverAllProcesses(t *testing.T) {
	e := etcdtest.Start(t)
	stores := []*etcdlock.Store{openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})}
	holder := mustClaim(t, stores[0], lockFor("w", "first"), 0)
	const waiters = 8
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	for i := range waiters {
		l := lockFor("w", fmt.Sprintf("event %d", i))
		p := mustEnqueue(t, stores[i%2], l)
		wg.Go(func() {
			held, err := inTurn(within(t, patience), p, l)
			if err != nil {
				t.Errorf("%d: %v", i, err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			if _, err := held.Settle(within(t, patience), success("")); err != nil {
				t.Error(err)
			}
		})
	}
	if held, seen, err := tryClaim(t, stores[1], lockFor("w", "pushes in"), 0); err != nil || held != nil ||
		seen.Lock == nil {
		t.Fatalf("%+v %v", seen, err)
	}
	must(t, holder.Release)
	wg.Wait()
	for i, n := range order {
		if i != n {
			t.Fatalf("ran in the order %v", order)
		}
	}
	if len(order) != waiters {
		t.Fatalf("%d ran", len(order))
	}
}

func TestNoClaimPassesTheQueueEvenWhenTheLockIsFree(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	first, second := lockFor("w", "first"), lockFor("w", "second")
	p1, p2 := mustEnqueue(t, s, first), mustEnqueue(t, s, second)
	if held, seen, err := p2.ClaimHead(within(t, patience), second, 0); err != nil || held != nil || seen == nil {
		t.Fatalf("%+v %v", seen, err)
	}
	must(t, p1.Leave)
	if _, err := p2.Await(within(t, patience), 0); err != nil {
		t.Fatal(err)
	}
	held, seen, err := p2.ClaimHead(within(t, patience), second, 0)
	if err != nil || held == nil {
		t.Fatalf("%+v %v", seen, err)
	}
	must(t, held.Release)
}

func TestDuplicatesOfOneEventDoNotWaitTwice(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := lockFor("w", "one")
	p := mustEnqueue(t, s, l)
	if _, seen, err := tryEnqueue(t, s, lockFor("w", "one"), 0, 0); err != nil || seen == nil || seen.Waiting == nil ||
		seen.Waiting.Execution != l.Execution {
		t.Fatalf("a copy: %+v, %v", seen, err)
	}

	must(t, p.Leave)
	rec, err := mustClaim(t, s, lockFor("w", "one"), 0).Settle(within(t, patience), success(""))
	if err != nil {
		t.Fatal(err)
	}
	if p, seen, err := tryEnqueue(t, s, lockFor("w", "one"), 0, 0); err != nil || p != nil ||
		seen.RecordRevision != rec.Revision {
		t.Fatalf("%+v %v", seen, err)
	}
}

func TestADuplicateDoesNotWaitWhileItsEventRuns(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	one := mustClaim(t, s, lockFor("w", "one"), 0)
	if p, seen, err := tryEnqueue(t, s, lockFor("w", "one"), 0, 0); p != nil || err != nil || seen.Lock == nil ||
		seen.Lock.Execution != one.Lock().Execution || seen.Lock.Dead {
		t.Fatalf("%v %+v %v", p, seen, err)
	}
	// The lock of another event than it was told of is no reason.
	if err := mustEnqueue(t, s, lockFor("w", "two")).Leave(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	must(t, one.Release)
	if p, seen, err := tryEnqueue(t, s, lockFor("w", "one"), 0, one.Lock().Token); p == nil {
		t.Fatalf("after a lock that is free by now: %+v %v", seen, err)
	} else if err := p.Leave(within(t, patience)); err != nil {
		t.Fatal(err)
	}
}

// The lock changes hands all the time while many deliveries come: one that is refused for that
// passes those that come after it.
func TestManyEntriesAreWrittenWhileTheLockChangesHands(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	const each = 100
	var wg sync.WaitGroup
	began := time.Now()
	for n := range each {
		for i, s := range []*etcdlock.Store{a, b} {
			wg.Go(func() {
				l := lockFor("w", fmt.Sprintf("%d/%d", i, n))
				p, seen, err := tryEnqueue(t, s, l, 0, 0)
				if p == nil {
					t.Errorf("%+v %v", seen, err)
					return
				}
				held, err := ledgertest.InTurn(within(t, patience),
					&ledgertest.InQueue{QueueEntry: p, Ledger: s, Lock: l},
					l)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := held.Settle(within(t, patience), success("")); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	t.Logf("%d executions one after the other in %v", 2*each, time.Since(began))
}

func TestAWaiterWhoseEventHasRunMeanwhileFindsTheRecord(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	running := mustClaim(t, s, lockFor("w", "one"), 0)
	// another payload, under on_mismatch: execute
	p, seen, err := tryEnqueue(t, s, lockFor("w", "one"), 0, running.Lock().Token)
	if p == nil {
		t.Fatalf("%+v %v", seen, err)
	}
	found := make(chan *idem.Obstacle, 1)
	go func() {
		seen, err := p.Await(within(t, patience), 0)
		if err != nil {
			t.Error(err)
		}
		found <- seen
	}()
	mustSettle(t, running)
	if seen := <-found; seen == nil || seen.Record == nil || !seen.Record.Settled() {
		t.Fatalf("%+v", seen)
	}
	must(t, p.Leave)
}

func TestTheHeadOfTheQueueMeetsADeadHolder(t *testing.T) {
	e := etcdtest.Start(t)
	proxy := etcdtest.NewWire(t, e.Endpoint)
	frozen := openStore(t, etcdlock.Options{Endpoints: []string{proxy.Endpoint}, SessionTTL: 2 * time.Second})
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	mustClaim(t, frozen, lockFor("w", "one"), 0)
	l := lockFor("w", "two")
	p := mustEnqueue(t, s, l)
	old := sessionOf(t, e, frozen)
	proxy.Blackhole(true)
	defer proxy.Blackhole(false)
	endSession(t, e, old)
	for {
		seen, err := p.Await(within(t, patience), 0)
		if err != nil {
			t.Fatal(err)
		}
		if seen.Lock != nil { // or the sweep was faster
			if err := s.Reap(within(t, patience), seen.Lock); err != nil {
				t.Fatal(err)
			}
			continue
		}
		held, _, err := p.ClaimHead(within(t, patience), l, 0)
		if err != nil {
			t.Fatal(err)
		}
		if held != nil {
			must(t, held.Release)
			return
		}
	}
}

func TestAQueueEntryIsLostWithItsSession(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	holder := mustClaim(t, s, lockFor("w", "one"), 0)
	p := mustEnqueue(t, s, lockFor("w", "two"))
	result := make(chan error, 1)
	go func() {
		_, err := p.Await(within(t, patience), 0)
		result <- err
	}()
	endSession(t, e, sessionOf(t, e, s))
	if err := <-result; !errors.Is(err, idem.ErrQueueEntryLost) {
		t.Fatalf("await: got %v", err)
	}
	// Why not depends on what this process has heard, and on whether etcd answered in time; the
	// session's end explains each of these.
	held, seen, err := p.ClaimHead(within(t, patience), lockFor("w", "two"), 0)
	expected := err == nil || errors.Is(err, idem.ErrQueueEntryLost) || errors.Is(err, idem.ErrNotClaimed) ||
		errors.Is(err, idem.ErrStoreUnavailable)
	if held != nil || !expected {
		t.Fatalf("claimed without a place: %v %+v %v", held, seen, err)
	}
	must(t, p.Leave)
	must(t, holder.Release)
}

// hungWatcher is a member that takes no new watch on a lock or a place, and does not refuse it
// either.
type hungWatcher struct{ clientv3.Watcher }

func (w hungWatcher) Watch(ctx context.Context, key string, o ...clientv3.OpOption) clientv3.WatchChan {
	if strings.HasSuffix(key, "/"+protocol.KindSessions) || strings.HasSuffix(key, "/"+protocol.KindForgets) {
		return w.Watcher.Watch(ctx, key, o...)
	}
	<-ctx.Done()
	news := make(chan clientv3.WatchResponse)
	close(news)
	return news
}

func TestAWaiterLearnsOfItsSessionsEndEvenWhenItsWatchHangs(t *testing.T) {
	e := etcdtest.Start(t)
	client := etcdtest.Dial(t, e.Endpoint)
	client.Watcher = hungWatcher{client.Watcher}
	s := openStore(t, etcdlock.Options{Client: client})
	holder := mustClaim(t, s, lockFor("w", "one"), 0)
	p := mustEnqueue(t, s, lockFor("w", "two"))
	result := make(chan error, 1)
	go func() {
		_, err := p.Await(within(t, 2*patience), 0) // longer than this test has patience
		result <- err
	}()
	endSession(t, e, sessionOf(t, e, s))
	select {
	case err := <-result:
		if !errors.Is(err, idem.ErrQueueEntryLost) {
			t.Fatalf("got %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it never heard")
	}
	must(t, holder.Release)
}
