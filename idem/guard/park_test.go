package guard

import (
	"context"
	"errors"
	"testing"
	"time"

	"hooklock/idem"
)

// roomy is a ParkLedger in which nothing is parked.
type roomy struct{ idem.ParkLedger }

func (roomy) MarkReady(idem.Scope)              {}
func (roomy) Paused(string, string) *idem.Pause { return nil }

func (roomy) Parked(idem.Scope) idem.ParkedCount { return idem.ParkedCount{} }

// A store that hangs takes all the time that there is for a decision: its sender would wait for
// that again.
func TestAStoreThatDoesNotTakeARequestIsAskedOnce(t *testing.T) {
	other := &counting{seen: idem.Obstacle{Lock: &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_other",
		Scope: idem.Scope{Workflow: "w", Key: keyB}, Token: 5}}}}
	g := New(Options{
		Ledger: other, Parks: roomy{}, Base: t.Context(), Cache: NewCache(0), ParkLimits: func() ParkLimits {
			return ParkLimits{Events: 10, Bytes: 10}
		},
	})
	p := testPolicy()
	p.Park = &idem.ParkPolicy{Locked: true, MaxWaiting: 10}
	asked := 0
	a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: p,
		Parking: &idem.Parking{Store: func(context.Context, idem.ExecutionID) (idem.StoredRequest, error) {
			asked++
			return idem.StoredRequest{}, errors.New("it is away")
		}}})
	if a.Decision != idem.DecisionLocked || asked != 1 {
		t.Errorf("%s, and it was asked %d times", a.Decision, asked)
	}
}

// parkingLock notes what it was parked as.
type parkingLock struct {
	oneLock
	as idem.Parked
}

func (p *parkingLock) Claim(ctx context.Context, l idem.Lock, prev int64) (idem.RunningLock, *idem.Obstacle, error) {
	_, _, err := p.oneLock.Claim(ctx, l, prev)
	return p, nil, err
}

func (p *parkingLock) Park(_ context.Context, as idem.Parked) error {
	p.as = as
	return nil
}

// TestWhatIsParkedForItsUnknownOutcomeIsStillBeingTried: a process that finds the lock of one that
// died before it had judged the try would try again at once, whatever on_unknown says.
func TestWhatIsParkedForItsUnknownOutcomeIsStillBeingTried(t *testing.T) {
	for on, c := range map[idem.ParkOn]struct {
		end    Tried
		trying bool
	}{
		idem.ParkUnknown:     {Tried{Sent: true}, true},
		idem.ParkUnreachable: {Tried{}, false},
		idem.ParkFailed:      {Tried{Answer: &idem.Answer{Status: 503, Whole: true}}, false},
	} {
		held := &parkingLock{}
		x := storing(t, held, func(context.Context, idem.ExecutionID) (idem.StoredRequest, error) {
			return idem.StoredRequest{}, nil
		})
		if end := x.End(c.end); !end.Parked || end.On != on || held.as.Trying != c.trying || held.as.Tries != 1 {
			t.Errorf("%s: %+v, parked as %+v", on, end, held.as)
		}
	}
}

// TestADeliveryFromBeforeTheClockWasSetBackDoesNotCount: parked executions do not wait an hour for
// deliveries that do not come.
func TestADeliveryFromBeforeTheClockWasSetBackDoesNotCount(t *testing.T) {
	now := time.Now()
	g := New(Options{Ledger: &oneLock{}, Base: t.Context(), Cache: NewCache(0), Now: func() time.Time { return now }})
	admittedBy(t, g, testPolicy())
	if g.BusyFor() != time.Second {
		t.Error("a delivery has come, and nobody is there")
	}
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		now = now.Add(step)
		if g.BusyFor() != 0 {
			t.Errorf("set by %v: somebody is there", step)
		}
		now = now.Add(-step)
	}
}

// acceptingLedger notes what is put into a queue.
type acceptingLedger struct {
	oneLock
	entered []idem.Lock
}

func (l *acceptingLedger) Enqueue(_ context.Context, lock idem.Lock, _, _ int64) (idem.QueueEntry, *idem.Obstacle,
	error) {
	l.entered = append(l.entered, lock)
	return nil, nil, nil
}

// TestADelayAcceptsEachDeliveryAtOnce, and says when its event is tried first.
func TestADelayAcceptsEachDeliveryAtOnce(t *testing.T) {
	for delay, want := range map[time.Duration]idem.Decision{0: "", 5 * time.Second: idem.DecisionParked} {
		l := &acceptingLedger{}
		g := New(Options{
			Ledger: l, Parks: roomy{}, Base: t.Context(), Cache: NewCache(0), ParkLimits: func() ParkLimits {
				return ParkLimits{Events: 10, Bytes: 10}
			},
			Now: func() time.Time { return noon },
		})
		p := testPolicy()
		p.Park = &idem.ParkPolicy{Locked: true, MaxWaiting: 10, After: time.Minute, Delay: delay}
		a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: p,
			Parking: &idem.Parking{
				Patience: time.Minute, Store: func(context.Context, idem.ExecutionID) (idem.StoredRequest, error) {
					return idem.StoredRequest{}, nil
				},
			}})
		if a.Decision != want {
			t.Fatalf("a delay of %v: %+v", delay, a)
		}
		if delay > 0 && (!l.entered[0].Parked.NextAttempt.Equal(noon.Add(delay)) ||
			l.entered[0].Parked.Pause != delay) {
			t.Errorf("parked as %+v", l.entered[0].Parked)
		}
	}
}
