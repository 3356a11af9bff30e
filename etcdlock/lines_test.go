package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestAParkedExecutionIsNotReapedAndTheOneBehindItRests(t *testing.T) {
	e := etcdtest.Start(t)
	var reaped atomic.Int32
	s, kv := lossy(t, e, func(o *Options) { o.OnReaped = func(*idem.Lock) { reaped.Add(1) } })
	id := uncarried(t, e, 1)
	if held, seen, err := tryClaim(t, s, lockFor("w", "pushes in"), 0); held != nil || err != nil || seen.Lock == nil ||
		seen.Lock.Dead || seen.Lock.Parked == nil {
		t.Fatalf("%v %+v %v", held, seen, err)
	}
	if f, err := s.Execution(within(t, patience), id); err != nil || f.Lock == nil || f.Lock.Dead {
		t.Fatalf("%+v %v", f, err)
	}
	s.sweeper.Everything()
	p := mustEnqueue(t, s, lockFor("w", "behind"))
	var reads atomic.Int32
	count := func(key string) {
		if strings.Contains(key, "/locks/") {
			reads.Add(1)
		}
	}
	kv.reads.Store(&count)
	turn := make(chan error, 1)
	go func() { turn <- myTurn(within(t, patience), p) }()
	settled(t, s, 1)
	if n := reads.Load(); n > 10 {
		t.Errorf("%d reads of a lock that nothing has happened to", n)
	}
	taken := takeNext(t, s)
	if taken.Running.Lock().Execution != id || reaped.Load() != 0 {
		t.Fatalf("took %+v, %d reaped", taken.Running.Lock(), reaped.Load())
	}
	mustSettle(t, taken.Running)
	if err := <-turn; err != nil {
		t.Fatal(err)
	}
}

func TestOnlyAProcessWithTheRouteTakesWhatIsParked(t *testing.T) {
	e := etcdtest.Start(t)
	with, without := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustPark(t, without, parkedLock("w", "event"), 0)
	scope, route, err := without.NextReady(within(t, patience))
	if err != nil || route != "r" {
		t.Fatalf("%q %v", route, err)
	}
	if got, err := without.TakeParked(within(t, patience), scope, func(string) bool {
		return false
	}); got != nil || err != nil {
		t.Fatalf("%+v %v", got, err)
	}
	mustSettle(t, takeNext(t, with).Running)
}

func TestAQueueOfTwoRoutesContinuesWhereOnlyTheSecondIsLeft(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	first, second := parkedLock("w", "first"), parkedLock("w", "second")
	first.Route = "gone"
	mustPark(t, s, first, 0)
	mustPark(t, s, second, 0)
	eventually(t, "both are known", func() bool { return s.Parked(idem.Scope{}).Events == 2 })
	mustSettle(t, takeNext(t, s).Running)
	eventually(t, "one is left", func() bool { return s.Parked(idem.Scope{}).Events == 1 })
	s.MarkReady(second.Scope)
	if _, route, err := s.NextReady(within(t, patience)); err != nil || route == "gone" {
		t.Fatalf("who has the route of what is left alone is told of a line of the route %q: %v", route, err)
	}
}

func TestWhatIsParkedForTooLongSaysSo(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	holder := mustClaim(t, s, lockFor("w", "first"), 0)
	l := parkedLock("w", "event")
	mustPark(t, s, l, holder.Lock().Created)
	eventually(t, "it is known", func() bool { return s.Parked(idem.Scope{}).Events == 1 })
	e.Expire(t, s.layout.All(protocol.KindAges))
	eventually(t, "it is too old", func() bool { return s.IsTooOld(l.Execution) })
	mustSettle(t, holder)
	got := takeNext(t, s)
	if !got.TooOld {
		t.Fatal("who takes it is not told")
	}
	p := *got.Running.Lock().Parked
	p.Blocked = "too old"
	if err := got.Running.RecordTry(within(t, patience), p); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RunNow(within(t, patience), l.Execution, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has its whole time again", func() bool {
		return !s.IsTooOld(l.Execution) && got.Running.Lock().Parked.Blocked == ""
	})
}

func TestABlockedExecutionThatIsTooOldIsTakenToEndIt(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustPark(t, s, parkedLock("w", "event"), 0)
	h := takeNext(t, s).Running
	leaveToAPerson(t, h)
	e.Expire(t, s.layout.All(protocol.KindAges))
	if taken := takeNext(t, s); !taken.TooOld || taken.Running.Lock().Parked.Blocked == "" {
		t.Fatalf("%+v", taken.Running.Lock())
	}
}

