package guard

import (
	"context"
	"errors"
	"testing"
	"time"

	"hooklock/idem"
)

// oneLock is a Ledger with one lock, which is always free, and a RunningLock that does what the
// test says.
type oneLock struct {
	quiet
	lock    idem.Lock
	claims  int
	ttl     time.Duration // of the hold
	hold    error
	settled []idem.End
	record  *idem.Record // what a settle brings, nil = what it was asked to write
	release error
}

func (o *oneLock) Claim(_ context.Context, l idem.Lock, _ int64) (idem.RunningLock, *idem.Obstacle, error) {
	o.claims++
	o.lock = l
	return o, nil, nil
}
func (o *oneLock) Lock() *idem.Lock   { return &o.lock }
func (o *oneLock) Begin() error       { return nil }
func (*oneLock) Count(idem.Counted)   {}
func (o *oneLock) OnStop(func(error)) {}
func (o *oneLock) Hold(_ context.Context, ttl time.Duration) error {
	o.ttl = ttl
	return o.hold
}
func (o *oneLock) Release(context.Context) error                       { return o.release }
func (o *oneLock) Park(context.Context, idem.Parked) error             { return nil }
func (o *oneLock) BeginTry(context.Context, idem.Parked, string) error { return nil }
func (o *oneLock) RecordTry(context.Context, idem.Parked) error        { return nil }
func (o *oneLock) Settle(_ context.Context, e idem.End) (*idem.Record, error) {
	o.settled = append(o.settled, e)
	if o.record != nil {
		return o.record, nil
	}
	return &idem.Record{End: idem.End{Status: e.Status, Outcome: e.Outcome, Abort: e.Abort, Error: e.Error}}, nil
}

// admitted is an execution of o, at the time that clock says.
func admitted(t *testing.T, o *oneLock, clock *time.Time, change func(*idem.Policy)) *Execution {
	t.Helper()
	p := testPolicy()
	if change != nil {
		change(p)
	}
	g := New(Options{Ledger: o, Base: t.Context(), Cache: NewCache(0), Now: func() time.Time { return *clock }})
	return admittedBy(t, g, p)
}

func admittedBy(t *testing.T, g *Guard, p *idem.Policy) *Execution {
	t.Helper()
	a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: p})
	if a.Execution == nil {
		t.Fatalf("not admitted: %+v", a)
	}
	return a.Execution
}

func TestAHoldIsAWholeNumberOfSecondsWithinMaxDuration(t *testing.T) {
	for _, c := range []struct{ asked, age, most, want time.Duration }{
		{30 * time.Minute, 0, time.Hour, 30 * time.Minute},
		{30 * time.Minute, 50 * time.Minute, time.Hour, 10 * time.Minute},
		{30 * time.Minute, 2 * time.Hour, 0, 30 * time.Minute},
		{time.Millisecond, 0, time.Hour, minHold},
		{2001 * time.Millisecond, 0, time.Hour, 3 * time.Second},
		{time.Minute, time.Hour - time.Millisecond, time.Hour, minHold},
		{1<<63 - 1, 0, 0, maxHold},
	} {
		o, clock := &oneLock{}, noon
		x := admitted(t, o, &clock, func(p *idem.Policy) { p.MaxDuration = c.most })
		clock = noon.Add(c.age)
		if end := x.End(Tried{Hold: c.asked, Answer: &idem.Answer{Status: 202}}); end.Hold != c.want ||
			o.ttl != c.want || !end.Recorded || end.Err != nil || end.Record != nil {
			t.Errorf("%+v: held for %s, %+v", c, o.ttl, end)
		}
	}
}

func TestAHeldExecutionNoLongerBelongsToItsProcess(t *testing.T) {
	o, clock := &oneLock{}, noon
	g := New(Options{Ledger: o, Base: t.Context(), Cache: NewCache(0), Now: func() time.Time { return clock }})
	x := admittedBy(t, g, testPolicy())
	x.End(Tried{Hold: time.Minute, Answer: &idem.Answer{Status: 202}})
	if x.Context().Err() == nil {
		t.Error("its context still runs")
	}
	x.End(Tried{Sent: true})
	x.End(Tried{Answer: &idem.Answer{Status: 200}})
	if len(o.settled) != 0 {
		t.Errorf("it was ended as well: %+v", o.settled)
	}
	admittedBy(t, g, testPolicy()) // the ledger is asked, and it is the one who says that the lock is taken
	if o.claims != 2 {
		t.Errorf("%d claims", o.claims)
	}
}

