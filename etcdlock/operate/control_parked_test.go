package operate_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/idem"
)

func TestSkippingARunningParkedExecutionAsksItsProcess(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, a, l, 0)
	h := takeNext(t, a).Running
	asked := make(chan error, 1)
	h.OnStop(func(cause error) { asked <- cause })
	mustAttempt(t, h)
	if _, _, err := b.Skip(within(t, patience), l.Execution, byOps(false), nil); err != nil {
		t.Fatal(err)
	}
	if cause := <-asked; !errors.Is(cause, idem.ErrCancelled) {
		t.Fatalf("stopped with %v", cause)
	}
	end := idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "upstream_failed"}}
	r, err := h.Settle(within(t, patience), end)
	if err != nil || r.Status != idem.Failed || r.Error.Code != "skipped" || !r.RequestKept || r.Tries != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	letterStays(t, b, l.Execution)
	if f, before, err := b.Skip(within(t, patience), l.Execution, byOps(false), nil); err != nil || !before ||
		f.Record == nil {
		t.Fatalf("%+v %v %v", f, before, err)
	}
}

func TestADeliveryThatIsNotParkedCannotBeSkippedOrRunNow(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	h := mustClaim(t, s, lockFor("w", "event"), 0)
	if _, _, err := s.Skip(within(t, patience), h.Lock().Execution, byOps(false), nil); !errors.Is(err,
		idem.ErrNotParked) {
		t.Errorf("skip: %v", err)
	}
	if _, err := s.RunNow(within(t, patience), h.Lock().Execution, nil); !errors.Is(err, idem.ErrNotParked) {
		t.Errorf("run: %v", err)
	}
	if h.Lock().Cancel != nil {
		t.Error("it was asked to stop")
	}
}

func TestRunNowReachesTheProcessThatRunsIt(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, a, l, 0)
	h := takeNext(t, a).Running
	p := *h.Lock().Parked
	p.NextAttempt = time.Now().Add(time.Hour)
	if err := h.RecordTry(within(t, patience), p); err != nil {
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
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, s, l, 0)
	h := takeNext(t, s).Running
	mustAttempt(t, h)
	failed := idem.End{Status: idem.Failed, Outcome: idem.Executed, RequestKept: true, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "upstream_failed"}}
	if r, err := h.Settle(within(t, patience), failed); err != nil || !r.RequestKept {
		t.Fatalf("%+v %v", r, err)
	}
	letterStays(t, s, l.Execution)
	before := parkedLock("w", "before")
	mustPark(t, s, before, 0)
	f, err := s.Rerun(within(t, patience), l.Execution, nil)
	if err != nil || !f.InQueue || f.Lock.Attempt != 2 || len(f.Lock.Earlier) != 1 ||
		f.Lock.Earlier[0].Execution != l.Execution {
		t.Fatalf("%+v %v", f, err)
	}
	if _, err := s.Rerun(within(t, patience), l.Execution, nil); !errors.Is(err, idem.ErrAlive) {
		t.Fatalf("again: %v", err)
	}
	for _, want := range []idem.ExecutionID{before.Execution, f.Lock.Execution} {
		taken := takeNext(t, s)
		if got := taken.Running.Lock().Execution; got != want {
			t.Fatalf("took %s, want %s", got, want)
		}
		if request, err := s.Request(within(t, patience), want); err != nil || len(request) == 0 || taken.TooOld {
			t.Fatalf("%q %v %v", request, err, taken.TooOld)
		}
		mustAttempt(t, taken.Running)
		mustSettle(t, taken.Running)
	}
	nothingKept(t, e)
}

func TestAForcedReleaseKeepsTheRequestOfWhatWasParked(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, s, l, 0)
	_ = takeNext(t, s)
	f, err := s.ForceRelease(within(t, patience), "w", l.Execution, byOps(false), nil)
	if err != nil || f.Record.Status != idem.Aborted || f.Record.Outcome != idem.NotExecuted || !f.Record.RequestKept {
		t.Fatalf("%+v %v", f, err)
	}
	letterStays(t, s, l.Execution)
}

func TestTheListOfWhatIsParkedHasAllOfItPageByPage(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	var want, got []idem.ExecutionID
	for _, event := range []string{"a", "b", "c", "d", "e"} {
		l := parkedLock("w "+event, event)
		mustPark(t, s, l, 0)
		want = append(want, l.Execution)
	}
	q := idem.ParkedQuery{State: idem.ParkWaiting, PageSize: 2}
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
	if all, err := s.ParkedExecutions(within(t, patience), idem.ParkedQuery{}); err != nil ||
		len(all.Executions) != len(want) || !all.Executions[0].InQueue {
		t.Errorf("%+v %v", all, err)
	}
	if _, err := s.ParkedEntries(within(t, patience), idem.ParkedQuery{Cursor: "x"}); !errors.Is(err, idem.ErrCursor) {
		t.Errorf("got %v", err)
	}
}

func TestTheListOfWhatIsParkedHasEachOnceWhereItIsReadInParts(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	const parked = history.LockBatch + 20
	for i := range parked {
		l := parkedLock(fmt.Sprint("w", i), "event")
		mustPark(t, s, l, 0)
	}
	seen := map[idem.ExecutionID]int{}
	for q := (idem.ParkedQuery{PageSize: history.MaxPage}); ; {
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
