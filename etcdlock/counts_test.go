package etcdlock

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// counter is a process that counts, with a clock and deliveries that a test says.
type counter struct {
	*history.Counts
	history.Process

	mu   sync.Mutex
	at   time.Time
	some map[string]*idem.RouteCounts
}

// counterAt is a process with the connection of s that began at now.
func counterAt(t *testing.T, s *Store, name string, now time.Time) *counter {
	t.Helper()
	c := &counter{at: now, some: map[string]*idem.RouteCounts{}}
	tasks := commit.NewTasks()
	t.Cleanup(func() { _ = tasks.Close(t.Context()) })
	o := &history.Options{
		Pool: s.pool, Layout: s.layout, Writer: name, Clock: link.Clock{Now: c.now, Boot: func() time.Duration {
			return time.Duration(c.now().UnixNano())
		}},
		Tasks: tasks, Process: c,
	}
	c.Counts = history.NewCounts(o)
	return c
}

func (c *counter) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// set sets its clock.
func (c *counter) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = now
}

// count counts n answers with a 2xx, that took a second each.
func (c *counter) count(route string, n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.some[route] == nil {
		c.some[route] = &idem.RouteCounts{Route: route}
	}
	one := idem.RouteCounts{Last: c.at, Counts: idem.Counts{idem.CountDeliveries: n, idem.CountSucceeded: n}}
	one.Took.Note(time.Second)
	c.some[route].Add(&one)
}

func (c *counter) Counted() (all []idem.RouteCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.some {
		all = append(all, *r)
	}
	clear(c.some)
	return all
}

// totals are the deliveries by route since then.
func totals(t *testing.T, c *counter, since time.Time) map[string]uint64 {
	t.Helper()
	h, err := c.Counts.Counts(within(t, patience), idem.CountQuery{Since: since, Step: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]uint64{}
	for _, r := range h.Routes {
		found[r.Route] = r.Counts[idem.CountDeliveries]
		var sum uint64
		for _, step := range r.Steps {
			sum += step.Counts[idem.CountDeliveries]
		}
		if sum != found[r.Route] {
			t.Errorf("route %s: %d in its steps, %d in all", r.Route, sum, found[r.Route])
		}
	}
	return found
}

func mustWrite(t *testing.T, c *counter) {
	t.Helper()
	eventually(t, "etcd takes the counts", func() bool { return c.Write(within(t, patience)) })
}

var noon = time.Date(2026, 11, 27, 12, 0, 30, 0, time.UTC)

func TestCountsOfAllProcessesAreAddedUp(t *testing.T) {
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}})
	a, b := counterAt(t, s, "a", noon), counterAt(t, s, "b", noon)
	a.count("stripe", 3)
	a.count("github", 1)
	b.count("stripe", 4)
	mustWrite(t, a)
	mustWrite(t, b)
	a.set(noon.Add(10 * time.Minute))
	a.count("stripe", 5)
	h, err := a.Counts.Counts(within(t, patience), idem.CountQuery{Since: noon, Step: time.Minute})
	if err != nil || len(h.Routes) != 2 {
		t.Fatalf("%+v, %v", h, err)
	}
	stripe := h.Routes[1]
	minute := noon.Truncate(time.Minute)
	if stripe.Route != "stripe" || stripe.Counts[idem.CountSucceeded] != 12 || !stripe.Last.Equal(a.now()) ||
		len(stripe.Steps) != 2 ||
		!stripe.Steps[0].At.Equal(minute) || stripe.Steps[0].Counts[idem.CountDeliveries] != 7 ||
		!stripe.Steps[1].At.Equal(minute.Add(10*time.Minute)) {
		t.Errorf("%+v", stripe)
	}
	if p50 := stripe.Took.Quantile(0.5); p50 < 700*time.Millisecond || p50 > 1500*time.Millisecond {
		t.Errorf("p50 is %v", p50)
	}
	if n := totals(t, b, noon)["stripe"]; n != 7 {
		t.Errorf("the other process knows of %d before the next write", n)
	}
	mustWrite(t, a)
	if n := totals(t, b, noon)["stripe"]; n != 12 { // whose clock is ten minutes behind
		t.Errorf("the other process knows of %d", n)
	}
}

