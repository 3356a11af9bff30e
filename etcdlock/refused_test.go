package etcdlock

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/idem"
)

// refuser is a process whose sender repeats a refused event within ten minutes, with a clock that
// the test moves on.
type refuser struct {
	*Store
	ahead atomic.Int64 // by which its clock is
	lost  chan idem.LostEvent
}

func newRefuser(tb testing.TB, e *etcdtest.Etcd, follow idem.Following) *refuser {
	tb.Helper()
	r := &refuser{lost: make(chan idem.LostEvent, 100)}
	r.Store = openStore(tb, Options{
		Endpoints: []string{e.Endpoint}, OnLost: func(l idem.LostEvent) {
			r.lost <- l
		}, Clock: link.Clock{Now: r.now, Boot: link.SystemClock().Boot},
		Follow: func(string, bool) idem.Following { return follow },
	})
	return r
}

func (r *refuser) now() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }

func tenMinutes() idem.Following {
	return idem.Following{Patience: 10 * time.Minute, Remembered: 24 * time.Hour}
}

// refuse refuses a delivery of an event.
func (r *refuser) refuse(tb testing.TB, event string, d idem.Decision) idem.Scope {
	tb.Helper()
	scope := lockFor("w", event).Scope
	r.NoteArrival(scope, "orders", event, idem.Arrival{At: r.now(), Decision: d, Status: d.Row().Status,
		Labels: idem.Labels{{Name: "order", Value: event}}}, time.Hour)
	written(tb, r.Store)
	return scope
}

// judge moves the clock of the process on, and lets it look at what is due.
func (r *refuser) judge(tb testing.TB, after time.Duration) {
	tb.Helper()
	r.ahead.Add(int64(after))
	r.follower.Judge(within(tb, patience))
	written(tb, r.Store)
}

func lostEvents(tb testing.TB, s *Store, change ...func(*idem.ExecutionQuery)) (names []string) {
	tb.Helper()
	q := idem.ExecutionQuery{Lost: true}
	for _, f := range change {
		f(&q)
	}
	for _, f := range allExecutions(tb, s, q) {
		names = append(names, f.Arrivals.EventID)
	}
	slices.Sort(names)
	return names
}

func TestARefusedEventThatDoesNotComeAgainIsPossiblyLost(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := newRefuser(t, e, tenMinutes()), newRefuser(t, e, tenMinutes())
	scope := a.refuse(t, "evt_1", idem.DecisionLocked)
	a.judge(t, 9*time.Minute)
	if names := lostEvents(t, b.Store); len(names) != 0 {
		t.Fatalf("lost too early: %q", names)
	}
	a.judge(t, 2*time.Minute)
	l := <-a.lost
	if l.Scope != scope || l.Route != "orders" || l.EventID != "evt_1" || l.Arrival.Decision != idem.DecisionLocked ||
		len(l.Labels) != 1 {
		t.Errorf("%+v", l)
	}
	for _, s := range []*Store{a.Store, b.Store} {
		if names := lostEvents(t, s); fmt.Sprint(names) != "[evt_1]" {
			t.Errorf("lost: %q", names)
		}
	}
	at := lostAt(t, b.Store)
	for name, c := range map[string]struct {
		change func(*idem.ExecutionQuery)
		want   int
	}{
		"of its route":      {func(q *idem.ExecutionQuery) { q.Route = "orders" }, 1},
		"of another":        {func(q *idem.ExecutionQuery) { q.Route = "other" }, 0},
		"since":             {func(q *idem.ExecutionQuery) { q.Since = at.Add(-time.Second) }, 1},
		"later":             {func(q *idem.ExecutionQuery) { q.Since = at.Add(time.Second) }, 0},
		"looked at before":  {seenUntil(at.Add(-time.Second)), 1},
		"looked at, and no": {seenUntil(at), 0},
	} {
		if names := lostEvents(t, b.Store, c.change); len(names) != c.want {
			t.Errorf("%s: %q", name, names)
		}
	}
	a.judge(t, time.Hour)
	if len(a.lost) != 0 {
		t.Error("it was lost twice")
	}
	mustSettle(t, mustClaim(t, b.Store, lockOfEvent("evt_1", b.now()), 0)) // late, and not lost
	if names := lostEvents(t, b.Store); len(names) != 0 {
		t.Errorf("it ran, and is lost: %q", names)
	}
}

