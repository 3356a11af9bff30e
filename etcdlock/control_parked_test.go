package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// uncarried parks an execution in its lock and lets its process go.
func uncarried(tb testing.TB, e *etcdtest.Etcd, tries int) idem.ExecutionID {
	tb.Helper()
	s := openStore(tb, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(tb, s, l, 0)
	h := takeNext(tb, s).Held
	for range tries {
		mustAttempt(tb, h)
	}
	closeStore(tb, s)
	return l.Execution
}

func TestACancelEndsWhatIsParkedWhereverItIs(t *testing.T) {
	for name, park := range map[string]func(*testing.T, *etcdtest.Etcd, *Store) idem.ExecutionID{
		"in the queue": func(t *testing.T, _ *etcdtest.Etcd, s *Store) idem.ExecutionID {
			l := parkedLock("w", "event")
			mustPark(t, s, l, 0)
			return l.Execution
		},
		"in its lock, without a process":     func(t *testing.T, e *etcdtest.Etcd, _ *Store) idem.ExecutionID { return uncarried(t, e, 0) },
		"while its try may still be at work": func(t *testing.T, e *etcdtest.Etcd, _ *Store) idem.ExecutionID { return uncarried(t, e, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			e := etcdtest.Start(t)
			s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
			id := park(t, e, s)
			eventually(t, "it has ended", func() bool {
				f, _, err := s.Cancel(within(t, patience), id, byOps(false), nil)
				return err == nil && f.Record != nil && f.Record.Status == idem.Aborted && f.Record.Abort.By == "ops" && !f.Record.RequestKept
			})
			nothingKept(t, e)
		})
	}
}

func TestASkippedExecutionIsADeadLetterAndTheNextOneRuns(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	id := uncarried(t, e, 0)
	next := parkedLock("w", "next")
	mustPark(t, s, next, 0)
	eventually(t, "it is skipped", func() bool {
		f, _, err := s.Skip(within(t, patience), id, byOps(false), nil)
		return err == nil && f.Record != nil && f.Record.Status == idem.Failed && f.Record.Error.Code == "skipped" && f.Record.RequestKept
	})
	letterStays(t, s, id)
	if got := takeNext(t, s).Held.Lock().Execution; got != next.Execution {
		t.Fatalf("took %s", got)
	}
}

func TestSkippingARunningParkedExecutionAsksItsProcess(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, a, l, 0)
	h := takeNext(t, a).Held
	asked := make(chan error, 1)
	h.OnStop(func(cause error) { asked <- cause })
	mustAttempt(t, h)
	if _, _, err := b.Skip(within(t, patience), l.Execution, byOps(false), nil); err != nil {
		t.Fatal(err)
	}
	if cause := <-asked; !errors.Is(cause, idem.ErrCancelled) {
		t.Fatalf("stopped with %v", cause)
	}
	end := idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now(), Error: &idem.Failure{Code: "upstream_failed"}}
	r, err := h.Settle(within(t, patience), end)
	if err != nil || r.Status != idem.Failed || r.Error.Code != "skipped" || !r.RequestKept || r.Tries != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	letterStays(t, b, l.Execution)
	if f, before, err := b.Skip(within(t, patience), l.Execution, byOps(false), nil); err != nil || !before || f.Record == nil {
		t.Fatalf("%+v %v %v", f, before, err)
	}
}

