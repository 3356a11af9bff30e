package sender

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"hooklock/idem/naming"
)

// likePreset lists configurations of the scheme hmac that are equivalent to presets.
func likePreset() map[string]Config {
	return map[string]Config{
		"stripe": {From: []string{"header.Stripe-Signature[v1]"},
			Content: "{header.Stripe-Signature[t]}.{body}", Timestamp: "header.Stripe-Signature[t]"},
		"slack": {Header: slackHeader, Prefix: "v0=",
			Content: "v0:{header.X-Slack-Request-Timestamp}:{body}", Timestamp: "header.X-Slack-Request-Timestamp"},
		"zoom": {From: []string{"header.x-zm-signature[v0]"},
			Content: "v0:{header.x-zm-request-timestamp}:{body}", Timestamp: "header.x-zm-request-timestamp"},
		"github":  {Header: "X-Hub-Signature-256", Prefix: "sha256="},
		"shopify": {Header: "X-Shopify-Hmac-Sha256", Encoding: "base64"},
		"linear":  {Header: "Linear-Signature"},
		"square": {Header: squareHeader, Encoding: "base64", Content: "{url}{body}",
			PublicURL: "https://hooks.example.com"},
		"hubspot": {Header: hubspotV3, Encoding: "base64",
			Content: "{method}{url}{body}{header.X-HubSpot-Request-Timestamp}", PublicURL: "https://hooks.example.com",
			Timestamp: "header.X-HubSpot-Request-Timestamp"},
		"mailgun": {From: []string{"body.signature.signature"},
			Content: "{body.signature.timestamp}{body.signature.token}", Timestamp: "body.signature.timestamp"},
		"standard-webhooks": {From: []string{"header.webhook-signature[]"}, Encoding: "base64",
			SecretEncoding: "base64", Content: "{header.webhook-id}.{header.webhook-timestamp}.{body}",
			Timestamp: "header.webhook-timestamp"},
	}
}

func TestTheGenericSchemeCanExpressPresets(t *testing.T) {
	for preset, c := range likePreset() {
		t.Run(preset, func(t *testing.T) {
			known, secret := credentials(t, preset)
			d := mustSample(t, preset, secret)
			c.Scheme, c.Tolerance = "hmac", time.Minute
			c.Secrets = [][]byte{[]byte("another"), bytes.TrimPrefix(secret, []byte(signingPrefix))}
			if c.SecretEncoding != "" {
				c.Secrets = c.Secrets[1:]
			}
			v := mustNew(t, c)
			if err := v.Verify(d, testNow()); err != nil {
				t.Fatal(err)
			}
			if c.Timestamp != "" {
				if got := reasonOf(t, v.Verify(d, testNow().Add(2*time.Minute))); got != TooOld {
					t.Errorf("two minutes later it is %s", got)
				}
			}
			if got, want := Covers(c).Body, Covers(known).Body; got != want {
				t.Errorf("covers the body: %v, the preset says %v", got, want)
			}
			if !Covers(c).Body {
				return
			}
			changed := *d
			changed.Body = append(bytes.Clone(d.Body), ' ')
			if got := reasonOf(t, v.Verify(&changed, testNow())); got != Mismatch {
				t.Errorf("with another body it is %s", got)
			}
		})
	}
}

func signedHex(secret string, parts ...string) string {
	return string(newMAC(sha256.New, []byte(secret)).signParts(inHex, []byte(strings.Join(parts, ""))))
}

