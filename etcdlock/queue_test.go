package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestNobodyWaitsForWhoIsBehindHim(t *testing.T) {
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}})
	place := func(event string, q int64) *Place {
		l := lockFor("w", event)
		p := &Place{store: s.core, execution: l.Execution, scope: l.Scope, first: &l}
		s.lineUp(p)
		s.entered(p, q)
		return p
	}
	places := []*Place{place("c", 30), place("a", 10), place("d", 30), place("b", 20)}
	for i, before := range []string{"", "", "c", "a"} { // d was taken in one request with c, and came after it
		want := ""
		if before != "" {
			want = s.layout.Queued(lockFor("w", before).Scope)
		}
		if places[i].before != want {
			t.Errorf("%d waits for %q, and not for %q", i, places[i].before, want)
		}
	}
	for i, p := range []*Place{places[1], places[3], places[0], places[2]} {
		if p.queue.places[i] != p {
			t.Errorf("%d is in another place", i)
		}
	}
}

func inLine(event string, place int64) *protocol.InLine {
	return &protocol.InLine{Lock: lockFor("w", event), Place: place}
}

func TestTwoReadingsOfAQueueSayTogetherWhoWaits(t *testing.T) {
	a, b, c, d, beside := inLine("a", 10), inLine("b", 20), inLine("c", 30), inLine("d", 40), inLine("beside a", 10)
	again := &protocol.InLine{Lock: b.Lock, Place: 25}
	line := func(l ...*protocol.InLine) []*protocol.InLine { return l }
	for name, x := range map[string]struct{ one, other, both []*protocol.InLine }{
		"nothing is known":                           {nil, nil, nil},
		"one says nothing":                           {line(a, b), nil, line(a, b)},
		"the later one says who has gone":            {line(a, b, c), line(b), line(b, c)},
		"the later one is longer":                    {line(a, b), line(b, c, d), line(b, c, d)},
		"the later one knows nobody of the other":    {line(a, b), line(c), line(c)},
		"the longer one of the same first":           {line(a), line(a, b), line(a, b)},
		"the same event again is another place":      {line(a, b, c), line(again), line(again)},
		"of two of one revision either may be first": {line(beside, a, b), line(a), line(beside, a, b)},
	} {
		for _, got := range [][]*protocol.InLine{later(x.one, x.other), later(x.other, x.one)} {
			if !slices.EqualFunc(got, x.both, func(l, m *protocol.InLine) bool { return l.Execution == m.Execution && l.Place == m.Place }) {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

func TestWhoWaitsKnowsWhomHeWaitsFor(t *testing.T) {
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}})
	place := func(event string, q int64) *Place {
		l := lockFor("w", event)
		p := &Place{store: s.core, execution: l.Execution, scope: l.Scope, first: &l}
		s.lineUp(p)
		s.entered(p, q)
		return p
	}
	p, one, two := place("here", 40), place("one of two", 50), place("two of two", 50)
	key := func(event string) string { return s.layout.Queued(lockFor("w", event).Scope) }
	s.changed(s.layout.Lock(p.scope), nil, 60, []*protocol.InLine{
		inLine("a", 10), inLine("b", 20), inLine("c", 30), {Lock: *p.first, Place: 40}, {Lock: *two.first, Place: 50}, {Lock: *one.first, Place: 50}, // as etcd happens to sort them
	})
	s.hub.deleted(key("c"), 70)
	for _, want := range []string{key("b"), ""} { // it is told once: should it have gone unheard, p looks
		if got, _ := s.ahead(p); got != want {
			t.Errorf("it waits for %q, and not for %q", got, want)
		}
	}
	if got, _ := s.ahead(one); one.before != key("here") || got != "" {
		t.Errorf("the first of two waits for %q and for %q", one.before, got)
	}
	for _, gone := range []string{"a", "b", "here"} {
		s.hub.deleted(key(gone), 80)
	}
	if got, _ := s.ahead(one); got != "" || !one.queue.isFirst(one) || one.queue.isFirst(two) {
		t.Errorf("nobody is before it, and it waits for %q; the line is %v", got, one.queue.line)
	}
}

// To read the queue costs etcd a look at each place that has gone since its last compaction, so who reads that nobody is before it reads who is behind it, too.
func TestWhoIsFirstKnowsWhoIsBehindIt(t *testing.T) {
	e := etcdtest.Start(t)
	here, elsewhere := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, elsewhere, lockFor("w", "holder"), 0)
	first, second := lockFor("w", "first"), lockFor("w", "second")
	p, q := mustEnqueue(t, here, first), mustEnqueue(t, elsewhere, second)
	got := waitsAt(t, p, first)
	eventually(t, "it knows both", func() bool { return here.isFirst(p) })
	mustSettle(t, held)
	next := waitsAt(t, q, second)
	mustSettle(t, <-got)
	mustSettle(t, <-next)
}