func lostAt(tb testing.TB, s *Store) time.Time {
	tb.Helper()
	return allExecutions(tb, s, idem.ExecutionQuery{Lost: true})[0].Arrivals.Lost
}

func seenUntil(at time.Time) func(*idem.ExecutionQuery) {
	return func(q *idem.ExecutionQuery) { q.Acknowledged = map[string]idem.Acknowledgement{"orders": {Until: at}} }
}

// lockOfEvent is a lock for that event, whose execution begins at that time.
func lockOfEvent(event string, at time.Time) idem.Lock {
	l := lockFor("w", event)
	l.Route, l.StartedAt = "orders", at
	return l
}

func TestARefusedEventThatRanWaitsOrCameAgainIsNotLost(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := newRefuser(t, e, tenMinutes()), newRefuser(t, e, tenMinutes())
	for _, event := range []string{"ran", "runs", "waits", "again elsewhere", "again here", "failed", "unknown"} {
		a.refuse(t, event, idem.DecisionLocked)
	}
	runs := mustClaim(t, b.Store, lockOfEvent("ran", b.now()), 0)
	mustSettle(t, runs)
	runs = mustClaim(t, b.Store, lockOfEvent("failed", b.now()), 0)
	if _, err := runs.Settle(within(t, patience), idem.End{Status: idem.Failed, Outcome: idem.Executed,
		FinishedAt: b.now(), Error: &idem.Failure{Code: "status"}}); err != nil {
		t.Fatal(err)
	}
	runs = mustClaim(t, b.Store, lockOfEvent("runs", b.now()), 0)
	place := mustEnqueue(t, b.Store, lockOfEvent("waits", b.now()))
	b.ahead.Add(int64(8 * time.Minute))
	b.refuse(t, "again elsewhere", idem.DecisionLocked)
	a.ahead.Add(int64(8 * time.Minute))
	a.refuse(t, "again here", idem.DecisionPaused)
	a.judge(t, 3*time.Minute)
	if names := lostEvents(t, a.Store); fmt.Sprint(names) != "[unknown]" {
		t.Errorf("lost after 11 minutes: %q", names)
	}
	b.judge(t, 11*time.Minute)
	a.judge(t, 11*time.Minute)
	if names := lostEvents(t, a.Store); fmt.Sprint(names) != "[again elsewhere again here unknown]" {
		t.Errorf("lost in the end: %q", names)
	}
	if err := place.Leave(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	must(t, runs.Release)
}

func TestOnlyARefusalThatTheSenderHasToRepeatMayLoseAnEvent(t *testing.T) {
	e := etcdtest.Start(t)
	a := newRefuser(t, e, tenMinutes())
	for _, row := range idem.Decisions() {
		a.refuse(t, string(row.Decision), row.Decision)
	}
	a.judge(t, time.Hour)
	want := "[in_flight limited locked paced paused queue_full store_unavailable throttled upstream_unreachable wait_timeout]"
	if names := lostEvents(t, a.Store); fmt.Sprint(names) != want {
		t.Errorf("%q, want %s", names, want)
	}
}

// The record of an event without an ID lives for minutes: its loss is found before that, and known
// after it.
func TestTheLossOfAnEventWithoutAnIDOutlivesItsRecord(t *testing.T) {
	e := etcdtest.Start(t)
	a := newRefuser(t, e, idem.Following{Patience: 10 * time.Minute, Remembered: 10 * time.Minute})
	a.refuse(t, "one", idem.DecisionLocked)
	a.judge(t, 9*time.Minute)
	if names := lostEvents(t, a.Store); fmt.Sprint(names) != "[one]" {
		t.Errorf("%q", names)
	}
	a.refuse(t, "two", idem.DecisionLocked)
	a.judge(t, 11*time.Minute) // it may have run, and that is forgotten
	if names := lostEvents(t, a.Store); fmt.Sprint(names) != "[one]" {
		t.Errorf("what is not known is lost: %q", names)
	}
}

func TestAProcessFollowsWhatAnEndedOneHasRefused(t *testing.T) {
	e := etcdtest.Start(t)
	a := newRefuser(t, e, tenMinutes())
	a.refuse(t, "lost", idem.DecisionLocked)
	a.refuse(t, "known", idem.DecisionLocked)
	a.refuse(t, "ran", idem.DecisionLocked)
	a.refuse(t, "copy", idem.DecisionReplayed)
	b := newRefuser(t, e, tenMinutes())
	mustSettle(t, mustClaim(t, b.Store, lockOfEvent("ran", b.now()), 0))
	closeStore(t, a.Store)
	if err := b.follower.Adopt(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	b.judge(t, 10*time.Minute) // its own process may do it yet
	if names := lostEvents(t, b.Store); len(names) != 0 {
		t.Errorf("%q", names)
	}
	b.judge(t, 3*time.Minute)
	if names := lostEvents(t, b.Store); fmt.Sprint(names) != "[known lost]" || len(b.lost) != 2 {
		t.Errorf("%q, %d", names, len(b.lost))
	}
	c := newRefuser(t, e, tenMinutes())
	c.ahead.Store(b.ahead.Load())
	if err := c.follower.Adopt(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	c.judge(t, 3*time.Minute)
	if len(c.lost) != 0 {
		t.Error("what was found is found again")
	}
}

func TestASenderWithAScheduleHasItsTime(t *testing.T) {
	e := etcdtest.Start(t)
	a := newRefuser(t, e, idem.Following{Patience: 10 * time.Minute, Schedule: 3 * time.Hour,
		Remembered: 24 * time.Hour})
	a.refuse(t, "evt_1", idem.DecisionLocked)
	a.judge(t, time.Hour)
	a.refuse(t, "evt_1", idem.DecisionLocked)
	a.judge(t, 115*time.Minute)
	if names := lostEvents(t, a.Store); len(names) != 0 {
		t.Errorf("before the schedule ends: %q", names)
	}
	a.judge(t, 10*time.Minute)
	if names := lostEvents(t, a.Store); fmt.Sprint(names) != "[evt_1]" {
		t.Errorf("%q", names)
	}
}

// Strangers on a route without signatures can make up events, and each is refused.
func TestRefusedEventsAreStoredAtABoundedRate(t *testing.T) {
	e := etcdtest.Start(t)
	follow := tenMinutes()
	follow.NewPerSecond = 1
	a := newRefuser(t, e, follow)
	const flood = history.MaxEvents + 100
	for n := range flood {
		a.NoteArrival(lockFor("w", fmt.Sprint(n)).Scope, "orders", fmt.Sprint(n),
			idem.Arrival{At: a.now(), Decision: idem.DecisionThrottled}, time.Hour)
	}
	end := a.now()
	written(t, a.Store)
	before, stored := a.duplicates.Shed(), 0
	for ; a.duplicates.Shed() == before; stored++ { // there is room again, but no budget beside that of the time since
		a.NoteArrival(lockFor("w", fmt.Sprint("more", stored)).Scope, "orders", "",
			idem.Arrival{At: a.now(), Decision: idem.DecisionLocked}, time.Hour)
	}
	if since := a.now().Sub(end); stored-1 > int(since.Seconds())+1 {
		t.Errorf("%d further ones were stored within %v", stored-1, since)
	}
	a.ahead.Add(int64(30 * time.Second))
	before = a.duplicates.Shed()
	a.NoteArrival(lockFor("w", "later").Scope, "orders", "", idem.Arrival{At: a.now(), Decision: idem.DecisionLocked},
		time.Hour)
	if a.duplicates.Shed() != before {
		t.Error("it is shed though there is a budget again")
	}
}
