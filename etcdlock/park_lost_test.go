package etcdlock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// parkedScenes are what people do with parked executions; see scenes.
var parkedScenes = map[string]struct {
	scene func(t *testing.T, other *Store) *idem.Lock
	send  func(s *Store, ctx context.Context, l *idem.Lock) error
	want  func(found *idem.Found) bool
	none  bool
}{
	"cancel of a parked place": {parkedPlace, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return first3(s.Cancel(ctx, l.Execution, byOps(true), byPerson()))
	}, func(f *idem.Found) bool { return f.Status() == idem.Aborted && !f.Record.RequestKept }, false},
	"skip of a parked place": {parkedPlace, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return first3(s.Skip(ctx, l.Execution, byOps(false), byPerson()))
	}, func(f *idem.Found) bool { return f.Status() == idem.Failed && f.Record.RequestKept }, false},
	"skip of one that is carried": {carriedOne, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return first3(s.Skip(ctx, l.Execution, byOps(false), byPerson()))
	}, func(f *idem.Found) bool { return f.Status() == idem.CancelRequested && f.Lock.Cancel.Skip }, false},
	"skip of one without a process": {putDownOne, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return first3(s.Skip(ctx, l.Execution, byOps(false), byPerson()))
	}, func(f *idem.Found) bool { return f.Status() == idem.Failed && f.Record.RequestKept }, false},
	"run now": {blockedOne, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return second(s.RunNow(ctx, l.Execution, byPerson()))
	}, func(f *idem.Found) bool { return f.Status() == idem.Running && f.Lock.Parked.Blocked == "" }, false},
	"force release of a parked one": {carriedOne, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return second(s.ForceRelease(ctx, "w", l.Execution, byOps(false), byPerson()))
	}, func(f *idem.Found) bool { return f.Record != nil && f.Record.Abort.Forced && f.Record.RequestKept }, false},
	"rerun": {deadLetter, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return second(s.Rerun(ctx, l.Execution, byPerson()))
	}, func(f *idem.Found) bool { return f.Record != nil && f.Record.RequestKept }, false},
}

func parkedPlace(t *testing.T, s *Store) *idem.Lock {
	t.Helper()
	l := parkedLock("w", "one")
	mustPark(t, s, l, 0)
	return &l
}

func carriedOne(t *testing.T, s *Store) *idem.Lock {
	t.Helper()
	parkedPlace(t, s)
	return takeNext(t, s).Running.Lock()
}

func putDownOne(t *testing.T, s *Store) *idem.Lock {
	t.Helper()
	parkedPlace(t, s)
	h := takeNext(t, s).Running
	must(t, h.Release)
	return h.Lock()
}

func blockedOne(t *testing.T, s *Store) *idem.Lock {
	t.Helper()
	parkedPlace(t, s)
	h := takeNext(t, s).Running
	p := *h.Lock().Parked
	p.Blocked = "why"
	if err := h.RecordTry(within(t, patience), p); err != nil {
		t.Fatal(err)
	}
	return h.Lock()
}

func failedEnd() idem.End {
	return idem.End{Status: idem.Failed, Outcome: idem.Executed, RequestKept: true, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "upstream_failed"}}
}

func deadLetter(t *testing.T, s *Store) *idem.Lock {
	t.Helper()
	parkedPlace(t, s)
	h := takeNext(t, s).Running
	if _, err := h.Settle(within(t, patience), failedEnd()); err != nil {
		t.Fatal(err)
	}
	return h.Lock()
}

// taken is the one held execution of the test's store.
func taken(t *testing.T, s *Store) idem.RunningLock {
	t.Helper()
	parkedPlace(t, s)
	return takeNext(t, s).Running
}

