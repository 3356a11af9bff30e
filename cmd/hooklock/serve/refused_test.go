package serve

import (
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/proxy"
	"hooklock/proxy/sender"
)

func TestRefusedEventsAreFollowedForAsLongAsTheirSenderRepeatsThem(t *testing.T) {
	policy := idem.Policy{Idempotency: true, Retention: 168 * time.Hour, PayloadRetention: 10 * time.Minute}
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		preset    string
		byPayload bool
		due       time.Duration // after the first refusal, which is the last, too
	}{
		"of an unknown sender":            {"", false, 10 * time.Minute},
		"of an unknown sender, by bytes":  {"", true, 8*time.Minute + 45*time.Second},
		"of a sender with a schedule":     {"stripe", false, 72 * time.Hour},
		"of a sender that never repeats":  {"github", false, time.Minute},
		"of a sender with a long one":     {"adyen", false, 147 * time.Hour},
		"of one whose schedule is unsure": {"notion", false, 10 * time.Minute},
	} {
		r := &proxy.Route{Policy: policy}
		if c.preset != "" {
			p, known := sender.Lookup(c.preset)
			if !known {
				t.Fatalf("no preset %s", c.preset)
			}
			r.Verify.Preset = p
		}
		f := followingOf(r, c.byPayload)
		if due := f.Due(at, at).Sub(at); due != c.due {
			t.Errorf("%s: %s, want %s", name, due, c.due)
		}
	}
}

func TestRefusedEventsOfAnUnsignedRouteAreBounded(t *testing.T) {
	for _, c := range []struct {
		policy idem.Policy
		want   int
	}{{idem.Policy{Verified: true, NewPerSecond: 5}, 0}, {idem.Policy{NewPerSecond: 5}, 5}, {idem.Policy{},
		refusedPerSecond}} {
		if f := followingOf(&proxy.Route{Policy: c.policy}, false); f.NewPerSecond != c.want {
			t.Errorf("%+v: %d", c.policy, f.NewPerSecond)
		}
	}
}

func TestARouteThatRemembersNothingFollowsNothing(t *testing.T) {
	s := &Service{}
	if f := s.followingOf("none", false); f != (idem.Following{}) {
		t.Errorf("before the routes are loaded: %+v", f)
	}
	s.routes.Store(&map[string]*proxy.Route{"off": {}, "on": {Policy: idem.Policy{Idempotency: true}}})
	if s.followingOf("off", false).Patience != 0 || s.followingOf("gone", false).Patience != 0 ||
		s.followingOf("on", false).Patience == 0 {
		t.Error("a route without idempotency, or one that is gone, is followed")
	}
}
