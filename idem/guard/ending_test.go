package guard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"hooklock/idem"
)

// slow is a lock of which each ending takes a second of clock, and ends with err.
type slow struct {
	oneLock
	clock  *time.Time
	err    error
	rec    *idem.Record
	bounds []time.Duration // that the ledger got
	stop   func(error)
}

func (s *slow) Claim(_ context.Context, l idem.Lock, _ int64) (idem.RunningLock, *idem.Obstacle, error) {
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
func (s *slow) Settle(ctx context.Context, e idem.End) (*idem.Record, error) {
	s.ask(ctx)
	s.settled = append(s.settled, e)
	return s.rec, s.err
}

// endings are the ways in which the call of an execution ends.
var endings = map[string]Tried{
	"answered":   {Answer: &idem.Answer{Status: 200, Whole: true}},
	"broken off": {Sent: true, Failure: idem.Failure{Code: "upstream_failed", Detail: "d"}},
	"not sent":   {},
	"challenged": {Challenge: true, Answer: &idem.Answer{Status: 401, Whole: true}},
	"held":       {Hold: time.Minute, Answer: &idem.Answer{Status: 202, Whole: true}},
}

func TestAnEndingSaysWhatTheLedgerHasOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_x"},
			End: idem.End{Status: idem.Success, Outcome: idem.Executed}}
		for name, end := range endings {
			for _, c := range []struct {
				rec      *idem.Record
				err      error
				recorded bool
				lost     bool
			}{{rec, nil, true, false}, {nil, idem.ErrNotRecorded, false, false}, {rec, idem.ErrLockLost, false,
				true}, {&idem.Record{End: idem.End{Status: idem.Aborted, Outcome: idem.Unknown}}, idem.ErrLockLost,
				false, true}} {
				clock := noon
				l := &slow{clock: &clock, err: c.err, rec: c.rec}
				x := admittedBy(t, guardOf(t, l, &clock), testPolicy())
				clock = clock.Add(time.Minute)
				got := x.End(end)
				if got.Recorded != c.recorded || got.Lost != c.lost || !errors.Is(got.Err, c.err) ||
					got.Took != time.Second || got.Cancelled {
					t.Errorf("%s, %v: %+v", name, c.err, got)
				}
				if settles := name == "answered" || name == "broken off"; settles && (got.Record != c.rec ||
					!l.settled[0].FinishedAt.Equal(noon.Add(time.Minute))) {
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
			l := &slow{clock: &clock, rec: &idem.Record{}}
			x := admittedBy(t, guardOf(t, l, &clock), testPolicy())
			x.End(end)
			if got := x.End(again); !got.Recorded || got.Err != nil || got.Lost || got.Record != nil || got.Hold != 0 ||
				got.Took != 0 || len(l.bounds) != 1 {
				t.Errorf("%s, then %s: %+v; the ledger was asked %d times", first, second, got, len(l.bounds))
			}
		}
	}
}

func TestAfterItsEndTheNextDeliveryAsksTheLedger(t *testing.T) {
	for name, end := range endings {
		for _, err := range []error{nil, idem.ErrNotRecorded, idem.ErrLockLost} {
			clock := noon
			l := &slow{clock: &clock, err: err, rec: &idem.Record{}}
			g := guardOf(t, l, &clock)
			admittedBy(t, g, testPolicy()).End(end)
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
	rec.Remembered, rec.Retention, rec.Status = false, time.Hour, idem.Failed
	l := &slow{clock: &clock, rec: rec}
	g := guardOf(t, l, &clock)
	p := testPolicy()
	p.OnUnknown = idem.UnknownBlock
	for range 2 {
		a := g.Admit(t.Context(), &idem.Request{Scope: rec.Scope, Policy: p})
		if a.Execution == nil {
			t.Fatalf("%+v", a)
		}
		a.Execution.End(Tried{Answer: &idem.Answer{Status: 500, Whole: true}})
	}
}

func TestWhatEndsAnExecutionIsTheCauseOfItsContext(t *testing.T) {
	for name, cause := range map[string]error{"its lock is lost": idem.ErrLockLost,
		"it is cancelled": idem.ErrCancelled} {
		clock := noon
		l := &slow{clock: &clock, rec: &idem.Record{}}
		x := admittedBy(t, guardOf(t, l, &clock), testPolicy())
		if err := x.Begin(); err != nil || x.Context().Err() != nil || x.Ended() {
			t.Fatalf("%s: it does not run: %v", name, err)
		}
		l.stop(cause)
		if err := x.Begin(); !errors.Is(context.Cause(x.Context()), cause) || !errors.Is(err, cause) {
			t.Errorf("%s: %v; it may begin: %v", name, context.Cause(x.Context()), err)
		}
		if x.End(Tried{Sent: true,
			Failure: idem.Failure{Code: "upstream_failed"}}); l.settled[0].Status != idem.Failed ||
			l.settled[0].Outcome != idem.Unknown || l.settled[0].Error.Code != "upstream_failed" ||
			l.settled[0].Abort != nil {
			t.Errorf("%s: %+v", name, l.settled[0])
		}
	}
}

func TestAnExecutionEndsAtItsMaxDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, most := range []time.Duration{0, time.Hour} {
			clock := noon
			l := &slow{clock: &clock, rec: &idem.Record{End: idem.End{Status: idem.Aborted, Outcome: idem.Unknown}}}
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
			got := x.End(Tried{Sent: true, Failure: idem.Failure{Code: "upstream_failed"}})
			end := l.settled[0]
			if most == 0 {
				if end.Status != idem.Failed || end.Abort != nil {
					t.Errorf("%+v", end)
				}
				continue
			}
			if end.Status != idem.Aborted || end.Outcome != idem.Unknown || end.Error != nil || end.Abort == nil ||
				end.Abort.By != "policy" || end.Abort.Reason != "max_duration of 1h0m0s reached" ||
				!end.Abort.At.Equal(noon) {
				t.Errorf("%+v, %+v", end, end.Abort)
			}
			if got.Cancelled {
				t.Error("nobody has cancelled it")
			}
		}
	})
}

