package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

func TestNoQueueEntryWaitsForOneBehindIt(t *testing.T) {
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}})
	place := func(event string, q int64) *Place {
		l := lockFor("w", event)
		p := &Place{store: s.core, execution: l.Execution, scope: l.Scope, first: &l}
		s.queues.register(p)
		s.queues.enqueued(p, q)
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
	l := lockFor("w", event)
	return protocol.NewInLine(protocol.Layout{Root: "/hooklock/v1/"}.Queued(l.Scope), place, 0, &l)
}

func TestTwoReadsOfAQueueAreMerged(t *testing.T) {
	a, b, c, d, beside := inLine("a", 10), inLine("b", 20), inLine("c", 30), inLine("d", 40), inLine("beside a", 10)
	before, again := inLine("before", 5), inLine("b", 25)
	line := func(l ...*protocol.InLine) protocol.Line { return protocol.Line{Places: l} }
	upto := func(revision int64, l ...*protocol.InLine) protocol.Line {
		return protocol.Line{Places: l, Upto: revision}
	}
	for name, x := range map[string]struct{ one, other, both protocol.Line }{
		"nothing is known":                           {},
		"one says nothing":                           {line(a, b), line(), line(a, b)},
		"the later one says who has gone":            {line(a, b, c), line(b), line(b, c)},
		"the later one is longer":                    {line(a, b), line(b, c, d), line(b, c, d)},
		"the later one knows nobody of the other":    {line(a, b), line(c), line(c)},
		"the longer one of the same first":           {line(a), line(a, b), line(a, b)},
		"the same event again is another place":      {line(a, b, c), line(again), line(again, c)},
		"of two of one revision either may be first": {line(beside, a, b), line(a), line(beside, a, b)},
		"so may they behind one who has gone":        {line(before, beside, a, b), line(a), line(beside, a, b)},
		"one has all that came up to a revision":     {upto(35, a, b, c), line(b, c, d), upto(35, b, c, d)},
		"both have, and the later one more":          {upto(35, b, c), upto(45, c, d), upto(45, c, d)},
		"the older one has more who have gone":       {upto(25, a, b, c), upto(45, a, d), upto(45, a, b, c, d)},
		"nobody has waited since":                    {upto(35), line(a, b, c), upto(35)},
		"of those nobody but the last one waits":     {upto(25), upto(35, b, c), upto(35, c)},
	} {
		for _, got := range []protocol.Line{merge(x.one, x.other), merge(x.other, x.one)} {
			if got.Upto != x.both.Upto || !slices.EqualFunc(got.Places, x.both.Places, same) {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

func TestAWaiterKnowsItsPredecessor(t *testing.T) {
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}})
	place := func(event string, q int64) *Place {
		l := lockFor("w", event)
		p := &Place{store: s.core, execution: l.Execution, scope: l.Scope, first: &l}
		s.queues.register(p)
		s.queues.enqueued(p, q)
		return p
	}
	p, one, two := place("here", 40), place("one of two", 50), place("two of two", 50)
	key := func(event string) string { return s.layout.Queued(lockFor("w", event).Scope) }
	s.queues.changed(s.layout.Lock(p.scope), nil, 60, protocol.Line{Places: []*protocol.InLine{
		inLine("a", 10), inLine("b", 20), inLine("c", 30), inLine("here", 40), inLine("two of two", 50), inLine("one of two", 50), // as etcd happens to sort them
	}})
	s.hub.Deleted(key("c"), 70)
	for _, want := range []string{key("b"), ""} { // it is told once: should it have gone unheard, p looks
		if got, _ := s.queues.ahead(p); got != want {
			t.Errorf("it waits for %q, and not for %q", got, want)
		}
	}
	if got, _ := s.queues.ahead(one); one.before != key("here") || got != "" {
		t.Errorf("the first of two waits for %q and for %q", one.before, got)
	}
	for _, gone := range []string{"a", "b", "here"} {
		s.hub.Deleted(key(gone), 80)
	}
	if got, _ := s.queues.ahead(one); got != "" || !one.queue.isFirst(one) || one.queue.isFirst(two) {
		t.Errorf("nobody is before it, and it waits for %q; the line is %v", got, one.queue.line)
	}
}

// To read the queue costs etcd a look at each place that has gone since its last compaction, so who reads that nobody is before it reads who is behind it, too.
func TestTheHeadOfTheQueueKnowsTheEntryBehindIt(t *testing.T) {
	e := etcdtest.Start(t)
	here, elsewhere := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, elsewhere, lockFor("w", "holder"), 0)
	first, second := lockFor("w", "first"), lockFor("w", "second")
	p, q := mustEnqueue(t, here, first), mustEnqueue(t, elsewhere, second)
	got := waitsAt(t, p, first)
	eventually(t, "it knows both", func() bool { return here.queues.isFirst(p) })
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
func TestACancelJustBeforeAHandOffReachesItsExecution(t *testing.T) {
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
	if known := held.known(); len(known.Places) != 2 {
		t.Fatalf("%d are known to wait", len(known.Places))
	}
	watching, stop := context.WithCancel(within(t, patience))
	watched := make(chan struct{})
	go func() { defer close(watched); s.hub.Wait(watching, nil, nil, q.q, "somebody else waits") }()
	defer func() { stop(); <-watched }()
	settled(t, s, 1)
	mustCancel(t, other, two.Execution, byOps(false))
	eventually(t, "its place is heard to be gone", func() bool { return s.hub.GoneAt(s.layout.Queued(two.Scope), q.q) != 0 })
	mustSettle(t, held) // to one, at a later revision
	if p.store.own.of(one.Execution) == nil {
		t.Fatal("it was not handed the lock")
	}
	if _, err := q.Await(within(t, patience), 0); !errors.Is(err, idem.ErrCancelled) {
		t.Errorf("who was cancelled waits on: %v", err)
	}
}

func TestOfTwoEntriesOfOneCommitNoneIsPassedOver(t *testing.T) {
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}})
	for name, handed := range map[string]func(two *Place, l *idem.Lock){
		"elsewhere, to the second of them": func(_ *Place, l *idem.Lock) { s.grant(l, protocol.Line{}) },
		"the second of them has claimed it": func(two *Place, l *idem.Lock) {
			s.queues.changed(s.layout.Lock(two.scope), l, 60, protocol.Line{Places: []*protocol.InLine{inLine("one", 50)}})
			s.queues.unregister(two)
		},
	} {
		t.Run(name, func(t *testing.T) {
			place := func(event string) *Place {
				l := lockFor("w", event)
				p := &Place{store: s.core, session: mustSession(t, s), execution: l.Execution, scope: l.Scope, first: &l}
				s.queues.register(p)
				s.queues.enqueued(p, 50)
				return p
			}
			one, two := place("one"), place("two")
			defer s.queues.unregister(one)
			key := s.layout.Lock(one.scope)
			s.queues.changed(key, nil, 55, protocol.Line{Places: []*protocol.InLine{inLine("one", 50), inLine("two", 50), inLine("behind them", 58)}})
			l := *two.first
			l.Created, l.Revision, l.Token = 60, 60, 60
			handed(two, &l)
			if !one.queue.isFirst(one) {
				t.Errorf("the other one is passed over: %v", one.queue.line)
			}
		})
	}
}