// carriersWork is what a process sends that parks and carries. Each returns what it held before, or
// nil, and what sends it.
var carriersWork = map[string]func(t *testing.T, s *Store) func(context.Context) error{
	"a delivery is parked at once": func(_ *testing.T, s *Store) func(context.Context) error {
		return func(ctx context.Context) error {
			_, _, err := s.Enqueue(ctx, parkedLock("w", "one"), 0, 0)
			if errors.Is(err, idem.ErrNotClaimed) { // and never will be
				_, _, err = s.Enqueue(ctx, parkedLock("w", "one"), 0, 0)
			}
			return err
		}
	},
	"a waiting one is parked": func(t *testing.T, s *Store) func(context.Context) error {
		p := mustEnqueue(t, s, lockFor("w", "one"))
		return func(ctx context.Context) error { return p.Park(ctx, parkedNow("body")) }
	},
	"a running one is parked, and given to others": func(t *testing.T, s *Store) func(context.Context) error {
		h := mustClaim(t, s, lockFor("w", "one"), 0)
		return func(ctx context.Context) error {
			return errors.Join(h.Park(ctx, parkedNow("body")), h.Release(ctx))
		}
	},
	"the first of a line is claimed": func(t *testing.T, s *Store) func(context.Context) error {
		parkedPlace(t, s)
		return func(ctx context.Context) error {
			got, err := s.TakeParked(ctx, idem.Scope{Workflow: "w"}, anyRoute)
			if got == nil {
				return err // its next look takes it
			}
			return errors.Join(err, got.Running.Release(ctx))
		}
	},
	"one without a process is carried on": func(t *testing.T, s *Store) func(context.Context) error {
		putDownOne(t, s)
		return func(ctx context.Context) error {
			got, err := s.TakeParked(ctx, idem.Scope{Workflow: "w"}, anyRoute)
			if got == nil {
				return err
			}
			return errors.Join(err, got.Running.Release(ctx))
		}
	},
	"a try is announced": func(t *testing.T, s *Store) func(context.Context) error {
		h := taken(t, s)
		return func(ctx context.Context) error {
			p := *h.Lock().Parked
			p.Tries++
			token := h.Lock().Token
			err := h.BeginTry(ctx, p, "hash")
			if l := h.Lock(); err == nil && (l.Token <= token || l.CallbackHash != "hash" || !l.Parked.Trying) {
				t.Errorf("after the attempt: %+v", l)
			}
			return errors.Join(err, h.Release(ctx))
		}
	},
	"how a try ended is written down": func(t *testing.T, s *Store) func(context.Context) error {
		h := taken(t, s)
		mustAttempt(t, h)
		return func(ctx context.Context) error {
			p := *h.Lock().Parked
			p.Last = &idem.Evidence{Outcome: idem.NotExecuted, At: time.Now()}
			err := h.RecordTry(ctx, p)
			if l := h.Lock(); err == nil && (l.Parked.Trying || l.Parked.Last == nil) {
				t.Errorf("after the rest: %+v", l.Parked)
			}
			return errors.Join(err, h.Release(ctx))
		}
	},
	"one is given to others": func(t *testing.T, s *Store) func(context.Context) error {
		h := taken(t, s)
		return h.Release
	},
}

func TestAParkedExecutionContinuesAlsoWhereAnAnswerGotLost(t *testing.T) {
	for name, work := range carriersWork {
		for how, atOnce := range map[string]bool{"applied, and its answer lost": true,
			"applied after the next attempt": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				e := etcdtest.Start(t)
				other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
				s, kv := lossy(t, e)
				send := work(t, s)
				kv.armed <- atOnce
				if err := send(within(t, patience)); err != nil {
					t.Fatal(err)
				}
				if len(kv.armed) != 0 {
					t.Fatal("no answer was lost")
				}
				_ = kv.arrive(t) // a place may be parked twice, which is the same
				if n := len(keysBelow(t, e, "/hooklock/v1/requests/")); n != 1 {
					t.Fatalf("%d requests are kept", n)
				}
				h := takeNext(t, other).Running
				mustAttempt(t, h)
				mustSettle(t, h)
				if kv.arrive(t) {
					t.Error("what was lost is applied after the end")
				}
				nothingKept(t, e)
			})
		}
	}
}

