package guard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"hooklock/idem"
)

// refusing is a lock that its ledger no longer trusts.
type refusing struct {
	oneLock
	why error
}

func (r *refusing) Claim(_ context.Context, l idem.Lock, _ int64) (idem.RunningLock, *idem.Obstacle, error) {
	r.lock = l
	return r, nil, nil
}
func (r *refusing) Begin() error { return r.why }

func TestTheLedgerHasTheLastWordBeforeTheUpstreamIsCalled(t *testing.T) {
	for _, why := range []error{idem.ErrLockLost, idem.ErrCancelled} {
		clock := noon
		if err := admittedBy(t, guardOf(t, &refusing{why: why}, &clock), testPolicy()).Begin(); !errors.Is(err, why) {
			t.Errorf("it may begin: %v, want %v", err, why)
		}
	}
}

// followed is a Ledger in which a copy runs, and which answers its followers one after the other;
// then it hangs.
type followed struct {
	counting
	ends   []queued
	at     int
	reaped []idem.ExecutionID
	reap   error
}

func (f *followed) AwaitEnd(ctx context.Context, _ *idem.Lock) (*idem.Obstacle, error) {
	if f.at++; f.at > len(f.ends) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return f.ends[f.at-1].seen, f.ends[f.at-1].err
}
func (f *followed) Reap(_ context.Context, dead *idem.Lock) error {
	f.reaped = append(f.reaped, dead.Execution)
	return f.reap
}

func TestADuplicateIsAttachedUntilItsTimeIsUpOrTheFirstOneHasEnded(t *testing.T) {
	running := idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first",
		Scope: idem.Scope{Workflow: "w", Key: keyA},
		Token: 5, TraceParent: "trace"}}
	dead := running
	dead.Dead = true
	lost := &idem.Obstacle{Record: &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first"},
		End: idem.End{Status: idem.Failed, Outcome: idem.Unknown, Error: &idem.Failure{Code: "owner_lost"}}}}
	for name, c := range map[string]struct {
		most   int
		ends   []queued
		reap   error
		want   idem.Decision
		err    error
		waited time.Duration
		reaped int
	}{
		"as many wait as may":   {0, nil, nil, idem.DecisionQueueFull, nil, 0, 0},
		"the first one goes on": {1, nil, nil, idem.DecisionInFlight, errWaited, time.Minute, 0},
		"its owner has died": {1, []queued{{seen: &idem.Obstacle{Lock: &dead}}, {seen: lost}}, nil,
			idem.DecisionLockLost, nil, 0, 1},
		"its owner cannot be reaped": {1, []queued{{seen: &idem.Obstacle{Lock: &dead}}}, idem.ErrStoreUnavailable,
			idem.DecisionStoreUnavailable, idem.ErrStoreUnavailable, 0, 1},
		"the store fails": {1, []queued{{err: idem.ErrStoreUnavailable}}, nil,
			idem.DecisionStoreUnavailable, idem.ErrStoreUnavailable, 0, 0},
		"the store fails after its death": {1, []queued{{seen: &idem.Obstacle{Lock: &dead}},
			{err: idem.ErrStoreUnavailable}}, nil, idem.DecisionStoreUnavailable, idem.ErrStoreUnavailable, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lock := running
				l := &followed{counting: counting{seen: idem.Obstacle{Lock: &lock}, copies: map[idem.ExecutionID]int{}},
					ends: c.ends, reap: c.reap}
				p := testPolicy()
				p.InFlight, p.MaxWaiting, p.AttachTimeout = idem.Attach, c.most, time.Minute
				g := New(Options{Ledger: l, Base: t.Context(), Cache: NewCache(0), MaxWaiting: func() int { return 1 }})
				for range 2 { // the first one has left its seat
					l.at, l.reaped = 0, nil
					a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: p})
					if a.Decision != c.want || !errors.Is(a.Err, c.err) || a.Waited != c.waited ||
						len(l.reaped) != c.reaped {
						t.Fatalf("%+v, reaped %v", a, l.reaped)
					}
					if a.Decision != idem.DecisionStoreUnavailable &&
						(a.Holder != "exec_first" || a.HolderTrace != "trace") {
						t.Errorf("%+v", a.Verdict)
					}
				}
			})
		})
	}
}
