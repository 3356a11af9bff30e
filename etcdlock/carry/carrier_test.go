package carry_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/idem/worker"
)

// carrying is a process that carries what is parked of one route, on a store of its own.
type carrying struct {
	*etcdlock.Store
	worker *worker.Worker
	tries  chan time.Time // each as it begins
	cutOff func()         // ends the process's tries, as the end of shutdown_timeout does
}

// carries starts one whose tries last until they are told to stop.
func carries(tb testing.TB, e *etcdtest.Etcd, policy *idem.Policy) *carrying {
	tb.Helper()
	base, end := context.WithCancelCause(tb.Context())
	p := &carrying{Store: openStore(tb, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		tries: make(chan time.Time, 10)}
	p.worker = worker.New(worker.Options{
		Guard:   guard.New(guard.Options{Ledger: p.Store, Parks: p.Store, Base: base, Cache: guard.NewCache(0)}),
		Ledger:  p.Store,
		Policy:  func(string) *idem.Policy { return policy },
		Running: func() int { return 10 },
		Try: func(x *guard.Execution, _ []byte) {
			p.tries <- time.Now()
			<-x.Context().Done()
			x.End(guard.Tried{Sent: true, Failure: idem.Failure{Code: "upstream_failed",
				Detail: "Hooklock was shut down before the upstream answered"}})
		},
	})
	p.cutOff = func() {
		p.worker.Drain()
		end(guard.ErrShutdown)
		if err := p.worker.Close(within(tb, patience)); err != nil {
			tb.Error(err)
		}
	}
	running := make(chan struct{})
	go func() { defer close(running); p.worker.Run() }()
	tb.Cleanup(func() { p.cutOff(); <-running })
	return p
}

func parkingPolicy(unknown idem.OnUnknown, delay time.Duration) *idem.Policy {
	return &idem.Policy{
		Route: "r", Idempotency: true, Retention: time.Hour, OnUnknown: unknown, ReleaseDelay: delay,
		Park: &idem.ParkPolicy{Attempts: 10, MaxAge: time.Hour, OnFailure: idem.FailureHold},
	}
}

// TestATryThatTheEndOfItsProcessCutsOffIsOfUnknownOutcome: the upstream may be at work on it, and
// where on_unknown blocks no other process tries again.
func TestATryThatTheEndOfItsProcessCutsOffIsOfUnknownOutcome(t *testing.T) {
	e := etcdtest.Start(t)
	policy := parkingPolicy(idem.UnknownBlock, 0)
	a := carries(t, e, policy)
	l := parkedLock("w", "event")
	mustPark(t, a.Store, l, 0)
	<-a.tries
	b := carries(t, e, policy)
	a.cutOff()
	eventually(t, "it waits for a person", func() bool {
		return b.Parked(idem.Scope{}).Blocked == 1 || len(b.tries) > 0
	})
	if len(b.tries) > 0 {
		t.Fatal("another process tries it again, and on_unknown is block")
	}
	p := mustFind(t, b.Store, l.Execution).Lock.Parked
	if p.Trying || p.Last == nil || p.Last.Outcome != idem.Unknown || p.Failures != 1 || p.Blocked == "" {
		t.Errorf("%+v, the last one %+v", p, p.Last)
	}
}

// TestATryOfUnknownOutcomeIsTakenOverAfterItsReleaseDelay: the upstream may be at work on it, and
// the process that waited for it has gone.
func TestATryOfUnknownOutcomeIsTakenOverAfterItsReleaseDelay(t *testing.T) {
	t.Parallel()
	const delay = 2 * time.Second
	e := etcdtest.Start(t)
	policy := parkingPolicy(idem.UnknownRetry, delay)
	a := carries(t, e, policy)
	l := parkedLock("w", "event")
	l.ReleaseDelay = delay
	mustPark(t, a.Store, l, 0)
	<-a.tries
	b := carries(t, e, policy)
	cut := time.Now()
	a.cutOff()
	if again := (<-b.tries).Sub(cut); again < delay {
		t.Errorf("tried again %v after the process before was told to end, and release_delay is %v", again, delay)
	}
}

// TestATakeOverKeepsThePlanOfTheProcessBefore, and writes what it made of it: so operators see when
// the next try is.
func TestATakeOverKeepsThePlanOfTheProcessBefore(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	a := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	for _, c := range []struct {
		name        string
		left, pause time.Duration
		most        time.Duration
	}{
		{"as planned", 300 * time.Second, 600 * time.Second, 300 * time.Second},
		{"by a clock that is ahead", 24 * time.Hour, 600 * time.Second, 600 * time.Second},
	} {
		mustPark(t, a, parkedLock(c.name, "event"), 0)
		h := takeNext(t, a).Running
		mustAttempt(t, h)
		p := *h.Lock().Parked
		p.NextAttempt, p.Pause, p.Pauses = time.Now().Add(c.left), c.pause, 3
		p.Last = &idem.Evidence{Outcome: idem.Executed, Status: 503, At: time.Now()}
		if err := h.RecordTry(within(t, patience), p); err != nil {
			t.Fatal(err)
		}
		if err := h.Release(within(t, patience)); err != nil {
			t.Fatal(err)
		}
		taken := takeNext(t, b)
		written := mustFind(t, a, h.Lock().Execution).Lock.Parked
		for what, p := range map[string]*idem.Parked{"taken over": taken.Running.Lock().Parked, "written": written} {
			left := time.Until(p.NextAttempt)
			if left > c.most || left < c.most-patience || p.Pauses != 3 || p.Pause != c.pause || p.Failures != 0 ||
				p.Tries != 1 {
				t.Errorf("%s, %s: %v to the next try, %+v", c.name, what, left, p)
			}
		}
		mustSettle(t, taken.Running)
	}
}

// TestTheLockOfACancelledTryStaysClosedForItsReleaseDelay: the call was closed, and the upstream
// may be at work on it.
func TestTheLockOfACancelledTryStaysClosedForItsReleaseDelay(t *testing.T) {
	const delay = 2 * time.Second
	e := etcdtest.Start(t)
	a := carries(t, e, parkingPolicy(idem.UnknownRetry, delay))
	l := parkedLock("w", "event")
	l.ReleaseDelay = delay
	mustPark(t, a.Store, l, 0)
	<-a.tries
	mustPark(t, a.Store, parkedLock("w", "next"), 0)
	asked := time.Now()
	mustCancel(t, a.Store, l.Execution, idem.Cancel{By: "ops", Reason: "refunded"})
	if began := (<-a.tries).Sub(asked); began < delay {
		t.Errorf("the next event was tried %v after the cancel, and release_delay is %v", began, delay)
	}
}

// TestWhatEndsSoonAfterATryOfUnknownOutcomeLeavesItsLockClosed, whatever ends it between two tries,
// and whatever the clock says of the process that made the try.
func TestWhatEndsSoonAfterATryOfUnknownOutcomeLeavesItsLockClosed(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	const delay = 5 * time.Second
	var passed atomic.Int64
	clock := link.SystemClock()
	boot := clock.Boot
	clock.Boot = func() time.Duration { return boot() + time.Duration(passed.Load()) }
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}, Clock: clock, SessionTTL: time.Minute})
	later := func(end func(idem.RunningLock) error) func(idem.RunningLock) error {
		return func(h idem.RunningLock) error {
			passed.Add(int64(2 * delay))
			return end(h)
		}
	}
	skipped := func(h idem.RunningLock) error {
		_, _, err := s.Skip(within(t, patience), h.Lock().Execution, idem.Cancel{By: "ops", Reason: "poison"}, nil)
		return err
	}
	putDown := func(h idem.RunningLock) error {
		if err := h.Release(within(t, patience)); err != nil {
			return err
		}
		return skipped(h)
	}
	skippedWhereItRests := func(h idem.RunningLock) error {
		if err := skipped(h); err != nil {
			return err
		}
		if err := h.Release(within(t, patience)); !errors.Is(err, idem.ErrCancelled) {
			return fmt.Errorf("it was asked to stop: %w", err)
		}
		return nil
	}
	tooOld := func(h idem.RunningLock) error {
		e.Expire(t, ledgertest.Layout.Of(protocol.KindAges, h.Lock().Execution))
		eventually(t, "it is too old", func() bool { return s.IsTooOld(h.Lock().Execution) })
		_, err := h.Settle(within(t, patience), idem.End{
			Status: idem.Failed, Outcome: idem.Unknown, RequestKept: true, FinishedAt: time.Now(),
			Error: &idem.Failure{Code: idem.CodeTooOld},
		})
		return err
	}
	answered := func(h idem.RunningLock) error { // an earlier try was, and the answer to the last one got lost
		mustAttempt(t, h)
		_, err := h.Settle(within(t, patience), idem.End{
			Status: idem.Failed, Outcome: idem.Executed, RequestKept: true, FinishedAt: time.Now(),
			Error: &idem.Failure{Code: "attempts_exhausted"},
			Tried: &idem.Evidence{Outcome: idem.Unknown, At: time.Now()},
		})
		return err
	}
	for _, c := range []struct {
		name   string
		end    func(idem.RunningLock) error
		effect idem.Outcome  // of the tries before
		ahead  time.Duration // the clock that its try was made by
		closed bool
	}{
		{"skipped soon", putDown, idem.Unknown, 0, true},
		{"skipped soon, tried by a clock an hour behind", putDown, idem.Unknown, -time.Hour, true},
		{"skipped later", later(putDown), idem.Unknown, 0, true}, // it was put down just now
		{"skipped where it rests, later", later(skippedWhereItRests), idem.Unknown, 0, false},
		{"skipped later, tried by a clock an hour ahead", later(skippedWhereItRests), idem.Unknown, time.Hour, false},
		{"skipped soon, after an answer to an earlier try", putDown, idem.Executed, 0, true},
		{"too old", tooOld, idem.Unknown, 0, true},
		{"too old, tried by a clock an hour behind", tooOld, idem.Unknown, -time.Hour, true},
		{"out of tries, after an answer to an earlier one", answered, idem.Executed, -time.Hour, true},
	} {
		l := parkedLock(c.name, "event")
		l.ReleaseDelay = delay
		mustPark(t, s, l, 0)
		h := takeNext(t, s).Running
		mustAttempt(t, h)
		p := *h.Lock().Parked
		p.Trying, p.Last, p.Effect = false, &idem.Evidence{Outcome: idem.Unknown, At: time.Now().Add(c.ahead)}, c.effect
		if err := h.RecordTry(within(t, patience), p); err != nil {
			t.Fatal(err)
		}
		if err := c.end(h); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		held, seen, err := s.Claim(within(t, patience), lockFor(c.name, "next"), 0)
		if closed := seen != nil && seen.Lock != nil && seen.Lock.Cooling; err != nil || closed != c.closed ||
			closed == (held != nil) {
			t.Errorf("%s: %+v %+v %v", c.name, held, seen, err)
		}
	}
}