// A line that the watch has not told of for long is longer than a newer reading, where more have left than have come.
func TestTheLastEntryIsNotPassedOverAfterOthersLeft(t *testing.T) {
	e := etcdtest.Start(t)
	here, elsewhere := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, here, lockFor("w", "holder"), 0)
	places, runs := map[string]*Place{}, map[string]<-chan idem.Held{}
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
			here.queues.mu.Lock()
			defer here.queues.mu.Unlock()
			return slices.EqualFunc(places["b"].queue.line.Places, events, func(l *protocol.InLine, event string) bool { return l.Place == places[event].q })
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

func TestAnEventThatCameAgainIsNotTakenForItsEntryThatGotTheLock(t *testing.T) {
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}})
	l, again := lockFor("w", "here"), lockFor("w", "again")
	p := &Place{store: s.core, session: mustSession(t, s), execution: l.Execution, scope: l.Scope, first: &l}
	s.queues.register(p)
	s.queues.enqueued(p, 70)
	defer s.queues.unregister(p)
	between := inLine("between", 63)
	key := s.layout.Lock(again.Scope)
	s.queues.changed(key, nil, 52, protocol.Line{Places: []*protocol.InLine{inLine("again", 50), between, inLine("again", 65)}, Upto: 69})
	again.Created, again.Revision, again.Token = 40, 60, 60
	s.queues.changed(key, &again, 60, protocol.Line{}) // this process stood still, and the watch was faster
	if line := p.queue.line.Places; len(line) == 0 || !same(line[0], between) {
		t.Errorf("who came between is passed over: %v", line)
	}
}

