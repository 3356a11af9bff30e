package history

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// leaseOf lists a lease as a process with that chain would have, and returns it with the revision
// at which it did.
func leaseOf(tb testing.TB, e *etcdtest.Etcd, s *Reader, kind, chain string, at time.Time) (clientv3.LeaseID, int64) {
	tb.Helper()
	granted, err := e.Client.Grant(within(tb, patience), 3600)
	if err != nil {
		tb.Fatal(err)
	}
	value := protocol.EncodeLease(protocol.ListedLease{Chain: chain, At: at, Open: int64(time.Hour)})
	put, err := e.Client.Put(within(tb, patience), s.options.Layout.All(protocol.KindLeases+kind)+
		strconv.FormatInt(int64(granted.ID), 16), string(value), clientv3.WithLease(granted.ID))
	if err != nil {
		tb.Fatal(err)
	}
	return granted.ID, put.Header.Revision
}

// recordOn writes the record of an ended event on a lease.
func recordOn(tb testing.TB, e *etcdtest.Etcd, s *Reader, lease clientv3.LeaseID, workflow,
	event string) idem.ExecutionID {
	tb.Helper()
	l := lockIn(workflow, event)
	value, err := protocol.EncodeRecord(protocol.RecordOf(&l, success("body")), "me")
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := e.Client.Put(within(tb, patience), s.options.Layout.Record(l.Scope), string(value),
		clientv3.WithLease(lease)); err != nil {
		tb.Fatal(err)
	}
	return l.Execution
}

// endedPages goes through the pages of what has ended, and fails where a page leads no further.
func endedPages(tb testing.TB, s *Reader, most int) (got []idem.ExecutionID) {
	tb.Helper()
	q := idem.ExecutionQuery{PageSize: 100, Status: idem.Success}
	for range most {
		page, err := s.Executions(within(tb, patience), q)
		if err != nil {
			tb.Fatal(err)
		}
		got = append(got, ids(page.Executions)...)
		if page.NextCursor == "" {
			return got
		}
		if page.NextCursor == q.Cursor {
			tb.Fatalf("after %d executions the list stays at %s", len(got), q.Cursor)
		}
		q.Cursor = page.NextCursor
	}
	tb.Fatalf("%d pages do not reach the end: %d executions", most, len(got))
	return nil
}

