package config

import (
	"strings"
	"testing"
)

func TestAMethodThatPassesUnguardedIsTold(t *testing.T) {
	presets := []Known{{Name: "calls", Settings: map[string]string{"match.methods": "GET,POST"}}, {Name: "posts"}}
	for routes, want := range map[string]string{
		"{name: a, path: /a, preset: calls}":                                                     "",
		"{name: a, match: {path: /a, methods: [POST]}, preset: calls}":                           "warning: calls sends GET, too",
		"{name: a, path: /a, preset: posts, mode: observe}":                                      "",
		"{name: a, path: /a, mode: observe}":                                                     "note: has no GET",
		"{name: a, path: /a}":                                                                    "",
		"{name: a, match: {path: /a, methods: [POST]}, mode: observe}":                           "",
		"{name: a, path: /a, mode: observe}, {name: b, match: {path: /a, methods: [GET, HEAD]}}": "",
	} {
		loaded, err := Load(Source{Bytes: []byte("routes: [" + routes + "]"), Senders: Senders{Presets: presets}})
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, w := range loaded.Warnings {
			if w.Path == "routes[0].match.methods" {
				found += "warning: " + w.Text
			}
		}
		for _, n := range loaded.Notes {
			if n.Path == "routes[0].match.methods" {
				found += "note: " + n.Text
			}
		}
		if (found != "") != (want != "") || !strings.HasPrefix(found, want) {
			t.Errorf("%s: %q, want %q", routes, found, want)
		}
	}
}
