package sender

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/valyala/fastjson"
)

// Schemes that sign the raw body and nothing else. None of them signs a time, so a captured delivery stays valid, and none
// signs the header with the event's ID.

const coversBody = "the raw body"

// newBodyMAC is an HMAC over the raw body in the first of headers that is there.
func newBodyMAC(c Config, algorithm, prefix string, enc encoding, headers ...string) (*macVerifier, error) {
	newHash, size, err := hashOf(algorithm)
	if err != nil {
		return nil, err
	}
	keys, err := macs(c, newHash)
	if err != nil {
		return nil, err
	}
	v := &macVerifier{scheme: c.Scheme, macs: keys, encoding: enc, digest: size, part: headers[0], covers: coversBody}
	v.read = func(d *Delivery, cl *claim) error {
		value, err := d.one(c.Scheme, presentOf(d, headers))
		if err != nil {
			return err
		}
		signature, err := cutPrefix(c.Scheme, headers[0], value, prefix)
		if err != nil {
			return err
		}
		cl.signatures = append(cl.signatures, signature)
		cl.parts = append(cl.parts, d.Body)
		return nil
	}
	return v, nil
}

// presentOf returns the first of names that the delivery has, else the first.
func presentOf(d *Delivery, names []string) string {
	for _, n := range names {
		if d.has(n) {
			return n
		}
	}
	return names[0]
}

func cutPrefix(scheme, part string, value []byte, prefix string) ([]byte, error) {
	if len(value) < len(prefix) || string(value[:len(prefix)]) != prefix {
		return nil, &SignatureError{scheme, Malformed, part, fmt.Sprintf("does not begin with %q", prefix)}
	}
	return value[len(prefix):], nil
}

// newGitHub: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries. SHA-1 is the legacy header,
// and only read when the configuration asks for it.
func newGitHub(c Config) (Verifier, error) {
	switch c.Algorithm {
	case "", "sha256":
		return verifier(newBodyMAC(c, "sha256", "sha256=", inHex, "X-Hub-Signature-256"))
	case "sha1":
		return verifier(newBodyMAC(c, "sha1", "sha1=", inHex, "X-Hub-Signature"))
	}
	return nil, fmt.Errorf("algorithm %q: give sha256, or sha1 for the legacy header", c.Algorithm)
}

// newBitbucket: https://support.atlassian.com/bitbucket-cloud/docs/event-payloads. The header has no -256.
func newBitbucket(c Config) (Verifier, error) {
	return verifier(newBodyMAC(c, "sha256", "sha256=", inHex, "X-Hub-Signature"))
}

// newJira: https://developer.atlassian.com/cloud/jira/platform/webhooks. Jira names the method before the digest, sha256
// today; which one is accepted is the configuration's choice, not the delivery's.
func newJira(c Config) (Verifier, error) {
	algorithm := c.Algorithm
	if algorithm == "" {
		algorithm = "sha256"
	}
	return verifier(newBodyMAC(c, algorithm, algorithm+"=", inHex, "X-Hub-Signature"))
}

// newShopify: https://shopify.dev/docs/apps/build/webhooks. The newer "Events" deliveries have no X- before their headers.
func newShopify(c Config) (Verifier, error) {
	return verifier(newBodyMAC(c, "sha256", "", inBase64, "X-Shopify-Hmac-Sha256", "shopify-hmac-sha256"))
}

// newLinear: https://linear.app/developers/webhooks. The timestamp is a member of the signed body, in milliseconds.
func newLinear(c Config) (Verifier, error) {
	v, err := newBodyMAC(c, "sha256", "", inHex, "Linear-Signature")
	if err != nil || c.Tolerance == 0 {
		return verifier(v, err)
	}
	v.age = age{tolerance: c.Tolerance}
	signature := v.read
	v.read = func(d *Delivery, cl *claim) error {
		if err := signature(d, cl); err != nil {
			return err
		}
		cl.stampPart = "body.webhookTimestamp"
		stamp, ok := linearTime(d.Body)
		if !ok {
			return &SignatureError{c.Scheme, Missing, cl.stampPart, "no timestamp in milliseconds there"}
		}
		cl.stamp = stamp
		return nil
	}
	return v, nil
}

// linearTime finds the member webhookTimestamp. It is looked for as text first, because reading the whole JSON costs more
// than the HMAC: inside of a JSON string the quotes would be escaped, so one plain occurrence is the member.
func linearTime(body []byte) (time.Time, bool) {
	name := []byte(`"webhookTimestamp":`)
	if at := bytes.Index(body, name); at > 0 && body[at-1] != '\\' && bytes.Count(body, name) == 1 {
		digits := bytes.TrimLeft(body[at+len(name):], " ")
		end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
		return unixTime(digits[:max(end, 0)], time.Millisecond)
	}
	v, err := fastjson.ParseBytes(body)
	if err != nil {
		return time.Time{}, false
	}
	ms := v.GetInt64("webhookTimestamp")
	return time.UnixMilli(ms), ms > 0
}

// verifier makes an interface of a concrete verifier without making a nil one look like something.
func verifier(v *macVerifier, err error) (Verifier, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// sha256MACs is the start of a scheme with HMAC-SHA256.
func sha256MACs(c Config) (*macVerifier, error) {
	if err := checkSecrets(c.Secrets); err != nil {
		return nil, err
	}
	return keyedSHA256(c)
}

// keyedSHA256 is sha256MACs for keys that were decoded, in which bytes that look like white space are as good as any.
func keyedSHA256(c Config) (*macVerifier, error) {
	v := &macVerifier{scheme: c.Scheme, digest: sha256.Size, age: age{tolerance: c.Tolerance}}
	for i, key := range c.Secrets {
		if len(key) == 0 {
			return nil, fmt.Errorf("secret %d is empty: %w", i+1, errNeedsSecret)
		}
		v.macs = append(v.macs, newMAC(sha256.New, key))
	}
	return v, nil
}
