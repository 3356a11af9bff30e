package etcdlock

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/owned"
	"hooklock/idem"
)

// fewBytes is the largest request that the etcd of these tests takes.
const fewBytes = 32 << 10

// sizes are answers that do not fit into such a request: etcd refuses the first, and gRPC, which
// takes 512 KiB more, the second.
var sizes = map[string]int{"etcd refuses the request": 33 << 10, "gRPC refuses the request": 590 << 10}

// reductions counts the calls of OnReduced.
type reductions struct{ calls, bytes atomic.Int64 }

func (r *reductions) options(e *etcdtest.Etcd) Options {
	return Options{Endpoints: []string{e.Endpoint}, OnReduced: func(_ *idem.Record, bytes int) {
		r.calls.Add(1)
		r.bytes.Store(int64(bytes))
	}}
}

// wants fails the test unless one record was reduced, from more than bytes.
func (r *reductions) wants(t *testing.T, bytes int) {
	t.Helper()
	if calls, of := r.calls.Load(), r.bytes.Load(); calls != 1 || of <= int64(bytes) {
		t.Errorf("reported %d times, the last time of %d bytes; want once, of more than %d", calls, of, bytes)
	}
}

// wantsStatusAlone fails the test unless duplicates of the event of h find that it went through,
// with the status of its answer alone.
func wantsStatusAlone(t *testing.T, s *Store, h *owned.Lock) {
	t.Helper()
	st, err := history.Look(within(t, patience), s.pool, keysOf(h))
	if err != nil {
		t.Fatal(err)
	}
	r := st.Record
	if r == nil || r.Status != idem.Success || !r.Remembered || r.Answer == nil || r.Answer.Status != 200 ||
		r.Answer.Whole || len(r.Answer.Body) > 0 {
		t.Errorf("the record is %+v, its answer %+v", r, r.Answer)
	}
	if st.Runs(h.Lock().Execution) {
		t.Error("it has its lock still")
	}
}

func TestAnAnswerThatEtcdRefusesForItsSizeIsRecordedAsItsStatusAlone(t *testing.T) {
	for name, size := range sizes {
		t.Run(name, func(t *testing.T) {
			e, reduced := etcdtest.StartWithRequestBytes(t, fewBytes), &reductions{}
			s := openStore(t, reduced.options(e))
			for event, replayFor := range map[string]time.Duration{"apart": time.Minute, "in its record": 0} {
				reduced.calls.Store(0)
				l := lockFor("w", event)
				l.ReplayFor = replayFor
				held := mustClaim(t, s, l, 0)
				r, err := held.Settle(within(t, patience), success(strings.Repeat("x", size)))
				if err != nil || r.Answer.Whole || r.Answer.Bytes != int64(size) {
					t.Fatalf("%s: %+v %v", event, r, err)
				}
				reduced.wants(t, size)
				wantsStatusAlone(t, s, held)
			}
			mustClaim(t, s, lockFor("w", "next"), 0)
		})
	}
}

func TestAParkedEventWhoseAnswerEtcdRefusesForItsSizeEndsWithItsStatusAlone(t *testing.T) {
	for name, size := range sizes {
		t.Run(name, func(t *testing.T) {
			e, reduced := etcdtest.StartWithRequestBytes(t, fewBytes), &reductions{}
			s := openStore(t, reduced.options(e))
			mustPark(t, s, parkedLock("w", "one"), 0)
			mustPark(t, s, parkedLock("w", "two"), 0)
			held := takeNext(t, s).Running
			mustAttempt(t, held)
			if _, err := held.Settle(within(t, patience), success(strings.Repeat("x", size))); err != nil {
				t.Fatal(err)
			}
			reduced.wants(t, size)
			wantsStatusAlone(t, s, held.(*owned.Lock))
			if next := takeNext(t, s); next.Running.Lock().EventID != "two" {
				t.Errorf("the next one is %+v", next.Running.Lock())
			}
		})
	}
}

