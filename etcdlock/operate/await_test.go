package operate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// awaiting waits for the next change of an execution, and tells it.
func awaiting(t *testing.T, s *etcdlock.Store, id idem.ExecutionID, since *idem.Found) <-chan *idem.Found {
	t.Helper()
	told := make(chan *idem.Found, 1)
	ctx := within(t, patience)
	go func() {
		f, err := s.Await(ctx, id, since)
		if err != nil {
			t.Error(err)
		}
		told <- f
	}()
	return told
}

func TestAwaitReturnsEachChangeOfAnExecutionAtAnyReplica(t *testing.T) {
	e := etcdtest.Start(t)
	a := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	holder := mustClaim(t, a, lockFor("w", "one"), 0)
	l := lockFor("w", "two")
	p := mustEnqueue(t, a, l)
	pending := mustFind(t, b, l.Execution)
	news := awaiting(t, b, l.Execution, pending)
	must(t, holder.Release)
	if _, err := p.Await(within(t, patience), 0); err != nil {
		t.Fatal(err)
	}
	held, seen, err := p.ClaimHead(within(t, patience), l, 0)
	if err != nil || held == nil {
		t.Fatalf("%+v %v", seen, err)
	}
	running := <-news
	if running.Status() != idem.Running {
		t.Fatalf("%+v", running)
	}
	news = awaiting(t, b, l.Execution, running)
	if _, _, err := a.Cancel(within(t, patience), l.Execution, idem.Cancel{By: "ops", At: time.Now()},
		nil); err != nil {
		t.Fatal(err)
	}
	asked := <-news
	if asked.Status() != idem.CancelRequested || asked.Lock.Cancel.By != "ops" {
		t.Fatalf("%+v", asked)
	}
	news = awaiting(t, b, l.Execution, asked)
	mustSettle(t, held)
	if ended := <-news; ended.Status() != idem.Success {
		t.Fatalf("%+v", ended)
	}
	if f := <-awaiting(t, b, l.Execution, running); f.Status() != idem.Success {
		t.Fatalf("what has changed since is told at once: %+v", f)
	}
	if f := <-awaiting(t, b, l.Execution, nil); f.Status() != idem.Success {
		t.Fatalf("what has ended is told at once: %+v", f)
	}
}

func TestAnAwaitThatTimesOutReturnsTheExecutionAsItIs(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	f := mustFind(t, s, held.Lock().Execution)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	got, err := s.Await(ctx, held.Lock().Execution, f)
	if err != nil || got.Status() != idem.Running || ctx.Err() == nil {
		t.Fatalf("%+v %v", got, err)
	}
}

func TestAnExecutionThatGoesWithoutATraceIsNotAwaitedForEver(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	f := mustFind(t, s, held.Lock().Execution)
	gone := make(chan error, 1)
	ctx := within(t, patience)
	go func() {
		_, err := s.Await(ctx, held.Lock().Execution, f)
		gone <- err
	}()
	must(t, held.Release)
	if err := <-gone; !errors.Is(err, idem.ErrNoExecution) {
		t.Fatal(err)
	}
}
