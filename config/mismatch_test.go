package config

import (
	"strings"
	"testing"
)

func TestAReplayByTheIDAloneNeedsASignatureOrManyWords(t *testing.T) {
	presets := []Known{{Name: "signing",
		Settings: map[string]string{"verify.scheme": "token", "idempotency.on_mismatch": "replay"}},
		{Name: "unsigning", Settings: map[string]string{"verify.scheme": "none",
			"idempotency.on_mismatch": "replay_unsigned"}}}
	for route, refused := range map[string]bool{
		"idempotency: {on_mismatch: replay}":                                                    true,
		"idempotency: {on_mismatch: replay_unsigned}":                                           false,
		"idempotency: {on_mismatch: replay, enabled: false}":                                    false,
		"idempotency: {on_mismatch: replay}, verify: {scheme: token, header: X, secret_env: S}": false,
		"preset: signing, verify: {header: X, secret_env: S}":                                   false,
		"preset: signing, verify: {scheme: none}":                                               true,
		"preset: signing, verify: {scheme: none}, idempotency: {on_mismatch: reject}":           false,
		"preset: signing, verify: {scheme: none}, idempotency: {on_mismatch: replay_unsigned}":  false,
		"preset: unsigning": false,
		"preset: unsigning, idempotency: {on_mismatch: replay}":                true,
		"preset: unsigning, verify: {scheme: token, header: X, secret_env: S}": false,
	} {
		_, err := Load(Source{Bytes: []byte("routes: [{name: a, path: /a, " + route + "}]"), Env: []string{"S=s"},
			Senders: Senders{Presets: presets, Schemes: []Known{{Name: "token"}}}})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(),
			"routes[0].idempotency.on_mismatch: replay, without a signature") {
			t.Errorf("%s: %v", route, err)
		}
	}
}

func TestADefaultThatRefusesCountedAttemptsIsTold(t *testing.T) {
	presets := []Known{{Name: "post", Settings: map[string]string{"event_id": "{body.id}"}}}
	for route, want := range map[string]string{
		`event_id: "{body.id}"`:                                                    "then name it in ignore, or say execute, or replay_unsigned",
		`event_id: "{header.Idempotency-Key ?? body.event.id}"`:                    "then name it in ignore, or say execute, or replay_unsigned",
		`event_id: "{xml.a.id}"`:                                                   "then name it in ignore, or say execute, or replay_unsigned",
		`event_id: "{body.id}", verify: {scheme: token, header: X, secret_env: S}`: "then name it in ignore, or say replay. ",
		`event_id: "{header.X}"`:                                                   "",
		`event_id: "{body.id}", idempotency: {on_mismatch: reject}`:                "",
		`event_id: "{body.id}", idempotency: {on_mismatch: execute}`:               "",
		`event_id: "{body.id}", idempotency: {enabled: false}`:                     "",
		`event_id: "{body.id}", ignore: [body.sent_at]`:                            "",
		`preset: post`:              "",
		`event_id: "{body_sha256}"`: "",
		`event_id: "{body.id}", verify: {scheme: token, header: X, secret_env: S}, mode: observe`: "then name it in ignore, or say replay. ",
	} {
		loaded, err := Load(Source{Bytes: []byte("routes: [{name: a, path: /a, " + route + "}]"), Env: []string{"S=s"},
			Senders: Senders{Presets: presets, Schemes: []Known{{Name: "token"}}}})
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, n := range loaded.Notes {
			if n.Path == "routes[0].idempotency.on_mismatch" {
				found = n.Text
			}
		}
		if (found != "") != (want != "") || !strings.Contains(found, want) {
			t.Errorf("%s: %q", route, found)
		}
	}
}

