package config

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// issuedKey is a text in the form of a secret that a sender issued; it is none.
var issuedKey = "whsec_" + strings.Repeat("0a", 16)

// TestASecretWrittenInPlaceOfItsFileIsNotShown: the first thing that many do is to write the secret
// itself where its file is asked for.
func TestASecretWrittenInPlaceOfItsFileIsNotShown(t *testing.T) {
	random, hex := "Zq7"+strings.Repeat("Rk2v", 6), strings.Repeat("5f2b", 10)
	password := "hunter2"
	for _, c := range []struct{ text, secret, says string }{
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret_file: %s}}]", issuedKey,
			"write the secret into a file"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret_file: %s}}]", random,
			"write the secret into a file"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret_file: %s}}]", hex,
			"write the secret into a file"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret_file: %s}}]", password,
			"write the secret into a file"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret_file: 7234567890}}]", "7234567890",
			"needs text in quotes"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret_files: %s}}]", password,
			"needs a list"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret_files: [%s]}}]", password,
			"write the secret into a file"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret_env: %s}}]", issuedKey,
			"the name of a variable"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret_env: %s}}]", password,
			"the name of a variable"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret_env: STRIPE_SECRET=%s}}]", password,
			"the name alone: STRIPE_SECRET"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret: %s}}]", password,
			"a secret does not stand in this file"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secrets: [%s]}}]", password,
			"a secret does not stand in this file"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, %s: x}}]", issuedKey, "unknown key"},
		{"routes: [{name: a, path: /a, verify: {scheme: %s}}]", issuedKey, "is not known"},
		{"routes: [{name: a, path: /a, preset: %s}]", issuedKey, "is not known"},
		{"routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret_file: *%s}}]", password,
			"an alias (*)"},
		{"routes: [{name: a, path: /a, handshake: {when: [query.x], token: query.y, token_file: %s, answer: x}}]",
			password, "write the secret into a file"},
		{"etcd: {endpoints: ['http://a:1'], username: me, password_file: %s}", password,
			"write the secret into a file"},
		{"etcd: {endpoints: ['http://a:1'], username: me, password: %s}", password,
			"a secret does not stand in this file"},
		{"admin: {tokens: [{name: ops, token: %s}]}", password, "a secret does not stand in this file"},
		{"listen: {address: ':1', tls: {cert_file: /proc/self/exe, key_file: \"%s\"}}",
			`-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----\n`, "write the secret into a file"},
		{"park_store: {s3: {endpoint: 'http://a', bucket: abc, access_key_file: %s, secret_key_file: /nonexistent/x}}",
			"AKIA" + strings.Repeat("Z", 16), "write the secret into a file"},
	} {
		text := c.text
		if strings.Contains(text, "%s") {
			text = fmt.Sprintf(text, c.secret)
		}
		for _, need := range []bool{false, true} {
			loaded, err := Load(Source{Path: "sidecar.yaml", Bytes: []byte(text), NeedFiles: need,
				Senders: Senders{Schemes: []Known{{Name: "token"}}}})
			var said string
			if err != nil {
				said = err.Error()
			} else {
				var out bytes.Buffer
				if err := loaded.Show(&out, true); err != nil {
					t.Fatal(err)
				}
				said = loaded.Warnings.Error() + out.String()
				for i := range loaded.Config.Routes {
					said += fmt.Sprint(loaded.RouteSettings(i))
				}
			}
			if strings.Contains(said, c.secret) || !strings.Contains(said, c.says) {
				t.Errorf("%s\n%s", text, said)
			}
		}
	}
}

func TestTheNameOfAFileOrVariableThatIsMissingIsShown(t *testing.T) {
	for _, name := range []string{
		"/run/secrets/stripe", "./stripe.secret", "stripe-secret", "secrets/v2/stripe", "/nonexistent/5/token",
		"stripe_2.txt", "../a", "C:/secrets/x.pem",
		"/etc/hooklock/stripe.secret", "/var/run/secrets/kubernetes.io/serviceaccount/token", "k1.key",
	} {
		loaded := load(t, "routes: [{name: a, path: /a, verify: {scheme: none, secret_file: "+name+"}}]")
		if got := loaded.Warnings.Error(); !strings.Contains(got, "open "+name+": no such file") {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, name := range []string{"STRIPE_SECRET", "STRIPE_SECRET_V2", "stripe_secret", "T", "SECRET1"} {
		loaded := load(t, "routes: [{name: a, path: /a, verify: {scheme: none, secret_env: "+name+"}}]")
		if got := loaded.Warnings.Error(); !strings.Contains(got, "there is no environment variable "+name) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestWhatIsNoSigningSecretIsToldSo: with it every delivery would be 401, and nothing would say
// why.
func TestWhatIsNoSigningSecretIsToldSo(t *testing.T) {
	for text, want := range map[string]string{
		"STRIPE_SECRET=" + issuedKey:        "has the name of a variable before it, as in NAME=value",
		"export STRIPE_SECRET=" + issuedKey: "has the name of a variable before it",
		"sk_" + "live_" + strings.Repeat("a1",
			9): "the secret begins with sk_live_, as a key of the sender's API does; Stripe's signing secret of an endpoint begins with whsec_",
		"rk_" + "test_" + strings.Repeat("a1", 9): "begins with rk_test_",
		"xoxb-" + strings.Repeat("1", 12):         "Slack's is the signing secret of the app",
		issuedKey:                                 "",
		"AAECAwQFBgcICQ==":                        "",
	} {
		loaded, err := Load(Source{
			Bytes: []byte("routes: [{name: a, path: /a, verify: {scheme: token, header: X, secret_env: S}}]"),
			Env:   []string{"S=" + text}, Senders: Senders{Schemes: []Known{{Name: "token"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := loaded.Warnings.Error()
		if strings.Contains(got, text) || !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: %s", text, got)
		}
	}
}
