package view

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

var layout = protocol.NewLayout("")

func lockFor(event string) idem.Lock {
	sum := sha256.Sum256([]byte(event))
	key := idem.MakeKey(uint64(len(event)), [16]byte(sum[:16]))
	scope := idem.Scope{Workflow: "w", Key: key}
	return idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: idem.NewExecutionID(scope.Workflow, key, [4]byte{}),
		Scope:   scope,
		EventID: event}}
}

// enters registers an entry that was made at a revision.
func enters(qs *Queues, event string, revision int64) *Waiter {
	l := lockFor(event)
	p := &Waiter{Execution: l.Execution, Scope: l.Scope, Lock: &l}
	qs.Register(p)
	qs.NoteEntry(p, revision)
	return p
}

func TestNoQueueEntryWaitsForOneBehindIt(t *testing.T) {
	qs := newQueues(layout, newWatcher(nil))
	places := []*Waiter{enters(qs, "c", 30), enters(qs, "a", 10), enters(qs, "d", 30), enters(qs, "b", 20)}
	for i, before := range []string{"", "", "c", "a"} { // d was taken in one request with c, and came after it
		want := ""
		if before != "" {
			want = layout.Queued(lockFor(before).Scope)
		}
		if places[i].before != want {
			t.Errorf("%d waits for %q, and not for %q", i, places[i].before, want)
		}
	}
	for i, p := range []*Waiter{places[1], places[3], places[0], places[2]} {
		if p.queue.places[i] != p {
			t.Errorf("%d is in another place", i)
		}
	}
}

func inLine(event string, place int64) *protocol.Candidate {
	l := lockFor(event)
	return protocol.NewCandidate(layout.Queued(l.Scope), place, 0, &l)
}