func TestASignatureIsFoundInEachOfItsPlaces(t *testing.T) {
	good, bad := signedHex("s", "{}"), signedHex("other", "{}")
	c := Config{Scheme: "hmac", Secrets: [][]byte{[]byte("s")}}
	for _, tt := range []struct {
		name   string
		from   []string
		prefix string
		d      Delivery
		want   Reason
		part   string
	}{
		{"the newer of two headers", []string{"header.X-New", "header.X-Old"}, "",
			Delivery{Fields: []naming.Field{field("X-New", good)}}, "", ""},
		{"the older of two headers", []string{"header.X-New", "header.X-Old"}, "",
			Delivery{Fields: []naming.Field{field("X-Old", good)}}, "", ""},
		{"the second of two headers is right", []string{"header.X-New", "header.X-Old"}, "",
			Delivery{Fields: []naming.Field{field("X-New", bad), field("X-Old", good)}}, "", ""},
		{"both are wrong", []string{"header.X-New", "header.X-Old"}, "",
			Delivery{Fields: []naming.Field{field("X-New", bad), field("X-Old", bad)}}, Mismatch, "X-New or X-Old"},
		{"none is there", []string{"header.X-New", "header.X-Old"}, "", Delivery{}, Missing, "X-New or X-Old"},
		{"one has no prefix", []string{"header.X-New", "header.X-Old"}, "v1=",
			Delivery{Fields: []naming.Field{field("X-New", bad), field("X-Old", "v1="+good)}}, "", ""},
		{"a list of parts", []string{"header.X[v1]"}, "",
			Delivery{Fields: []naming.Field{field("X", "v0="+bad+", v1="+bad+",v1="+good)}}, "", ""},
		{"a list without the part", []string{"header.X[v1]"}, "",
			Delivery{Fields: []naming.Field{field("X", "v0="+good)}}, Missing, "X[v1]"},
		{"a list of prefixed items", []string{"header.X[]"}, "sha256=",
			Delivery{Fields: []naming.Field{field("X", "sha256="+bad+",sha256="+good)}}, "", ""},
		{"upper case in a list", []string{"header.X[v1]"}, "",
			Delivery{Fields: []naming.Field{field("X", "v1="+bad+";v1="+strings.ToUpper(good))}}, "", ""},
		{"the query", []string{"query.sig"}, "", Delivery{Target: []byte("/h?a=1&sig=" + good)}, "", ""},
		{"the query, twice", []string{"query.sig"}, "", Delivery{Target: []byte("/h?sig=" + good + "&sig=" + good)},
			Malformed, "query.sig"},
		{"too many to try", []string{"header.X[v1]"}, "",
			Delivery{Fields: []naming.Field{field("X", strings.Repeat("v1="+bad+",", 16)+"v1="+good)}}, Mismatch,
			"X[v1]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := c
			c.From, c.Prefix = tt.from, tt.prefix
			tt.d.Body = []byte("{}")
			err := mustNew(t, c).Verify(&tt.d, testNow())
			if tt.want == "" && err != nil {
				t.Fatal(err)
			}
			if tt.want != "" && (reasonOf(t, err) != tt.want || !strings.Contains(err.Error(), ": "+tt.part+": ")) {
				t.Fatalf("%v; want %s of %s", err, tt.want, tt.part)
			}
		})
	}
}

