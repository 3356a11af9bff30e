package etcdlock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// endedNow is an execution that has ended.
func endedNow(tb testing.TB, s *Store, event string) idem.ExecutionID {
	tb.Helper()
	l := lockFor("w", event)
	mustSettle(tb, mustClaim(tb, s, l, 0))
	return l.Execution
}

func TestDuplicatesAreCountedOverAllProcessesWithinASecond(t *testing.T) {
	e := etcdtest.Start(t)
	a := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	b := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	id, other := endedNow(t, a, "event"), endedNow(t, a, "another one")
	var wg sync.WaitGroup
	for _, s := range []*Store{a, b} {
		for range 50 {
			wg.Go(func() { s.CountDuplicate(id, time.Hour) })
		}
	}
	wg.Wait()
	if f := mustFind(t, a, id); f.Duplicates < 50 {
		t.Errorf("the process that counted knows of %d", f.Duplicates)
	}
	for _, s := range []*Store{a, b} {
		eventually(t, "all is known", func() bool { return mustFind(t, s, id).Duplicates == 100 })
		for _, f := range allExecutions(t, s, idem.ExecutionQuery{}) {
			if want := map[idem.ExecutionID]int64{id: 100, other: 0}[f.ID()]; f.Duplicates != want {
				t.Errorf("%d copies of %s in the list, want %d", f.Duplicates, f.ID(), want)
			}
		}
	}
}

func TestWhatWasCountedIsWrittenWhenTheStoreCloses(t *testing.T) {
	e := etcdtest.Start(t)
	a := openReady(t, Options{Endpoints: []string{e.Endpoint}})
	id := endedNow(t, a, "event")
	for range 3 {
		a.CountDuplicate(id, time.Hour)
	}
	closeStore(t, a)
	b := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	b.CountDuplicate(id, time.Hour)
	if f := mustFind(t, b, id); f.Duplicates != 4 {
		t.Errorf("%d copies", f.Duplicates)
	}
}

func TestWhatIsBeingWrittenWhenTheStoreClosesIsWritten(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	a := openReady(t, Options{Endpoints: []string{wire.Endpoint}})
	id := endedNow(t, a, "event")
	held := wire.HoldRequest(string(id))
	a.CountDuplicate(id, time.Hour)
	<-held
	if !a.duplicates.Pending() { // which Close waits for
		t.Error("it counts as written")
	}
	wire.Blackhole(false)
	closeStore(t, a)
	if n := countOf(t, openStore(t, Options{Endpoints: []string{e.Endpoint}}), id); n != 1 {
		t.Errorf("%d copies", n)
	}
}

func TestDuplicatesThatEtcdDoesNotTakeNowAreWrittenLater(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	a := openStore(t, Options{Endpoints: []string{wire.Endpoint}})
	b := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	wire.Blackhole(true)
	ids := make([]idem.ExecutionID, 3*history.NoteBatch)
	for i := range ids {
		ids[i] = lockFor("w", fmt.Sprint(i)).Execution
		a.CountDuplicate(ids[i], time.Hour)
	}
	// all of it passes: nothing answers
	short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if a.duplicates.Write(short) {
		t.Fatal("written through a black hole")
	}
	for _, id := range ids {
		a.CountDuplicate(id, time.Hour)
	}
	wire.Blackhole(false)
	written(t, a)
	ctx := within(t, patience)
	for _, id := range ids {
		answers, _, err := b.pool.Read(ctx, b.ReadCounts(id))
		if err != nil {
			t.Fatal(err)
		}
		if n := b.duplicates.Count(id, answers[0].GetResponseRange().Kvs); n != 2 {
			t.Fatalf("%d copies", n)
		}
	}
}

// TestADuplicateThatComesDuringAWriteThatFailsIsWrittenWithTheOthers: one execution is in a request
// to etcd once, or it takes none of them any more.
func TestADuplicateThatComesDuringAWriteThatFailsIsWrittenWithTheOthers(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	a := openStore(t, Options{Endpoints: []string{wire.Endpoint}})
	b := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	ids := make([]idem.ExecutionID, 3)
	for i := range ids {
		ids[i] = lockFor("w", fmt.Sprint(i)).Execution
	}
	a.CountDuplicate(ids[0], time.Hour)
	ctx := within(t, patience)
	written(t, a) // and there is a lease
	left := wire.SwallowRequest(string(ids[0]))
	a.CountDuplicate(ids[0], time.Hour)
	done := make(chan struct{})
	go func() { defer close(done); a.duplicates.Write(ctx) }()
	<-left
	a.CountDuplicate(ids[0], time.Hour)
	<-done
	wire.Blackhole(false)
	wire.Reset()
	for _, id := range ids[1:] {
		a.CountDuplicate(id, time.Hour)
	}
	written(t, a)
	for i, id := range ids {
		if f := countOf(t, b, id); f != []int64{3, 1, 1}[i] {
			t.Errorf("%d: %d copies", i, f)
		}
	}
}

