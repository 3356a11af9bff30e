package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/idem/guard"
)

// told says that a sender was told of an aborted execution, and what is known of the effect.
func told(t *testing.T, got answer, code, decision, executed string) {
	t.Helper()
	var problem struct{ Code, Executed string }
	if err := json.Unmarshal([]byte(got.body), &problem); err != nil || got.status != 503 || problem.Code != code ||
		problem.Executed != executed || got.decision != decision {
		t.Errorf("want %s %s, got %+v, %v", code, executed, got, err)
	}
}

// lastMoment is a Ledger that hands out one lock, whose execution is cancelled or forced before its
// first byte.
type lastMoment struct {
	idem.Ledger
	lock    idem.Lock
	begin   error
	release error
}

func (l *lastMoment) Claim(_ context.Context, lock idem.Lock, _ int64) (idem.RunningLock, *idem.Obstacle, error) {
	l.lock = lock
	return &lastHeld{l}, nil, nil
}

type lastHeld struct{ *lastMoment }

func (h *lastHeld) Lock() *idem.Lock                          { return &h.lock }
func (h *lastHeld) Count(idem.Counted)                        {}
func (h *lastHeld) Begin() error                              { return h.begin }
func (h *lastHeld) OnStop(func(error))                        {}
func (h *lastHeld) Hold(context.Context, time.Duration) error { return errors.ErrUnsupported }
func (h *lastHeld) Release(context.Context) error             { return h.release }
func (h *lastHeld) Park(context.Context, idem.Parked) error {
	return errors.ErrUnsupported
}
func (h *lastHeld) BeginTry(context.Context, idem.Parked, string) error { return errors.ErrUnsupported }
func (h *lastHeld) RecordTry(context.Context, idem.Parked) error        { return errors.ErrUnsupported }
func (h *lastHeld) DeadLetter(context.Context, idem.End) (*idem.Record, error) {
	return nil, errors.ErrUnsupported
}
func (h *lastHeld) Settle(context.Context, idem.End) (*idem.Record, error) {
	return nil, errors.ErrUnsupported
}

func TestACallThatIsStoppedBeforeItsFirstByteDoesNotReachTheService(t *testing.T) {
	for name, c := range map[string]struct {
		begin, release error
		code, decision string
	}{
		"cancelled":                   {idem.ErrCancelled, idem.ErrCancelled, "execution_aborted", "aborted"},
		"released by force":           {idem.ErrLockLost, idem.ErrLockLost, "lock_lost", "lock_lost"},
		"lost, and cancelled by then": {idem.ErrLockLost, idem.ErrCancelled, "execution_aborted", "aborted"},
		"lost with its session":       {idem.ErrLockLost, nil, "store_unavailable", "store_unavailable"},
		"lost, and nobody can tell it": {idem.ErrLockLost, idem.ErrStoreUnavailable, "store_unavailable",
			"store_unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			etcd, up := etcdtest.Start(t), newService(t)
			r := newReplica(t, etcd, up, func(*idem.Policy) {})
			r.handler.options.Gate = guard.New(guard.Options{Ledger: &lastMoment{begin: c.begin, release: c.release},
				Base: t.Context(), Cache: guard.NewCache(0)})
			told(t, await(t, r.send(t.Context(), "w", "1")), c.code, c.decision, "no")
			ran(t, up, 0)
			if cancelled := c.decision == "aborted"; r.events.heard(EventCancelled) != cancelled {
				t.Errorf("events %v", r.events.names)
			}
		})
	}
}

// fasthttp waits once: asked again, it has nothing more to wait for, whatever still runs.
func TestEachShutdownWaitsForTheDeliveriesThatAreStillThere(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(*idem.Policy) {})
	got := r.send(t.Context(), "w", "1")
	await(t, up.begun)
	late, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range 3 {
		if err := r.server.Shutdown(late); !errors.Is(err, context.Canceled) {
			t.Fatalf("shutdown %d: %v, and a delivery runs", n, err)
		}
	}
	up.reply <- "200"
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	r.events.mu.Lock()
	reports := len(r.events.reports)
	r.events.mu.Unlock()
	if reports != 1 {
		t.Errorf("%d deliveries have ended", reports)
	}
	if a := await(t, got); a.status != 200 {
		t.Errorf("%+v", a)
	}
}
