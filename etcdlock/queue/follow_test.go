package queue_test

import (
	"testing"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/idem"
)

// follow starts to follow and returns when the Store is at it.
func follow(tb testing.TB, s *etcdlock.Store, l idem.Lock) <-chan *idem.Obstacle {
	tb.Helper()
	found := make(chan *idem.Obstacle, 1)
	go func() {
		seen, err := s.AwaitEnd(within(tb, patience), &l)
		if err != nil {
			tb.Error(err)
		}
		found <- seen
	}()
	return found
}

func TestFollowReturnsTheEndOfThatVeryExecution(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	other := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})

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

	// The record is forgotten before the delivery that follows has looked.
	if _, err := e.Client.Delete(within(t, patience), ledgertest.Layout.Keys(&l).Record); err != nil {
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

func TestFollowDoesNotReturnTheEndOfTheEventsNextExecution(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	first := mustClaim(t, s, lockFor("w", "one"), 0)
	l := *first.Lock()
	rec, err := first.Settle(within(t, patience), failure())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mustClaim(t, s, lockFor("w", "one"), rec.Revision).Settle(within(t, patience),
		unknownEnd()); err != nil {
		t.Fatal(err)
	}
	if seen := <-follow(t, s, l); seen.Record == nil || seen.Record.Execution != l.Execution ||
		seen.Record.Outcome != idem.Executed {
		t.Errorf("%+v", seen)
	}
}