func TestAFailureSaysWhatTheUpstreamAnswered(t *testing.T) {
	for status, want := range map[int]idem.Failure{
		199: {Code: "upstream_status", Detail: "the upstream answered 199"},
		400: {Code: "upstream_status", Detail: "the upstream answered 400"},
		502: {Code: "upstream_status", Detail: "the upstream answered 502, which says nothing about the effect"},
		300: {Code: "upstream_status", Detail: "the upstream answered 300"},
		200: {},
		299: {},
	} {
		o, clock := &oneLock{}, noon
		admitted(t, o, &clock, func(p *idem.Policy) {
			p.Unknown.Add(502, 502)
		}).End(Tried{Answer: &idem.Answer{Status: status}})
		switch got := o.settled[0]; {
		case want.Code == "" && (got.Error != nil || got.Status != idem.Success):
			t.Errorf("%d: %+v", status, got)
		case want.Code != "" && (got.Error == nil || *got.Error != want || got.Status != idem.Failed):
			t.Errorf("%d: %+v, %+v", status, got, got.Error)
		}
	}
}

func TestAnAttachedDuplicateNamesTheExecutionItWasAttachedTo(t *testing.T) {
	first := func(change func(*idem.Record)) idem.Obstacle {
		r := &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first", TraceParent: "trace"},
			End: idem.End{Status: idem.Failed, Outcome: idem.Unknown}}
		change(r)
		return idem.Obstacle{Record: r}
	}
	for name, c := range map[string]struct {
		seen   idem.Obstacle
		want   idem.Decision
		record bool
	}{
		"released":        {idem.Obstacle{Released: true}, idem.DecisionUpstreamUnreachable, false},
		"nobody can tell": {idem.Obstacle{}, idem.DecisionLockLost, false},
		"its answer": {first(func(r *idem.Record) {
			r.Answer = &idem.Answer{Status: 500}
		}), idem.DecisionAttached, true},
		"its abort": {first(func(r *idem.Record) {
			r.Status = idem.Aborted
		}), idem.DecisionAborted, true},
		"it failed, without answer": {first(func(r *idem.Record) {
			r.Outcome, r.Error = idem.Executed, &idem.Failure{Code: "internal_error"}
		}), idem.DecisionUpstreamFailed, true},
		"it failed, nobody said why": {first(func(*idem.Record) {}), idem.DecisionUpstreamFailed, true},
		"it timed out": {first(func(r *idem.Record) {
			r.Error = &idem.Failure{Code: "upstream_timeout"}
		}), idem.DecisionUpstreamTimeout, true},
		"it failed": {first(func(r *idem.Record) {
			r.Error = &idem.Failure{Code: "upstream_failed"}
		}), idem.DecisionUpstreamFailed, true},
		"this program failed": {first(func(r *idem.Record) {
			r.Error = &idem.Failure{Code: "internal_error"}
		}), idem.DecisionInternalError, true},
		"its owner died": {first(func(r *idem.Record) {
			r.Error = &idem.Failure{Code: "owner_lost"}
		}), idem.DecisionLockLost, true},
	} {
		got := attachedTo(t, &c.seen, nil)
		if got.Decision != c.want || got.Holder != "exec_first" || (got.Record != nil) != c.record {
			t.Errorf("%s: %+v", name, got.Verdict)
		}
	}
}
