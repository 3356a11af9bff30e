package sender

import (
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/idem/naming"
)

// vector is a delivery whose signature is known, from testdata/vectors.json.
type vector struct {
	ID        string
	Sender    string
	Preset    string // of the sender; empty: as presetOf says
	Library   string // what made or accepted the signature, with its version
	Secret    string
	PublicKey string `json:"public_key"`
	WebhookID string `json:"webhook_id"`
	Method    string
	URL       string
	Params    map[string]any
	Body      *string
	Headers   map[string]string
	Expected  string
	DedupKey  *string `json:"dedup_key"`
	Valid     bool    `json:"expect_valid"`
}

func readVectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Published, Synthetic, Vendors []vector }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	all := append(file.Published, file.Synthetic...)
	return append(all, file.Vendors...)
}

func (v vector) preset(t testing.TB) string {
	t.Helper()
	if v.Preset != "" {
		return v.Preset
	}
	return presetOf(t, v.Sender)
}

// presetOf returns the preset of the sender of a vector.
func presetOf(t testing.TB, name string) string {
	t.Helper()
	special := map[string]string{"Standard Webhooks / Svix": "standard-webhooks",
		"Svix / Standard Webhooks": "standard-webhooks", "AWS SNS": "sns", "Azure Event Grid": "eventgrid",
		"CloudEvents HTTP": "cloudevents", "Google Pub/Sub push": "pubsub", "Slack Events API": "slack",
		"SendGrid event webhook": "sendgrid", "Jira/Atlassian": "jira"}
	if preset, ok := special[name]; ok {
		return preset
	}
	return strings.ToLower(name)
}

// testCase is a parsed vector, and a time at which it is fresh.
func (v vector) testCase(t testing.TB) (Config, *Delivery, time.Time) {
	t.Helper()
	scheme := v.preset(t)
	if p, ok := Lookup(scheme); ok {
		scheme = p.Scheme
	}
	c := Config{Scheme: scheme, WebhookID: v.WebhookID, Tolerance: time.Minute}
	if _, ok := findScheme(c.Scheme); !ok {
		c.Scheme = "none"
	}
	if v.ID == "hubspot-v2" {
		c.Algorithm = "v2"
	}
	if v.Secret != "" {
		c.Secrets = [][]byte{[]byte(v.Secret)}
	}
	if v.PublicKey != "" {
		c.PublicKeys = [][]byte{[]byte(v.PublicKey)}
	}
	d := &Delivery{Method: []byte("POST"), Target: []byte("/hook")}
	if v.Method != "" {
		d.Method = []byte(v.Method)
	}
	if v.URL != "" {
		u, err := url.Parse(v.URL)
		if err != nil {
			t.Fatal(err)
		}
		c.PublicURL, d.Target = u.Scheme+"://"+u.Host, []byte(u.RequestURI())
	}
	for _, name := range slices.Sorted(maps.Keys(v.Headers)) {
		d.Fields = append(d.Fields, field(name, v.Headers[name]))
	}
	switch {
	case v.Body != nil:
		d.Body = []byte(*v.Body)
	case v.Params != nil:
		d.Body = []byte(formOf(v.Params).Encode())
		d.Fields = append(d.Fields, field("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8"))
	case v.ID == "adyen-notification-item":
		d.Body = []byte(
			`{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"` +
				v.Expected + `"},` +
				`"pspReference":"pspReference","originalReference":"originalReference","merchantAccountCode":"merchantAccount","merchantReference":"reference",` +
				`"amount":{"value":1000,"currency":"EUR"},"eventCode":"EVENT","success":"true"}}]}`)
	}
	return c, d, signedAt(d)
}

// signedAt returns the signed time of d, or a fixed time if it has none.
func signedAt(d *Delivery) time.Time {
	for _, name := range []string{slackTime, "webhook-timestamp", hubspotTime, sendGridTime} {
		if value, count := d.findHeader(name); count > 0 {
			stamp, _ := unixTime(value, unitOf(value))
			return stamp
		}
	}
	return time.Unix(1767225600, 0)
}

func formOf(params map[string]any) url.Values {
	form := url.Values{}
	for name, value := range params {
		switch value := value.(type) {
		case string:
			form.Add(name, value)
		case []any:
			for _, v := range value {
				form.Add(name, v.(string))
			}
		}
	}
	return form
}

func field(name, value string) naming.Field {
	return naming.Field{Name: []byte(name), Value: []byte(value)}
}

func TestKnownSignaturesAreJudgedRight(t *testing.T) {
	signed := 0
	for _, v := range readVectors(t) {
		t.Run(v.ID, func(t *testing.T) {
			c, d, now := v.testCase(t)
			if c.Scheme != "none" {
				signed++
			}
			verifier, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := verifier.Verify(d, now); (err == nil) != v.Valid {
				t.Fatalf("valid should be %v, got %v", v.Valid, err)
			}
		})
	}
	if signed < 24 {
		t.Fatalf("only %d signed vectors", signed)
	}
}

func TestNoByteOfWhatIsSignedCanChange(t *testing.T) {
	for _, v := range readVectors(t) {
		c, d, now := v.testCase(t)
		if !v.Valid || c.Scheme == "none" {
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			c.Tolerance = 0
			verifier, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			if Covers(c).Body || c.Scheme == "sns" {
				flipEach(t, verifier, d, now, "body", d.Body, bodyMayChange(v.ID, d.Body))
			}
			for _, name := range demanded(verifier, d) {
				value, _ := d.findHeader(name)
				flipEach(t, verifier, d, now, name, value, nil)
			}
			if Covers(c).URL {
				flipEach(t, verifier, d, now, "target", d.Target, nil)
			}
		})
	}
}

// bodyMayChange returns a function that reports whether the signature ignores the byte at a
// position: the SNS signature covers members, not bytes.
func bodyMayChange(id string, body []byte) func(int) bool {
	if !strings.HasPrefix(id, "syn-sns-") {
		return nil
	}
	at := strings.Index(string(body), `,"SigningCertURL"`)
	return func(i int) bool { return i > at }
}

func flipEach(t *testing.T, verifier Verifier, d *Delivery, now time.Time, part string, bytes []byte,
	skip func(int) bool) {
	t.Helper()
	for i := range bytes {
		if skip != nil && skip(i) {
			continue
		}
		before := bytes[i]
		for _, bit := range []byte{0x01, 0x02, 0x80} {
			bytes[i] = before ^ bit
			err := verifier.Verify(d, now)
			if err == nil {
				t.Fatalf("%s still verifies with byte %d %q changed to %q", part, i, before, bytes[i])
			}
			if se := (*SignatureError)(nil); !errors.As(err, &se) {
				t.Fatalf("%s: error is a %T", part, err)
			}
		}
		bytes[i] = before
	}
	if err := verifier.Verify(d, now); err != nil {
		t.Fatalf("%s changed back does not verify: %v", part, err)
	}
}
