package etcdlock

import (
	"errors"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/idem"
)

// replicas are two stores on one etcd.
func replicas(tb testing.TB) (e *etcdtest.Etcd, a, b *Store) {
	tb.Helper()
	e = etcdtest.Start(tb)
	return e, openStore(tb, Options{Endpoints: []string{e.Endpoint}}),
		openStore(tb, Options{Endpoints: []string{e.Endpoint}})
}

// Both are sent at the same time, many times: whoever comes first, there is one end, and both hear
// of it.
func TestACancelAndASettleThatMeetAgreeOnOneEnd(t *testing.T) {
	_, a, b := replicas(t)
	ends := map[idem.Status]int{}
	for range 40 {
		held := mustClaim(t, a, lockFor("w", "one"), recordRevision(t, a, lockFor("w", "one")))
		id := held.Lock().Execution
		type result struct {
			found *idem.Found
			err   error
		}
		cancelled := make(chan result, 1)
		go func() {
			found, _, err := b.Cancel(within(t, patience), id, byOps(false), nil)
			cancelled <- result{found, err}
		}()
		rec, err := held.Settle(within(t, patience), unknownEnd())
		if err != nil {
			t.Fatal(err)
		}
		ends[rec.Status]++
		r := <-cancelled
		switch {
		case rec.Status == idem.Failed && !errors.Is(r.err, idem.ErrFinished), rec.Status == idem.Aborted &&
			r.err != nil:
			t.Fatalf("the owner has %s, and the cancel was told %+v %v", rec.Status, r.found, r.err)
		}
		if found := mustFind(t, b, id); found.Status() != rec.Status {
			t.Fatalf("the owner was told %s, and the record says %s", rec.Status, found.Status())
		}
	}
	t.Logf("%v", ends)
}

func recordRevision(tb testing.TB, s *Store, l idem.Lock) int64 {
	tb.Helper()
	st, err := history.Look(within(tb, patience), s.pool, s.layout.Keys(&l))
	if err != nil {
		tb.Fatal(err)
	}
	return st.Prev
}

// die ends a store's process without a word: its session is gone, and it does not know.
func die(tb testing.TB, e *etcdtest.Etcd, s *Store) {
	tb.Helper()
	session := currentSession(tb, s)
	s.stopKeeping()
	endSession(tb, e, session)
}

func TestACancelEndsTheRecordOfAnOwnerThatDied(t *testing.T) {
	e, a, b := replicas(t)
	before, after := mustClaim(t, a, lockFor("before", "one"), 0), mustClaim(t, a, lockFor("after", "one"), 0)
	mustCancel(t, b, before.Lock().Execution, byOps(false))
	defer b.sweeper.Suspend()() // only the cancel ends the record
	die(t, e, a)
	eventually(t, "the other replica hears of the death", func() bool {
		return !b.view.Sessions.Has(after.Lock().Alive)
	})
	found, _, err := b.Cancel(within(t, patience), after.Lock().Execution, byOps(true), nil)
	if err != nil || found.Record == nil || found.Record.Status != idem.Aborted ||
		found.Record.Outcome != idem.Unknown || !found.Record.Final || found.Record.Abort.By != "ops" {
		t.Fatalf("%+v %v", found, err)
	}
	found, was, err := b.Cancel(within(t, patience), before.Lock().Execution, byOps(false), nil)
	if err != nil || !was || found.Record == nil || found.Record.Status != idem.Aborted {
		t.Fatalf("%+v %v %v", found, was, err)
	}
}

func TestOnlyTheLastEndedExecutionOfAnEventCanBeForgotten(t *testing.T) {
	e, a, b := replicas(t)
	first := mustClaim(t, a, lockFor("w", "one"), 0)
	rec, err := first.Settle(within(t, patience), failure())
	if err != nil {
		t.Fatal(err)
	}
	second := lockFor("w", "one")
	second.Attempt, second.Earlier = 2, []idem.Attempt{rec.AsAttempt()}
	held := mustClaim(t, a, second, rec.Revision)
	if _, err := b.Forget(within(t, patience), rec.Execution, idem.Cancel{By: "ops", Reason: "try", At: time.Now()},
		nil); !errors.Is(err, idem.ErrAlive) {
		t.Fatalf("while the event runs again: %v", err)
	}
	if _, err := held.Settle(within(t, patience), failure()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Forget(within(t, patience), rec.Execution, idem.Cancel{By: "ops", Reason: "try", At: time.Now()},
		nil); !errors.Is(err, idem.ErrSuperseded) {
		t.Fatalf("got %v", err)
	}
	waiting := lockFor("w", "one")
	p, _, err := tryEnqueue(t, a, waiting, recordRevision(t, a, waiting), 0)
	if err != nil || p == nil {
		t.Fatal(err)
	}
	if _, err := b.Forget(within(t, patience), held.Lock().Execution,
		idem.Cancel{By: "ops", Reason: "try", At: time.Now()}, nil); !errors.Is(err, idem.ErrAlive) {
		t.Fatalf("while the event waits: %v", err)
	}
	must(t, p.Leave)
	// A dead attempt is reaped first.
	third := mustClaim(t, a, lockFor("w", "one"), recordRevision(t, a, waiting))
	die(t, e, a)
	eventually(t, "the death is heard of", func() bool { return !b.view.Sessions.Has(third.Lock().Alive) })
	if _, err := b.Forget(within(t, patience), third.Lock().Execution,
		idem.Cancel{By: "ops", Reason: "try", At: time.Now()}, nil); err != nil {
		t.Fatalf("after its owner has died: %v", err)
	}
}