// Many processes have leases that take keys at one time. They are read with each page, and keep it
// from nothing else.
func TestAListReachesItsEndHoweverManyLeasesStillTakeKeys(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openReader(t, e)
	now := time.Now()
	var want []idem.ExecutionID
	for i := range 6 {
		lease, _ := leaseOf(t, e, s, protocol.KindRecords, "one", now)
		want = append(want, recordOn(t, e, s, lease, "w", fmt.Sprintf("event %d", i)))
		if i == 2 {
			for j := range maxSpans + 10 {
				leaseOf(t, e, s, protocol.KindRecords, fmt.Sprintf("other %d", j), now)
			}
		}
	}
	slices.Reverse(want)
	if got := endedPages(t, s, 1); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Processes that restart often leave many leases, of which one knows only that they were over when
// another process had let an hour pass. A page must read all of them before it can say what is the
// newest there.
func TestAListReachesItsEndHoweverManyLeasesWereOverAtOneTime(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openReader(t, e)
	now := time.Now()
	var want []idem.ExecutionID
	for i := range maxSpans + 10 {
		lease, _ := leaseOf(t, e, s, protocol.KindRecords, fmt.Sprintf("restarted %d", i), now)
		if i%50 == 0 {
			want = append(want, recordOn(t, e, s, lease, "w", fmt.Sprintf("event %d", i)))
		}
	}
	leaseOf(t, e, s, protocol.KindRecords, "runs", now)
	leaseOf(t, e, s, protocol.KindRecords, "runs", now.Add(3*time.Hour))
	slices.Reverse(want)
	if got := endedPages(t, s, 10); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A page gives what is newer than anything that it has not read, and the next one goes on right
// there.
func TestAPageGivesNothingThatSomethingUnreadMayBeNewerThan(t *testing.T) {
	found := func(revisions ...int64) (all []place) {
		for _, r := range revisions {
			all = append(all, place{r, strconv.FormatInt(r, 10)})
		}
		return all
	}
	p := &past{behind: place{100, lastKey}, opened: maxSpans, spans: []leaseSpan{{before: 50}, {before: 40}},
		found: found(90, 80, 51, 49, 30)}
	for _, c := range []struct {
		n     int
		want  []place
		over  bool
		place int64
	}{
		{2, found(90, 80), false, 0},
		{10, found(51), false, 0},
		{10, nil, false, 50},
	} {
		got, over, err := p.nextKeys(t.Context(), c.n)
		if err != nil || !slices.Equal(got, c.want) || over != c.over {
			t.Fatalf("%d: %v %v %v; want %v", c.n, got, over, err, c)
		}
		// what was put anew meanwhile is further up, and not shown once more
		if len(got) > 0 && p.behind != got[len(got)-1] {
			t.Errorf("it reads on behind %v after %v", p.behind, got)
		}
		if c.place > 0 && p.resumePlace() != (place{c.place, lastKey}) {
			t.Errorf("the next page goes on behind %v, want below %d", p.resumePlace(), c.place)
		}
	}
	last := &past{behind: place{100, lastKey}, found: found(90, 30)}
	for _, want := range [][]place{found(90), found(30), nil} {
		if got, over, err := last.nextKeys(t.Context(), 1); err != nil || !slices.Equal(got, want) ||
			over != (want == nil) {
			t.Fatalf("%v %v %v, want %v", got, over, err, want)
		}
	}
}

func TestASearchReadsTheLeasesOfItsTimeAlone(t *testing.T) {
	e := etcdtest.Start(t)
	s := openReader(t, e)
	const most = clockSkew
	begin := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	at := func(hours int) time.Time { return begin.Add(time.Duration(hours) * time.Hour) }
	for _, kind := range []string{protocol.KindRecords, protocol.KindArrivals} {
		var leases []clientv3.LeaseID
		var revisions []int64
		for _, hours := range []int{0, 10, 20} { // each takes keys for an hour
			lease, revision := leaseOf(t, e, s, kind, strconv.Itoa(hours), at(hours))
			leases, revisions = append(leases, lease), append(revisions, revision)
		}
		for name, c := range map[string]struct {
			q     idem.ExecutionQuery
			below int64
			want  []int // of the leases
		}{
			"no bound": {idem.ExecutionQuery{}, math.MaxInt64, []int{0, 1, 2}},
			"since the end of the second": {idem.ExecutionQuery{Since: at(11).Add(most)}, math.MaxInt64,
				[]int{1, 2}},
			"since after that": {idem.ExecutionQuery{Since: at(11).Add(most + 1)}, math.MaxInt64,
				[]int{2}},
			"until the begin of the second": {idem.ExecutionQuery{Until: at(10).Add(-most)}, math.MaxInt64,
				[]int{0, 1}},
			"until before that": {idem.ExecutionQuery{Until: at(10).Add(-most - 1)}, math.MaxInt64,
				[]int{0}},
			"between": {idem.ExecutionQuery{Since: at(5), Until: at(15)}, math.MaxInt64,
				[]int{1}},
			"below the third":                {idem.ExecutionQuery{}, revisions[2], []int{0, 1}},
			"below what follows the third":   {idem.ExecutionQuery{}, revisions[2] + 1, []int{0, 1, 2}},
			"below the third, since between": {idem.ExecutionQuery{Since: at(5)}, revisions[2], []int{1}},
		} {
			p, err := s.newPast(within(t, patience), []string{kind}, &c.q, place{c.below, lastKey})
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, st := range p.spans {
				got = append(got, slices.Index(leases, st.lease))
			}
			slices.Sort(got)
			want := c.want
			// one that is written again moves, and shows what came before
			if kind == protocol.KindArrivals && !c.q.Until.IsZero() {
				want = []int{0, 1, 2}
				if !c.q.Since.IsZero() {
					want = []int{1, 2}
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s%s: leases %v, want %v", kind, name, got, want)
			}
		}
	}
}

// A lease takes no keys any more when the next but one of its chain is there, and until then it
// may.
func TestALeaseIsOverWhenTheNextButOneOfItsChainIsThere(t *testing.T) {
	e := etcdtest.Start(t)
	s := openReader(t, e)
	begin := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	type lease struct {
		id       clientv3.LeaseID
		revision int64
	}
	var a, b, c []lease
	for _, minutes := range []int{0, 50, 62} {
		id, revision := leaseOf(t, e, s, protocol.KindRecords, "c", begin.Add(time.Duration(minutes)*time.Minute))
		c = append(c, lease{id, revision})
	}
	for name, value := range map[string]string{"1f": `{"v":99}`,
		"none": string(protocol.EncodeLease(protocol.ListedLease{Chain: "a", At: begin}))} { // of other releases
		if _, err := e.Client.Put(within(t, patience), s.options.Layout.All(protocol.KindLeases+protocol.KindRecords)+
			name,
			value); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		id, revision := leaseOf(t, e, s, protocol.KindRecords, "a", begin.Add(time.Duration(i)*10*time.Minute))
		a = append(a, lease{id, revision})
		if i%2 == 0 {
			id, revision := leaseOf(t, e, s, protocol.KindRecords, "b", begin.Add(time.Duration(i)*time.Minute))
			b = append(b, lease{id, revision})
		}
	}
	all, err := s.leases.readSpans(within(t, patience), protocol.KindRecords)
	if err != nil {
		t.Fatal(err)
	}
	type side struct {
		after, before int64
		to            time.Duration // since the begin
	}
	want := map[clientv3.LeaseID]side{
		c[0].id: {c[0].revision, c[2].revision, 60 * time.Minute},
		c[1].id: {c[1].revision, math.MaxInt64, 110 * time.Minute},
		c[2].id: {c[2].revision, math.MaxInt64, 122 * time.Minute},
		a[0].id: {a[0].revision, a[2].revision, 20 * time.Minute},
		a[1].id: {a[1].revision, a[3].revision, 30 * time.Minute},
		a[2].id: {a[2].revision, math.MaxInt64, 80 * time.Minute},
		a[3].id: {a[3].revision, math.MaxInt64, 90 * time.Minute},
		b[0].id: {b[0].revision, math.MaxInt64, 60 * time.Minute},
		b[1].id: {b[1].revision, math.MaxInt64, 62 * time.Minute},
	}
	var order []clientv3.LeaseID
	for _, st := range all {
		if got := (side{st.after, st.before, st.to.Sub(begin)}); got != want[st.lease] {
			t.Errorf("%+v, want %+v", got, want[st.lease])
		}
		order = append(order, st.lease)
	}
	if newest := []clientv3.LeaseID{a[3].id, b[1].id, a[2].id, b[0].id, c[2].id, c[1].id, a[1].id, a[0].id,
		c[0].id}; !slices.Equal(order, newest) {
		t.Errorf("in the order %v, want %v", order, newest)
	}
}

// What a process that has ended wrote was over when another one had let more time pass than a lease
// takes keys for, and clocks may differ by. One that runs says it itself, and knows better.
func TestALeaseOfAProcessThatHasEndedIsOverWhenAnotherOneHasLetItsTimePass(t *testing.T) {
	begin := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	at := func(after int64, passed time.Duration) leaseSpan {
		return leaseSpan{after: after, before: math.MaxInt64, from: begin.Add(passed), open: time.Hour}
	}
	enough := time.Hour + clockSkew
	for name, c := range map[string]struct {
		others [][]leaseSpan
		want   int64
	}{
		"nobody else":     {nil, math.MaxInt64},
		"too little time": {[][]leaseSpan{{at(20, 0), at(30, enough-1)}}, math.MaxInt64},
		"time enough": {[][]leaseSpan{{at(20, 0), at(30, enough-1), at(40, enough),
			at(50, 2*enough)}}, 40},
		"time before it was there": {[][]leaseSpan{{at(5, -time.Hour), at(20, 0), at(30, enough-1)}},
			math.MaxInt64},
		"two who know, the first earlier": {[][]leaseSpan{{at(20, 0), at(30, enough)}, {at(21, 0), at(40, enough)}},
			30},
		"two who know, the second earlier": {[][]leaseSpan{{at(20, 0), at(40, enough)}, {at(21, 0), at(30, enough)}},
			30},
		"two whose clocks differ": {[][]leaseSpan{{at(20, 0)}, {at(30, 3*enough)}}, math.MaxInt64},
	} {
		for _, own := range []int64{math.MaxInt64, 60, 10} {
			all, chains := []leaseSpan{at(10, 0)}, map[string][]int{"old": {0}}
			all[0].before = own
			for i, other := range c.others {
				for _, st := range other {
					chains[strconv.Itoa(i)] = append(chains[strconv.Itoa(i)], len(all))
					all = append(all, st)
				}
			}
			closeByTime(all, chains)
			want := own
			if own == math.MaxInt64 {
				want = c.want
			}
			if all[0].before != want {
				t.Errorf("%s, and %d by itself: it is over at %d, want %d", name, own, all[0].before, want)
			}
		}
	}
}

func TestASearchAsksForTheLongestBeginningThatItKnows(t *testing.T) {
	key := string(idem.MakeKey(idem.HashEventID("evt"), [16]byte{1}))
	event := protocol.Hex16(idem.HashEventID("evt"))
	if key[:len(event)] != event {
		t.Fatalf("%s does not begin with %s", key, event)
	}
	for want, queries := range map[string][]idem.ExecutionQuery{
		"":       {{}, {Workflow: "w"}},
		event:    {{EventID: "evt"}, {EventID: "evt", Key: key[:4]}, {Key: event}},
		key:      {{Key: key}, {EventID: "evt", Key: key}},
		key[:20]: {{EventID: "evt", Key: key[:20]}},
	} {
		for _, q := range queries {
			if got := keyBeginning(&q); got != want {
				t.Errorf("%+v: %q, want %q", q, got, want)
			}
		}
	}
}

// Of the keys on a lease a search reads those that may be what it asks for: not those of other
// workflows, nor what else is there.
func TestASearchReadsOfALeaseTheKeysThatItIsForAlone(t *testing.T) {
	e := etcdtest.Start(t)
	s := openReader(t, e)
	lease, _ := leaseOf(t, e, s, protocol.KindRecords, "one", time.Now())
	for _, workflow := range []string{"mine", "theirs"} {
		recordOn(t, e, s, lease, workflow, "event")
	}
	if _, err := e.Client.Put(within(t, patience), s.options.Layout.Root+"marks/x", "",
		clientv3.WithLease(lease)); err != nil {
		t.Fatal(err)
	}
	of := func(workflow string) string { return s.options.Layout.Record(lockIn(workflow, "event").Scope) }
	for workflow, want := range map[string][]string{"mine": {of("mine")}, "theirs": {of("theirs")}, "nobody's": nil,
		"": {of("mine"), of("theirs")}} {
		p, err := s.newPast(within(t, patience), []string{protocol.KindRecords},
			&idem.ExecutionQuery{Workflow: workflow}, beginning)
		if err != nil {
			t.Fatal(err)
		}
		found, err := p.keysOn(within(t, patience), &leaseSpan{lease: lease})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range found {
			got = append(got, w.key)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("of %q: %q, want %q", workflow, got, want)
		}
		if len(found) != 2 {
			continue
		}
		newest := max(found[0].revision, found[1].revision)
		if p.behind = (place{newest, lastKey}); len(foundOn(t, p, lease)) != 1 {
			t.Errorf("what was given already is read again")
		}
		if p.behind = (place{newest + 1, lastKey}); len(foundOn(t, p, lease)) != 2 {
			t.Errorf("the newest below the place is left out")
		}
	}
}

func foundOn(tb testing.TB, p *past, lease clientv3.LeaseID) []place {
	tb.Helper()
	found, err := p.keysOn(within(tb, patience), &leaseSpan{lease: lease})
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

// What processes that have ended left behind is not read with each first page for as long as it is
// kept: time has passed since, by the clock of one that runs.
func TestLeasesOfProcessesThatHaveEndedTakeNoMoreKeys(t *testing.T) {
	const day = 24 * time.Hour
	e := etcdtest.Start(t)
	clockAhead := func(by time.Duration) link.Clock {
		c := link.SystemClock()
		c.Now = func() time.Time { return time.Now().Add(by) }
		return c
	}
	takes := func(s *Reader) {
		t.Helper()
		leases := commit.NewLeases(s.options.Pool.NewLease, s.options, s.options.Clock, s.options.Tasks)
		if _, err := leases.Take(within(t, patience), day, protocol.KindRecords, nil); err != nil {
			t.Fatal(err)
		}
	}
	mayTakeMore := func(s *Reader) (n int) {
		t.Helper()
		all, err := s.leases.readSpans(within(t, patience), protocol.KindRecords)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if all[i].before == math.MaxInt64 {
				n++
			}
		}
		return n
	}
	runs := openReader(t, e)
	takes(openReaderAt(t, e, "ended", clockAhead(365*day)))
	takes(runs)
	if n := mayTakeMore(runs); n != 2 {
		t.Errorf("%d leases take keys: both have just been granted", n)
	}
	takes(openReaderAt(t, e, "me", clockAhead(commit.OpenFor(day)+clockSkew+time.Minute)))
	if n := mayTakeMore(runs); n != 1 {
		t.Errorf("%d leases take keys: the newest alone may", n)
	}
}

// Transactions travel together, and what they write has one revision then. A page may end between
// two of them.
func TestAPageThatEndsBetweenTwoOfOneRevisionLeavesNoneOut(t *testing.T) {
	e := etcdtest.Start(t)
	s := openReader(t, e)
	lease, _ := leaseOf(t, e, s, protocol.KindRecords, "one", time.Now())
	var ops []clientv3.Op
	for i := range 50 {
		l := lockIn(fmt.Sprint("w", i%3), fmt.Sprint("event ", i))
		record, err := protocol.EncodeRecord(protocol.RecordOf(&l, success("body")), "me")
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, clientv3.OpPut(s.options.Layout.Record(l.Scope), string(record), clientv3.WithLease(lease)))
		waits := lockIn(fmt.Sprint("w", i%3), fmt.Sprint("waits ", i))
		place, err := protocol.EncodeLock(&waits)
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, clientv3.OpPut(s.options.Layout.Queued(waits.Scope), string(place)))
	}
	if _, err := e.Client.Txn(within(t, patience)).Then(ops...).Commit(); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 7, 40} {
		all := map[string]int{}
		for q := (idem.ExecutionQuery{PageSize: limit}); ; {
			page, err := s.Executions(within(t, patience), q)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page.Executions {
				all[page.Executions[i].Facts().EventID]++
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
		}
		for event, n := range all {
			if n > 1 {
				t.Errorf("pages of %d: %s is there %d times", limit, event, n)
			}
		}
		if len(all) != 100 {
			t.Errorf("pages of %d: %d executions, want 100", limit, len(all))
		}
	}
}
