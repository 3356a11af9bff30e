package etcdlock

import (
	"fmt"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/idem"
)

// follow starts to follow and returns when the Store is at it.
func follow(tb testing.TB, s *Store, l idem.Lock) <-chan *idem.Seen {
	tb.Helper()
	found := make(chan *idem.Seen, 1)
	go func() {
		seen, err := s.Follow(within(tb, patience), &l)
		if err != nil {
			tb.Error(err)
		}
		found <- seen
	}()
	return found
}

func TestFollowReturnsTheEndOfThatVeryExecution(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}})

	held := mustClaim(t, s, lockFor("w", "released"), 0)
	found := follow(t, other, *held.Lock())
	must(t, held.Release)
	if seen := <-found; !seen.Released || seen.Record != nil {
		t.Errorf("released: %+v", seen)
	}

	held = mustClaim(t, s, lockFor("w", "recorded"), 0)
	l := *held.Lock()
	mustSettle(t, held)
	if seen := <-follow(t, other, l); seen.Released || seen.Record == nil || seen.Record.Execution != l.Execution {
		t.Errorf("recorded: %+v", seen)
	}

	// Somebody forgets the record before who follows has looked.
	if _, err := e.Client.Delete(within(t, patience), other.layout.Keys(&l).Record); err != nil {
		t.Fatal(err)
	}
	if seen := <-follow(t, other, l); seen.Released || seen.Record == nil || seen.Record.Execution != l.Execution {
		t.Errorf("forgotten: %+v", seen)
	}

	now, err := e.Client.Get(within(t, patience), "now")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Client.Compact(within(t, patience), now.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if seen := <-follow(t, other, l); seen.Released || seen.Record != nil {
		t.Errorf("compacted: %+v", seen)
	}
}

func TestASettleWhoseAnswerIsLostIsKnownToBeOursAfterTheEventRanAgain(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{wire.Endpoint}})
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	if _, err := mustClaim(t, s, lockFor("v", "any"), 0).Settle(within(t, patience), success("")); err != nil { // has the lease for records
		t.Fatal(err)
	}
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	wire.DropAnswers(true)
	type result struct {
		rec *idem.Record
		err error
	}
	settled := make(chan result, 1)
	end := success("")
	end.Kept = false // so that the event may run again
	go func() {
		rec, err := held.Settle(within(t, patience), end)
		settled <- result{rec, err}
	}()
	first := held.Lock().Execution
	var revision int64
	eventually(t, "the first record", func() bool {
		st, err := history.Look(within(t, patience), other.pool, other.layout.Keys(held.Lock()))
		if err == nil && st.Ended(first) != nil {
			revision = st.Prev
		}
		return revision != 0
	})
	again := mustClaim(t, other, lockFor("w", "one"), revision)
	if _, err := again.Settle(within(t, patience), end); err != nil {
		t.Fatal(err)
	}
	wire.DropAnswers(false)
	wire.Reset()
	if got := <-settled; got.err != nil || got.rec == nil || got.rec.Execution != first || got.rec.Revision != revision {
		t.Errorf("got %+v, %v", got.rec, got.err)
	}
}

func TestAnEndWhoseEventRanAgainIsLookedForUntilEtcdAnswers(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{wire.Endpoint}})
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	first := *held.Lock()
	end := success("")
	end.Kept = false // so that the event may run again
	record, err := held.Settle(within(t, patience), end)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mustClaim(t, other, lockFor("w", "one"), record.Revision).Settle(within(t, patience), end); err != nil {
		t.Fatal(err)
	}
	wire.Blackhole(true)
	told := make(chan error, 2)
	go func() {
		found, err := held.Settle(within(t, patience), end)
		if err == nil && (found == nil || found.Execution != first.Execution) {
			err = fmt.Errorf("its end is %+v", found)
		}
		told <- err
	}()
	go func() {
		seen, _, err := history.LookBack(within(t, patience), s.pool, keysOf(held), first.Execution, first.Revision)
		if err == nil && seen.Record == nil {
			err = fmt.Errorf("who follows sees %+v", seen)
		}
		told <- err
	}()
	select { // longer than one attempt
	case err := <-told:
		t.Fatalf("while etcd did not answer: %v", err)
	case <-time.After(4 * s.pool.Attempt):
	}
	wire.Blackhole(false)
	wire.Reset()
	for range 2 {
		if err := <-told; err != nil {
			t.Error(err)
		}
	}
}

func TestFollowDoesNotReturnTheEndOfTheEventsNextExecution(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	first := mustClaim(t, s, lockFor("w", "one"), 0)
	l := *first.Lock()
	rec, err := first.Settle(within(t, patience), failure())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mustClaim(t, s, lockFor("w", "one"), rec.Revision).Settle(within(t, patience), unknownEnd()); err != nil {
		t.Fatal(err)
	}
	if seen := <-follow(t, s, l); seen.Record == nil || seen.Record.Execution != l.Execution || seen.Record.Outcome != idem.Executed {
		t.Errorf("%+v", seen)
	}
}
