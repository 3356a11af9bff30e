package idem

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a lock of which each ending takes a second of clock, and ends with err.
type slow struct {
	oneLock
	clock  *time.Time
	err    error
	rec    *Record
	bounds []time.Duration // that the ledger got
	stop   func(error)
}

func (s *slow) Claim(_ context.Context, l Lock, _ int64) (Held, *Seen, error) {
	s.claims++
	s.lock = l
	return s, nil, nil
}
func (s *slow) OnStop(f func(error)) { s.stop = f }
func (s *slow) ask(ctx context.Context) {
	*s.clock = s.clock.Add(time.Second)
	if until, ok := ctx.Deadline(); ok && ctx.Err() == nil {
		s.bounds = append(s.bounds, time.Until(until))
	}
}
func (s *slow) Release(ctx context.Context) error {
	s.ask(ctx)
	return s.err
}
func (s *slow) Hold(ctx context.Context, _ time.Duration) error {
	s.ask(ctx)
	return s.err
}
func (s *slow) Settle(ctx context.Context, e End) (*Record, error) {
	s.ask(ctx)
	s.settled = append(s.settled, e)
	return s.rec, s.err
}

// endings are the ways in which a process ends an execution, or lets go of it.
var endings = map[string]func(*Execution) Ending{
	"complete": func(x *Execution) Ending { return x.Complete(Answer{Status: 200, Whole: true}) },
	"abandon":  func(x *Execution) Ending { return x.Abandon(Failure{Code: "upstream_failed", Detail: "d"}) },
	"release":  func(x *Execution) Ending { return x.Release(Failure{}) },
	"hold":     func(x *Execution) Ending { return x.Hold(time.Minute) },
}

func TestAnEndingSaysWhatTheLedgerHasOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &Record{Entry: Entry{Execution: "exec_x"}, End: End{Status: Success, Outcome: Executed}}
		for name, end := range endings {
			for _, c := range []struct {
				rec      *Record
				err      error
				recorded bool
				lost     bool
			}{{rec, nil, true, false}, {nil, ErrNotRecorded, false, false}, {rec, ErrLockLost, false, true}, {&Record{End: End{Status: Aborted, Outcome: Unknown}}, ErrLockLost, false, true}} {
				clock := noon
				l := &slow{clock: &clock, err: c.err, rec: c.rec}
				x := admittedBy(t, guardOf(t, l, &clock), testPolicy())
				clock = clock.Add(time.Minute)
				got := end(x)
				if got.Recorded != c.recorded || got.Lost != c.lost || !errors.Is(got.Err, c.err) || got.Took != time.Second || got.Cancelled {
					t.Errorf("%s, %v: %+v", name, c.err, got)
				}
				if settles := name == "complete" || name == "abandon"; settles && (got.Record != c.rec || !l.settled[0].FinishedAt.Equal(noon.Add(time.Minute))) {
					t.Errorf("%s, %v: %+v, settled %+v", name, c.err, got, l.settled)
				}
				if len(l.bounds) != 1 || l.bounds[0] != 2*time.Second {
					t.Errorf("%s: the ledger had %v", name, l.bounds)
				}
				if !x.Ended() || x.Context().Err() == nil {
					t.Errorf("%s: it goes on", name)
				}
			}
		}
	})
}

func TestOnlyTheFirstEndingCounts(t *testing.T) {
	for first, end := range endings {
		for second, again := range endings {
			clock := noon
			l := &slow{clock: &clock, rec: &Record{}}
			x := admittedBy(t, guardOf(t, l, &clock), testPolicy())
			end(x)
			if got := again(x); !got.Recorded || got.Err != nil || got.Lost || got.Record != nil || got.Hold != 0 || got.Took != 0 || len(l.bounds) != 1 {
				t.Errorf("%s, then %s: %+v; the ledger was asked %d times", first, second, got, len(l.bounds))
			}
		}
	}
}

func TestAfterItsEndTheNextDeliveryAsksTheLedger(t *testing.T) {
	for name, end := range endings {
		for _, err := range []error{nil, ErrNotRecorded, ErrLockLost} {
			clock := noon
			l := &slow{clock: &clock, err: err, rec: &Record{}}
			g := guardOf(t, l, &clock)
			end(admittedBy(t, g, testPolicy()))
			if admittedBy(t, g, testPolicy()); l.claims != 2 {
				t.Errorf("%s, %v: %d claims", name, err, l.claims)
			}
		}
	}
}

func TestAnAnswerThatIsNotKeptIsNotRemembered(t *testing.T) {
	// One that was read as settled by mistake would be replayed for its whole retention.
	clock := noon
	rec := cached(1)
	rec.Kept, rec.Retention, rec.Status = false, time.Hour, Failed
	l := &slow{clock: &clock, rec: rec}
	g := guardOf(t, l, &clock)
	p := testPolicy()
	p.OnUnknown = UnknownBlock
	for range 2 {
		a := g.Admit(t.Context(), &Request{Scope: rec.Scope, Policy: p})
		if a.Execution == nil {
			t.Fatalf("%+v", a)
		}
		a.Execution.Complete(Answer{Status: 500, Whole: true})
	}
}