// More wait than one reading of the queue says, at three processes; some leave or are cancelled, some of them together.
func TestALongQueueIsServedInItsOrderOverThreeProcesses(t *testing.T) {
	e := etcdtest.Start(t)
	stores := make([]*Store, 3)
	for i := range stores {
		stores[i] = openStore(t, Options{Endpoints: []string{e.Endpoint}})
	}
	var held idem.Held = mustClaim(t, stores[0], lockFor("w", "holder"), 0)
	const n = 80
	type waits struct {
		l     idem.Lock
		leave context.CancelFunc
	}
	all := make([]waits, n)
	runs := make(chan idem.Held)
	var waiting sync.WaitGroup
	for i := range n {
		l := lockFor("w", fmt.Sprintf("event %d", i))
		p := mustEnqueue(t, stores[(i*i)%3], l)
		ctx, leave := context.WithCancel(within(t, patience))
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
		eventually(t, "its place is gone", func() bool { return countKeys(t, e, stores[0].layout.Queued(all[i].l.Scope)) == 0 })
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

// Who is first was first when the queue was read; his place may have gone between that and the revision of the lock that he would be behind.
func TestWhoWasCancelledJustBeforeTheLockWasHandedOverHearsOfIt(t *testing.T) {
	e := etcdtest.Start(t)
	s, other := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, lockFor("w", "holder"), 0)
	next := lockFor("w", "next")
	first := mustEnqueue(t, s, next)
	runs := waitsAt(t, first, next)
	firstInLine(t, first)
	one, two := lockFor("w", "one"), lockFor("w", "two")
	p, q := mustEnqueue(t, s, one), mustEnqueue(t, s, two)
	mustSettle(t, held) // reads who waits
	held = (<-runs).(*owned)
	if known := held.known(); len(known) != 2 {
		t.Fatalf("%d are known to wait", len(known))
	}
	watching, stop := context.WithCancel(within(t, patience))
	watched := make(chan struct{})
	go func() { defer close(watched); s.hub.wait(watching, nil, q.q, "somebody else waits") }()
	defer func() { stop(); <-watched }()
	settled(t, s, 1)
	mustCancel(t, other, two.Execution, byOps(false))
	eventually(t, "its place is heard to be gone", func() bool { return s.hub.goneAt(s.layout.Queued(two.Scope), q.q) != 0 })
	mustSettle(t, held) // to one, at a later revision
	if p.store.ours(one.Execution) == nil {
		t.Fatal("it was not handed the lock")
	}
	if _, err := q.Await(within(t, patience), 0); !errors.Is(err, idem.ErrCancelled) {
		t.Errorf("who was cancelled waits on: %v", err)
	}
}

func TestOfTwoThatCameTogetherNobodyIsPassedOver(t *testing.T) {
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}})
	for name, handed := range map[string]func(two *Place, l *idem.Lock){
		"elsewhere, to the second of them": func(_ *Place, l *idem.Lock) { s.grant(l, nil) },
		"the second of them has claimed it": func(two *Place, l *idem.Lock) {
			s.changed(s.layout.Lock(two.scope), l, 60, []*protocol.InLine{inLine("one", 50)})
			s.stepOut(two)
		},
	} {
		t.Run(name, func(t *testing.T) {
			place := func(event string) *Place {
				l := lockFor("w", event)
				p := &Place{store: s.core, session: mustSession(t, s), execution: l.Execution, scope: l.Scope, first: &l}
				s.lineUp(p)
				s.entered(p, 50)
				return p
			}
			one, two := place("one"), place("two")
			defer s.stepOut(one)
			key := s.layout.Lock(one.scope)
			s.changed(key, nil, 55, []*protocol.InLine{
				{Lock: *one.first, Place: 50}, {Lock: *two.first, Place: 50}, inLine("behind them", 58),
			})
			l := *two.first
			l.Created, l.Revision, l.Token = 60, 60, 60
			handed(two, &l)
			if !one.queue.isFirst(one) {
				t.Errorf("the other one is passed over: %v", one.queue.line)
			}
		})
	}
}

func mustSession(t *testing.T, s *Store) *session {
	t.Helper()
	session, _, err := s.keeper.current()
	if err != nil {
		t.Fatal(err)
	}
	return session
}