// countTook counts an answer that took so long.
func (c *counter) countTook(route string, took time.Duration) {
	c.count(route, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.some[route].Took.Forget(time.Second)
	c.some[route].Took.Longest = 0
	c.some[route].Took.Note(took)
}

// How long requests took is known of each minute, and after a day of each hour, whoever reads it
// and whether it is folded.
func TestTheTimesOfRequestsAreKnownByTheMinuteAndByTheHour(t *testing.T) {
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}})
	a, b := counterAt(t, s, "a", noon), counterAt(t, s, "b", noon)
	minute := noon.Truncate(time.Minute)
	for n, took := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		for _, c := range []*counter{a, b} {
			c.set(noon.Add(time.Duration(n) * time.Hour))
			c.countTook("stripe", took)
			mustWrite(t, c)
		}
	}
	for _, folded := range []bool{false, true} {
		for _, step := range []time.Duration{time.Minute, time.Hour} {
			for _, c := range []*counter{a, b} {
				h, err := c.Counts.Counts(within(t, patience), idem.CountQuery{Since: minute, Step: step, Times: true})
				if err != nil || len(h.Routes) != 1 || len(h.Routes[0].Steps) != 3 {
					t.Fatalf("%+v, %v", h, err)
				}
				for n, want := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
					one := h.Routes[0].Steps[n]
					if p := one.Took.Quantile(0.95); one.Counts[idem.CountSucceeded] != 2 || p > want ||
						p < want*7/10 || one.Took.Longest != want {
						t.Errorf("folded %v, step %v: at %v p95 is %v: %+v", folded, step, one.At, p, one)
					}
				}
				h, err = c.Counts.Counts(within(t, patience), idem.CountQuery{
					Since: minute, Until: noon.Add(time.Hour + time.Minute), Step: step, Times: true,
				})
				if err != nil || len(h.Routes[0].Steps) != 2 || h.Routes[0].Counts[idem.CountDeliveries] != 4 ||
					h.Routes[0].Took.Longest != 100*time.Millisecond ||
					!h.Until.Equal(noon.Add(time.Hour+time.Minute)) {
					t.Errorf("until: %+v, %v", h, err)
				}
			}
		}
		for _, c := range []*counter{a, b} {
			c.set(noon.Add(3 * time.Hour))
			mustWrite(t, c)
		}
	}
	a.set(noon.Add(27 * time.Hour)) // by the hour from here on
	h, err := a.Counts.Counts(within(t, patience), idem.CountQuery{Since: minute, Step: 24 * time.Hour, Times: true})
	if err != nil || len(h.Routes) != 1 || len(h.Routes[0].Steps) != 1 {
		t.Fatalf("%+v, %v", h, err)
	}
	if p := h.Routes[0].Steps[0].Took.Quantile(0.5); p < 50*time.Millisecond || p > 200*time.Millisecond {
		t.Errorf("of the day p50 is %v", p)
	}
}

