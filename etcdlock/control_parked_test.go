package etcdlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// uncarried parks an execution in its lock and lets its process go.
func uncarried(tb testing.TB, e *etcdtest.Etcd, tries int) idem.ExecutionID {
	tb.Helper()
	s := openStore(tb, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(tb, s, l, 0)
	h := takeNext(tb, s).Running
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
		"in its lock, without a process": func(t *testing.T, e *etcdtest.Etcd, _ *Store) idem.ExecutionID {
			return uncarried(t, e, 0)
		},
		"while its try may still be at work": func(t *testing.T, e *etcdtest.Etcd, _ *Store) idem.ExecutionID {
			return uncarried(t, e, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := etcdtest.Start(t)
			s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
			id := park(t, e, s)
			eventually(t, "it has ended", func() bool {
				f, _, err := s.Cancel(within(t, patience), id, byOps(false), nil)
				return err == nil && f.Record != nil && f.Record.Status == idem.Aborted && f.Record.Abort.By == "ops" &&
					!f.Record.RequestKept
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
		return err == nil && f.Record != nil && f.Record.Status == idem.Failed && f.Record.Error.Code == "skipped" &&
			f.Record.RequestKept
	})
	letterStays(t, s, id)
	if got := takeNext(t, s).Running.Lock().Execution; got != next.Execution {
		t.Fatalf("took %s", got)
	}
}

func TestAProcessDoesNotHoldWhatWasTakenFromIt(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := blockedOne(t, a)
	if _, err := b.ForceRelease(within(t, patience), "w", l.Execution, byOps(false), nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it holds nothing", func() bool { n, _ := a.Active(); return n == 0 })
}

func TestACancelEndsAtOnceWhatItsProcessIsPuttingDown(t *testing.T) {
	e := etcdtest.Start(t)
	s, other := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := blockedOne(t, s)
	h, putDown := s.own.Of(l.Execution), *l
	putDown.Alive = ""
	value, err := protocol.EncodeLock(&putDown)
	if err != nil {
		t.Fatal(err)
	}
	at := protocol.Revisions{LockCreated: l.Created, Lock: l.Revision}
	// it is nobody's, and its process, whose answer has not come yet, does not know that
	if r := other.sender.Do(within(t, patience), commit.NewRequest(keysOf(h).Lock,
		protocol.Rest(keysOf(h), at, protocol.Leased{Value: value}, nil), len(value))); r.Err != nil || !r.Succeeded {
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

func TestABlockedExecutionRunsAfterRunNow(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, a, l, 0)
	h := takeNext(t, a).Running
	leaveToAPerson(t, h)
	drained(t, e, a)
	f, err := b.RunNow(within(t, patience), l.Execution, nil)
	if err != nil || f.Lock.Parked.Blocked != "" {
		t.Fatalf("%+v %v", f, err)
	}
	mustSettle(t, takeNext(t, a).Running)
	nothingKept(t, e)
}

// TestWhatRunsAgainCountsTheBytesThatAreKeptOfItNow: a key that has come since makes them more.
func TestWhatRunsAgainCountsTheBytesThatAreKeptOfItNow(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint},
		Rekeep: func(_ context.Context, _, _ idem.ExecutionID, value []byte) (idem.StoredRequest, error) {
			return idem.StoredRequest{Value: append([]byte("sealed "), value...), Bytes: 4711}, nil
		}})
	l := deadLetter(t, s)
	f, err := s.Rerun(within(t, patience), l.Execution, nil)
	if err != nil || f.Lock.Parked.Bytes != 4711 {
		t.Fatalf("%+v %v", f, err)
	}
	if request, err := s.Request(within(t, patience), f.Lock.Execution); err != nil ||
		!strings.HasPrefix(string(request), "sealed ") {
		t.Errorf("%q %v", request, err)
	}
	page, err := s.ParkedEntries(within(t, patience), idem.ParkedQuery{})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Bytes != 4711 {
		t.Errorf("%+v %v", page, err)
	}
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
	eventually(t, "the index says so", func() bool { return s.Parked(idem.Scope{}).DeadLetters == 1 })
	if err := s.view.Parked.SweepDeadLetters(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	letterStays(t, s, l.Execution)
	if _, err := s.Forget(within(t, patience), l.Execution, idem.Cancel{By: "ops", Reason: "try", At: time.Now()},
		nil); err != nil {
		t.Fatal(err)
	}
	if err := s.view.Parked.SweepDeadLetters(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	nothingKept(t, e)
	eventually(t, "the index says so", func() bool {
		c := s.Parked(idem.Scope{})
		return c.DeadLetters == 0 && c.Bytes == 0
	})
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
	eventually(t, "the index says so", func() bool { return s.Parked(idem.Scope{}).DeadLetters == 1 })
	// as the end of its lease does
	if _, err := e.Client.Delete(within(t, patience), s.layout.Record(l.Scope)); err != nil {
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

// TestWhatIsSkippedAsItsProcessPutsItDownIsCountedAsADeadLetter, as any other one is: the process
// ends, and finds the cancel as it gives the execution to others.
func TestWhatIsSkippedAsItsProcessPutsItDownIsCountedAsADeadLetter(t *testing.T) {
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint},
		Counted: func() []idem.RouteCounts { return nil }})
	l := parkedLock("w", "event")
	mustPark(t, s, l, 0)
	h := takeNext(t, s).Running
	ledgertest.MustAttempt(t, h)
	ledgertest.RestNow(t, h, "")
	if _, _, err := s.Skip(within(t, patience), l.Execution, byOps(false), nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it hears of the cancel", func() bool { return h.Lock().Cancel != nil })
	if err := h.Release(within(t, patience)); !errors.Is(err, idem.ErrCancelled) {
		t.Fatalf("it was put down: %v", err)
	}
	eventually(t, "it is counted", func() bool {
		counts, err := s.Counts(within(t, patience),
			idem.CountQuery{Since: time.Now().Add(-time.Hour), Step: time.Minute})
		return err == nil && len(counts.Routes) == 1 && counts.Routes[0].Counts[idem.CountDeadLetters] == 1
	})
}