func TestSecretsAreDecodedAsTheConfigurationSays(t *testing.T) {
	key := []byte{0xff, 0xfe, 0x00, 0x01, 0x20}
	d := &Delivery{Body: []byte("{}")}
	d.Fields = []naming.Field{field("X", string(newMAC(sha256.New, key).signParts(inHex, d.Body)))}
	for encoding, texts := range map[string][]string{
		"hex": {hex.EncodeToString(key), strings.ToUpper(hex.EncodeToString(key))},
		"base64": {base64.StdEncoding.EncodeToString(key), base64.RawStdEncoding.EncodeToString(key),
			base64.URLEncoding.EncodeToString(key)},
		"text": {string(key)},
	} {
		for _, text := range texts {
			c := Config{Scheme: "hmac", Secrets: [][]byte{[]byte(text)}, SecretEncoding: encoding, Header: "X"}
			if err := mustNew(t, c).Verify(d, testNow()); err != nil {
				t.Errorf("%s %q: %v", encoding, text, err)
			}
		}
	}
	for _, bad := range []struct{ encoding, secret string }{{"hex", "xyz"}, {"base64", "%"}, {"base64", "="},
		{"base32", "AA"}} {
		if _, err := New(Config{Scheme: "hmac", Secrets: [][]byte{[]byte(bad.secret)}, SecretEncoding: bad.encoding,
			Header: "X"}); err == nil || strings.Contains(err.Error(), "xyz") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestASignedTimeIsReadInEachSpelling(t *testing.T) {
	at := testNow()
	for _, spelled := range []string{fmt.Sprint(at.Unix()), fmt.Sprint(at.UnixMilli()), at.Format(time.RFC3339),
		at.Format(time.RFC3339Nano), at.In(time.FixedZone("", 3600)).Format(time.RFC3339)} {
		d := &Delivery{Body: []byte("{}"),
			Fields: []naming.Field{field("X-Time", spelled), field("X", signedHex("s", spelled, "{}"))}}
		v := mustNew(t, Config{Scheme: "hmac", Secrets: [][]byte{[]byte("s")}, Header: "X",
			Content: "{header.X-Time}{body}", Timestamp: "header.X-Time", Tolerance: time.Minute})
		if err := v.Verify(d, at.Add(time.Minute)); err != nil {
			t.Errorf("%s: %v", spelled, err)
		}
		if got := reasonOf(t, v.Verify(d, at.Add(62*time.Second))); got != TooOld {
			t.Errorf("%s: %s", spelled, got)
		}
		if got := reasonOf(t, v.Verify(d, at.Add(-62*time.Second))); got != TooNew {
			t.Errorf("%s: %s", spelled, got)
		}
	}
	d := &Delivery{Body: []byte("{}"),
		Fields: []naming.Field{field("X-Time", "soon"), field("X", signedHex("s", "soon", "{}"))}}
	v := mustNew(t, Config{Scheme: "hmac", Secrets: [][]byte{[]byte("s")}, Header: "X",
		Content: "{header.X-Time}{body}", Timestamp: "header.X-Time", Tolerance: time.Minute})
	if got := reasonOf(t, v.Verify(d, at)); got != Malformed {
		t.Errorf("soon: %s", got)
	}
}

func TestATokenIsFoundInTheBody(t *testing.T) {
	v := mustNew(t, Config{Scheme: "token", Secrets: [][]byte{[]byte("pass"), []byte("older")},
		From: []string{"body.passcode"}})
	for body, want := range map[string]Reason{
		`{"passcode":"pass"}`: "", `{"passcode":"older"}`: "", `{"passcode":"wrong"}`: Mismatch, `{}`: Missing,
		`{"passcode":"pass","passcode":"pass"}`: Malformed, `{"passcode":""}`: Missing,
	} {
		err := v.Verify(&Delivery{Body: []byte(body)}, testNow())
		if want == "" && err != nil || want != "" && reasonOf(t, err) != want {
			t.Errorf("%s: %v", body, err)
		}
	}
	if err := CheckHead(v, &Delivery{}); err != nil {
		t.Errorf("before the body was read: %v", err)
	}
}

// TestTheHeadIsNotJudgedByWhatIsInTheBody checks that sources in the body are read only once the
// body is there.
func TestTheHeadIsNotJudgedByWhatIsInTheBody(t *testing.T) {
	for content, of := range map[string]func(body string) string{
		"{header.X-Time}.{body_sha256}": func(body string) string {
			sum := sha256.Sum256([]byte(body))
			return "17." + hex.EncodeToString(sum[:])
		},
		"{body[0]}{body}":    func(body string) string { return "a" + body },
		"{body[1].x}":        func(string) string { return "b" },
		"{method}{query.id}": func(string) string { return "POST7" },
	} {
		v := mustNew(t, Config{Scheme: "hmac", Header: "X-Sig", Content: content, Secrets: [][]byte{[]byte("s")}})
		body := `["a",{"x":"b"}]`
		d := Delivery{Method: []byte("POST"), Target: []byte("/?id=7"),
			Fields: []naming.Field{field("X-Time", "17"), field("X-Sig", signedHex("s", of(body)))}}
		if err := CheckHead(v, &d); err != nil {
			t.Errorf("%s, before the body was read: %v", content, err)
		}
		if d.Body = []byte(body); v.Verify(&d, testNow()) != nil {
			t.Errorf("%s: %v", content, v.Verify(&d, testNow()))
		}
	}
	v := mustNew(t, Config{Scheme: "hmac", From: []string{"body[0]"}, Content: "{target}",
		Secrets: [][]byte{[]byte("s")}})
	if err := CheckHead(v, &Delivery{Target: []byte("/")}); err != nil {
		t.Errorf("a signature in the body, before that was read: %v", err)
	}
}

func TestABadGenericConfigurationIsRefused(t *testing.T) {
	secret := [][]byte{[]byte("s")}
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{Scheme: "hmac", Secrets: secret, Header: "X", From: []string{"header.Y"}}, "either header or from"},
		{Config{Scheme: "hmac", Secrets: secret, From: []string{"headr.Y"}}, `did you mean "header.Y"`},
		{Config{Scheme: "hmac", Secrets: secret, From: []string{"path.x"}}, "is nothing that a sender signs"},
		{Config{Scheme: "hmac", Secrets: secret, Header: "X", Timestamp: "header.X-Time"},
			"anybody could change the time"},
		{Config{Scheme: "hmac", Secrets: secret, Header: "X", Content: "{hmac.body.x}"},
			"for the answer of a handshake"},
		{Config{Scheme: "hmac", Secrets: secret, Header: "X", Content: "{{x}}"}, "has no source"},
		{Config{Scheme: "token", Secrets: secret}, "has the token"},
		{Config{Scheme: "token", From: []string{"body.x"}}, "give secret_file"},
	} {
		if _, err := New(tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v; want %q", tt.c, err, tt.want)
		}
	}
}

// TestTheGenericSchemeAgreesWithPublishedVectors checks that the scheme hmac judges published
// vectors as the preset does.
func TestTheGenericSchemeAgreesWithPublishedVectors(t *testing.T) {
	judged := 0
	for _, v := range readVectors(t) {
		known, d, now := v.testCase(t)
		c, ok := likePreset()[known.Scheme]
		if !ok || len(known.Secrets) == 0 || known.Algorithm != "" {
			continue
		}
		// another sender's name for the scheme: with other headers, or a secret as it is
		if v.Preset != "" && v.Preset != known.Scheme {
			continue
		}
		c.Scheme, c.PublicURL = "hmac", known.PublicURL
		c.Secrets = nil
		for _, s := range known.Secrets {
			if c.SecretEncoding != "" {
				s = bytes.TrimPrefix(s, []byte(signingPrefix))
			}
			c.Secrets = append(c.Secrets, s)
		}
		generic, err := New(c)
		if err != nil {
			t.Fatalf("%s: %v", v.ID, err)
		}
		judged++
		if err := generic.Verify(d, now); (err == nil) != v.Valid {
			t.Errorf("%s: valid should be %v, got %v", v.ID, v.Valid, err)
		}
	}
	if judged < 8 {
		t.Errorf("only %d vectors", judged)
	}
}