func mustSession(t *testing.T, s *Store) *session.Session {
	t.Helper()
	session, _, err := s.keeper.Current()
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// To read the queue costs etcd a look at each place that has gone since its last compaction, so nobody reads of who comes what the watch tells.
func TestALaterEntryIsKnownWithoutReadingTheQueueAgain(t *testing.T) {
	e := etcdtest.Start(t)
	here, elsewhere := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, elsewhere, lockFor("w", "holder"), 0)
	first, heard, read, comes := lockFor("w", "first"), lockFor("w", "heard of"), lockFor("w", "read"), lockFor("w", "comes")
	p := mustEnqueue(t, here, first)
	runs := waitsAt(t, p, first)
	firstInLine(t, p)
	var after []<-chan idem.Held
	enqueue := func(l idem.Lock) *Place {
		q := mustEnqueue(t, elsewhere, l)
		after = append(after, waitsAt(t, q, l))
		return q
	}
	known := func() []*protocol.InLine {
		here.queues.mu.Lock()
		defer here.queues.mu.Unlock()
		return p.queue.line.Places
	}
	enqueue(heard)
	eventually(t, "the watch tells of places", func() bool {
		here.queues.mu.Lock()
		defer here.queues.mu.Unlock()
		return p.queue.pending.after != 0
	})
	at, err := enqueue(read).read(within(t, patience), func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	here.queues.sees(p, at.State)
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

func TestAQueueAdvancesOnlyToAKnownNextEntry(t *testing.T) {
	kv := func(place int64, event, takes string) *mvccpb.KeyValue {
		key := inLine(event, place).Key
		return &mvccpb.KeyValue{Key: []byte(key), CreateRevision: place, ModRevision: place, Value: []byte(`{"v":1` + takes + `}`)}
	}
	const takes, itself = `,"takes":0`, ``
	type told struct {
		watch int
		kv    *mvccpb.KeyValue
	}
	before := told{1, kv(10, "before", takes)}
	for name, x := range map[string]struct {
		told []told
		read int64 // up to which revision, where a is the only one who waits then
		want []string
	}{
		"with who comes after the reading":             {[]told{before, {1, kv(20, "a", takes)}, {1, kv(30, "b", takes)}}, 20, []string{"a", "b"}},
		"with two of one revision":                     {[]told{before, {1, kv(30, "b", takes)}, {1, kv(30, "c", takes)}}, 20, []string{"a", "b", "c"}},
		"and has nobody twice":                         {[]told{before, {1, kv(20, "a", takes)}}, 19, []string{"a"}},
		"not where the watch has told of nobody yet":   {nil, 20, []string{"a"}},
		"not where who was first heard of came later":  {[]told{{1, kv(30, "b", takes)}, {1, kv(40, "c", takes)}}, 20, []string{"a"}},
		"not past one that takes the lock itself":      {[]told{before, {1, kv(30, "parked", itself)}, {1, kv(40, "c", takes)}}, 20, []string{"a"}},
		"not with what another watch tells of":         {[]told{before, {2, kv(30, "b", takes)}, {2, kv(40, "c", takes)}}, 20, []string{"a"}},
		"not where the reading did not have everybody": {[]told{before, {1, kv(30, "b", takes)}}, 0, []string{"a"}},
	} {
		q := &queue{}
		for _, told := range x.told {
			q.pending.add(told.kv, told.watch)
		}
		q.learnLocked(protocol.Line{Places: []*protocol.InLine{inLine("a", 20)}, Upto: x.read})
		if !slices.EqualFunc(q.line.Places, x.want, func(l *protocol.InLine, event string) bool { return l.Key == inLine(event, 0).Key }) {
			t.Errorf("%s: %d places are in the line, want %v", name, len(q.line.Places), x.want)
		}
	}
}

// More may come than are kept, whether or not a reading is on its way.
func TestWhatIsKnownOfAQueueIsBounded(t *testing.T) {
	q := &queue{line: protocol.Line{Upto: 10}, pending: pending{watch: 1, after: 10}}
	for n := range int64(3 * protocol.LineLength) {
		l := lockFor("w", fmt.Sprint(n))
		value, err := protocol.EncodePlace(&l, 0)
		if err != nil {
			t.Fatal(err)
		}
		q.pending.add(&mvccpb.KeyValue{Key: []byte(fmt.Sprint(n)), CreateRevision: 20 + n, ModRevision: 20 + n, Value: value}, 1)
		q.advance()
	}
	if n, kept := len(q.line.Places), len(q.pending.places); n != protocol.LineLength || kept > maxPending || q.followed() {
		t.Errorf("%d places are in the line, and %d are kept; it is followed: %v", n, kept, q.followed())
	}
}

func same(l, m *protocol.InLine) bool { return l.Place == m.Place && l.Key == m.Key }
