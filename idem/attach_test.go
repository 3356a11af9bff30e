package idem

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// refusing is a lock that its ledger no longer trusts.
type refusing struct {
	oneLock
	why error
}

func (r *refusing) Claim(_ context.Context, l Lock, _ int64) (Held, *Seen, error) {
	r.lock = l
	return r, nil, nil
}
func (r *refusing) Begin() error { return r.why }

func TestTheLedgerHasTheLastWordBeforeTheUpstreamIsCalled(t *testing.T) {
	for _, why := range []error{ErrLockLost, ErrCancelled} {
		clock := noon
		if err := admittedBy(t, guardOf(t, &refusing{why: why}, &clock), testPolicy()).Begin(); !errors.Is(err, why) {
			t.Errorf("it may begin: %v, want %v", err, why)
		}
	}
}

// followed is a Ledger in which a copy runs, and which answers who follows it one after the other; then it hangs.
type followed struct {
	counting
	ends   []queued
	at     int
	reaped []ExecutionID
	reap   error
}

func (f *followed) Follow(ctx context.Context, _ *Lock) (*Seen, error) {
	if f.at++; f.at > len(f.ends) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return f.ends[f.at-1].seen, f.ends[f.at-1].err
}
func (f *followed) Reap(_ context.Context, dead *Lock) error {
	f.reaped = append(f.reaped, dead.Execution)
	return f.reap
}

func TestADuplicateIsAttachedUntilItsTimeIsUpOrTheFirstOneHasEnded(t *testing.T) {
	running := Lock{Entry: Entry{Execution: "exec_first", Scope: Scope{Workflow: "w", Key: keyA}, Token: 5, TraceParent: "trace"}}
	dead := running
	dead.Dead = true
	lost := &Seen{Record: &Record{Entry: Entry{Execution: "exec_first"}, End: End{Status: Failed, Outcome: Unknown, Error: &Failure{Code: "owner_lost"}}}}
	for name, c := range map[string]struct {
		most   int
		ends   []queued
		reap   error
		want   Decision
		err    error
		waited time.Duration
		reaped int
	}{
		"as many wait as may":             {0, nil, nil, DecisionQueueFull, nil, 0, 0},
		"the first one goes on":           {1, nil, nil, DecisionInFlight, errWaited, time.Minute, 0},
		"its owner has died":              {1, []queued{{seen: &Seen{Lock: &dead}}, {seen: lost}}, nil, DecisionLockLost, nil, 0, 1},
		"its owner cannot be reaped":      {1, []queued{{seen: &Seen{Lock: &dead}}}, ErrStoreUnavailable, DecisionStoreUnavailable, ErrStoreUnavailable, 0, 1},
		"the store fails":                 {1, []queued{{err: ErrStoreUnavailable}}, nil, DecisionStoreUnavailable, ErrStoreUnavailable, 0, 0},
		"the store fails after its death": {1, []queued{{seen: &Seen{Lock: &dead}}, {err: ErrStoreUnavailable}}, nil, DecisionStoreUnavailable, ErrStoreUnavailable, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lock := running
				l := &followed{counting: counting{seen: Seen{Lock: &lock}, copies: map[ExecutionID]int{}}, ends: c.ends, reap: c.reap}
				p := testPolicy()
				p.InFlight, p.MaxWaiting, p.AttachTimeout = Attach, c.most, time.Minute
				g := NewGuard(GuardOptions{Ledger: l, Base: t.Context(), Cache: NewCache(0), MaxWaiting: func() int { return 1 }})
				for range 2 { // the first one has left its seat
					l.at, l.reaped = 0, nil
					a := g.Admit(t.Context(), &Request{Scope: Scope{Workflow: "w", Key: keyA}, Policy: p})
					if a.Decision != c.want || !errors.Is(a.Err, c.err) || a.Waited != c.waited || len(l.reaped) != c.reaped {
						t.Fatalf("%+v, reaped %v", a, l.reaped)
					}
					if a.Decision != DecisionStoreUnavailable && (a.Holder != "exec_first" || a.HolderTrace != "trace") {
						t.Errorf("%+v", a.Verdict)
					}
				}
			})
		})
	}
}
