package naming

import (
	"strings"
	"testing"
)

// issuedKey is a text in the form of a secret that a sender issued; it is none.
var issuedKey = "whsec_" + strings.Repeat("0a", 16)

func TestSecretsAreHiddenInMessages(t *testing.T) {
	for text, want := range map[string]string{
		"open " + issuedKey + ": no such file":                "open whsec_***: no such file",
		`"` + "sk_" + "live_" + strings.Repeat("a1", 9) + `"`: `"sk_live_***"`,
		"xoxb-" + strings.Repeat("1", 12) + "-abc":            "xoxb-***",
		"http://user:pw@host:1/x and more":                    "http://…@host:1/x and more",
		"a@b.example: https://host/x@y":                       "a@b.example: https://host/x@y",
		"eyJ" + "hbGciOiJI.eyJ" + "zdWIiOiIx.c2ln":            "eyJ***",
		"the whsec_… of the endpoint":                         "the whsec_… of the endpoint",

		"basic authentication, bearer token": "basic authentication, bearer token",

		"Authorization: Bearer 0a1b2c3d4e5f": "Authorization: Bearer ***",

		"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----: no such file": "-----BEGIN PRIVATE KEY-----***: no such file",

		"routes[0].name: \"a b\": a name is made of a-z": "routes[0].name: \"a b\": a name is made of a-z",
	} {
		if got := HideSecrets(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
