package sender

import (
	"strings"
	"testing"
	"time"

	"hooklock/idem"
)

func TestARouteIsWarnedOfWhatItsSignatureDoesNotCover(t *testing.T) {
	secret := [][]byte{[]byte("s")}
	hmac := func(content, timestamp string, tolerance time.Duration) Config {
		return Config{Scheme: "hmac", Secrets: secret, Header: "X-Sig", Content: content, Timestamp: timestamp,
			Tolerance: tolerance}
	}
	for name, tt := range map[string]struct {
		c       Config
		eventID string
		want    string // of the one warning
	}{
		"an ID in a signed body": {hmac("", "", 0), "{body.id}", ""},
		"an ID in a header that is not": {hmac("", "", 0), "{header.X-Id}",
			"event_id: {header.X-Id} is not signed"},
		"an ID in a header that is": {hmac("{header.x-id}{body}", "", 0), "{header.X-Id}", ""},
		"an ID in a part that is":   {hmac("{header.X-Sig[id]}{body}", "", 0), "{header.X-Sig[id]}", ""},
		"another part of that header": {hmac("{header.X-Sig[id]}{body}", "", 0), "{header.X-Sig[no]}",
			"event_id: {header.X-Sig[no]} is not signed"},
		"a member beside the signed ones": {hmac("{body.time}{body.nonce}", "", 0), "{body.id}",
			"event_id: {body.id} is not signed"},
		"a signed member":      {hmac("{body.time}{body.id}", "", 0), "{body.id}", ""},
		"a signed query":       {hmac("{query.id}{body}", "", 0), "{query.id}", ""},
		"the whole target":     {hmac("{target}{body}", "", 0), "{query.id}", ""},
		"a digest of the body": {hmac("{body_sha256}", "", 0), "{body.id}", ""},
		"a time that nobody looks at": {hmac("{header.T}{body}", "header.T", 0), "{body.id}",
			"verify.timestamp: has no effect without a tolerance"},
		"a time": {hmac("{header.T}{body}", "header.T", time.Minute), "{body.id}", ""},
		"a tolerance without a time": {hmac("", "", time.Minute), "{body.id}",
			"verify.tolerance: has no effect: no time is signed"},
		"a token covers nothing, as it says": {Config{Scheme: "token", Secrets: secret, Header: "X"}, "{body.id}", ""},
		"a token over the body":              {Config{Scheme: "jwt", Secrets: secret, BodyHash: "h"}, "{body.id}", ""},
	} {
		u := Usage{Signature: tt.c, Readable: true, EventID: tt.eventID, Idempotency: true}
		if problems := u.Problems(); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		var got []string
		for _, w := range u.Warnings() {
			got = append(got, w.Path+": "+w.Text)
		}
		if text := strings.Join(got, "; "); (text != "") != (tt.want != "") || !strings.Contains(text, tt.want) ||
			len(got) > 1 {
			t.Errorf("%s: %q, want %q", name, text, tt.want)
		}
	}
}

func TestARouteIsWarnedOfVerifySettingsThatNothingReads(t *testing.T) {
	secret, pem := [][]byte{[]byte("s")}, [][]byte{[]byte(strings.Repeat("00", 32))}
	for name, tt := range map[string]struct {
		c    Config
		rule HandshakeRule
		want string // the paths of the warnings
	}{
		"an algorithm that is fixed": {Config{Scheme: "stripe", Secrets: secret, Algorithm: "sha512"},
			HandshakeRule{}, "verify.algorithm"},
		"one that is a choice": {Config{Scheme: "jira", Secrets: secret, Algorithm: "sha512"},
			HandshakeRule{}, ""},
		"one that a handshake reads": {Config{Scheme: "zoom", Secrets: secret, Algorithm: "sha512"},
			zoomRule(), ""},
		"a URL that is not signed": {Config{Scheme: "hmac", Header: "X", Secrets: secret,
			PublicURL: "https://a.example.com"}, HandshakeRule{}, "verify.public_url"},
		"one that is": {Config{Scheme: "hmac", Header: "X", Secrets: secret,
			PublicURL: "https://a.example.com", Content: "{url}{body}"}, HandshakeRule{}, ""},
		"one that another version signs": {Config{Scheme: "hubspot", Secrets: secret, Algorithm: "v1",
			PublicURL: "https://a.example.com"}, HandshakeRule{}, "verify.public_url"},
		"the ID of a webhook": {Config{Scheme: "github", Secrets: secret, WebhookID: "x"},
			HandshakeRule{}, "verify.webhook_id"},
		"a key beside a secret": {Config{Scheme: "slack", Secrets: secret, PublicKeys: pem},
			HandshakeRule{}, "verify"},
		"a secret beside a key": {Config{Scheme: "discord", Secrets: secret, PublicKeys: pem},
			HandshakeRule{}, "verify"},
		"a secret for the answer of the handshake": {Config{Scheme: "discord", Secrets: secret, PublicKeys: pem},
			HandshakeRule{When: []string{"body.x"}, Answer: "{hmac.body.x}"}, ""},
		"a secret and a key, each for a version": {Config{Scheme: "standard-webhooks", Secrets: secret,
			PublicKeys: [][]byte{[]byte("whpk_" + base64Of(make([]byte, 32)))}}, HandshakeRule{}, ""},
	} {
		u := Usage{Signature: tt.c, Handshake: tt.rule, Readable: true}
		if problems := u.Problems(); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		var got []string
		for _, w := range u.Warnings() {
			if strings.Contains(w.Text, "does not read it") {
				got = append(got, w.Path)
			}
		}
		if paths := strings.Join(got, " "); paths != tt.want {
			t.Errorf("%s: %q, want %q", name, paths, tt.want)
		}
	}
}

func TestARouteThatCannotWorkIsRefused(t *testing.T) {
	for path, u := range map[string]Usage{
		"event_id": {EventID: "{preset}", Readable: true, Signature: Config{Scheme: "none"}},
		"verify":   {EventID: "{body.id}", Readable: true, Signature: Config{Scheme: "hmac"}},
		"handshake": {EventID: "{body.id}", Readable: true, Signature: Config{Scheme: "none"},
			Handshake: HandshakeRule{Answer: "x"}},
		"": {EventID: "{body.id}", Signature: Config{Scheme: "hmac"}}, // its secret is elsewhere
	} {
		problems := u.Problems()
		if path == "" && len(problems) > 0 || path != "" && (len(problems) != 1 || problems[0].Path != path) {
			t.Errorf("%q: %v", path, problems)
		}
	}
}

func TestLatestIsWarnedOfForFactsAndNotForStates(t *testing.T) {
	for name, warned := range map[string]bool{"stripe": true, "airtable": false} {
		preset, _ := Lookup(name)
		u := Usage{Preset: preset, Readable: true, EventID: "{body.id}", Signature: Config{Scheme: "none"},
			Strategy: idem.Latest}
		text := ""
		for _, w := range u.Warnings() {
			if w.Path == "lock.strategy" {
				text = w.Text
			}
		}
		if (text != "") != warned || warned && !strings.Contains(text,
			"events of "+name+" are not known to be states") {
			t.Errorf("%s: %q", name, text)
		}
	}
}
