package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// first waits until nobody is before p, and that is known here.
func firstInLine(t *testing.T, p *inQueue) {
	t.Helper()
	eventually(t, "its place is known to be the first", func() bool {
		known := p.store.view.Queues.Known(p.store.layout.Lock(p.Lock.Scope), protocol.Candidates{}).Entries
		return len(known) > 0 && known[0].Revision == p.revision && known[0].Key == p.store.layout.Queued(p.Lock.Scope)
	})
}

// waitsAt lets p wait, and tells of the lock that it gets.
func waitsAt(t *testing.T, p *inQueue, l idem.Lock) <-chan idem.RunningLock {
	t.Helper()
	return ledgertest.WaitsAt(t, p.InQueue, l)
}

func revisionOf(t *testing.T, e *etcdtest.Etcd) int64 {
	t.Helper()
	r, err := e.Client.Get(within(t, patience), "nothing")
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}

func TestASettleHandsTheLockToTheHeadOfTheQueueInOneTransaction(t *testing.T) {
	e := etcdtest.Start(t)
	stores := []*Store{openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})}
	for _, s := range stores { // brings the leases of their records
		mustSettle(t, mustClaim(t, s, lockFor("another "+s.writer, "one"), 0))
	}
	var held idem.RunningLock = mustClaim(t, stores[0], lockFor("w", "first"), 0)
	var waiting []<-chan idem.RunningLock
	for i := range 4 { // the second to fourth are of the other process
		l := lockFor("w", fmt.Sprintf("event %d", i))
		p := mustEnqueue(t, stores[min(i, 1)], l)
		waiting = append(waiting, waitsAt(t, p, l))
		if i == 0 {
			firstInLine(t, p)
		}
	}
	for i, next := range waiting {
		eventually(t, "who is next is known", func() bool {
			return len(held.(*owned.Lock).Known().Entries) > 0
		})
		before := revisionOf(t, e)
		mustSettle(t, held)
		after := <-next
		if after == nil {
			t.Fatalf("%d got nothing", i)
		}
		if wrote := revisionOf(t, e) - before; wrote != 1 {
			t.Errorf("%d: the end of one and the claim of the next took %d transactions", i, wrote)
		}
		was, is := held.Lock(), after.Lock()
		if is.Token <= was.Token || is.Token != is.Revision || is.Created != was.Created {
			t.Errorf("%d: after token %d comes %+v", i, was.Token, is)
		}
		if err := after.Begin(); err != nil {
			t.Error(err)
		}
		held = after
	}
	mustSettle(t, held)
	if n, err := e.Count(within(t, patience), stores[0].layout.All(protocol.KindLocks)); err != nil || n != 0 {
		t.Errorf("%d locks are still there: %v", n, err)
	}
}

func TestAHandedLockIsGivenBackWhereItsWaiterHasGone(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	holder := mustClaim(t, s, lockFor("w", "first"), 0)
	gone, next := lockFor("w", "hangs up"), lockFor("w", "next")
	p := mustEnqueue(t, s, gone)
	ctx, hangUp := context.WithCancel(within(t, patience))
	left := make(chan error, 1)
	go func() {
		_, err := p.Await(ctx, 0)
		left <- err
	}()
	firstInLine(t, p)
	q := waitsAt(t, mustEnqueue(t, s, next), next)
	hangUp()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	mustSettle(t, holder) // it still has its place
	if l := s.own.Of(gone.Execution); l == nil {
		t.Fatal("it was not handed the lock")
	}
	must(t, p.Leave)
	if held := <-q; held == nil || held.Lock().Execution != next.Execution {
		t.Fatalf("behind it: %+v", held)
	}
	if n, _ := s.Active(); n != 1 {
		t.Errorf("%d locks are held", n)
	}
}

