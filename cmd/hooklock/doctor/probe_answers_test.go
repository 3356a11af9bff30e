package doctor

import (
	"testing"
	"time"

	"hooklock/config"
)

func TestTheProbeWaitsAsLongAsAnyDeliveryMay(t *testing.T) {
	for route, want := range map[string]time.Duration{
		"lock: {strategy: wait, wait_timeout: 7s}":                                   40 * time.Second,
		"lock: {wait_timeout: 7s}":                                                   40 * time.Second, // an event that was overtaken
		"idempotency: {in_flight: attach}, lock: {strategy: none, wait_timeout: 7s}": 40 * time.Second, // a copy
		"lock: {strategy: skip}":                                                     33 * time.Second,
	} {
		l, err := config.Load(config.Source{Path: "sidecar.yaml", Bytes: []byte("routes: [{name: a, path: /a, " + route + "}]")})
		if err != nil {
			t.Fatalf("%s: %v", route, err)
		}
		if got := (&probe{config: l.Config}).longest(); got != want {
			t.Errorf("%s: %v, want %v", route, got, want)
		}
	}
}