func TestAHoldThatIsCompletedWithAnAnswerThatEtcdRefusesForItsSizeEnds(t *testing.T) {
	e, reduced := etcdtest.StartWithRequestBytes(t, fewBytes), &reductions{}
	s := openStore(t, reduced.options(e))
	l := withKey(lockFor("w", "one"))
	l.ReplayBody = 1 << 20
	held := mustHold(t, s, l, time.Minute)
	const size = 33 << 10
	final := idem.Final{Status: idem.Success,
		Answer: &idem.Answer{Status: 200, Body: []byte(strings.Repeat("x", size))}}
	if found, err := s.Complete(within(t, patience), callbackOf(held.Lock()), final); err != nil ||
		found.Status() != idem.Success {
		t.Fatalf("%+v %v", found, err)
	}
	reduced.wants(t, size)
	wantsStatusAlone(t, s, held)
}

// The lock of the next one travels with the record: without it, the record may fit.
func TestALargeAnswerThatFitsWithoutAHandOffIsKeptWhole(t *testing.T) {
	e, reduced := etcdtest.StartWithRequestBytes(t, fewBytes), &reductions{}
	s := openStore(t, reduced.options(e))
	first := mustClaim(t, s, lockFor("w", "first"), 0)
	waits := lockFor("w", "second")
	waits.TraceParent = strings.Repeat("x", 8<<10)
	place := mustEnqueue(t, s, waits)
	next := waitsAt(t, place, waits)
	firstInLine(t, place)
	body := strings.Repeat("x", 30<<10)
	r, err := first.Settle(within(t, patience), success(body))
	if err != nil || string(r.Answer.Body) != body || reduced.calls.Load() != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	if held := <-next; held == nil {
		t.Error("the next one got no lock")
	}
}

// What an upstream says about an execution that failed, and the steps that it took, are less than
// the lock.
func TestAnEndWhoseRecordIsTooLargeWithoutAnyAnswerLeavesOutWhatIsToldOfIt(t *testing.T) {
	e, reduced := etcdtest.StartWithRequestBytes(t, fewBytes), &reductions{}
	s := openStore(t, reduced.options(e))
	l := lockFor("w", "one")
	l.ReleaseDelay = 2 * time.Second
	l.TraceParent = ""
	for range 24 {
		l.Steps = append(l.Steps, idem.Step{Name: strings.Repeat("s", 1<<10)})
	}
	held := mustClaim(t, s, l, 0)
	end := idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "timeout", Detail: "no answer"}}
	if r, err := held.Settle(within(t, patience), end); err != nil || r.Status != idem.Failed {
		t.Fatalf("%+v %v", r, err)
	}
	reduced.wants(t, fewBytes)
	if _, seen, err := tryClaim(t, s, lockFor("w", "two"), 0); err != nil || seen == nil || !seen.Lock.Cooling {
		t.Errorf("its lock is not closed: %+v %v", seen, err)
	}
}

func TestADeadLockWhoseRecordIsTooLargeIsReaped(t *testing.T) {
	e := etcdtest.StartWithRequestBytes(t, fewBytes)
	dead := openReady(t, Options{Endpoints: []string{e.Endpoint}})
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := lockFor("w", "one")
	l.ReleaseDelay = 2 * time.Second
	for range 24 {
		l.Steps = append(l.Steps, idem.Step{Name: strings.Repeat("s", 1<<10)})
	}
	mustClaim(t, dead, l, 0)
	closeStore(t, dead)
	eventually(t, "another event runs", func() bool {
		held, seen, err := tryClaim(t, s, lockFor("w", "two"), 0)
		if err != nil && !errors.Is(err, idem.ErrStoreUnavailable) {
			t.Fatal(err)
		}
		return held != nil || seen != nil && seen.Lock != nil && seen.Lock.Cooling
	})
}