func TestAProcessDoesNotHoldWhatWasTakenFromIt(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := blockedOne(t, a)
	if _, err := b.ForceRelease(within(t, patience), "w", l.Execution, byOps(false), nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it holds nothing", func() bool { n, _ := a.Active(); return n == 0 })
}

func TestACancelEndsAtOnceWhatItsProcessIsPuttingDown(t *testing.T) {
	e := etcdtest.Start(t)
	s, other := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := blockedOne(t, s)
	h, putDown := s.own.Of(l.Execution), *l
	putDown.Alive = ""
	value, err := protocol.EncodeLock(&putDown)
	if err != nil {
		t.Fatal(err)
	}
	at := protocol.Seen{LockCreated: l.Created, Lock: l.Revision}
	// it is nobody's, and its process, whose answer has not come yet, does not know that
	if r := other.sender.Do(within(t, patience), commit.NewRequest(keysOf(h).Lock, protocol.Rest(keysOf(h), at, protocol.Leased{Value: value}, nil), len(value))); r.Err != nil || !r.Succeeded {
		t.Fatalf("%+v", r)
	}
	f, _, err := s.Cancel(within(t, patience), l.Execution, byOps(false), nil)
	if err != nil || f.Status() != idem.Aborted {
		t.Errorf("%s %v", f.Status(), err)
	}
	if err := h.Release(within(t, patience)); err != nil {
		t.Error(err)
	}
}

func TestADeliveryThatIsNotParkedCannotBeSkippedOrRunNow(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	h := mustClaim(t, s, lockFor("w", "event"), 0)
	if _, _, err := s.Skip(within(t, patience), h.Lock().Execution, byOps(false), nil); !errors.Is(err, idem.ErrNotParked) {
		t.Errorf("skip: %v", err)
	}
	if _, err := s.RunNow(within(t, patience), h.Lock().Execution, nil); !errors.Is(err, idem.ErrNotParked) {
		t.Errorf("run: %v", err)
	}
	if h.Lock().Cancel != nil {
		t.Error("it was asked to stop")
	}
}

func TestABlockedExecutionRunsAfterRunNow(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, a, l, 0)
	h := takeNext(t, a).Held
	leaveToAPerson(t, h)
	drained(t, e, a)
	f, err := b.RunNow(within(t, patience), l.Execution, nil)
	if err != nil || f.Lock.Parked.Blocked != "" {
		t.Fatalf("%+v %v", f, err)
	}
	mustSettle(t, takeNext(t, a).Held)
	nothingKept(t, e)
}

func TestRunNowReachesTheProcessThatRunsIt(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, a, l, 0)
	h := takeNext(t, a).Held
	p := *h.Lock().Parked
	p.NextAttempt = time.Now().Add(time.Hour)
	if err := h.Rest(within(t, patience), p); err != nil {
		t.Fatal(err)
	}
	if _, err := b.RunNow(within(t, patience), l.Execution, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its carrier sees it", func() bool { return h.Lock().Parked.NextAttempt.IsZero() })
	mustAttempt(t, h)
}

func TestADeadLetterRunsAgainAsTheLastOfItsQueue(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, s, l, 0)
	h := takeNext(t, s).Held
	mustAttempt(t, h)
	failed := idem.End{Status: idem.Failed, Outcome: idem.Executed, FinishedAt: time.Now(), Error: &idem.Failure{Code: "upstream_failed"}}
	if r, err := h.DeadLetter(within(t, patience), failed); err != nil || !r.RequestKept {
		t.Fatalf("%+v %v", r, err)
	}
	letterStays(t, s, l.Execution)
	before := parkedLock("w", "before")
	mustPark(t, s, before, 0)
	f, err := s.Rerun(within(t, patience), l.Execution, nil)
	if err != nil || !f.Place || f.Lock.Attempt != 2 || len(f.Lock.Earlier) != 1 || f.Lock.Earlier[0].Execution != l.Execution {
		t.Fatalf("%+v %v", f, err)
	}
	if _, err := s.Rerun(within(t, patience), l.Execution, nil); !errors.Is(err, idem.ErrAlive) {
		t.Fatalf("again: %v", err)
	}
	for _, want := range []idem.ExecutionID{before.Execution, f.Lock.Execution} {
		taken := takeNext(t, s)
		if got := taken.Held.Lock().Execution; got != want {
			t.Fatalf("took %s, want %s", got, want)
		}
		if request, err := s.Request(within(t, patience), want); err != nil || len(request) == 0 || taken.TooOld {
			t.Fatalf("%q %v %v", request, err, taken.TooOld)
		}
		mustAttempt(t, taken.Held)
		mustSettle(t, taken.Held)
	}
	nothingKept(t, e)
}

// TestWhatRunsAgainCountsTheBytesThatAreKeptOfItNow: a key that has come since makes them more.
func TestWhatRunsAgainCountsTheBytesThatAreKeptOfItNow(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}, Rekeep: func(_ context.Context, _, _ idem.ExecutionID, value []byte) (idem.Kept, error) {
		return idem.Kept{Value: append([]byte("sealed "), value...), Bytes: 4711}, nil
	}})
	l := deadLetter(t, s)
	f, err := s.Rerun(within(t, patience), l.Execution, nil)
	if err != nil || f.Lock.Parked.Bytes != 4711 {
		t.Fatalf("%+v %v", f, err)
	}
	if request, err := s.Request(within(t, patience), f.Lock.Execution); err != nil || !strings.HasPrefix(string(request), "sealed ") {
		t.Errorf("%q %v", request, err)
	}
	page, err := s.ParkedEntries(within(t, patience), idem.ParkedQuery{})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Bytes != 4711 {
		t.Errorf("%+v %v", page, err)
	}
}