func TestUnderStrategyNoneEachParkedEventIsAQueueOfItsOwn(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	for _, event := range []string{"one", "two"} {
		l := parkedLock("w", event)
		l.PerEvent = true
		mustPark(t, s, l, 0)
	}
	one, two := takeNext(t, s), takeNext(t, s)
	if one.Running.Lock().EventID == two.Running.Lock().EventID {
		t.Fatal("the same one")
	}
	mustSettle(t, two.Running)
	mustSettle(t, one.Running)
	nothingKept(t, e)
}

func TestAHeldTryWhoseHoldRunsOutIsTakenOver(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustPark(t, s, parkedLock("w", "event"), 0)
	h := takeNext(t, s).Running
	mustAttempt(t, h)
	token := h.Lock().Token
	if err := h.Hold(within(t, patience), time.Second); err != nil {
		t.Fatal(err)
	}
	got := takeNext(t, s)
	if l := got.Running.Lock(); !got.Carried || !l.Parked.Trying || l.Token <= token || l.Held {
		t.Fatalf("%+v", l)
	}
	mustSettle(t, got.Running)
	nothingKept(t, e)
}

func TestAHeldTryIsCompletedByItsUpstream(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustPark(t, s, parkedLock("w", "event"), 0)
	h := takeNext(t, s).Running
	mustAttempt(t, h)
	if err := h.Hold(within(t, patience), time.Hour); err != nil {
		t.Fatal(err)
	}
	l := h.Lock()
	cb := idem.Callback{Execution: l.Execution, Token: l.Token, AnyKey: true}
	if f, err := s.Heartbeat(within(t, patience), cb, time.Hour); err != nil || f.Lock.Token != l.Token {
		t.Fatalf("%+v %v", f, err)
	}
	f, err := s.Complete(within(t, patience), cb, idem.Final{Status: idem.Failed})
	if err != nil || f.Record.Status != idem.Failed || !f.Record.RequestKept || f.Record.Tries != 1 {
		t.Fatalf("%+v %v", f, err)
	}
	letterStays(t, s, l.Execution)
}

func TestADuplicateOfAParkedEventSeesIt(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, s, l, 0)
	_, seen, err := tryClaim(t, s, lockFor("w", "event"), 0)
	if err != nil || seen == nil || seen.Waiting == nil || seen.Waiting.Execution != l.Execution ||
		seen.Waiting.Parked == nil {
		t.Fatalf("%+v %v", seen, err)
	}
	if _, seen, err := s.Enqueue(within(t, patience), parkedLock("w", "event"), 0, 0); err != nil ||
		seen == nil || seen.Waiting.Execution != l.Execution {
		t.Fatalf("%+v %v", seen, err)
	}
	h := takeNext(t, s).Running
	if _, seen, err = tryClaim(t, s, lockFor("w", "event"), 0); err != nil || seen.Lock == nil ||
		seen.Lock.Parked == nil {
		t.Fatalf("%+v %v", seen, err)
	}
	mustSettle(t, h)
}

func TestEachParkedEventIsTakenOnceByAllProcessesTogether(t *testing.T) {
	const workflows, each = 8, 3
	e := etcdtest.Start(t)
	stores := []*Store{openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})}
	for i := range each {
		for w := range workflows {
			mustPark(t, stores[(i+w)%2], parkedLock(fmt.Sprintf("w%d", w), fmt.Sprintf("event %d of %d", i, w)), 0)
		}
	}
	ctx, cancel := context.WithCancel(within(t, patience))
	defer cancel()
	var mu sync.Mutex
	ran := map[string][]string{}
	left := workflows * each
	var wg sync.WaitGroup
	for _, s := range stores {
		for range 4 {
			wg.Go(func() {
				for {
					scope, _, err := s.NextReady(ctx)
					if err != nil {
						return
					}
					got, err := s.TakeParked(ctx, scope, anyRoute)
					if err != nil || got == nil {
						if err != nil && ctx.Err() == nil {
							t.Error(err)
						}
						continue
					}
					l := got.Running.Lock()
					mu.Lock()
					ran[l.Workflow] = append(ran[l.Workflow], l.EventID)
					left--
					over := left == 0
					mu.Unlock()
					mustAttempt(t, got.Running)
					mustSettle(t, got.Running)
					if over {
						cancel()
					}
				}
			})
		}
	}
	wg.Wait()
	for w := range workflows {
		got := ran[fmt.Sprintf("w%d", w)]
		for i := range each {
			if len(got) != each || got[i] != fmt.Sprintf("event %d of %d", i, w) {
				t.Errorf("in workflow %d ran %q", w, got)
				break
			}
		}
	}
	eventually(t, "the index is empty", func() bool {
		return stores[0].Parked(idem.Scope{}).Events == 0 && stores[1].Parked(idem.Scope{}).Events == 0
	})
	nothingKept(t, e)
}

