package etcdlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// A renewal, a grant or a read takes one round trip: with 700 ms for each, no session ever opened
// at an etcd that is further away.
func TestAnEtcdThatIsFarAwayIsUsedIfTheRequestTimeoutAllowsIt(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	wire.Delay(400 * time.Millisecond) // each way
	s := openStore(t, Options{Endpoints: []string{wire.Endpoint}, RequestTimeout: 6 * time.Second})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	if r := mustSettle(t, held); r.Answer == nil || !r.Answer.Whole {
		t.Errorf("%+v", r)
	}
}

func TestACallerWhoseTimeIsUpLearnsWhyEtcdDoesNotAnswer(t *testing.T) {
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{wire.Endpoint}})
	wire.Blackhole(true)
	defer wire.Blackhole(false)
	var err error
	eventually(t, "the reason", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, _, err = s.Claim(ctx, lockFor("w", "one"), 0)
		return errors.Is(err, idem.ErrStoreUnavailable) && strings.Contains(err.Error(), "has not answered within")
	})
	if strings.Contains(err.Error(), "deadline") {
		t.Errorf("got %v", err)
	}
}

// The log says with it why an answer was not recorded.
func TestAnEndThatIsNotWrittenInTimeSaysWhyEtcdDoesNotAnswer(t *testing.T) {
	for what, end := range map[string]func(context.Context, idem.RunningLock) error{
		"settle": func(ctx context.Context, h idem.RunningLock) error {
			_, err := h.Settle(ctx, success("done"))
			return err
		},
		"hold":    func(ctx context.Context, h idem.RunningLock) error { return h.Hold(ctx, time.Minute) },
		"release": func(ctx context.Context, h idem.RunningLock) error { return h.Release(ctx) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			wire := etcdtest.NewWire(t, etcdtest.Start(t).Endpoint)
			s := openStore(t, Options{Endpoints: []string{wire.Endpoint}})
			held := mustClaim(t, s, lockFor("w", "one"), 0)
			wire.Blackhole(true)
			defer wire.Blackhole(false)
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // the first request gets no answer for one
			defer cancel()
			if err := end(ctx, held); err == nil || strings.Contains(err.Error(), "deadline") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAHungMemberCostsNeitherTheSessionNorTheDeliveries(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	hangs, works := etcdtest.NewWire(t, e.Endpoint), etcdtest.NewWire(t, e.Endpoint)
	o := Options{Endpoints: []string{hangs.Endpoint, works.Endpoint}, SessionTTL: 8 * time.Second}
	o.OnSession = func(e SessionEvent) {
		if !e.Opened {
			t.Errorf("session lost: %v", e.Reason)
		}
	}
	s := openStore(t, o)
	before := currentSession(t, s)
	hangs.Blackhole(true)
	defer hangs.Blackhole(false)
	sent := func() time.Time {
		return before.Confirmed().At
	}
	began := time.Now()
	eventually(t, "a renewal over the other member, past the first TTL", func() bool {
		return sent().Sub(began) > o.SessionTTL
	})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	mustSettle(t, held)
	if currentSession(t, s) != before {
		t.Fatal("another session")
	}
}
