package etcdlock

import (
	"context"
	"errors"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

func TestDoGoesOnWhenOnlyItsSessionIsLost(t *testing.T) {
	e := etcdtest.Start(t)
	o := Options{Endpoints: []string{e.Endpoint}}
	events := sessionsOf(&o)
	s := openStore(t, o)
	awaitOpened(t, events)
	err := s.Do(within(t, patience), "w", func(ctx context.Context) error {
		endSession(t, e, currentSession(t, s))
		awaitOpened(t, events)
		return context.Cause(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnlockSaysThatTheHoldWasCancelled(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := mustAcquire(t, s, "w")
	cancelIn(t, e, s.own.Of(l.Execution()))
	if err := l.Unlock(within(t, patience)); !errors.Is(err, idem.ErrCancelled) {
		t.Fatalf("got %v", err)
	}
}
