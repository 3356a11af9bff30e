package sender

import (
	"time"

	"hooklock/idem/naming"
)

const coversTime = "the timestamp and the raw body"

// newV0 returns a verifier of v0=hex(HMAC-SHA256("v0:" timestamp ":" body)).
func newV0(c Config, header, timeHeader string) (Verifier, error) {
	v, err := sha256MACs(c)
	if err != nil {
		return nil, err
	}
	v.part, v.covers, v.sign = header, coversTime, signV0(header, timeHeader)
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

// unitOf distinguishes milliseconds from seconds by the number of digits: 12 digits of seconds are
// the year 5138.
func unitOf(digits []byte) time.Duration {
	if len(digits) > 12 {
		return time.Millisecond
	}
	return time.Second
}

// setTime parses the signed timestamp into the claim.
func (c *claim) setTime(scheme, part string, digits []byte, unit time.Duration) error {
	stamp, ok := unixTime(digits, unit)
	if !ok {
		return &SignatureError{scheme, Malformed, part, "is not a Unix time"}
	}
	c.stamp, c.stampPart = stamp, part
	return nil
}

// setAnyTime is setTime for unknown senders. It accepts seconds, milliseconds and RFC 3339.
func (c *claim) setAnyTime(scheme, part string, value []byte) error {
	if stamp, err := time.Parse(time.RFC3339, string(value)); err == nil {
		c.stamp, c.stampPart = stamp, part
		return nil
	}
	if err := c.setTime(scheme, part, value, unitOf(value)); err != nil {
		return &SignatureError{scheme, Malformed, part,
			"is neither a Unix time in seconds or milliseconds, nor like 2026-01-02T15:04:05Z"}
	}
	return nil
}

// signV0 returns a signer for newV0. It keeps the unit of the old timestamp.
func signV0(header, timeHeader string) signer {
	return func(d *Delivery, keys []*mac, at time.Time) ([]naming.Field, error) {
		old, _ := d.header(timeHeader)
		stamp := stampField(timeHeader, at, unitOf(old))
		signature := append([]byte("v0="), keys[0].sign(inHex, []byte("v0:"), stamp.Value, []byte(":"), d.Body)...)
		return []naming.Field{stamp, {Name: []byte(header), Value: signature}}, nil
	}
}