func TestAHoldThatIsNotWrittenSaysSo(t *testing.T) {
	for _, c := range []struct {
		err  error
		lost bool
	}{{idem.ErrNotRecorded, false}, {idem.ErrLockLost, true}} {
		o, clock := &oneLock{hold: c.err}, noon
		if end := admitted(t, o, &clock, nil).End(Tried{Hold: time.Minute,
			Answer: &idem.Answer{Status: 202}}); end.Recorded || end.Lost != c.lost || !errors.Is(end.Err, c.err) {
			t.Errorf("%v: %+v", c.err, end)
		}
	}
}

func TestACancelIsTheEndOfWhatIsGivenUpWithoutAnAnswer(t *testing.T) {
	o, clock := &oneLock{release: idem.ErrCancelled}, noon
	if end := admitted(t, o, &clock, nil).End(Tried{}); !end.Recorded || !end.Cancelled || end.Err != nil {
		t.Errorf("released: %+v", end)
	}
	o = &oneLock{record: &idem.Record{End: idem.End{Status: idem.Aborted, Outcome: idem.Unknown,
		Abort: &idem.Cancel{By: "ops"}}}}
	if end := admitted(t, o, &clock,
		nil).End(Tried{Sent: true, Failure: idem.Failure{Code: "upstream_failed"}}); !end.Recorded || !end.Cancelled {
		t.Errorf("abandoned: %+v", end)
	}
	o = &oneLock{}
	if end := admitted(t, o, &clock,
		nil).End(Tried{Sent: true, Failure: idem.Failure{Code: "upstream_failed"}}); !end.Recorded || end.Cancelled {
		t.Errorf("abandoned, and nobody cancelled: %+v", end)
	}
}

// storing is an execution whose event may be accepted for any reason, with a request that keep
// stores.
func storing(t *testing.T, o idem.Ledger, keep func(context.Context, idem.ExecutionID) (idem.StoredRequest,
	error)) *Execution {
	t.Helper()
	g := New(Options{
		Ledger: o, Parks: roomy{}, Base: t.Context(), Cache: NewCache(0), ParkLimits: func() ParkLimits {
			return ParkLimits{Events: 10, Bytes: 10}
		},
	})
	g.SetWorker(idle{})
	p := testPolicy()
	p.Park = &idem.ParkPolicy{After: time.Minute, Slow: true, Unreachable: true, Unknown: true, Failed: true,
		MaxWaiting: 10}
	a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: p,
		Parking: &idem.Parking{Store: keep}})
	if a.Execution == nil {
		t.Fatalf("not admitted: %+v", a)
	}
	return a.Execution
}

// idle is a worker that does nothing.
type idle struct{}

func (idle) TakeOver(*ParkedExecution, Tried) {}
func (idle) OnReached()                       {}

// TestAnEndDoesNotWaitForADiskThatIsAskedToKeepTheRequest: what the upstream answered is recorded,
// and the delivery is not parked any more.
func TestAnEndDoesNotWaitForADiskThatIsAskedToKeepTheRequest(t *testing.T) {
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			called, over := context.WithCancel(t.Context())
			x := storing(t, &oneLock{}, func(ctx context.Context, _ idem.ExecutionID) (idem.StoredRequest, error) {
				over()
				<-ctx.Done() // a store that is called off, or a disk that goes on all the same
				return idem.StoredRequest{}, nil
			})
			if err := x.Park(called); !errors.Is(err, context.Canceled) || x.Parked() {
				t.Errorf("parked: %v, %v", x.Parked(), err)
			}
			end.ResponseBegun = true
			if e := x.End(end); !e.Recorded || e.Parked {
				t.Errorf("it ended with %+v", e)
			}
		})
	}
}

// TestWhatIsToldToStopIsStillParked: a process that ends hands over what it may.
func TestWhatIsToldToStopIsStillParked(t *testing.T) {
	for cause, parked := range map[error]bool{ErrShutdown: true, ErrMaxDuration: true, idem.ErrCancelled: false,
		idem.ErrLockLost: false} {
		x := storing(t, &oneLock{}, func(ctx context.Context, _ idem.ExecutionID) (idem.StoredRequest, error) {
			return idem.StoredRequest{}, ctx.Err()
		})
		x.stop(cause)
		if end := x.End(Tried{Sent: true}); end.Parked != parked || x.Parked() != parked ||
			parked && end.On != idem.ParkUnknown {
			t.Errorf("%v: %+v", cause, end)
		}
	}
}
