package config

import (
	"strings"
	"testing"
)

func TestAnOrderNeedsALockAndAPlaceToRead(t *testing.T) {
	for text, want := range map[string]string{
		`order: true`:                                          `routes[0].order.preset: is true, and the route has no preset`,
		`order: {by: "{body.at"}`:                              `routes[0].order.by: column 1: "{" is not closed`,
		`order: {by: "{path.x}"}`:                              `routes[0].order.by: column 2: {path.x}: the route's path captures no {x}`,
		`order: {by: "{body.at}", scope: "{path.x}"}`:          `routes[0].order.scope: column 2: {path.x}`,
		`order: {by: "{body.at}", on_stale: drop}`:             `routes[0].order.on_stale: "drop" is not known; choose from annotate, skip, reject`,
		`order: {by: "{body.at}", unit: m}`:                    `routes[0].order.unit: "m" is not known`,
		`order: {by: "{body.at}"}, lock: {strategy: none}`:     `routes[0].order: needs a lock`,
		`preset: post, order: {preset: true, by: "{body.at}"}`: `routes[0].order.by: stands beside preset: true`,
		`order: {bye: "{body.at}"}`:                            `did you mean "by"?`,
	} {
		got := refusalOf(t, Source{Bytes: []byte("routes: [{name: a, path: /a, " + text + "}]"),
			Senders: someSenders()})
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestALockThatIsFinerThanTheScopeIsWarnedOf(t *testing.T) {
	for text, want := range map[string]string{
		`workflow: "{path.w}/{body.obj}", order: {by: "{body.at}", scope: "{body.obj}"}`:           "",
		`workflow: "{path.w}", order: {by: "{body.at}", scope: "{body.obj}"}`:                      "",
		`workflow: "{path.w}/{body.obj}", order: {by: "{body.at}"}`:                                "",
		`workflow: "{body.account}", order: {by: "{body.at}", scope: "{body.obj}"}`:                "routes[0].order.scope: the workflow has {body.account}, and the scope has not",
		`workflow: "{body.account}", order: {by: "{body.at}", scope: "{body.account}/{body.obj}"}`: "",
		`workflow: "{body.id}", event_id: "{body.id}", order: {by: "{body.at}"}`:                   "routes[0].order.scope: the workflow has {body.id}",
		`order: {on_stale: skip}`:                       "routes[0].order.on_stale: has no effect: order.by is empty",
		`preset: post, order: {preset: true, unit: ms}`: "routes[0].order.unit: has no effect",
	} {
		loaded, err := Load(Source{Bytes: []byte("upstream: http://u\nroutes: [{name: a, path: '/a/{w}', " + text +
			"}]"), Senders: someSenders()})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := ""
		for _, w := range loaded.Warnings {
			if strings.Contains(w.Path, "order") {
				got += w.Path + ": " + w.Text
			}
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