func TestAForcedReleaseKeepsTheRequestOfWhatWasParked(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, s, l, 0)
	_ = takeNext(t, s)
	f, err := s.ForceRelease(within(t, patience), "w", l.Execution, byOps(false), nil)
	if err != nil || f.Record.Status != idem.Aborted || f.Record.Outcome != idem.NotExecuted || !f.Record.RequestKept {
		t.Fatalf("%+v %v", f, err)
	}
	letterStays(t, s, l.Execution)
}

func TestTheRequestOfADeadLetterGoesWithItsRecord(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, s, l, 0)
	eventually(t, "it is skipped", func() bool {
		_, _, err := s.Skip(within(t, patience), l.Execution, byOps(false), nil)
		return err == nil
	})
	eventually(t, "the index says so", func() bool { return s.Parked().DeadLetters == 1 })
	if err := s.view.Parked.SweepDeadLetters(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	letterStays(t, s, l.Execution)
	if _, err := s.Forget(within(t, patience), l.Execution, idem.Cancel{By: "ops", Reason: "try", At: time.Now()}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.view.Parked.SweepDeadLetters(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	nothingKept(t, e)
	eventually(t, "the index says so", func() bool { c := s.Parked(); return c.DeadLetters == 0 && c.Bytes == 0 })
}

func TestTheListOfWhatIsParkedHasAllOfItPageByPage(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	var want, got []idem.ExecutionID
	for _, event := range []string{"a", "b", "c", "d", "e"} {
		l := parkedLock("w "+event, event)
		mustPark(t, s, l, 0)
		want = append(want, l.Execution)
	}
	q := idem.ParkedQuery{State: idem.ParkWaiting, Limit: 2}
	for {
		page, err := s.ParkedEntries(within(t, patience), q)
		if err != nil || len(page.Entries) > 2 {
			t.Fatalf("%+v %v", page, err)
		}
		for _, x := range page.Entries {
			got = append(got, x.Execution)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if all, err := s.ParkedExecutions(within(t, patience), idem.ParkedQuery{}); err != nil || len(all.Executions) != len(want) || !all.Executions[0].Place {
		t.Errorf("%+v %v", all, err)
	}
	if _, err := s.ParkedEntries(within(t, patience), idem.ParkedQuery{Cursor: "x"}); !errors.Is(err, idem.ErrCursor) {
		t.Errorf("got %v", err)
	}
}

func TestTheListOfWhatIsParkedHasEachOnceWhereItIsReadInParts(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	const parked = history.LockBatch + 20
	for i := range parked {
		l := parkedLock(fmt.Sprint("w", i), "event")
		mustPark(t, s, l, 0)
	}
	seen := map[idem.ExecutionID]int{}
	for q := (idem.ParkedQuery{Limit: history.MaxPage}); ; {
		page, err := s.ParkedEntries(within(t, patience), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range page.Entries {
			seen[x.Execution]++
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	for id, n := range seen {
		if n > 1 {
			t.Fatalf("%s is there %d times", id, n)
		}
	}
	if len(seen) != parked {
		t.Errorf("%d of %d", len(seen), parked)
	}
}

// TestNothingIsSweptWhenTheStoreIsClosing: the sender takes nothing any more.
func TestNothingIsSweptWhenTheStoreIsClosing(t *testing.T) {
	e := etcdtest.Start(t)
	s := openReady(t, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, s, l, 0)
	eventually(t, "it is skipped", func() bool {
		_, _, err := s.Skip(within(t, patience), l.Execution, byOps(false), nil)
		return err == nil
	})
	eventually(t, "the index says so", func() bool { return s.Parked().DeadLetters == 1 })
	if _, err := e.Client.Delete(within(t, patience), s.layout.Record(l.Scope)); err != nil { // as the end of its lease does
		t.Fatal(err)
	}
	if err := s.tasks.Close(within(t, patience)); err != nil { // as Close does
		t.Fatal(err)
	}
	s.sender.Close()
	if err := s.view.Parked.SweepDeadLetters(within(t, patience)); !errors.Is(err, commit.ErrClosed) {
		t.Errorf("swept: %v", err)
	}
	s.stopKeeping()
	s.keeper.Leave()
	if err := s.pool.Close(); err != nil {
		t.Error(err)
	}
}