func TestALeaveSucceedsAlsoWhereTheHandedLockIsTakenAway(t *testing.T) {
	for name, ends := range map[string]func(t *testing.T, s *Store, id idem.ExecutionID){
		"it was cancelled": func(t *testing.T, s *Store, id idem.ExecutionID) { mustCancel(t, s, id, byOps(false)) },
		"it was forced open": func(t *testing.T, s *Store, id idem.ExecutionID) {
			if _, err := s.ForceRelease(within(t, patience), "w", id, byOps(false), nil); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := etcdtest.Start(t)
			s, other := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
				openStore(t, Options{Endpoints: []string{e.Endpoint}})
			holder, l := mustClaim(t, s, lockFor("w", "first"), 0), lockFor("w", "leaves")
			p := mustEnqueue(t, s, l)
			knowsWhoIsNext(t, holder, p)
			mustSettle(t, holder)
			if s.own.Of(l.Execution) == nil {
				t.Fatal("it was not handed the lock")
			}
			ends(t, other, l.Execution)
			if err := p.Leave(within(t, patience)); err != nil {
				t.Error(err)
			}
			if f := mustFind(t, other, l.Execution); f.Status() != idem.Aborted ||
				countKeys(t, e, s.layout.All(protocol.KindLocks)) != 0 {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestALockIsNotHandedToAWaiterThatHasGone(t *testing.T) {
	for name, goes := range map[string]func(t *testing.T, e *etcdtest.Etcd, s *Store, p *inQueue){
		"its session is gone": func(t *testing.T, e *etcdtest.Etcd, s *Store, _ *inQueue) {
			endSession(t, e, currentSession(t, s))
		},
		"it was cancelled": func(t *testing.T, _ *etcdtest.Etcd, s *Store, p *inQueue) {
			if _, _, err := s.Cancel(within(t, patience), p.Lock.Execution, byOps(false), nil); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := etcdtest.Start(t)
			s, other := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
				openStore(t, Options{Endpoints: []string{e.Endpoint}})
			holder := mustClaim(t, s, lockFor("w", "first"), 0)
			l := lockFor("w", "goes")
			p := mustEnqueue(t, other, l)
			known, err := p.look(within(t, patience))
			if err != nil {
				t.Fatal(err)
			}
			next := lockFor("w", "next")
			q := waitsAt(t, mustEnqueue(t, s, next), next)
			holder.Behind(known.Candidates) // as the answer of its own hand-over had told it
			goes(t, e, other, p)
			mustSettle(t, holder)
			if held := <-q; held == nil || held.Lock().Execution != next.Execution {
				t.Fatalf("after it: %+v", held)
			}
		})
	}
}

func TestAHandOffWhoseAnswerGotLostReachesBothSides(t *testing.T) {
	e := etcdtest.Start(t)
	s, kv := lossy(t, e)
	holder := mustClaim(t, s, lockFor("w", "first"), 0)
	l := lockFor("w", "second")
	p := mustEnqueue(t, s, l)
	next := waitsAt(t, p, l)
	firstInLine(t, p)
	kv.armed <- true
	r, err := holder.Settle(within(t, patience), success("ok"))
	if err != nil || r.Execution != holder.Lock().Execution {
		t.Fatalf("settle: %+v %v", r, err)
	}
	if held := <-next; held == nil || held.Begin() != nil {
		t.Fatalf("the next: %+v", held)
	}
}

// The answer to its enqueue got lost, it was handed the lock since, and somebody takes that away
// while it looks for the mark of its scope.
func TestAWaiterThatLosesAHandedLockHasNoQueueEntry(t *testing.T) {
	e := etcdtest.Start(t)
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	s, kv := lossy(t, e)
	holder, l := mustClaim(t, other, ordered("w", "first", "10"), 0), ordered("w", "second", "20")
	looks := 0
	look := func(key string) {
		if key != keysOf(holder).Lock || !kv.lost.Load() {
			return
		}
		switch looks++; looks {
		case 1:
			known, err := history.Look(within(t, patience), other.pool, keysOf(holder))
			if err != nil {
				t.Error(err)
				return
			}
			holder.Behind(known.Candidates)
			if _, err := holder.Settle(within(t, patience), success("")); err != nil {
				t.Error(err)
			}
		case 2:
			if _, err := other.ForceRelease(within(t, patience), "w", l.Execution, byOps(false), nil); err != nil {
				t.Error(err)
			}
		}
	}
	kv.armed <- true
	kv.reads.Store(&look)
	if p, seen, err := s.Enqueue(within(t, patience), l, 0, holder.Lock().Revision); !errors.Is(err,
		idem.ErrNotClaimed) {
		t.Fatalf("%+v %+v %v", p, seen, err)
	}
	if looks != 2 {
		t.Errorf("it has looked %d times", looks)
	}
	if n := countKeys(t, e, s.layout.All(protocol.KindLocks)); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

// The answer to its enqueue got lost, and it is handed the lock while it finds out which place it
// has. The race detector sees whether the two are kept apart.
func TestALockMayBeHandedToAWaiterThatDoesNotKnowItsEntryYet(t *testing.T) {
	e := etcdtest.Start(t)
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	s, kv := lossy(t, e)
	holder, l := mustClaim(t, s, lockFor("w", "first"), 0), lockFor("w", "second")
	settled := make(chan error, 1)
	read := func(key string) {
		if key != keysOf(holder).Lock || !kv.lost.Load() {
			return
		}
		kv.read.Store(nil)
		k := s.layout.Keys(&l)
		known, err := history.Look(within(t, patience), other.pool, k)
		if err != nil || known.Copied == nil {
			t.Errorf("it has no place: %v", err)
			return
		}
		if _, _, err := tryEnqueue(t, other, lockFor("w", "behind it"), 0, 0); err != nil {
			t.Error(err)
		}
		holder.Behind(protocol.Candidates{Entries: []*protocol.Candidate{protocol.NewCandidate(k.Entry, known.Place, 0,
			known.Copied)}}) // as the watch may have told it
		go func() {
			_, err := holder.Settle(within(t, patience), success("done"))
			settled <- err
		}()
		// mostly that is over then; whatever says so would order the two
		for began := time.Now(); time.Since(began) < 200*time.Millisecond; {
			runtime.Gosched()
		}
	}
	kv.read.Store(&read)
	kv.armed <- true
	p, seen, err := s.Enqueue(within(t, patience), l, 0, holder.Lock().Revision)
	if err != nil || seen != nil {
		t.Fatalf("%+v %v", seen, err)
	}
	held, err := ledgertest.InTurn(within(t, patience), &ledgertest.InQueue{QueueEntry: p, Ledger: s, Lock: l}, l)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-settled; err != nil {
		t.Fatal(err)
	}
	if is := held.Lock(); is.Token == is.Created {
		t.Errorf("it was not handed the lock: %+v", is)
	}
	mustSettle(t, held)
}

func TestAQueueEntryThatMayBeParkedIsNotHandedTheLock(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	holder := mustClaim(t, s, lockFor("w", "first"), 0)
	l := lockFor("w", "may be parked")
	l.MayPark = true
	p := mustEnqueue(t, s, l)
	mustSettle(t, holder)
	if s.own.Of(l.Execution) != nil {
		t.Fatal("it was handed the lock")
	}
	if held, err := inTurn(within(t, patience), p, l); err != nil || held.Lock().Token != held.Lock().Created {
		t.Fatalf("%+v %v", held, err)
	}
}

func TestADuplicateDoesNotQueueBehindALockThatItsEventWasHanded(t *testing.T) {
	e := etcdtest.Start(t)
	s, other := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	holder := mustClaim(t, s, lockFor("w", "first"), 0)
	behind := holder.Lock().Revision // a copy is refused because of this one
	l := lockFor("w", "second")
	p := mustEnqueue(t, s, l)
	next := waitsAt(t, p, l)
	firstInLine(t, p)
	mustSettle(t, holder)
	if held := <-next; held == nil {
		t.Fatal("it was not handed the lock")
	}
	place, seen, err := tryEnqueue(t, other, lockFor("w", "second"), 0, behind)
	if place != nil || err != nil || seen.Lock == nil || seen.Lock.Execution != l.Execution {
		t.Fatalf("a copy of what runs: %v %+v %v", place, seen, err)
	}
}

func TestALockIsNotHandedToAPausedWaiter(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	holder := mustClaim(t, s, lockFor("pay/one", "first"), 0)
	l := lockFor("pay/one", "second")
	p := mustEnqueue(t, s, l)
	next := waitsAt(t, p, l)
	firstInLine(t, p)
	pause := pauseOf(t, "workflow:pay/one")
	mustPause(t, s, pause)
	mustSettle(t, holder)
	if s.own.Of(l.Execution) != nil {
		t.Fatal("it was handed the lock")
	}
	mustResume(t, s, pause)
	if held := <-next; held == nil {
		t.Fatal("it did not get the lock after the pause")
	}
}

func TestALockIsNotHandedOverWhereExecutionsCountAgainstALimit(t *testing.T) {
	e := etcdtest.Start(t)
	s := limitedStore(t, e, slotsOf(1))
	holder := mustClaim(t, s, limitedLock("w", "first"), 0)
	l := limitedLock("w", "second")
	p := mustEnqueue(t, s, l)
	mustSettle(t, holder)
	if s.own.Of(l.Execution) != nil {
		t.Fatal("it was handed the lock")
	}
	if held, err := inTurn(within(t, patience), p, l); err != nil || held.Lock().Token != held.Lock().Created {
		t.Fatalf("%+v %v", held, err)
	}
}

// knowsWhoIsNext is what the answer that gave holder the lock would have told it, had p waited by
// then.
func knowsWhoIsNext(t *testing.T, holder *owned.Lock, p *inQueue) {
	t.Helper()
	known, err := p.look(within(t, patience))
	if err != nil {
		t.Fatal(err)
	}
	holder.Behind(known.Candidates)
}

func TestTheOrderOfAHandedLockCountsTheEventThatHandedIt(t *testing.T) {
	e := etcdtest.Start(t)
	stores := []*Store{openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})}
	for i, s := range stores { // here, and at another process
		workflow := fmt.Sprint("w", i)
		holder := mustClaim(t, stores[0], ordered(workflow, "newer", "1700000010"), 0)
		l := ordered(workflow, "older", "1700000000")
		p := mustEnqueue(t, s, l)
		knowsWhoIsNext(t, holder, p)
		next := waitsAt(t, p, l)
		mustSettle(t, holder)
		held := <-next
		if held == nil || held.Lock().Created != holder.Lock().Created || held.Lock().Stale == nil ||
			held.Lock().Stale.By != "10s" {
			t.Errorf("%d: it was handed %+v", i, held)
		}
	}
}

func TestAHandedLockBeginsByTheClockOfItsNewOwner(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		e := etcdtest.Start(t)
		_, s := skewed(t, e, ahead)
		other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
		holder := mustClaim(t, s, lockFor("w", "first"), 0)
		l := lockFor("w", "second")
		p := mustEnqueue(t, other, l)
		knowsWhoIsNext(t, holder, p)
		next := waitsAt(t, p, l)
		mustSettle(t, holder)
		held := <-next
		if held == nil || held.Lock().Created != holder.Lock().Created {
			t.Fatalf("it was not handed the lock: %+v", held)
		}
		mustCancel(t, other, l.Execution, byOps(false)) // which it reads
		eventually(t, "it has read it", func() bool { return held.Lock().Cancel != nil })
		if r := mustSettle(t, held); r.FinishedAt.Before(r.StartedAt) || r.FinishedAt.Sub(r.StartedAt) > patience {
			t.Errorf("it ran for %v", r.FinishedAt.Sub(r.StartedAt))
		}
	}
}

// Answers to two requests may come in another order than etcd took them.
func TestAWaiterDoesNotWaitForTheEntryOfOneThatWasHandedTheLock(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustSettle(t, mustClaim(t, a, lockFor("another", "one"), 0)) // brings the lease of its records
	hindrance, busy := mustClaim(t, b, lockFor("busy", "one"), 0), lockFor("busy", "two")
	watching := waitsAt(t, mustEnqueue(t, b, busy), busy)
	held := mustClaim(t, a, lockFor("w", "held"), 0)
	here, there, last := lockFor("w", "here"), lockFor("w", "there"), lockFor("w", "last")
	p := mustEnqueue(t, a, here)
	got := waitsAt(t, p, here)
	firstInLine(t, p)
	slow := mustEnqueue(t, b, there) // has its place, and does not look yet
	mustSettle(t, held)
	mustSettle(t, <-got)
	place := b.layout.Queued(there.Scope)
	eventually(t, "the process of the next one hears that his place is gone", func() bool {
		return b.view.Watcher.GoneAt(place, 0) != 0
	})
	behind := waitsAt(t, mustEnqueue(t, b, last), last)
	next, err := inTurn(within(t, patience), slow, there)
	if err != nil {
		t.Fatal(err)
	}
	must(t, next.Release)
	if next := <-behind; next == nil {
		t.Error("he waits for a place that was gone when he came")
	}
	mustSettle(t, hindrance)
	<-watching
}

// A crowd at three processes, each with its next event when the one before has its answer: nobody
// runs beside another one, and nobody is forgotten.
func TestAHotWorkflowRunsOneAtATimeOverThreeProcesses(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	const senders, events = 24, 5
	stores := make([]*Store, 3)
	for i := range stores {
		stores[i] = openStore(t, Options{Endpoints: []string{e.Endpoint}})
	}
	var all sync.WaitGroup
	var running, token atomic.Int64
	for sender := range senders {
		all.Go(func() {
			s := stores[sender%len(stores)]
			for n := range events {
				l := lockFor("hot", fmt.Sprintf("event %d of %d", n, sender))
				held, err := claimOrWait(within(t, patience), s, l)
				if err != nil {
					t.Errorf("event %d of %d: %v", n, sender, err)
					return
				}
				if running.Add(1) != 1 {
					t.Error("two run at once")
				}
				if before := token.Swap(held.Lock().Token); before >= held.Lock().Token {
					t.Errorf("token %d comes after %d", held.Lock().Token, before)
				}
				running.Add(-1)
				if _, err := held.Settle(within(t, patience), success("ok")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, prefix := range []string{stores[0].layout.All(protocol.KindLocks), "/hooklock/v1/queue/"} {
		if n := countKeys(t, e, prefix); n != 0 {
			t.Errorf("%d keys below %s are left", n, prefix)
		}
	}
	for _, s := range stores {
		if left := s.view.Queues.Waiting() + len(s.own.All()); left != 0 {
			t.Errorf("a process still knows of %d", left)
		}
	}
}

func claimOrWait(ctx context.Context, s *Store, l idem.Lock) (idem.RunningLock, error) {
	for {
		held, seen, err := s.Claim(ctx, l, 0)
		switch {
		case errors.Is(err, idem.ErrNotClaimed):
			continue
		case err != nil || held != nil:
			return held, err
		}
		behind := int64(0)
		if seen.Lock != nil {
			behind = seen.Lock.Revision
		}
		p, _, err := s.Enqueue(ctx, l, 0, behind)
		if errors.Is(err, idem.ErrNotClaimed) {
			continue
		}
		if err != nil || p == nil {
			return nil, fmt.Errorf("enqueue: %w", err)
		}
		return ledgertest.InTurn(ctx, &ledgertest.InQueue{QueueEntry: p, Ledger: s, Lock: l}, l)
	}
}