func TestCountsSurviveARestartInTheSameMinute(t *testing.T) {
	e := etcdtest.Start(t)
	var counted []idem.RouteCounts
	open := func(n uint64) *Store {
		counted = []idem.RouteCounts{{Route: "stripe", Counts: idem.Counts{idem.CountDeliveries: n}}}
		s := openReady(t, Options{Endpoints: []string{e.Endpoint}, Counted: func() []idem.RouteCounts {
			some := counted
			counted = nil
			return some
		}})
		return s
	}
	for n := range uint64(3) {
		closeStore(t, open(n+1)) // it writes when it closes
	}
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	h, err := s.Counts(within(t, patience), idem.CountQuery{Since: time.Now().Add(-time.Hour), Step: time.Minute})
	if err != nil || len(h.Routes) != 1 || h.Routes[0].Counts[idem.CountDeliveries] != 6 {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestCountsThatEtcdDoesNotTakeNowAreWrittenLaterInTheirOwnMinutes(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	a := counterAt(t, openStore(t, Options{Endpoints: []string{wire.Endpoint}}), "a", noon)
	b := counterAt(t, openStore(t, Options{Endpoints: []string{e.Endpoint}}), "b", noon)
	a.count("stripe", 1)
	mustWrite(t, a)
	wire.Blackhole(true)
	for range 3 {
		a.set(a.now().Add(40 * time.Minute)) // past the end of an hour
		a.count("stripe", 1)
		// all of it passes: nothing answers
		short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		if a.Write(short) {
			t.Fatal("written through a black hole")
		}
		cancel()
	}
	wire.Blackhole(false)
	eventually(t, "etcd takes them", func() bool { return a.Write(within(t, patience)) })
	b.set(a.now())
	h, err := b.Counts.Counts(within(t, patience), idem.CountQuery{Since: noon, Step: time.Minute})
	if err != nil || len(h.Routes) != 1 || len(h.Routes[0].Steps) != 4 {
		t.Fatalf("%+v, %v", h, err)
	}
	for i, step := range h.Routes[0].Steps {
		if want := noon.Add(time.Duration(i) * 40 * time.Minute).Truncate(time.Minute); !step.At.Equal(want) ||
			step.Counts[idem.CountDeliveries] != 1 {
			t.Errorf("%+v, want 1 at %v", step, want)
		}
	}
}

func TestAClockThatIsSetBackOverwritesNoCounts(t *testing.T) {
	t.Parallel()
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}})
	a := counterAt(t, s, "a", noon)
	for _, at := range []time.Time{noon, noon.Add(25 * time.Hour), noon.Add(26 * time.Hour), noon} {
		a.set(at)
		a.count("stripe", 1)
		mustWrite(t, a)
	}
	h, err := a.Counts.Counts(within(t, patience), idem.CountQuery{Since: noon, Step: time.Minute})
	if err != nil || len(h.Routes) != 1 || h.Routes[0].Counts[idem.CountDeliveries] != 4 {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestCountsByTheHourAreKeptForAMonth(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	a := counterAt(t, s, "a", noon)
	for day := range 29 {
		a.set(noon.Add(time.Duration(day) * 24 * time.Hour))
		a.count("stripe", 1)
		mustWrite(t, a)
	}
	a.set(a.now().Add(time.Minute)) // the last minute is over
	mustWrite(t, a)
	h, err := a.Counts.Counts(within(t, patience),
		idem.CountQuery{Since: noon.Add(-1000 * 24 * time.Hour), Step: 6 * time.Hour})
	if err != nil || len(h.Routes) != 1 || h.Routes[0].Counts[idem.CountDeliveries] != 29 ||
		len(h.Routes[0].Steps) != 29 || a.now().Sub(h.Since) > idem.HourRetention+6*time.Hour {
		t.Errorf("%+v, %v", h, err)
	}
	for kind, kept := range map[string]time.Duration{protocol.KindMinutes: 25 * time.Hour,
		protocol.KindHours: 31 * 24 * time.Hour} {
		got, err := e.Client.Get(within(t, patience), s.layout.All(kind), clientv3.WithPrefix(), clientv3.WithLimit(1))
		if err != nil || got.Count != 29 {
			t.Fatal(got, err)
		}
		left, err := e.Client.TimeToLive(within(t, patience), clientv3.LeaseID(got.Kvs[0].Lease))
		if least := int64(kept / time.Second); err != nil || left.TTL < least || left.TTL > least*5/4 {
			t.Errorf("%s: its lease lasts for %d s, want %d: %v", kind, left.TTL, least, err)
		}
	}
}

func TestCountsAreBoundedInRoutesAndKeys(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	a := counterAt(t, s, "a", noon)
	for i := range history.MaxCountedRoutes + 50 {
		a.count(fmt.Sprintf("route %d", i), 1)
	}
	mustWrite(t, a)
	found := totals(t, a, noon)
	if len(found) != history.MaxCountedRoutes+1 || found[history.OtherRoutes] != 50 {
		t.Errorf("%d routes, and %d in the others", len(found), found[history.OtherRoutes])
	}
	a.Most = 20
	for hour := range 30 {
		a.set(noon.Add(time.Duration(hour) * time.Hour))
		a.count("stripe", 1)
		mustWrite(t, a)
	}
	if n, err := e.Count(within(t, patience), s.layout.All(protocol.KindMinutes)); err != nil || n > 21 {
		t.Errorf("%d keys: %v", n, err)
	}
	if n := totals(t, counterAt(t, s, "b", a.now()), a.now().Add(-10*time.Hour))["stripe"]; n != 11 {
		t.Errorf("%d in the newest hours: the oldest were to go", n)
	}
}

// keysOfKind returns how many keys of a kind etcd has.
func keysOfKind(t *testing.T, e *etcdtest.Etcd, s *Store, kind string) int64 {
	t.Helper()
	n, err := e.Count(within(t, patience), s.layout.All(kind))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A minute is in a key of its own while it lasts, and with the others of its hour when it is over:
// no reader sees it twice, or not at all.
func TestAMinuteOfCountsIsFoldedWhenItIsOver(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	a, b := counterAt(t, s, "a", noon), counterAt(t, s, "b", noon)
	a.count("stripe", 3)
	mustWrite(t, a)
	a.count("stripe", 4)
	mustWrite(t, a)
	if n, folded := keysOfKind(t, e, s, protocol.KindCounting), keysOfKind(t, e, s, protocol.KindMinutes); n != 1 ||
		folded != 0 || totals(t, b, noon)["stripe"] != 7 {
		t.Errorf("%d keys of minutes, %d of hours, and another process knows of %d", n, folded,
			totals(t, b, noon)["stripe"])
	}
	a.set(noon.Add(time.Minute))
	mustWrite(t, a)
	if n, folded := keysOfKind(t, e, s, protocol.KindCounting), keysOfKind(t, e, s, protocol.KindMinutes); n != 0 ||
		folded != 1 || totals(t, b, noon)["stripe"] != 7 || totals(t, a, noon)["stripe"] != 7 {
		t.Errorf("%d keys of minutes, %d of hours, and another process knows of %d", n, folded,
			totals(t, b, noon)["stripe"])
	}
	for range 2 {
		mustWrite(t, a)
	}
	if n := totals(t, b, noon)["stripe"]; n != 7 {
		t.Errorf("writing again makes %d of it", n)
	}
}

// succeeded is what an outcome counts.
func succeeded() *commit.Count {
	return &commit.Count{Counted: idem.Counted{Route: "stripe", Kinds: idem.CountSetOf(idem.CountDeliveries)}}
}

// carried sends what travels with counts, and says what etcd answers; lost: it takes them, and its
// answer is lost.
func carried(t *testing.T, s *Store, a *counter, sends bool, answer error, counts ...*commit.Count) {
	t.Helper()
	writes, answered := a.Carry(counts, false)
	if writes == nil {
		t.Fatal("nothing travels")
	}
	if sends {
		if _, err := s.pool.Commit(within(t, patience), patience, nil, writes); err != nil {
			t.Fatal(err)
		}
	}
	answered(answer, nil)
}

// What travels with a request is counted once, whatever becomes of the request: its outcomes are
// committed with another one if not with that.
func TestACountIsNeitherLostNorDoubledByTheRequestThatCarriesIt(t *testing.T) {
	for name, c := range map[string]struct {
		sends  bool
		answer error
	}{
		"applied":                          {true, nil},
		"applied, and the answer is lost":  {true, context.DeadlineExceeded},
		"not applied, and no answer comes": {false, context.DeadlineExceeded},
		"not sent":                         {false, link.ErrNotSent},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}})
			a, b := counterAt(t, s, "a", noon), counterAt(t, s, "b", noon)
			mustWrite(t, a) // it has a lease
			one := succeeded()
			carried(t, s, a, c.sends, c.answer, one)
			carried(t, s, a, true, nil, one, succeeded()) // the outcome is sent again, with another one
			if n := totals(t, b, noon)["stripe"]; n != 2 {
				t.Errorf("another process knows of %d", n)
			}
			a.set(noon.Add(time.Minute))
			mustWrite(t, a)
			if n := totals(t, b, noon)["stripe"]; n != 2 || totals(t, a, noon)["stripe"] != 2 {
				t.Errorf("when the minute is over, another process knows of %d", n)
			}
		})
	}
}