// TestWhatIsTakenTooLateKeepsThatItsTryIsOfUnknownOutcome: the process that takes over a try may
// have no time left to hear of that, and gives it back as it was.
func TestWhatIsTakenTooLateKeepsThatItsTryIsOfUnknownOutcome(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	dead := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	late := openStore(t, etcdlock.Options{Endpoints: []string{wire.Endpoint}})
	l := parkedLock("w", "event")
	mustPark(t, dead, l, 0)
	mustAttempt(t, takeNext(t, dead).Running)
	closeStore(t, dead)
	ctx, giveUp := context.WithCancel(t.Context())
	carries := wire.HoldAnswer(`"holder":"` + sessionOf(t, e, late).Name)
	taken := make(chan *idem.Taken, 1)
	go func() {
		var got *idem.Taken
		for got == nil && ctx.Err() == nil {
			if scope, _, err := late.NextReady(ctx); err == nil {
				got, _ = late.TakeParked(ctx, scope, anyRoute)
			}
		}
		taken <- got
	}()
	select {
	case <-carries:
	case <-time.After(patience):
		t.Fatal("nobody takes it over")
	}
	giveUp()
	if got := <-taken; got != nil {
		t.Fatal("it was in time")
	}
	wire.Blackhole(false)
	other := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	next := takeNext(t, other)
	if p := next.Running.Lock().Parked; !next.Carried || !p.Trying || p.Tries != 1 {
		t.Errorf("carried %v: %+v", next.Carried, p)
	}
	mustSettle(t, next.Running)
}
