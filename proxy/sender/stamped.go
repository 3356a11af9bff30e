package sender

import "time"

const coversTime = "the timestamp and the raw body"

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
	stamp, ok := unixTime(value, unitOf(value))
	if !ok {
		var err error
		if stamp, err = time.Parse(time.RFC3339, string(value)); err != nil {
			return &SignatureError{scheme, Malformed, part,
				"is neither a Unix time in seconds or milliseconds, nor like 2026-01-02T15:04:05Z"}
		}
	}
	c.stamp, c.stampPart = stamp, part
	return nil
}

// asV0 returns the scheme of a sender that signs v0=hex(HMAC-SHA256("v0:" timestamp ":" body)). The
// size of the time decides between seconds and milliseconds.
func asV0(header, timeHeader string, tolerance time.Duration) scheme {
	return asHMAC(Config{Header: header, Prefix: "v0=", Timestamp: "header." + timeHeader, Tolerance: tolerance,
		Content: "v0:{header." + timeHeader + "}:{body}"})
}

// signV0 adds the time and the signature that asV0 verifies.
func (s *sample) signV0(header, timeHeader string) {
	s.addSigned(timeHeader, s.unixSeconds())
	s.addSigned(header, "v0="+s.hmac256(inHex, "v0:", s.unixSeconds(), ":", string(s.request.Body)))
}
