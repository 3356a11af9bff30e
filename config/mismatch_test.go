package config

import (
	"strings"
	"testing"
)

func TestAReplayByTheIDAloneNeedsASignatureOrManyWords(t *testing.T) {
	presets := []Known{{Name: "signing", Values: map[string]string{"verify.scheme": "token", "idempotency.on_mismatch": "replay"}},
		{Name: "unsigning", Values: map[string]string{"verify.scheme": "none", "idempotency.on_mismatch": "replay_unsigned"}}}
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
		_, err := Load(Source{Bytes: []byte("routes: [{name: a, path: /a, " + route + "}]"), Env: []string{"S=s"}, Senders: Senders{Presets: presets, Schemes: []Known{{Name: "token"}}}})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "routes[0].idempotency.on_mismatch: replay, without a signature") {
			t.Errorf("%s: %v", route, err)
		}
	}
}
