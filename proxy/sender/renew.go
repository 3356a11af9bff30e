package sender

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"slices"
	"strconv"
	"time"

	"hooklock/idem/naming"
)

// RenewedHeader is the header of a delivery whose signature was renewed. Its value is the time of
// the sender's own signature: RFC 3339, UTC.
const RenewedHeader = "Hooklock-Signature-Renewed"

// ErrNotRenewable is returned by Renew and NewRenewer for a signature that only the sender can
// make.
var ErrNotRenewable = errors.New("the signature cannot be renewed: its time is in the body, or only the sender has " +
	"the key that made it")

// Renewal says whether the signatures of a sender can be renewed. The zero value is for senders
// that sign no time.
type Renewal uint8

// The values of Renewal.
const (
	RenewalNeedless   Renewal = iota // no time is signed: the signature does not expire, and Renew changes nothing
	RenewalPossible                  // the time is in the head, and a secret of the route signs it
	RenewalImpossible                // the time is in the body, or a private key signs it
)

// RenewalOf returns the Renewal of c, and the age at which receivers refuse a signature: what the
// sender documents, else the tolerance of c. The age is 0 if the signature does not expire or the
// age is not known. RenewalOf needs no secret.
func RenewalOf(c Config) (Renewal, time.Duration) {
	s, _ := findScheme(c.Scheme)
	if s.renews != nil {
		s.renewal = s.renews(c)
	}
	timed := Covers(c).Time
	switch {
	case s.renewal == RenewalPossible && timed && (len(c.Secrets) > 0 || len(c.PublicKeys) == 0):
		return RenewalPossible, cmp.Or(s.tolerance, c.Tolerance)
	case timed: // signed with a private key, or the scheme does not declare a renewal
		return RenewalImpossible, cmp.Or(s.tolerance, c.Tolerance)
	case s.renewal == RenewalImpossible:
		return RenewalImpossible, 0
	}
	return RenewalNeedless, 0
}

// Renewer renews the signatures of a route. It is immutable and safe for concurrent use. A nil
// Renewer changes nothing.
type Renewer struct {
	verifier renewer // nil: there is nothing to renew
}

// renewer is a Verifier that can renew signatures.
type renewer interface {
	renewSignature(d *Delivery, at time.Time) (Renewed, error)
}

// NewRenewer returns the Renewer of c. It returns ErrNotRenewable, or an error of New.
func NewRenewer(c Config) (*Renewer, error) {
	switch renewal, _ := RenewalOf(c); renewal {
	case RenewalNeedless:
		return &Renewer{}, nil
	case RenewalImpossible:
		return nil, ErrNotRenewable
	}
	v, err := New(c)
	if err != nil {
		return nil, err
	}
	r, ok := v.(renewer)
	if !ok {
		return nil, ErrNotRenewable
	}
	return &Renewer{r}, nil
}

// Renewed lists what a renewal changes in the head of a delivery. The body never changes. The zero
// value changes nothing.
type Renewed struct {
	Changes []Change // in the order of the fields
	// Original is the value of RenewedHeader, which the caller adds to the head. It is empty if
	// nothing changes.
	Original string
}

// Change is a new value for one field.
type Change struct {
	At    int    // the index in Delivery.Fields
	Value []byte // the new value; the caller owns it
}

// Renew signs d again with the time at, for an upstream that would refuse the sender's signature as
// too old. d must be the delivery as it was verified, byte for byte. The secret that made the
// signature signs again, whatever its age. If the format allows several signatures, Renew replaces
// each that a secret of the route made, in the same order, because the upstream may have any of
// those secrets while one is rolled. It drops the others, because they sign the old time.
//
// It returns a *SignatureError if no secret of the route made the signature (it was rolled
// meanwhile), and ErrNotRenewable if only a public key matches it.
func (r *Renewer) Renew(d *Delivery, at time.Time) (Renewed, error) {
	if r == nil || r.verifier == nil {
		return Renewed{}, nil
	}
	return r.verifier.renewSignature(d, at)
}

// signer returns the fields that sign d at a time, in the sender's order. All keys sign if the
// format allows several signatures, else the first one does. Renewals and samples use it.
type signer func(d *Delivery, keys []*mac, at time.Time) ([]naming.Field, error)

// renewWith signs d again with the keys that made its signatures. original is the time of the old
// signature.
func (sign signer) renewWith(d *Delivery, keys []*mac, original, at time.Time) (Renewed, error) {
	fields, err := sign(d, keys, at)
	if err != nil {
		return Renewed{}, err
	}
	r := Renewed{Original: original.UTC().Format(time.RFC3339Nano)}
	for _, f := range fields {
		i := slices.IndexFunc(d.Fields, func(old naming.Field) bool { return equalName(old.Name, string(f.Name)) })
		r.Changes = append(r.Changes, Change{i, f.Value})
	}
	slices.SortFunc(r.Changes, func(a, b Change) int { return a.At - b.At })
	return r, nil
}

// makersOf returns the keys that made the presented signatures of parts, each once, in the order of
// their signatures.
func makersOf(keys []*mac, enc encoding, parts, presented [][]byte) []*mac {
	var right [][]byte
	for _, m := range keys {
		right = append(right, m.signParts(enc, parts...))
	}
	var makers []*mac
	for _, p := range presented {
		i := slices.IndexFunc(right, func(text []byte) bool { return subtle.ConstantTimeCompare(text, p) == 1 })
		if i >= 0 && !slices.Contains(makers, keys[i]) {
			makers = append(makers, keys[i])
		}
	}
	return makers
}

// stampField returns a field whose value is a Unix time in unit.
func stampField(name string, at time.Time, unit time.Duration) naming.Field {
	return naming.Field{Name: []byte(name), Value: digitsOf(at, unit)}
}

// digitsOf formats a time for unixTime.
func digitsOf(at time.Time, unit time.Duration) []byte {
	n := at.Unix()
	if unit == time.Millisecond {
		n = at.UnixMilli()
	}
	return strconv.AppendInt(nil, n, 10)
}
