package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// To read the queue costs etcd a look at each place that has gone since its last compaction, so who
// reads that nobody is before it reads who is behind it, too.
func TestTheHeadOfTheQueueKnowsTheEntryBehindIt(t *testing.T) {
	e := etcdtest.Start(t)
	here, elsewhere := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, elsewhere, lockFor("w", "holder"), 0)
	first, second := lockFor("w", "first"), lockFor("w", "second")
	p, q := mustEnqueue(t, here, first), mustEnqueue(t, elsewhere, second)
	got := waitsAt(t, p, first)
	eventually(t, "it knows both", func() bool {
		return len(here.view.Queues.Known(here.layout.Lock(first.Scope), protocol.Candidates{}).Entries) == 2
	})
	mustSettle(t, held)
	next := waitsAt(t, q, second)
	mustSettle(t, <-got)
	mustSettle(t, <-next)
}

// More wait than one reading of the queue says, at three processes; some leave or are cancelled,
// some of them together.
func TestALongQueueIsServedInItsOrderOverThreeProcesses(t *testing.T) {
	e := etcdtest.Start(t)
	stores := make([]*Store, 3)
	for i := range stores {
		stores[i] = openStore(t, Options{Endpoints: []string{e.Endpoint}})
	}
	var held idem.RunningLock = mustClaim(t, stores[0], lockFor("w", "holder"), 0)
	const n = 80
	type waits struct {
		l     idem.Lock
		leave context.CancelFunc
	}
	all := make([]waits, n)
	runs := make(chan idem.RunningLock)
	var waiting sync.WaitGroup
	for i := range n {
		l := lockFor("w", fmt.Sprintf("event %d", i))
		p := mustEnqueue(t, stores[(i*i)%3], l)
		ctx, leave := context.WithCancel(t.Context())
		all[i] = waits{l, leave}
		waiting.Go(func() {
			defer leave()
			held, err := inTurn(ctx, p, l)
			switch {
			case err == nil:
				runs <- held
			case ctx.Err() != nil:
				if err := p.Leave(within(t, patience)); err != nil {
					t.Error(err)
				}
			case !errors.Is(err, idem.ErrCancelled):
				t.Errorf("%s: %v", l.Execution, err)
			}
		})
	}
	for i := range n {
		switch {
		case i%10 == 7:
			all[i].leave()
		case i%10 == 3, i >= 40 && i < 44:
			mustCancel(t, stores[i%3], all[i].l.Execution, byOps(false))
		default:
			continue
		}
		eventually(t, "its place is gone", func() bool {
			return countKeys(t, e, stores[0].layout.Queued(all[i].l.Scope)) == 0
		})
	}
	go func() { waiting.Wait(); close(runs) }()
	before := -1
	for {
		mustSettle(t, held)
		var more bool
		if held, more = <-runs; !more {
			break
		}
		is := slices.IndexFunc(all, func(w waits) bool { return w.l.Execution == held.Lock().Execution })
		for i := before + 1; i < is; i++ {
			if i%10 != 7 && i%10 != 3 && (i < 40 || i >= 44) {
				t.Errorf("event %d runs before event %d", is, i)
			}
		}
		if is <= before {
			t.Errorf("event %d runs after event %d", is, before)
		}
		before = is
	}
	if before != n-1 {
		t.Errorf("the last one that ran is %d", before)
	}
}

// Who is first was first when the queue was read; his place may have gone between that and the
// revision of the lock that he would be behind.
func TestACancelJustBeforeAHandOffReachesItsExecution(t *testing.T) {
	e := etcdtest.Start(t)
	s, other := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, lockFor("w", "holder"), 0)
	next := lockFor("w", "next")
	first := mustEnqueue(t, s, next)
	runs := waitsAt(t, first, next)
	firstInLine(t, first)
	one, two := lockFor("w", "one"), lockFor("w", "two")
	p, q := mustEnqueue(t, s, one), mustEnqueue(t, s, two)
	mustSettle(t, held) // reads who waits
	held = (<-runs).(*owned.Lock)
	if known := held.Known(); len(known.Entries) != 2 {
		t.Fatalf("%d are known to wait", len(known.Entries))
	}
	watching, stop := context.WithCancel(within(t, patience))
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.view.Watcher.Wait(watching, nil, nil, q.revision, "somebody else waits")
	}()
	defer func() { stop(); <-watched }()
	settled(t, s, 1)
	mustCancel(t, other, two.Execution, byOps(false))
	eventually(t, "its place is heard to be gone", func() bool {
		return s.view.Watcher.GoneAt(s.layout.Queued(two.Scope), q.revision) != 0
	})
	mustSettle(t, held) // to one, at a later revision
	if p.store.own.Of(one.Execution) == nil {
		t.Fatal("it was not handed the lock")
	}
	if _, err := q.Await(within(t, patience), 0); !errors.Is(err, idem.ErrCancelled) {
		t.Errorf("who was cancelled waits on: %v", err)
	}
}

