package sender

import (
	"bytes"
	"time"
)

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

// timedParts is a header of named parts such as "t=1767225600,v1=…,v1=…": a time, and any number of signatures of the time and the body.
type timedParts struct {
	header, separator string
	time, signature   string // the names of the parts; others are skipped, as the senders ask
	joint             string // stands between the time and the body where they are signed
	unit              time.Duration
}

// newTimedParts is HMAC-SHA256 in hex of the time, the joint and the raw body.
func newTimedParts(c Config, p timedParts) (*macVerifier, error) {
	v, err := sha256MACs(c)
	if err != nil {
		return nil, err
	}
	v.part, v.covers = p.header, coversTime
	joint := []byte(p.joint)
	v.read = func(d *Delivery, cl *claim) error {
		value, err := d.one(c.Scheme, p.header)
		if err != nil {
			return err
		}
		stamp, err := p.split(c.Scheme, value, cl)
		if err != nil {
			return err
		}
		cl.parts = append(cl.parts, stamp, joint, d.Body)
		return cl.setTime(c.Scheme, p.header+" "+p.time, stamp, p.unit)
	}
	return v, nil
}

func (p *timedParts) split(scheme string, value []byte, cl *claim) (stamp []byte, err error) {
	for item := range bytes.SplitSeq(value, []byte(p.separator)) {
		name, content, _ := bytes.Cut(bytes.TrimSpace(item), []byte("="))
		switch string(name) {
		case p.time:
			if stamp != nil {
				return nil, &SignatureError{scheme, Malformed, p.header, "has two timestamps"}
			}
			stamp = content
		case p.signature:
			cl.signatures = append(cl.signatures, content)
		}
	}
	if len(stamp) == 0 {
		return nil, &SignatureError{scheme, Malformed, p.header, "has no timestamp " + p.time}
	}
	if len(cl.signatures) == 0 {
		return nil, &SignatureError{scheme, Missing, p.header, "has no " + p.signature + " signature"}
	}
	return stamp, nil
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

// setRFC3339 is setTime for a timestamp that is written out.
func (c *claim) setRFC3339(scheme, part string, text []byte) error {
	stamp, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return &SignatureError{scheme, Malformed, part, "is no time in RFC 3339"}
	}
	c.stamp, c.stampPart = stamp, part
	return nil
}

func (s *sample) v0(header, timeHeader string) {
	if !s.unsigned {
		s.add(timeHeader, s.seconds())
		s.add(header, "v0="+s.hmac256(inHex, "v0:", s.seconds(), ":", string(s.request.Body)))
	}
}
