package sender

import (
	"bytes"
	"time"
)

// Schemes that sign a timestamp together with the raw body: Stripe, Slack, Zoom.

const (
	stripeHeader = "Stripe-Signature"

	slackHeader = "X-Slack-Signature"
	slackTime   = "X-Slack-Request-Timestamp"

	zoomHeader = "x-zm-signature"
	zoomTime   = "x-zm-request-timestamp"

	coversTime = "the timestamp and the raw body"
)

// newStripe: https://docs.stripe.com/webhooks. The whole text of the secret, whsec_ included, is the key. While a secret is
// rolled the header has one v1 for each. As in Stripe's library, a timestamp of the future is fine.
func newStripe(c Config) (Verifier, error) {
	v, err := sha256MACs(c)
	if err != nil {
		return nil, err
	}
	v.part, v.covers, v.age.pastOnly = stripeHeader, coversTime, true
	dot := []byte(".")
	v.read = func(d *Delivery, cl *claim) error {
		value, err := d.one(c.Scheme, stripeHeader)
		if err != nil {
			return err
		}
		t, err := stripeFields(c.Scheme, value, cl)
		if err != nil {
			return err
		}
		cl.parts = append(cl.parts, t, dot, d.Body)
		return cl.setTime(c.Scheme, stripeHeader+" t", t, time.Second)
	}
	return v, nil
}

// stripeFields reads "t=1767225600,v1=…,v1=…" and skips schemes that it does not know, as Stripe asks.
func stripeFields(scheme string, value []byte, cl *claim) (t []byte, err error) {
	for item := range bytes.SplitSeq(value, []byte(",")) {
		name, content, _ := bytes.Cut(bytes.TrimSpace(item), []byte("="))
		switch string(name) {
		case "t":
			if t != nil {
				return nil, &SignatureError{scheme, Malformed, stripeHeader, "has two timestamps"}
			}
			t = content
		case "v1":
			cl.signatures = append(cl.signatures, content)
		}
	}
	if len(t) == 0 {
		return nil, &SignatureError{scheme, Malformed, stripeHeader, "has no timestamp t"}
	}
	if len(cl.signatures) == 0 {
		return nil, &SignatureError{scheme, Missing, stripeHeader, "has no v1 signature"}
	}
	return t, nil
}

// newSlack: https://docs.slack.dev/authentication/verifying-requests-from-slack/
func newSlack(c Config) (Verifier, error) { return newV0(c, slackHeader, slackTime) }

// newZoom signs like Slack. The unit of its timestamp is not documented; seconds and milliseconds are told by their size.
func newZoom(c Config) (Verifier, error) { return newV0(c, zoomHeader, zoomTime) }

// newV0 is v0=hex(HMAC-SHA256("v0:" timestamp ":" body)).
func newV0(c Config, header, timeHeader string) (Verifier, error) {
	v, err := sha256MACs(c)
	if err != nil {
		return nil, err
	}
	v.part, v.covers = header, coversTime
	start, colon := []byte("v0:"), []byte(":")
	v.read = func(d *Delivery, cl *claim) error {
		value, err := d.one(c.Scheme, header)
		if err != nil {
			return err
		}
		signature, err := cutPrefix(c.Scheme, header, value, "v0=")
		if err != nil {
			return err
		}
		stamp, err := d.one(c.Scheme, timeHeader)
		if err != nil {
			return err
		}
		cl.signatures = append(cl.signatures, signature)
		cl.parts = append(cl.parts, start, stamp, colon, d.Body)
		return cl.setTime(c.Scheme, timeHeader, stamp, unitOf(stamp))
	}
	return v, nil
}

// unitOf tells milliseconds from seconds by the number of digits: 12 digits of seconds are the year 5138.
func unitOf(digits []byte) time.Duration {
	if len(digits) > 12 {
		return time.Millisecond
	}
	return time.Second
}

// setTime reads the signed timestamp into the claim.
func (c *claim) setTime(scheme, part string, digits []byte, unit time.Duration) error {
	stamp, ok := unixTime(digits, unit)
	if !ok {
		return &SignatureError{scheme, Malformed, part, "is no Unix time"}
	}
	c.stamp, c.stampPart = stamp, part
	return nil
}