func TestAQueueIsReadyOnceForEachReasonInOrder(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	for _, w := range []string{"a", "b"} {
		mustPark(t, s, parkedLock(w, w), 0)
	}
	_ = s.Parked(idem.Scope{})
	eventually(t, "both are known", func() bool { return s.Parked(idem.Scope{}).Events == 2 })
	for err := error(nil); err == nil; { // at the start and by their entries
		_, err = ready(s)
	}
	s.MarkReady(idem.Scope{Workflow: "b"})
	s.MarkReady(idem.Scope{})
	s.MarkReady(idem.Scope{Workflow: "b"})
	for _, want := range []string{"b", "a"} {
		if scope, err := ready(s); err != nil || scope.Workflow != want {
			t.Fatalf("%+v %v, want %s", scope, err, want)
		}
	}
	if scope, err := ready(s); err == nil {
		t.Fatalf("%+v is ready again", scope)
	}
}

// ready returns a queue that is ready now; err != nil: none is.
func ready(s *Store) (idem.Scope, error) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	scope, _, err := s.NextReady(now)
	return scope, err
}

// drained waits until s has heard of all index entries that are in etcd now, and takes what is
// ready; there is nothing to take.
func drained(tb testing.TB, e *etcdtest.Etcd, s *Store) {
	tb.Helper()
	letters := s.Parked(idem.Scope{}).DeadLetters
	last := lockFor("behind all others", "event")
	key, value := s.layout.Of(protocol.KindParked, last.Execution),
		protocol.EncodeIndex(&idem.ParkedEntry{Scope: last.Scope, State: idem.ParkDeadLetter})
	if _, err := e.Client.Put(within(tb, patience), key, string(value)); err != nil {
		tb.Fatal(err)
	}
	eventually(tb, "the entry behind all others is heard of", func() bool {
		return s.Parked(idem.Scope{}).DeadLetters > letters
	})
	if _, err := e.Client.Delete(within(tb, patience), key); err != nil {
		tb.Fatal(err)
	}
	for {
		scope, err := ready(s)
		if err != nil {
			return
		}
		if got, err := s.TakeParked(within(tb, patience), scope, anyRoute); got != nil || err != nil {
			tb.Fatalf("%+v %v", got, err)
		}
	}
}

func TestALiveOwnerIsNotReplacedByAProcessThatDoesNotKnowItsSession(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustPark(t, a, parkedLock("w", "event"), 0)
	h := takeNext(t, a).Running
	name := currentSession(t, a).Name
	b.view.Sessions.Remove(name, 0)
	if got, err := b.TakeParked(within(t, patience), idem.Scope{Workflow: "w"}, anyRoute); got != nil || err != nil {
		t.Fatalf("%+v %v", got, err)
	}
	if !b.view.Sessions.Has(name) {
		t.Error("it has not heard of it even now")
	}
	mustAttempt(t, h)
	mustSettle(t, h)
}

func TestAProcessTakesUpAnExecutionOfItsOwnSessionThatNoneOfItsWorkersHas(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustPark(t, s, parkedLock("w", "event"), 0)
	left := takeNext(t, s).Running.(*owned.Lock)
	s.own.LetGo(left) // as after an adoption that came when its carrier had let go
	s.MarkReady(idem.Scope{Workflow: "w"})
	got := takeNext(t, s)
	if !got.Carried || got.Running.Lock().Token <= left.Lock().Token {
		t.Fatalf("%+v", got.Running.Lock())
	}
	mustSettle(t, got.Running)
}

// Whoever lets it run is told that it runs: the end of its age was found out before, and its record
// is written after that.
func TestAnExecutionThatRunNowHasJustReleasedDoesNotEndForItsAge(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, s, l, 0)
	h := takeNext(t, s).Running
	e.Expire(t, s.layout.All(protocol.KindAges))
	eventually(t, "it is too old", func() bool { return s.IsTooOld(l.Execution) })
	if _, err := s.RunNow(within(t, patience), l.Execution, nil); err != nil {
		t.Fatal(err)
	}
	tooOld := idem.End{Status: idem.Failed, Outcome: idem.NotExecuted, RequestKept: true, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: idem.CodeTooOld}}
	if r, err := h.Settle(within(t, patience), tooOld); !errors.Is(err, idem.ErrNotOld) {
		t.Fatalf("it has its whole time, and ended: %+v %v", r, err)
	}
	mustAttempt(t, h)
	if _, err := h.Settle(within(t, patience), failedEnd()); err != nil {
		t.Fatal(err)
	}
}