func TestTwoReadsOfAQueueAreMerged(t *testing.T) {
	a, b, c, d, beside := inLine("a", 10), inLine("b", 20), inLine("c", 30), inLine("d", 40), inLine("beside a", 10)
	before, again := inLine("before", 5), inLine("b", 25)
	candidates := func(l ...*protocol.Candidate) protocol.Candidates { return protocol.Candidates{Entries: l} }
	upto := func(revision int64, l ...*protocol.Candidate) protocol.Candidates {
		return protocol.Candidates{Entries: l, Upto: revision}
	}
	for name, x := range map[string]struct{ one, other, both protocol.Candidates }{
		"nothing is known":                        {},
		"one says nothing":                        {candidates(a, b), candidates(), candidates(a, b)},
		"the later one says who has gone":         {candidates(a, b, c), candidates(b), candidates(b, c)},
		"the later one is longer":                 {candidates(a, b), candidates(b, c, d), candidates(b, c, d)},
		"the later one knows nobody of the other": {candidates(a, b), candidates(c), candidates(c)},
		"the longer one of the same first":        {candidates(a), candidates(a, b), candidates(a, b)},
		"the same event again is another place":   {candidates(a, b, c), candidates(again), candidates(again, c)},
		"of two of one revision either may be first": {candidates(beside, a, b), candidates(a),
			candidates(beside, a, b)},
		"so may they behind one who has gone": {candidates(before, beside, a, b), candidates(a),
			candidates(beside, a, b)},
		"one has all that came up to a revision": {upto(35, a, b, c), candidates(b, c, d), upto(35, b, c, d)},
		"both have, and the later one more":      {upto(35, b, c), upto(45, c, d), upto(45, c, d)},
		"the older one has more who have gone":   {upto(25, a, b, c), upto(45, a, d), upto(45, a, b, c, d)},
		"nobody has waited since":                {upto(35), candidates(a, b, c), upto(35)},
		"of those nobody but the last one waits": {upto(25), upto(35, b, c), upto(35, c)},
	} {
		for _, got := range []protocol.Candidates{mergeCandidates(x.one, x.other), mergeCandidates(x.other, x.one)} {
			if got.Upto != x.both.Upto || !slices.EqualFunc(got.Entries, x.both.Entries, same) {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

func TestAWaiterKnowsItsPredecessor(t *testing.T) {
	watcher := newWatcher(nil)
	qs := newQueues(layout, watcher)
	p, one, two := enters(qs, "here", 40), enters(qs, "one of two", 50), enters(qs, "two of two", 50)
	key := func(event string) string { return layout.Queued(lockFor(event).Scope) }
	qs.ApplyLock(layout.Lock(p.Scope), nil, 60, protocol.Candidates{Entries: []*protocol.Candidate{
		inLine("a", 10), inLine("b", 20), inLine("c", 30), inLine("here", 40), inLine("two of two", 50),
		inLine("one of two", 50), // as etcd happens to sort them
	}})
	watcher.WakeFor(key("c"), 80)
	for _, want := range []string{key("b"), ""} { // it is told once: should it have gone unheard, p looks
		if got := qs.Ahead(p).Entry; got != want {
			t.Errorf("it waits for %q, and not for %q", got, want)
		}
	}
	if got := qs.Ahead(one).Entry; one.before != key("here") || got != "" {
		t.Errorf("the first of two waits for %q and for %q", one.before, got)
	}
	for _, left := range []string{"a", "b", "here"} {
		watcher.WakeFor(key(left), 80)
	}
	if got := qs.Ahead(one).Entry; got != "" || !one.queue.isFirst(one) || one.queue.isFirst(two) {
		t.Errorf("nobody is before it, and it waits for %q; the candidates is %v", got, one.queue.candidates)
	}
}

func TestOfTwoEntriesOfOneCommitNoneIsPassedOver(t *testing.T) {
	qs := newQueues(layout, newWatcher(nil))
	for name, handed := range map[string]func(two *Waiter, l *idem.Lock){
		"elsewhere, to the second of them": func(_ *Waiter, l *idem.Lock) {
			qs.Grant(l, protocol.Candidates{}, func(*Waiter, protocol.Candidates) {})
		},
		"the second of them has claimed it": func(two *Waiter, l *idem.Lock) {
			qs.ApplyLock(layout.Lock(two.Scope), l, 60,
				protocol.Candidates{Entries: []*protocol.Candidate{inLine("one", 50)}})
			qs.Unregister(two)
		},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := enters(qs, "one", 50), enters(qs, "two", 50)
			defer qs.Unregister(one)
			key := layout.Lock(one.Scope)
			qs.ApplyLock(key, nil, 55, protocol.Candidates{Entries: []*protocol.Candidate{inLine("one", 50),
				inLine("two", 50),
				inLine("behind them", 58)}})
			l := *two.Lock
			l.Created, l.Revision, l.Token = 60, 60, 60
			handed(two, &l)
			if !one.queue.isFirst(one) {
				t.Errorf("the other one is passed over: %v", one.queue.candidates)
			}
		})
	}
}

func TestAnEventThatCameAgainIsNotTakenForItsEntryThatGotTheLock(t *testing.T) {
	qs := newQueues(layout, newWatcher(nil))
	p, again := enters(qs, "here", 70), lockFor("again")
	between := inLine("between", 63)
	key := layout.Lock(again.Scope)
	qs.ApplyLock(key, nil, 52, protocol.Candidates{Entries: []*protocol.Candidate{inLine("again", 50), between,
		inLine("again", 65)}, Upto: 69})
	again.Created, again.Revision, again.Token = 40, 60, 60
	qs.ApplyLock(key, &again, 60, protocol.Candidates{}) // this process stood still, and the watch was faster
	if candidates := p.queue.candidates.Entries; len(candidates) == 0 || !same(candidates[0], between) {
		t.Errorf("who came between is passed over: %v", candidates)
	}
}

func TestAQueueAdvancesOnlyToAKnownNextEntry(t *testing.T) {
	kv := func(place int64, event, takes string) *mvccpb.KeyValue {
		key := inLine(event, place).Key
		return &mvccpb.KeyValue{Key: []byte(key), CreateRevision: place, ModRevision: place,
			Value: []byte(`{"v":1` + takes + `}`)}
	}
	const takes, itself = `,"takes":0`, ``
	type told struct {
		watch int
		kv    *mvccpb.KeyValue
	}
	before := told{1, kv(10, "before", takes)}
	for name, x := range map[string]struct {
		told []told
		read int64 // up to which revision, where a alone waits then
		want []string
	}{
		"with who comes after the reading": {[]told{before, {1, kv(20, "a", takes)},
			{1, kv(30, "b", takes)}}, 20, []string{"a", "b"}},
		"with two of one revision": {[]told{before, {1, kv(30, "b", takes)},
			{1, kv(30, "c", takes)}}, 20, []string{"a", "b", "c"}},
		"and has nobody twice":                       {[]told{before, {1, kv(20, "a", takes)}}, 19, []string{"a"}},
		"not where the watch has told of nobody yet": {nil, 20, []string{"a"}},
		"not where who was first heard of came later": {[]told{{1, kv(30, "b", takes)}, {1, kv(40, "c", takes)}}, 20,
			[]string{"a"}},
		"not past one that takes the lock itself": {[]told{before, {1, kv(30, "parked", itself)},
			{1, kv(40, "c", takes)}}, 20, []string{"a"}},
		"not with what another watch tells of": {[]told{before, {2, kv(30, "b", takes)},
			{2, kv(40, "c", takes)}}, 20, []string{"a"}},
		"not where the reading did not have everybody": {[]told{before, {1, kv(30, "b", takes)}}, 0, []string{"a"}},
	} {
		q := &queue{}
		for _, told := range x.told {
			q.pending.addEntry(told.kv, told.watch)
		}
		q.learnLocked(protocol.Candidates{Entries: []*protocol.Candidate{inLine("a", 20)}, Upto: x.read})
		if !slices.EqualFunc(q.candidates.Entries, x.want, func(l *protocol.Candidate, event string) bool {
			return l.Key == inLine(event, 0).Key
		}) {
			t.Errorf("%s: %d places are in the candidates, want %v", name, len(q.candidates.Entries), x.want)
		}
	}
}

// More may come than are kept, whether or not a reading is on its way.
func TestWhatIsKnownOfAQueueIsBounded(t *testing.T) {
	q := &queue{candidates: protocol.Candidates{Upto: 10}, pending: pending{watch: 1, after: 10}}
	for n := range int64(3 * protocol.MaxCandidates) {
		l := lockFor(fmt.Sprint(n))
		value, err := protocol.EncodePlace(&l, 0)
		if err != nil {
			t.Fatal(err)
		}
		q.pending.addEntry(&mvccpb.KeyValue{Key: []byte(fmt.Sprint(n)), CreateRevision: 20 + n, ModRevision: 20 + n,
			Value: value}, 1)
		q.appendReported()
	}
	if n, kept := len(q.candidates.Entries), len(q.pending.places); n != protocol.MaxCandidates || kept > maxPending ||
		q.isComplete() {
		t.Errorf("%d places are in the candidates, and %d are kept; it is followed: %v", n, kept, q.isComplete())
	}
}

func same(l, m *protocol.Candidate) bool { return l.Revision == m.Revision && l.Key == m.Key }
