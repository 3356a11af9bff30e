package config

import (
	"strings"
	"testing"
)

// TestWhatCannotBeParkedIsRefused: each impossible or dangerous combination, with what to do.
func TestWhatCannotBeParkedIsRefused(t *testing.T) {
	const top = "park_store: {single_member: true}\n"
	for _, c := range []struct{ name, text, want string }{
		{"the embedded etcd unsaid", "routes: [{name: a, path: /a, park: true}]", "park_store.single_member"},
		{"skip", top + "routes: [{name: a, path: /a, park: true, lock: {strategy: skip}}]", "drops what meets a lock"},
		{"no reason", top + "routes: [{name: a, path: /a, park: {enabled: true, on: []}}]", "nothing would be parked"},
		{"an answer that is no success", top + "routes: [{name: a, path: /a, park: {enabled: true, answer: 409}}]",
			"choose a 2xx"},
		{"a sender's limit without park",
			"routes: [{name: a, path: /a, preset: gitlab, verify: {scheme: none}, on_sender_limit: park}]",
			"say park: true"},
		{"no attempts", top + "routes: [{name: a, path: /a, park: {enabled: true, attempts: 0}}]",
			"choose from 1 to 1000"},
		{"an age of nothing", top + "routes: [{name: a, path: /a, park: {enabled: true, max_age: 0s}}]",
			"choose from 1s"},
		{"an unknown reason", top + "routes: [{name: a, path: /a, park: {enabled: true, on: [sometimes]}}]",
			"not known"},
		{"no room", top + "limits: {parked: {events: 0}}\nroutes: [{name: a, path: /a, park: true}]",
			"limits.parked.events"},
		{"pauses that do not grow", top + "routes: [{name: a, path: /a, park: {retry: {first: 1m, most: 1s}}}]",
			"choose from 100ms to park.retry.most (1s)"},
		{"no answer after which it is tried again", top + "routes: [{name: a, path: /a, park: {retry: {on: []}}}]",
			"no failed event would be tried again"},
		{"a success after which it is tried again", top + "routes: [{name: a, path: /a, park: {retry: {on: [2xx]}}}]",
			"says that the event went through"},
		{"a delay longer than its age", top + "routes: [{name: a, path: /a, park: {delay: 25h}}]",
			"less than park.max_age (24h)"},
		{"a delay that is not accepted at once", top + "routes: [{name: a, path: /a, park: {delay: 5s, on: [failed]}}]",
			"needs locked in park.on"},
		{"respond", top + "routes: [{name: a, path: /a, park: true, respond: {parked: 200}}]", "not known"},
	} {
		_, err := Load(Source{Path: "sidecar.yaml", Bytes: []byte(c.text)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q in\n%v", c.name, c.want, err)
		}
	}
}

func TestRequestsThatCannotBeKeptAreRefused(t *testing.T) {
	const cluster = "etcd: {endpoints: [a:2379]}\n"
	for _, c := range []struct{ text, refused, warned string }{
		{"routes: [{name: a, path: /a, requests: {keep: 168h}}]", "", ""},
		{cluster + "park_store: {dir: /srv/requests}\nroutes: [{name: a, path: /a, requests: {keep: 24h}}]", "",
			"every replica must see"},
		{cluster + "routes: [{name: a, path: /a, requests: {keep: 24h}}]", "needs park_store.dir or park_store.s3", ""},
		{cluster + "routes: [{name: a, path: /a, requests: {keep: 0s}}]", "", ""},
		{"routes: [{name: a, path: /a, requests: {keep: 1s}}]", "choose from 1m", ""},
		{"routes: [{name: a, path: /a, requests: {keep: 169h}}]", "", "longer than idempotency.retention"},
		{"limits: {kept: {events: 0}}\nroutes: [{name: a, path: /a}]", "limits.kept.events", ""},
		{"limits: {kept: {bytes: 0B}}\nroutes: [{name: a, path: /a}]", "limits.kept.bytes", ""},
	} {
		l, err := Load(Source{Path: "sidecar.yaml", Bytes: []byte(c.text)})
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: want %q, got %v", c.text, c.refused, err)
		}
		if err == nil && c.warned != "" && (l.Warnings == nil || !strings.Contains(l.Warnings.Error(), c.warned)) {
			t.Errorf("%s: want the warning %q, got %v", c.text, c.warned, l.Warnings)
		}
	}
}

// TestAWholeRouteParksWithOneWord.
func TestAWholeRouteParksWithOneWord(t *testing.T) {
	l, err := Load(Source{Path: "sidecar.yaml",
		Bytes: []byte("park_store: {single_member: true}\nroutes: [{name: a, path: /a, park: true}]")})
	if err != nil {
		t.Fatal(err)
	}
	p := l.Config.Routes[0].Park
	if usual := defaultRoute().Park; !p.Enabled || p.After != usual.After || p.Answer != usual.Answer ||
		len(p.On) != len(usual.On) {
		t.Errorf("%+v", p)
	}
}

// TestWhereLongRequestsCannotBeParkedIsSaid.
func TestWhereLongRequestsCannotBeParkedIsSaid(t *testing.T) {
	text := "etcd: {endpoints: [a:2379, b:2379, c:2379]}\nroutes: [{name: a, path: /a, park: true}]"
	l, err := Load(Source{Path: "sidecar.yaml", Bytes: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(l.Warnings.Error(), "not parked") {
		t.Errorf("warnings: %v", l.Warnings)
	}
}

// TestABlockThatIsWrittenIsOn unless it says that it is not.
func TestABlockThatIsWrittenIsOn(t *testing.T) {
	for block, want := range map[string]bool{"park: {attempts: 3}": true, "park: {enabled: false, attempts: 3}": false,
		"park: {}": true, "park:": false, "park: false": false} {
		l, err := Load(Source{Path: "sidecar.yaml",
			Bytes: []byte("park_store: {single_member: true}\nroutes:\n  - name: a\n    path: /a\n    " + block)})
		if err != nil {
			t.Fatalf("%s: %v", block, err)
		}
		if got := l.Config.Routes[0].Park.Enabled; got != want {
			t.Errorf("%s: enabled is %v", block, got)
		}
	}
}