// An outcome that etcd refuses is none, and one that never comes was an answer of the service all
// the same.
func TestACountOfARefusedOutcomeIsTakenBackUntilItIsKnown(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	a := counterAt(t, s, "a", noon)
	mustWrite(t, a)
	one, other := succeeded(), succeeded()
	_, answered := a.Carry([]*commit.Count{one, other}, false)
	answered(nil, []*commit.Count{one})
	if n := totals(t, a, noon)["stripe"]; n != 1 || one.Done || !other.Done {
		t.Errorf("%d are counted", n)
	}
	a.Release([]*commit.Count{one, other})
	a.Release([]*commit.Count{one})
	if n := totals(t, a, noon)["stripe"]; n != 2 {
		t.Errorf("%d are counted when no more comes", n)
	}
}

// Two requests that are under way may be applied in any order.
func TestRequestsThatAreUnderWayTogetherCarryCountsInDifferentKeys(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	a, b := counterAt(t, s, "a", noon), counterAt(t, s, "b", noon)
	mustWrite(t, a)
	first, firstAnswered := a.Carry([]*commit.Count{succeeded()}, false)
	second, secondAnswered := a.Carry([]*commit.Count{succeeded(), succeeded()}, false)
	for _, writes := range []protocol.Writes{second, first} {
		if _, err := s.pool.Commit(within(t, patience), patience, nil, writes); err != nil {
			t.Fatal(err)
		}
	}
	firstAnswered(nil, nil)
	secondAnswered(nil, nil)
	if n := totals(t, b, noon)["stripe"]; n != 3 {
		t.Errorf("another process knows of %d", n)
	}
}

func TestCountsCannotBeReadWithoutEtcd(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	a := counterAt(t, openStore(t, Options{Endpoints: []string{wire.Endpoint}}), "a", noon)
	wire.Blackhole(true)
	defer wire.Blackhole(false)
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := a.Counts.Counts(short, idem.CountQuery{Since: noon, Step: time.Minute}); err == nil {
		t.Error("no error")
	}
}
