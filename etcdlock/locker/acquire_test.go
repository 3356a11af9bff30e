package locker_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock"
	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/protocol"
)

func TestTryAcquireNamesTheHolder(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}, Holder: "host a"}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	first := mustAcquire(t, a, "w")
	_, err := b.TryAcquire(within(t, patience), "w")
	var held *etcdlock.HeldError
	if !errors.As(err, &held) || !strings.HasPrefix(held.Holder, "host a/") || held.Execution != first.Execution() ||
		held.Workflow != "w" {
		t.Fatalf("got %v", err)
	}
	must(t, first.Unlock)
	next := mustAcquire(t, b, "w")
	if next.Token() <= first.Token() || first.Token() == 0 {
		t.Fatalf("token %d after %d", next.Token(), first.Token())
	}
	must(t, next.Unlock)
}

func TestTryAcquireDoesNotPassTheQueue(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	p := mustEnqueue(t, s, lockFor("w", "one"))
	_, err := s.TryAcquire(within(t, patience), "w")
	var held *etcdlock.HeldError
	if !errors.As(err, &held) || held.Holder != "" || held.Execution != "" {
		t.Fatalf("got %v", err)
	}
	must(t, p.Leave)
}

func TestUnlockLeavesNothingInEtcd(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := mustAcquire(t, s, "w")
	if n := left(t, e); n != 1 {
		t.Fatalf("%d keys while it is held", n)
	}
	for range 2 { // the second does nothing
		must(t, l.Unlock)
	}
	if err := s.Do(within(t, patience), "w", func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if n := left(t, e); n != 0 {
		t.Fatalf("%d keys left", n)
	}
	select {
	case <-l.Lost():
		t.Fatal("lost by its own Unlock")
	default:
	}
}

func TestAcquireIsFirstComeFirstServedOverTwoStores(t *testing.T) {
	e := etcdtest.Start(t)
	stores := []*etcdlock.Store{openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})}
	first := mustAcquire(t, stores[0], "w")
	const n = 6
	var mu sync.Mutex
	var order []int
	var tokens []int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			l, err := stores[i%2].Acquire(within(t, patience), "w")
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order, tokens = append(order, i), append(tokens, l.Token())
			mu.Unlock()
			if err := l.Unlock(within(t, patience)); err != nil {
				t.Error(err)
			}
		})
		waiters(t, e, int64(i+1))
	}
	must(t, first.Unlock)
	wg.Wait()
	for i, at := range order {
		if at != i || tokens[i] <= first.Token() || i > 0 && tokens[i] <= tokens[i-1] {
			t.Fatalf("order %v with tokens %v", order, tokens)
		}
	}
	if len(order) != n {
		t.Fatalf("%d of %d had it", len(order), n)
	}
}

func TestAnAcquireThatIsGivenUpLeavesNoQueueEntry(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	first := mustAcquire(t, s, "w")
	ctx, cancel := context.WithCancelCause(context.Background())
	result := make(chan error, 1)
	go func() {
		_, err := s.Acquire(ctx, "w")
		result <- err
	}()
	waiters(t, e, 1)
	gone := errors.New("the caller has gone")
	cancel(gone)
	if err := <-result; !errors.Is(err, gone) {
		t.Fatalf("got %v", err)
	}
	waiters(t, e, 0)
	must(t, first.Unlock)
	if n := left(t, e); n != 0 {
		t.Fatalf("%d keys left", n)
	}
}

