package sender

import "time"

const coversTime = "the timestamp and the raw body"

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

// setAnyTime is setTime for senders that nobody knows: seconds, milliseconds or RFC 3339.
func (c *claim) setAnyTime(scheme, part string, value []byte) error {
	if stamp, err := time.Parse(time.RFC3339, string(value)); err == nil {
		c.stamp, c.stampPart = stamp, part
		return nil
	}
	if err := c.setTime(scheme, part, value, unitOf(value)); err != nil {
		return &SignatureError{scheme, Malformed, part, "is neither a Unix time in seconds or milliseconds, nor one as 2026-01-02T15:04:05Z"}
	}
	return nil
}

func (s *sample) v0(header, timeHeader string) {
	if !s.unsigned {
		s.add(timeHeader, s.seconds())
		s.add(header, "v0="+s.hmac256(inHex, "v0:", s.seconds(), ":", string(s.request.Body)))
	}
}
