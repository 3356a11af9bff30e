package config

import (
	"strings"
	"testing"
	"time"
)

// twins has a short form, is on by default, and where no event can have a twin what is said of it
// has no effect.
func TestTwinsAreReadAndChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		route string
		want  Twins
		warn  string
	}{
		{"", Twins{TwinsReport, 10 * time.Minute}, ""},
		{"twins: off", Twins{TwinsOff, 10 * time.Minute}, ""},
		{"twins: {window: 30s}", Twins{TwinsReport, 30 * time.Second}, ""},
		{"twins: {mode: off, window: 1h}", Twins{TwinsOff, time.Hour},
			"twins.window: has no effect: twins.mode is off"},
		{"twins: {window: 1h}, idempotency: {enabled: false}", Twins{TwinsReport, time.Hour},
			"twins: has no effect: idempotency.enabled is false"},
		{"twins: same_event", Twins{TwinsSame, 10 * time.Minute}, ""},
		{`twins: {window: 1h}, event_id: "{fingerprint}"`, Twins{TwinsReport, time.Hour}, "equal bodies are one event"},
		{`twins: {window: 1h}, ignore: ["*"], on_missing_event_id: run`, Twins{TwinsReport, time.Hour},
			"nothing of the body counts"},
	} {
		loaded, err := Load(Source{Bytes: []byte("routes: [{name: a, path: /a, " + c.route + "}]")})
		if err != nil {
			t.Errorf("%s: %v", c.route, err)
			continue
		}
		warned := ""
		for _, w := range loaded.Warnings {
			if strings.Contains(w.Path, "twins") {
				warned += w.Path + ": " + w.Text
			}
		}
		if loaded.Config.Routes[0].Twins != c.want || !strings.Contains(warned, c.warn) ||
			(warned == "") != (c.warn == "") {
			t.Errorf("%s: %+v, warned %q", c.route, loaded.Config.Routes[0].Twins, warned)
		}
	}
	for text, want := range map[string]string{
		"twins: same":          `routes[0].twins.mode: "same" is not known; choose from report, same_event, off`,
		"twins: {window: 0s}":  "routes[0].twins.window: 0s is out of bounds",
		"twins: {window: 25h}": "choose up to 24h, or say twins: off",
		"twins: same_event, idempotency: {enabled: false}":                    "idempotency.enabled is false",
		`twins: same_event, event_id: "{fingerprint}"`:                        "equal bodies are one event",
		`twins: same_event, event_id: "{body_sha256}"`:                        "the body is part of the ID",
		`twins: same_event, ignore: ["*"], on_missing_event_id: run`:          "nothing of the body counts",
		`twins: same_event, workflow: "o/{body.id}", event_id: "{body.id}"`:   "two IDs are two workflows",
		`twins: same_event, preset: twilio, event_id: "{preset}"`:             "only the preset can read the event ID",
		"twins: {mode: same_event, window: 2h}, idempotency: {retention: 1h}": "would be forgotten before",
	} {
		got := refusalOf(t, Source{Bytes: []byte("routes: [{name: a, path: /a, " + text + "}]")})
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
}