func TestWhatEndsAnExecutionIsTheCauseOfItsContext(t *testing.T) {
	for name, cause := range map[string]error{"its lock is lost": ErrLockLost, "it is cancelled": ErrCancelled} {
		clock := noon
		l := &slow{clock: &clock, rec: &Record{}}
		x := admittedBy(t, guardOf(t, l, &clock), testPolicy())
		if err := x.Begin(); err != nil || x.Context().Err() != nil || x.Ended() {
			t.Fatalf("%s: it does not run: %v", name, err)
		}
		l.stop(cause)
		if err := x.Begin(); !errors.Is(context.Cause(x.Context()), cause) || !errors.Is(err, cause) {
			t.Errorf("%s: %v; it may begin: %v", name, context.Cause(x.Context()), err)
		}
		if x.Abandon(Failure{Code: "upstream_failed"}); l.settled[0].Status != Failed || l.settled[0].Outcome != Unknown || l.settled[0].Error.Code != "upstream_failed" || l.settled[0].Abort != nil {
			t.Errorf("%s: %+v", name, l.settled[0])
		}
	}
}

func TestAnExecutionEndsAtItsMaxDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, most := range []time.Duration{0, time.Hour} {
			clock := noon
			l := &slow{clock: &clock, rec: &Record{End: End{Status: Aborted, Outcome: Unknown}}}
			p := testPolicy()
			p.MaxDuration = most
			x := admittedBy(t, guardOf(t, l, &clock), p)
			time.Sleep(time.Hour - time.Nanosecond)
			synctest.Wait()
			if x.Context().Err() != nil {
				t.Errorf("%s: ended too early", most)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if ended := errors.Is(context.Cause(x.Context()), ErrMaxDuration); ended != (most > 0) {
				t.Errorf("%s: %v", most, context.Cause(x.Context()))
			}
			got := x.Abandon(Failure{Code: "upstream_failed"})
			end := l.settled[0]
			if most == 0 {
				if end.Status != Failed || end.Abort != nil {
					t.Errorf("%+v", end)
				}
				continue
			}
			if end.Status != Aborted || end.Outcome != Unknown || end.Error != nil || end.Abort == nil || end.Abort.By != "policy" || end.Abort.Reason != "max_duration of 1h0m0s reached" || !end.Abort.At.Equal(noon) {
				t.Errorf("%+v, %+v", end, end.Abort)
			}
			if got.Cancelled {
				t.Error("nobody has cancelled it")
			}
		}
	})
}

func TestAFailureSaysWhatTheUpstreamAnswered(t *testing.T) {
	for status, want := range map[int]Failure{
		199: {"upstream_status", "the upstream answered 199"},
		400: {"upstream_status", "the upstream answered 400"},
		502: {"upstream_status", "the upstream answered 502, which says nothing about the effect"},
		300: {"upstream_status", "the upstream answered 300"},
		200: {},
		299: {},
	} {
		o, clock := &oneLock{}, noon
		admitted(t, o, &clock, func(p *Policy) { p.Unknown.Add(502, 502) }).Complete(Answer{Status: status})
		switch got := o.settled[0]; {
		case want.Code == "" && (got.Error != nil || got.Status != Success):
			t.Errorf("%d: %+v", status, got)
		case want.Code != "" && (got.Error == nil || *got.Error != want || got.Status != Failed):
			t.Errorf("%d: %+v, %+v", status, got, got.Error)
		}
	}
}

func TestAnAttachedDuplicateNamesTheExecutionItWasAttachedTo(t *testing.T) {
	first := func(change func(*Record)) Seen {
		r := &Record{Entry: Entry{Execution: "exec_first", TraceParent: "trace"}, End: End{Status: Failed, Outcome: Unknown}}
		change(r)
		return Seen{Record: r}
	}
	for name, c := range map[string]struct {
		seen   Seen
		want   Decision
		record bool
	}{
		"released":                   {Seen{Released: true}, DecisionUpstreamUnreachable, false},
		"nobody can tell":            {Seen{}, DecisionLockLost, false},
		"its answer":                 {first(func(r *Record) { r.Answer = &Answer{Status: 500} }), DecisionAttached, true},
		"its abort":                  {first(func(r *Record) { r.Status = Aborted }), DecisionAborted, true},
		"it failed, without answer":  {first(func(r *Record) { r.Outcome, r.Error = Executed, &Failure{Code: "internal_error"} }), DecisionUpstreamFailed, true},
		"it failed, nobody said why": {first(func(*Record) {}), DecisionUpstreamFailed, true},
		"it timed out":               {first(func(r *Record) { r.Error = &Failure{Code: "upstream_timeout"} }), DecisionUpstreamTimeout, true},
		"it failed":                  {first(func(r *Record) { r.Error = &Failure{Code: "upstream_failed"} }), DecisionUpstreamFailed, true},
		"this program failed":        {first(func(r *Record) { r.Error = &Failure{Code: "internal_error"} }), DecisionInternalError, true},
		"its owner died":             {first(func(r *Record) { r.Error = &Failure{Code: "owner_lost"} }), DecisionLockLost, true},
	} {
		got := attachedTo(t, &c.seen, nil)
		if got.Decision != c.want || got.Holder != "exec_first" || (got.Record != nil) != c.record {
			t.Errorf("%s: %+v", name, got.Verdict)
		}
	}
}