// Its sender may be told that it is accepted. What follows its call here compares the lock that
// this process had, and is refused.
func TestOneThatAnotherProcessCarriesOnBeforeItsParkingIsHeardOfIsParked(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	s, kv := lossy(t, e)
	h := mustClaim(t, s, lockFor("w", "one"), 0)
	var carried idem.RunningLock
	taken := sync.OnceFunc(func() {
		revoke(t, e, s)
		carried = takeNext(t, other).Running
	})
	looks := s.layout.Lock(h.Lock().Scope)
	meanwhile := func(key string) {
		if key == looks {
			taken()
		}
	}
	kv.reads.Store(&meanwhile)
	kv.armed <- true
	if err := h.Park(within(t, patience), parkedNow("body")); err != nil {
		t.Fatal(err)
	}
	l := h.Lock()
	if l.Parked == nil {
		t.Fatalf("what goes on with it here finds %+v", l)
	}
	if err := h.Begin(); !errors.Is(err, idem.ErrLockLost) {
		t.Errorf("got %v", err)
	}
	if err := h.RecordTry(within(t, patience), *l.Parked); !errors.Is(err, idem.ErrLockLost) {
		t.Errorf("got %v", err)
	}
	mustSettle(t, carried)
}

func TestItIsUnknownWhetherADeliveryIsParkedWhileTheStoreDoesNotAnswer(t *testing.T) {
	for name, work := range map[string]func(t *testing.T, s *Store) func(context.Context) error{
		"at once": carriersWork["a delivery is parked at once"],
		"while it waits": func(t *testing.T, s *Store) func(context.Context) error {
			p := mustEnqueue(t, s, lockFor("w", "one"))
			return func(ctx context.Context) error {
				err := p.Park(ctx, parkedNow("body"))
				if left := p.Leave(within(t, patience)); left != nil {
					t.Error(left)
				}
				return err
			}
		},
		"while it runs": func(t *testing.T, s *Store) func(context.Context) error {
			h := mustClaim(t, s, lockFor("w", "one"), 0)
			return func(ctx context.Context) error {
				err := h.Park(ctx, parkedNow("body"))
				go func() { _ = h.Release(within(t, patience)) }()
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := etcdtest.Start(t)
			wire := etcdtest.NewWire(t, e.Endpoint)
			s, other := openStore(t, Options{Endpoints: []string{wire.Endpoint}}),
				openStore(t, Options{Endpoints: []string{e.Endpoint}})
			park := work(t, s)
			warm(t, s)
			ctx, cancel := context.WithCancel(within(t, patience))
			wire.DropAnswers(true)
			told := make(chan error, 1)
			go func() { told <- park(ctx) }()
			if name != "while it waits" { // which reads its place first, and goes on by itself
				eventually(t, "it is parked", func() bool {
					return len(keysBelow(t, e, "/hooklock/v1/requests/")) == 1
				})
			}
			cancel()
			if err := <-told; !errors.Is(err, idem.ErrNotRecorded) || errors.Is(err, idem.ErrStoreUnavailable) {
				t.Fatalf("its sender may be told %v", err)
			}
			wire.Reset()
			wire.DropAnswers(false)
			mustSettle(t, takeNext(t, other).Running)
			nothingKept(t, e)
		})
	}
}

// The claim finds out later that it took the lock, and puts it down. A try that had taken it up
// meanwhile would run beside that of the process that takes it then.
func TestAQueueIsNotTakenAgainBeforeTheClaimThatGotNoAnswerIsOver(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	client := etcdtest.Dial(t, e.Endpoint)
	kv := newLateKV(client)
	s := openStore(t, Options{Client: client})
	parkedPlace(t, s)
	gone, giveUp := context.WithCancel(within(t, patience))
	answer := make(chan struct{})
	arrives := sync.OnceFunc(func() { close(answer) })
	defer arrives()
	kv.lost = func() { giveUp(); <-answer }
	kv.armed.Store(true)
	if got, err := s.TakeParked(gone, idem.Scope{Workflow: "w"}, anyRoute); got != nil ||
		!errors.Is(err, idem.ErrStoreUnavailable) {
		t.Fatalf("%v, %v", got, err)
	}
	if got, err := s.TakeParked(within(t, patience), idem.Scope{Workflow: "w"}, anyRoute); got != nil || err != nil {
		t.Fatalf("%v, %v", got, err)
	}
	arrives()
	h := takeNext(t, s).Running
	mustAttempt(t, h)
	mustSettle(t, h)
}

// warm has the lease that ages are on, so that the next request is the one that parks.
func warm(tb testing.TB, s *Store) {
	tb.Helper()
	if _, err := s.leases.Notice(within(tb, patience), time.Hour); err != nil {
		tb.Fatal(err)
	}
}
