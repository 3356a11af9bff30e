package history_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/test/fault/cluster"
	"hooklock/test/history"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 40 * time.Second

// stores opens n stores that each reach one etcd over two wires; the returned wires are those of
// all stores.
func stores(t *testing.T, e *etcdtest.Etcd, n int, ttl time.Duration) (ledgers []idem.Ledger, wires []*etcdtest.Wire) {
	t.Helper()
	for range n {
		a, b := etcdtest.NewWire(t, e.Endpoint), etcdtest.NewWire(t, e.Endpoint)
		s, err := etcdlock.Open(etcdlock.Options{Endpoints: []string{a.Endpoint, b.Endpoint}, SessionTTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for _, w := range []*etcdtest.Wire{a, b} {
				w.Blackhole(false)
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := s.Close(ctx); err != nil {
				t.Error(err)
			}
		})
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
		ledgers, wires = append(ledgers, s), append(wires, a, b)
	}
	return ledgers, wires
}

func length(long time.Duration) time.Duration {
	if testing.Short() {
		return long / 3
	}
	return long
}

// run lets clients work through faults for d.
func run(t *testing.T, wires []*etcdtest.Wire, d time.Duration,
	work func(context.Context) *history.History) *history.History {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	disturbed := make(chan struct{})
	go func() {
		defer close(disturbed)
		cluster.Disturb(ctx, wires)
	}()
	h := work(ctx)
	<-disturbed
	t.Logf("%+v", h.Counts())
	return h
}

func TestEveryAnswerFitsOneOrderWhileAnswersAndRequestsAreLost(t *testing.T) {
	for name, load := range map[string]history.Load{
		"with records":    {Clients: 12, Workflows: 8, Hot: true, Records: true, Patience: 800 * time.Millisecond},
		"with a queue":    {Clients: 12, Workflows: 4, Records: true, Waiting: true},
		"locks alone":     {Clients: 12, Workflows: 40, Hot: true},
		"in large groups": {Clients: 100, Workflows: 100, Records: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judged(t, 9*time.Second, func(d time.Duration) history.Verdict { return faulty(t, load, d) })
		})
	}
}

// judged takes histories until one can be judged. On a machine that has far too much to do most
// answers come too late, and a history says nothing, or the orders that would explain it are too
// many: the next one is twice as long.
func judged(t *testing.T, long time.Duration, judge func(time.Duration) history.Verdict) {
	t.Helper()
	for d := length(long); d <= 8*long; d *= 2 {
		switch v := judge(d); v {
		case history.Legal:
			return
		case history.Undecided:
			t.Log("it could not be judged: another one")
		default:
			t.Fatalf("the history is %v", v)
		}
	}
	t.Fatal("no history could be judged")
}

// faulty judges a new history of load.
func faulty(t *testing.T, load history.Load, d time.Duration) history.Verdict {
	t.Helper()
	ledgers, wires := stores(t, etcdtest.Start(t), 3, 60*time.Second)
	load.Ledgers = ledgers
	h := run(t, wires, d, func(ctx context.Context) *history.History { return history.Run(ctx, load) })
	c := h.Counts()
	if c.Won == 0 || c.Refused == 0 {
		return history.Undecided
	}
	if c.Unknown+c.Withdrawn == 0 {
		t.Log("no fault met a request in this run")
	}
	return h.CheckExclusion(20 * time.Second)
}

// A session that is lost is not in the model of exclusion: its locks are taken over. What stays is
// the order of the tokens.
func TestTokensGrowAndNoOldHolderEndsAnythingWhileSessionsAreLost(t *testing.T) {
	e := etcdtest.Start(t)
	ledgers, wires := stores(t, e, 3, 2*time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), length(12*time.Second))
	defer cancel()
	disturbed := make(chan struct{})
	go func() {
		defer close(disturbed)
		cluster.Isolate(ctx, wires, 3*time.Second)
	}()
	h := history.Run(ctx, history.Load{Ledgers: ledgers, Clients: 12, Workflows: 6, Records: true, Waiting: true})
	<-disturbed
	t.Logf("%+v", h.Counts())
	if v := h.CheckOrder(time.Minute); v != history.Legal {
		t.Fatalf("the history is %v", v)
	}
}