func TestAVariableOfThePathThatNoEventIsNamedByIsTold(t *testing.T) {
	presets := []Known{{Name: "own", Settings: map[string]string{"event_id": "{preset}"}}}
	for route, want := range map[string]string{
		`path: "/a/{x}"`:                                    "{x}",
		`path: "/a/{x}", event_id: "{body.id}"`:             `workflow: "a/{path.x}"`,
		`path: "/a/{x...}", event_id: "{body.id}"`:          "{x}",
		`path: "/a/{x}/{y}", workflow: "{path.x}"`:          "{y}",
		`path: "/a/{x}", preset: own`:                       "{x}",
		`path: "/a/{x}", workflow: "w/{path.x}"`:            "",
		`path: "/a/{x}", event_id: "{path.x}/{body.id}"`:    "",
		`path: "/a/{x}", event_id: "{fingerprint}"`:         "",
		`path: "/a/{x}", idempotency: {enabled: false}`:     "",
		`path: "/a", event_id: "{body.id}"`:                 "",
		`path: "/a/{x}", workflow: "{path.x ?? body.a}"`:    "",
		`path: "/a/{x}", preset: own, workflow: "{path.x}"`: "",
	} {
		loaded, err := Load(Source{Bytes: []byte("routes: [{name: a, " + route + "}]"),
			Senders: Senders{Presets: presets}})
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, w := range loaded.Warnings {
			if w.Path == "routes[0].match.path" {
				found += w.Text
			}
		}
		if (found != "") != (want != "") || !strings.Contains(found, want) {
			t.Errorf("%s: %q", route, found)
		}
	}
}

func TestABatchThatIsNamedByOneOfItsEventsIsTold(t *testing.T) {
	const signed = `, verify: {scheme: token, header: X, secret_env: S}`
	for route, warned := range map[string]bool{
		`event_id: "{body.value[0].id}", idempotency: {on_mismatch: replay}` + signed:     true,
		`event_id: "{body[0].id}", idempotency: {on_mismatch: replay_unsigned}`:           true,
		`event_id: "{xml.a.b[0].id}", idempotency: {on_mismatch: replay_unsigned}`:        true,
		`event_id: "{form.payload.a[1].id}", idempotency: {on_mismatch: replay_unsigned}`: true,
		`event_id: "{body.value[0].id}", idempotency: {on_mismatch: execute}`:             false,
		// reject says so
		`event_id: "{body.value[0].id}"`:                                                        false,
		`event_id: "{body.id}", idempotency: {on_mismatch: replay_unsigned}`:                    false,
		`event_id: "{header.X-Sig[v1]}", idempotency: {on_mismatch: replay_unsigned}`:           false,
		`event_id: "{body[0].id ?? body_sha256}", idempotency: {on_mismatch: replay_unsigned}`:  true,
		`event_id: "{body[0].id}/{body_sha256}", idempotency: {on_mismatch: replay_unsigned}`:   false,
		`event_id: "{body[0].id}", idempotency: {on_mismatch: replay_unsigned, enabled: false}`: false,
	} {
		loaded, err := Load(Source{Bytes: []byte("routes: [{name: a, path: /a, " + route + "}]"), Env: []string{"S=s"},
			Senders: Senders{Schemes: []Known{{Name: "token"}}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(loaded.Warnings.Error(), "takes them along"); got != warned {
			t.Errorf("%s: %q", route, loaded.Warnings)
		}
	}
}

func TestMembersThatAreLeftOutAreChecked(t *testing.T) {
	for route, want := range map[string]string{
		`ignore: [body.a, "body.b[*].at", form.t, query.t, xml.a.t], event_id: "{body.id}"`: "",
		`ignore: [sent_at]`:                       `routes[0].ignore: "sent_at": column 1: only members of the body or the query`,
		`ignore: [header.Date]`:                   "Headers never count",
		`ignore: [body.a, body.a]`:                "routes[0].ignore[1]: body.a is given twice",
		`ignore: ["*"]`:                           "without an event ID would all be one event",
		`ignore: ["*"], on_missing_event_id: run`: "",
		`ignore: ["*"], on_missing_event_id: run, event_id: "{body.id ?? fingerprint}"`: "all deliveries would be one event",
		`ignore: ["*"], idempotency: {enabled: false}`:                                  "",
	} {
		_, err := Load(Source{Bytes: []byte("routes: [{name: a, path: /a, " + route + "}]")})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", route, err)
		}
	}
}
