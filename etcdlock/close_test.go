package etcdlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// TestACloseIsNotDelayedByACallerThatKeepsAsking: what is asked of an etcd that does not answer
// ends with the Store, however long its caller would wait.
func TestACloseIsNotDelayedByACallerThatKeepsAsking(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(ctx context.Context, s *Store, l *idem.Lock) error{
		"heartbeat": func(ctx context.Context, s *Store, l *idem.Lock) error {
			return second(s.Heartbeat(ctx, callbackOf(l), 0))
		},
		"acquire": func(ctx context.Context, s *Store, _ *idem.Lock) error {
			return second(s.AcquireLock(ctx, idem.AcquireRequest{Workflow: "other", TTL: time.Minute}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := etcdtest.Start(t)
			wire := etcdtest.NewWire(t, e.Endpoint)
			s := openReady(t, Options{Endpoints: []string{wire.Endpoint}})
			l := running(t, s)
			wire.Blackhole(true)
			asked := make(chan error, 1)
			asking, stop := context.WithCancel(context.Background())
			defer stop()
			go func() { asked <- ask(asking, s, l) }()
			eventually(t, "it is asked", s.tasks.Busy)
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				defer cancel()
				_ = s.Close(ctx)
			}()
			select {
			case err := <-asked:
				if !errors.Is(err, idem.ErrStoreUnavailable) {
					t.Errorf("got %v", err)
				}
			case <-within(t, patience).Done():
				t.Error("it goes on")
				stop()
			}
			<-closed
		})
	}
}
