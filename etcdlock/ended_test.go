package etcdlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// end is what OnEnded told.
type end struct {
	record   *idem.Record
	recorded bool
}

// endsOf collects what a store tells of ends.
func endsOf(o *Options) <-chan end {
	ends := make(chan end, 64)
	o.OnEnded = func(r *idem.Record, recorded bool) { ends <- end{r, recorded} }
	return ends
}

func TestAnEndThatIsWrittenAfterItsCallerHasGoneIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(context.Context, idem.RunningLock) error
		wait error
		want idem.Outcome
	}{
		"an answer": {func(ctx context.Context, h idem.RunningLock) error {
			_, err := h.Settle(ctx, success(""))
			return err
		}, idem.ErrNotRecorded, idem.Executed},
		"nobody knows": {func(ctx context.Context, h idem.RunningLock) error {
			_, err := h.Settle(ctx, idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now(),
				Error: &idem.Failure{Code: "upstream_failed"}})
			return err
		}, idem.ErrNotRecorded, idem.Unknown},
		"given back": {func(ctx context.Context, h idem.RunningLock) error {
			return h.Release(ctx)
		}, idem.ErrStoreUnavailable, idem.NotExecuted},
	} {
		t.Run(name, func(t *testing.T) {
			e := etcdtest.Start(t)
			proxy := etcdtest.NewWire(t, e.Endpoint)
			o := Options{Endpoints: []string{proxy.Endpoint}}
			ends := endsOf(&o)
			s := openStore(t, o)
			prompt := mustClaim(t, s, routed("w", "zero"), 0)
			if err := c.end(within(t, patience), prompt); err != nil {
				t.Fatal(err)
			}
			held := mustClaim(t, s, routed("w", "one"), 0)
			proxy.Blackhole(true)
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			if err := c.end(ctx, held); !errors.Is(err, c.wait) {
				t.Fatalf("got %v", err)
			}
			proxy.Blackhole(false)
			got := received(t, ends)
			if got.record.Execution != held.Lock().Execution || got.record.Outcome != c.want || !got.recorded {
				t.Errorf("got %+v, recorded %v", got.record, got.recorded)
			}
			if err := s.Close(within(t, patience)); err != nil || len(ends) != 0 {
				t.Errorf("%d more, %v", len(ends), err)
			}
		})
	}
}

// routed is lockFor, of a delivery.
func routed(workflow, event string) idem.Lock {
	l := lockFor(workflow, event)
	l.Route = "r"
	return l
}

func TestAnEndForWhichThereIsNoRoomIsReported(t *testing.T) {
	e := etcdtest.StartWithQuota(t, 1<<20)
	o := Options{Endpoints: []string{e.Endpoint}}
	ends := endsOf(&o)
	s := openStore(t, o)
	held := mustClaim(t, s, routed("w", "one"), 0)
	e.Fill(t)
	if _, err := held.Settle(within(t, patience), failure()); !errors.Is(err, ErrStoreFull) {
		t.Fatalf("got %v", err)
	}
	if got := received(t, ends); got.recorded || got.record.Outcome != idem.Executed ||
		got.record.Execution != held.Lock().Execution {
		t.Errorf("got %+v, recorded %v", got.record, got.recorded)
	}
}

func TestAForceReleaseIsReportedWhereItWasAskedFor(t *testing.T) {
	e := etcdtest.Start(t)
	one := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	o := Options{Endpoints: []string{e.Endpoint}}
	ends := endsOf(&o)
	other := openStore(t, o)
	held := mustClaim(t, one, routed("w", "one"), 0)
	if _, err := other.ForceRelease(within(t, patience), "w", held.Lock().Execution,
		idem.Cancel{By: "ops", Reason: "test", At: time.Now()}, nil); err != nil {
		t.Fatal(err)
	}
	if got := received(t, ends); !got.recorded || got.record.Outcome != idem.Unknown || got.record.Abort == nil ||
		got.record.Abort.By != "ops" {
		t.Errorf("got %+v", got.record)
	}
}

func TestACompletionThatComesBeforeTheHoldIsReportedOnce(t *testing.T) {
	e := etcdtest.Start(t)
	runs, asked := Options{Endpoints: []string{e.Endpoint}}, Options{Endpoints: []string{e.Endpoint}}
	endsOfOwner, endsOfOther := endsOf(&runs), endsOf(&asked)
	owner, other := openStore(t, runs), openStore(t, asked)
	early := mustClaim(t, owner, withKey(routed("w", "early")), 0)
	if _, err := other.Complete(within(t, patience), callbackOf(early.Lock()),
		idem.Final{Status: idem.Success}); err != nil {
		t.Fatal(err)
	}
	if err := early.Hold(within(t, patience), time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := received(t, endsOfOwner); got.record.Execution != early.Lock().Execution ||
		got.record.Outcome != idem.Executed || !got.recorded {
		t.Errorf("got %+v", got)
	}
	late := mustClaim(t, owner, withKey(routed("w", "late")), 0)
	if err := late.Hold(within(t, patience), time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Complete(within(t, patience), callbackOf(late.Lock()),
		idem.Final{Status: idem.Success}); err != nil {
		t.Fatal(err)
	}
	if got := received(t, endsOfOther); got.record.Execution != late.Lock().Execution {
		t.Errorf("got %+v", got)
	}
	if a, b := len(endsOfOwner), len(endsOfOther); a+b != 0 {
		t.Errorf("%d and %d more", a, b)
	}
}

func received(t *testing.T, ends <-chan end) end {
	t.Helper()
	select {
	case e := <-ends:
		return e
	case <-time.After(patience):
		t.Fatal("nobody told of an end")
		panic("unreachable")
	}
}
