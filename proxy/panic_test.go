package proxy

import (
	"context"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/idem/worker"
	"hooklock/proxy/kept"
)

// clumsy is an Observer with a bug: it panics at one event.
type clumsy struct {
	*events
	at EventName
}

func (c *clumsy) Event(name EventName, r *Report) {
	if name == c.at {
		panic("a bug")
	}
	c.events.Event(name, r)
}

func TestTheEndOfAnExecutionThatABugCutShortIsReported(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(*idem.Policy) {})
	r.handler.options.Observer = &clumsy{r.events, EventAcquired}
	if got := await(t, r.send(t.Context(), "w", "1")); got.status != 500 || got.decision != "internal_error" {
		t.Errorf("got %+v", got)
	}
	if !r.events.heard(EventUnknown) || !r.events.heard(EventReleased) {
		t.Errorf("events %v", r.events.names)
	}
	r.events.mu.Lock()
	defer r.events.mu.Unlock()
	if len(r.events.reports) != 1 || !r.events.reports[0].Recorded || r.events.reports[0].Outcome != idem.Unknown ||
		r.events.reports[0].Held == 0 {
		t.Errorf("reports %+v", r.events.reports)
	}
}

// mute is an Observer with a bug: it panics at the end of each delivery.
type mute struct{ *events }

func (mute) OnDelivered(*Report) { panic("a bug") }
func (mute) OnPassed(*Report)    { panic("a bug") }

// TestABugInTheObserverOfADeliveryEndsNothing: the delivery is over by then, and its sender has its
// answer.
func TestABugInTheObserverOfADeliveryEndsNothing(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(*idem.Policy) {})
	r.handler.options.Observer = mute{r.events}
	for _, event := range []string{"1", "2"} {
		got := r.send(t.Context(), "w", event)
		await(t, up.begun)
		up.reply <- "200"
		if a := await(t, got); a.status != 200 || a.decision != "executed" {
			t.Errorf("got %+v", a)
		}
	}
}

// clumsyRequests are a store of requests with a bug.
type clumsyRequests struct{ Requests }

func (clumsyRequests) Keep(context.Context, idem.ExecutionID, *kept.Request) ([]byte, error) {
	panic("a bug")
}

// TestABugWhileAnEventIsParkedLeavesItsCallAlone: it is as if the event could not be parked, and
// the process can end afterwards.
func TestABugWhileAnEventIsParkedLeavesItsCallAlone(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) { p.Park = &idem.ParkPolicy{Slow: true, MaxWaiting: 10} })
	r.handler.options.Requests = clumsyRequests{}
	r.handler.options.Gate = guard.New(guard.Options{
		Ledger: r.store.Ledger, Base: t.Context(), Cache: guard.NewCache(0), Parks: r.store.Ledger,
		ParkLimits: func() guard.ParkLimits { return guard.ParkLimits{Events: 10, Bytes: 1 << 20} },
	})
	got := r.send(t.Context(), "w", "1")
	await(t, up.begun)
	time.AfterFunc(100*time.Millisecond, func() { up.reply <- "200" })
	if a := await(t, got); a.status != 200 || a.decision != "executed" {
		t.Errorf("got %+v", a)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// inline are requests that are kept in the ledger.
type inline struct{}

func (inline) Keep(_ context.Context, _ idem.ExecutionID, r *kept.Request) ([]byte, error) {
	return r.Marshal()
}
func (inline) Size(value []byte) (int64, error) { return int64(len(value)), nil }
func (inline) Fetch(_ context.Context, _ idem.ExecutionID, value []byte) (*kept.Request, error) {
	return kept.Unmarshal(value)
}

// tries are the outcomes of those that an Observer with a bug heard of.
type tries struct {
	clumsy
	outcomes chan idem.Outcome
}

func (o *tries) Event(name EventName, r *Report) {
	if name == EventTried {
		o.outcomes <- r.Outcome
	}
	o.clumsy.Event(name, r)
}

// TestATryThatABugCutShortMayHaveRun: nobody knows how far it came.
func TestATryThatABugCutShortMayHaveRun(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(p *idem.Policy) {
		p.Park = &idem.ParkPolicy{Locked: true, MaxWaiting: 10, MaxAge: time.Hour, Attempts: 1,
			OnFailure: idem.FailureHold}
	})
	o := &tries{clumsy{r.events, EventAcquired}, make(chan idem.Outcome, 10)}
	r.handler.options.Observer, r.handler.options.Requests = o, inline{}
	g := guard.New(guard.Options{
		Ledger: r.store.Ledger, Base: t.Context(), Cache: guard.NewCache(0), Parks: r.store.Ledger,
		ParkLimits: func() guard.ParkLimits { return guard.ParkLimits{Events: 10, Bytes: 1 << 20} },
	})
	r.handler.options.Gate = g
	w := worker.New(worker.Options{Guard: g, Ledger: r.store.Ledger, Policy: r.handler.Policy, Running: func() int {
		return 1
	}, Try: r.handler.Try})
	go w.Run()
	defer w.Close(t.Context())
	if a := await(t, r.send(t.Context(), "w", "1")); a.decision != "parked" {
		t.Fatalf("got %+v", a)
	}
	if outcome := await(t, o.outcomes); outcome != idem.Unknown {
		t.Errorf("its outcome is %q", outcome)
	}
}
