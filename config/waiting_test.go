package config

import (
	"strings"
	"testing"
)

// TestSettingsOfWaitingAreIdleOnlyWhereNothingWaits: under fail_fast an event that was overtaken
// waits, and an attached copy does under whatever strategy lets it come so far.
func TestSettingsOfWaitingAreIdleOnlyWhereNothingWaits(t *testing.T) {
	for _, c := range []struct{ route, because string }{
		{"lock: {strategy: wait, ", ""},
		{"lock: {strategy: latest, ", ""},
		{"lock: {", ""},
		{"mode: observe, lock: {", ""},
		{"idempotency: {in_flight: attach}, lock: {", ""},
		{"idempotency: {in_flight: attach}, lock: {strategy: none, ", ""},
		{"idempotency: {enabled: false}, lock: {",
			"idempotency.enabled is false: fail_fast lets an event wait that it has refused before, and knows none again"},
		{"idempotency: {enabled: false}, lock: {strategy: none, ",
			"lock.strategy is none: only duplicates with idempotency.in_flight: attach wait"},
		{"lock: {strategy: none, ", "lock.strategy is none: only duplicates with idempotency.in_flight: attach wait"},
		{"lock: {strategy: skip, ", "lock.strategy is skip: no delivery waits"},
		{"idempotency: {in_flight: attach}, lock: {strategy: skip, ", "lock.strategy is skip: no delivery waits"},
	} {
		l, err := Load(Source{Path: "sidecar.yaml",
			Bytes: []byte("routes: [{name: a, path: /a, " + c.route + "wait_timeout: 7s, max_waiting: 3}}]")})
		if err != nil {
			t.Fatalf("%s: %v", c.route, err)
		}
		for _, setting := range []string{"wait_timeout", "max_waiting"} {
			said := l.Warnings.Error()
			if idle := strings.Contains(said, "lock."+setting+": has no effect"); idle != (c.because != "") ||
				idle && !strings.Contains(said, "has no effect: "+c.because) {
				t.Errorf("%s, %s: %s", c.route, setting, said)
			}
		}
	}
}

// TestAShutdownIsTooShortWhereADeliveryMayWaitLonger: a waiting delivery is one as any other, and a
// shutdown cuts it off.
func TestAShutdownIsTooShortWhereADeliveryMayWaitLonger(t *testing.T) {
	for route, waits := range map[string]bool{
		"lock: {strategy: wait, ":   true,
		"lock: {strategy: latest, ": true,
		"lock: {":                   true, // an event that was overtaken
		"idempotency: {in_flight: attach}, lock: {strategy: none, ": true, // a copy
		"idempotency: {enabled: false}, lock: {":                    false,
		"lock: {strategy: none, ":                                   false,
		"idempotency: {in_flight: attach}, lock: {strategy: skip, ": false,
	} {
		l, err := Load(Source{Path: "sidecar.yaml",
			Bytes: []byte("shutdown_timeout: 38s\nroutes: [{name: a, path: /a, " + route + "wait_timeout: 7s}}]")})
		if err != nil {
			t.Fatalf("%s: %v", route, err)
		}
		said := l.Warnings.Error()
		if got := strings.Contains(said,
			"shutdown_timeout: 38s is shorter than upstream.timeout + etcd.request_timeout + the longest lock.wait_timeout (39s)"); got != waits {
			t.Errorf("%s: %s", route, said)
		}
	}
}