// countOf is how many copies of an execution a process reads.
func countOf(tb testing.TB, s *Store, id idem.ExecutionID) int64 {
	tb.Helper()
	answers, _, err := s.pool.Read(within(tb, patience), s.ReadCounts(id))
	if err != nil {
		tb.Fatal(err)
	}
	return s.duplicates.Count(id, answers[0].GetResponseRange().Kvs)
}

func TestTheTalliesOfAProcessAreBoundedAndNothingWrittenIsLostWithThem(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	id := endedNow(t, s, "event")
	s.CountDuplicate(id, time.Hour)
	s.duplicates.Most = 10
	for i := range s.duplicates.Most - 1 {
		s.CountDuplicate(idem.ExecutionID(fmt.Sprint("exec_", i)), time.Hour)
	}
	written(t, s)
	s.CountDuplicate("exec_of_another", time.Hour)
	if n := s.duplicates.Counted(); n != 1 {
		t.Fatalf("%d tallies", n)
	}
	s.CountDuplicate(id, time.Hour)
	written(t, s)
	if f := mustFind(t, s, id); f.Duplicates != 2 {
		t.Errorf("%d copies", f.Duplicates)
	}
}

func TestCountsGoWithTheRecordsAndWritingThemAgainTakesNoNewLease(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	id := endedNow(t, s, "event")
	ctx := within(t, patience)
	leases := map[int64]bool{}
	for range 5 {
		s.CountDuplicate(id, time.Hour)
		written(t, s)
		got, err := e.Client.Get(ctx, s.layout.Duplicates(id), clientv3.WithPrefix())
		if err != nil || len(got.Kvs) != 1 || got.Kvs[0].Lease == 0 {
			t.Fatalf("%+v %v", got, err)
		}
		leases[got.Kvs[0].Lease] = true
	}
	if len(leases) != 1 {
		t.Errorf("%d leases", len(leases))
	}
	// A lease that dies is replaced.
	for lease := range leases {
		if _, err := e.Client.Revoke(ctx, clientv3.LeaseID(lease)); err != nil {
			t.Fatal(err)
		}
	}
	s.CountDuplicate(id, time.Hour)
	written(t, s)
	if n, err := e.Count(ctx, strings.TrimSuffix(s.layout.Duplicates(id), "/")); err != nil || n != 1 {
		t.Errorf("%d counts: %v", n, err)
	}
}

func TestCountingNeverBlocksWithoutAnEtcd(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	s.duplicates.Most = 100
	for i := range s.duplicates.Most + 10 {
		s.CountDuplicate(idem.ExecutionID(fmt.Sprint(i)), time.Hour)
	}
	if n := s.duplicates.Counted(); n != s.duplicates.Most {
		t.Errorf("%d tallies", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

func FuzzDecodeCount(f *testing.F) {
	f.Add(protocol.EncodeCount(7))
	f.Add([]byte(`{"v":1,"count":-1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if protocol.DecodeCount(b) < 0 {
			t.Fatal("fewer than none")
		}
	})
}

func FuzzDecodeHold(f *testing.F) {
	f.Add(protocol.EncodeHold("h", time.Unix(1, 0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if until, err := protocol.DecodeHold(b); err != nil && !until.IsZero() {
			t.Fatal("an end with an error")
		}
	})
}

// The names of events may be as long as senders like, and JSON takes six bytes for some of their
// characters.
func TestArrivalsOfEventsWithLongNamesAreKeptHoweverManyComeTogether(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	for i := range history.NoteBatch {
		l := lockFor(strings.Repeat("<", 2040), fmt.Sprint(i))
		s.NoteArrival(l.Scope, "r", strings.Repeat("<", 2040),
			idem.Arrival{At: time.Now(), Decision: idem.DecisionLocked}, time.Hour)
	}
	written(t, s)
	if n, err := e.Count(within(t, patience), s.layout.Root+protocol.KindArrivals); err != nil ||
		n != history.NoteBatch {
		t.Fatalf("%d of %d, %v", n, history.NoteBatch, err)
	}
}