// A line that the watch has not told of for long is longer than a newer reading, where more have
// left than have come.
func TestTheLastEntryIsNotPassedOverAfterOthersLeft(t *testing.T) {
	e := etcdtest.Start(t)
	here, elsewhere := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, here, lockFor("w", "holder"), 0)
	places, runs := map[string]*inQueue{}, map[string]<-chan idem.RunningLock{}
	comes := func(s *Store, event string, waits bool) {
		l := lockFor("w", event)
		places[event] = mustEnqueue(t, s, l)
		if waits {
			runs[event] = waitsAt(t, places[event], l)
		}
	}
	known := func(events ...string) {
		t.Helper()
		eventually(t, "the line is "+strings.Join(events, " "), func() bool {
			known := here.view.Queues.Known(here.layout.Lock(places["b"].Lock.Scope), protocol.Candidates{}).Entries
			return slices.EqualFunc(known, events, func(l *protocol.Candidate, event string) bool {
				return l.Revision == places[event].revision
			})
		})
	}
	comes(here, "a", true)
	firstInLine(t, places["a"])
	for _, event := range []string{"z", "b", "c", "d", "e"} {
		comes(here, event, event == "b")
	}
	mustSettle(t, held)
	a := <-runs["a"]
	known("z", "b", "c", "d", "e") // which a has taken along
	comes(elsewhere, "f", true)
	known("z", "b", "c", "d", "e", "f")
	comes(here, "g", true)
	known("z", "b", "c", "d", "e", "f", "g")
	for _, event := range []string{"c", "d", "e", "z"} {
		if err := places[event].Leave(within(t, patience)); err != nil {
			t.Fatal(err)
		}
	}
	known("b", "f", "g") // b has read it
	mustSettle(t, a)
	b := <-runs["b"]
	comes(here, "h", true)
	mustSettle(t, b)
	for _, event := range []string{"f", "g", "h"} {
		held, ok := <-runs[event]
		if !ok {
			t.Fatalf("%s does not run", event)
		}
		mustSettle(t, held)
	}
}

// To read the queue costs etcd a look at each place that has gone since its last compaction, so
// nobody reads of who comes what the watch tells.
func TestALaterEntryIsKnownWithoutReadingTheQueueAgain(t *testing.T) {
	e := etcdtest.Start(t)
	here, elsewhere := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, elsewhere, lockFor("w", "holder"), 0)
	first, heard, read, comes := lockFor("w", "first"), lockFor("w", "heard of"), lockFor("w", "read"),
		lockFor("w", "comes")
	p := mustEnqueue(t, here, first)
	runs := waitsAt(t, p, first)
	firstInLine(t, p)
	var after []<-chan idem.RunningLock
	enqueue := func(l idem.Lock) *inQueue {
		q := mustEnqueue(t, elsewhere, l)
		after = append(after, waitsAt(t, q, l))
		return q
	}
	known := func() []*protocol.Candidate {
		return here.view.Queues.Known(here.layout.Lock(first.Scope), protocol.Candidates{}).Entries
	}
	enqueue(heard)
	left := mustEnqueue(t, elsewhere, lockFor("w", "left"))
	if err := left.Leave(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the watch has told of both", func() bool {
		return here.view.Watcher.GoneAt(here.layout.Queued(left.Lock.Scope), left.revision) != 0
	})
	at, err := enqueue(read).look(within(t, patience))
	if err != nil {
		t.Fatal(err)
	}
	here.view.Queues.ApplyLock(here.layout.Lock(first.Scope), at.Lock, at.Revision, at.Candidates)
	enqueue(comes)
	eventually(t, "it knows all four", func() bool { return len(known()) == 4 })
	for i, l := range []idem.Lock{first, heard, read, comes} {
		if got := known()[i].Lock(); got == nil || got.Execution != l.Execution {
			t.Errorf("the one in place %d is %+v", i, got)
		}
	}
	mustSettle(t, held)
	mustSettle(t, <-runs)
	for _, next := range after {
		mustSettle(t, <-next)
	}
}