func TestAcquireWaitsForTheSession(t *testing.T) {
	e := etcdtest.Start(t)
	s, err := etcdlock.Open(etcdlock.Options{Endpoints: []string{e.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	l, err := s.Acquire(within(t, patience), "w")
	if err != nil {
		t.Fatal(err)
	}
	must(t, l.Unlock)
}

func TestAcquireOutlivesItsSession(t *testing.T) {
	e := etcdtest.Start(t)
	a, b := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	first := mustAcquire(t, a, "w")
	result := make(chan error, 1)
	go func() {
		l, err := b.Acquire(within(t, patience), "w")
		if err == nil {
			err = l.Unlock(within(t, patience))
		}
		result <- err
	}()
	waiters(t, e, 1)
	before := sessionOf(t, e, b)
	endSession(t, e, before)
	// the one before may be gone for too short a time to be seen
	eventually(t, "a place of the next session", func() bool {
		queue, err := e.Client.Get(within(t, patience), ledgertest.Layout.All(protocol.KindQueue),
			clientv3.WithPrefix())
		return err == nil && len(queue.Kvs) == 1 && queue.Kvs[0].Lease != int64(before.Lease)
	})
	must(t, first.Unlock)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

func TestAcquireReturnsAtOnceAnErrorThatIsNoOutage(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	if _, err := s.Acquire(within(t, patience), strings.Repeat("w", protocol.MaxWorkflowBytes+1)); !errors.Is(err,
		protocol.ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
}

func TestAcquireReapsTheExecutionOfADeadHolder(t *testing.T) {
	t.Parallel()
	for name, acquire := range map[string]func(*etcdlock.Store, context.Context, string) (*etcdlock.Lock,
		error){"TryAcquire": (*etcdlock.Store).TryAcquire, "Acquire": (*etcdlock.Store).Acquire} {
		t.Run(name, func(t *testing.T) {
			e := etcdtest.Start(t)
			proxy := etcdtest.NewWire(t, e.Endpoint)
			frozen := openStore(t, etcdlock.Options{Endpoints: []string{proxy.Endpoint}, SessionTTL: 2 * time.Second})
			s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
			dead := mustAcquire(t, frozen, "w")
			old := sessionOf(t, e, frozen)
			proxy.Blackhole(true)
			endSession(t, e, old)
			var l *etcdlock.Lock
			eventually(t, "the lock is free", func() (ok bool) {
				var err error
				l, err = acquire(s, within(t, patience), "w")
				var held *etcdlock.HeldError
				if err != nil && !errors.As(err, &held) {
					t.Fatal(err)
				}
				return err == nil
			})
			select {
			case <-dead.Lost():
			case <-time.After(patience):
				t.Fatal("it does not know that its lock is lost")
			}
			proxy.Blackhole(false)
			if err := dead.Unlock(within(t, patience)); !errors.Is(err, etcdlock.ErrLockLost) {
				t.Fatalf("unlock after somebody else took it: %v", err)
			}
			if l.Token() <= dead.Token() {
				t.Fatal("the token did not grow")
			}
			must(t, l.Unlock)
		})
	}
}

func TestAnUnlockThatEtcdDoesNotAnswerIsRepeatedInTheBackground(t *testing.T) {
	e := etcdtest.Start(t)
	proxy := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, etcdlock.Options{Endpoints: []string{proxy.Endpoint}})
	l := mustAcquire(t, s, "w")
	proxy.Blackhole(true)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := l.Unlock(ctx); !errors.Is(err, etcdlock.ErrNotReleased) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	proxy.Blackhole(false)
	eventually(t, "it is given back", func() bool { return left(t, e) == 0 })
}

func TestDoReturnsWhatItsFunctionReturns(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	own := errors.New("of the function")
	if err := s.Do(within(t, patience), "w", func(context.Context) error { return own }); err != own { // the very same
		t.Fatalf("got %v", err)
	}
	if etcdlock.Token(context.Background()) != 0 {
		t.Fatal("a token without a lock")
	}
}

func TestDoHoldsTheLockWhileItsFunctionRunsAndNotLonger(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	err := s.Do(within(t, patience), "w", func(ctx context.Context) error {
		_, err := s.TryAcquire(ctx, "w")
		if _, ok := errors.AsType[*etcdlock.HeldError](err); !ok {
			t.Errorf("got %v", err)
		}
		if etcdlock.Token(ctx) == 0 {
			t.Error("no token")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_ = s.Do(within(t, patience), "w", func(context.Context) error { panic("of the function") })
	}()
	if n := left(t, e); n != 0 {
		t.Fatalf("%d keys left", n)
	}
}

func TestALostLockEndsTheContextOfDo(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	proxy := etcdtest.NewWire(t, e.Endpoint)
	cut := openStore(t, etcdlock.Options{Endpoints: []string{proxy.Endpoint}, SessionTTL: 2 * time.Second})
	other := openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	var first int64
	err := cut.Do(within(t, patience), "w", func(ctx context.Context) error {
		first = etcdlock.Token(ctx)
		proxy.Blackhole(true)
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, etcdlock.ErrLockLost) {
			t.Errorf("the cause is %v", cause)
		}
		return nil
	})
	if !errors.Is(err, etcdlock.ErrLockLost) {
		t.Fatalf("got %v", err)
	}
	err = other.Do(within(t, patience), "w", func(ctx context.Context) error {
		if etcdlock.Token(ctx) <= first {
			t.Errorf("token %d after %d", etcdlock.Token(ctx), first)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	proxy.Blackhole(false)
}

func TestLocksAreLostWhenTheirStoreIsClosed(t *testing.T) {
	e := etcdtest.Start(t)
	s := openReady(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	l := mustAcquire(t, s, "w")
	closeStore(t, s)
	select {
	case <-l.Lost():
	default:
		t.Fatal("it is still there")
	}
	if !errors.Is(l.Err(), etcdlock.ErrLockLost) || !errors.Is(l.Err(), commit.ErrClosed) {
		t.Fatalf("got %v", l.Err())
	}
	if _, err := s.Acquire(within(t, patience), "w"); !errors.Is(err, commit.ErrClosed) {
		t.Fatalf("got %v", err)
	}
}
