package sender

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"hooklock/idem/naming"
)

// macVerifier verifies keyed digests over parts of the delivery. The schemes differ in read.
type macVerifier struct {
	scheme   string
	macs     []*mac
	encoding encoding
	digest   int // bytes of the digest
	age      age
	part     string // where the signature is, for messages
	covers   string // what it covers, for messages
	sign     signer // signs again; nil if that is not needed or not possible
	// read fills in the claim of the delivery, or returns a *SignatureError.
	read func(d *Delivery, c *claim) error
}

// claim is the signed content of a delivery and its signatures. The slices point into the delivery.
type claim struct {
	parts      [][]byte // what is signed, in order
	signatures [][]byte // any match is valid
	stamp      time.Time
	stampPart  string // where the timestamp is, for messages
	// urls lists spellings of the signed URL. Each is tried in place of parts[urlAt]. If empty,
	// only parts is tried.
	urls  [][]byte
	urlAt int
	// message is the delivery in the form that templates read, made on first use.
	message *naming.Message

	partsMemory      [8][]byte
	signaturesMemory [4][]byte
}

// Verify implements Verifier. It checks the age last, so that only a genuine signature is "too
// old".
func (v *macVerifier) Verify(d *Delivery, now time.Time) error {
	c, err := v.claimOf(d)
	if err != nil {
		return err
	}
	if want := v.encoding.encodedLength(v.digest); len(c.signatures) == 1 && len(c.signatures[0]) != want {
		return &SignatureError{v.scheme, Malformed, v.part, "has " + strconv.Itoa(len(c.signatures[0])) +
			" characters instead of " + strconv.Itoa(want)}
	}
	if !v.matchesClaim(c) {
		return v.mismatchError()
	}
	return v.age.checkAge(v.scheme, c.stampPart, c.stamp, now)
}

func (v *macVerifier) claimOf(d *Delivery) (*claim, error) {
	c := &claim{}
	c.parts, c.signatures = c.partsMemory[:0], c.signaturesMemory[:0]
	err := v.read(d, c)
	for i := range c.signatures {
		c.signatures[i] = v.encoding.usualSpelling(c.signatures[i])
	}
	return c, err
}

func (v *macVerifier) mismatchError() error {
	return &SignatureError{v.scheme, Mismatch, v.part, "made with another secret, or changed on the way: " + v.covers}
}

// renewSignature implements renewer.
func (v *macVerifier) renewSignature(d *Delivery, at time.Time) (Renewed, error) {
	c, err := v.claimOf(d)
	if err != nil {
		return Renewed{}, err
	}
	makers := makersOf(v.macs, v.encoding, c.parts, c.signatures)
	if len(makers) == 0 {
		return Renewed{}, v.mismatchError()
	}
	return v.sign.renewWith(d, makers, c.stamp, at)
}

// checkHead implements headVerifier. It reads the claim without the body and reports only parts of
// the head that are missing.
func (v *macVerifier) checkHead(d *Delivery) error {
	var broken *SignatureError
	if _, err := v.claimOf(d); errors.As(err, &broken) && broken.Reason == Missing && !d.hasHeader(broken.Part) &&
		!ofBody(broken.Part) {
		return err
	}
	return nil
}

// ofBody reports whether a part is in the body or the URL and not in a header: body.a, body[0],
// body_sha256, query.x.
func ofBody(part string) bool {
	return strings.Contains(part, ".") || strings.HasPrefix(part, "body[") || part == string(naming.SourceBodySHA256)
}

func (v *macVerifier) matchesClaim(c *claim) bool {
	for _, m := range v.macs {
		if len(c.urls) == 0 && m.matchesAny(v.encoding, c.parts, c.signatures) {
			return true
		}
		for _, url := range c.urls {
			c.parts[c.urlAt] = url
			if m.matchesAny(v.encoding, c.parts, c.signatures) {
				return true
			}
		}
	}
	return false
}
