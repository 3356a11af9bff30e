package config

import (
	"strings"
	"testing"
)

// TestLatestIsRefusedWhereItCannotDoWhatItSays, and warns where it most likely does not
// do what was meant.
func TestLatestIsRefusedWhereItCannotDoWhatItSays(t *testing.T) {
	for _, c := range []struct{ name, route, want string }{
		{"a limit", "lock: {strategy: latest, limit: 2}", "the newest waits"},
		{"one seat", "lock: {strategy: latest, max_waiting: 1}", "choose 2 or more"},
		{"a quiet that nobody outlives", "lock: {strategy: latest, quiet: 5s}", "nothing would run"},
		{"a quiet above its bound", "lock: {strategy: latest, quiet: 2h, wait_timeout: 3h, max_wait: 4h}",
			"choose from 0s to 1h"},
		{"an end before the quiet", "lock: {strategy: latest, quiet: 2s, max_wait: 1s}", "choose from lock.quiet (2s)"},
	} {
		_, err := Load(Source{Path: "sidecar.yaml", Bytes: []byte("routes: [{name: a, path: /a, " + c.route + "}]")})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q in\n%v", c.name, c.want, err)
		}
	}
	for _, c := range []struct{ name, route, want string }{
		{"without latest", "lock: {quiet: 5s}", "lock.strategy is not latest"},
		{"max_wait without quiet", "lock: {strategy: latest, max_wait: 5s}", "lock.quiet is 0s"},
		{"scopes inside of a workflow", `lock: {strategy: latest}, order: {by: "{body.at}", scope: "{body.id}"}`,
			"as many wait as there are scopes"},
		{"all well",
			`workflow: "w/{body.id}", lock: {strategy: latest, quiet: 2s}, order: {by: "{body.at}", scope: "{body.id}"}`, ""},
	} {
		l, err := Load(Source{Path: "sidecar.yaml", Bytes: []byte("routes: [{name: a, path: /a, " + c.route + "}]")})
		if err != nil {
			t.Fatal(err)
		}
		var about []string
		for _, w := range l.Warnings {
			if strings.Contains(w.Path, "lock.") || strings.Contains(w.Path, "order.") {
				about = append(about, w.Text)
			}
		}
		if text := strings.Join(about, "; "); (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
}
