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

// RenewedHeader tells the upstream that a signature was made here, and when the sender made its own: RFC 3339, UTC.
const RenewedHeader = "Hooklock-Signature-Renewed"

// ErrNotRenewable is what Renew and NewRenewer say of a delivery whose signature only its sender can make again.
var ErrNotRenewable = errors.New("the signature cannot be renewed: its time is in the body, or the key that made it is the sender's alone")

// Renewal says what Renew does for the deliveries of a sender. The zero value is for those that sign no time.
type Renewal uint8

// The renewals.
const (
	RenewalNeedless   Renewal = iota // no time is signed: what came stays as good as it was, and Renew changes nothing
	RenewalPossible                  // the time is in the head, and a secret that the route has signs it
	RenewalImpossible                // the time is in the body, or what signs is a private key
)

// RenewalOf says what Renew does for deliveries of c, and how old a signature of theirs may become before receivers refuse it: what its sender
// documents, else the tolerance of c. 0 = it never becomes too old, or nobody says when. It needs no secret, so that a configuration can be
// judged without.
func RenewalOf(c Config) (Renewal, time.Duration) {
	s, _ := findScheme(c.Scheme)
	if s.renews != nil {
		s.renewal = s.renews(c)
	}
	timed := Covers(c).Time
	switch {
	case s.renewal == RenewalPossible && timed && (len(c.Secrets) > 0 || len(c.PublicKeys) == 0):
		return RenewalPossible, cmp.Or(s.tolerance, c.Tolerance)
	case timed: // by a public key, or by a scheme that says nothing of its renewal
		return RenewalImpossible, cmp.Or(s.tolerance, c.Tolerance)
	case s.renewal == RenewalImpossible:
		return RenewalImpossible, 0
	}
	return RenewalNeedless, 0
}

// Renewer renews the signatures of one route's deliveries. It is immutable and may be shared. One that is nil changes nothing.
type Renewer struct {
	verifier renewer // nil: there is nothing to renew
}

// renewer is a Verifier whose sender's signatures can be made again.
type renewer interface {
	renew(d *Delivery, at time.Time) (Renewed, error)
}

// NewRenewer builds the Renewer of c. Its error is ErrNotRenewable, or what New says.
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

// Renewed is what a renewal changes in the head of a delivery. The body is never changed. The zero value changes nothing.
type Renewed struct {
	Changes []Change // in the order of the fields
	// Original is the value of RenewedHeader, which is to be added to the head; empty where nothing changes.
	Original string
}

// Change is a new value for one field.
type Change struct {
	At    int    // the index in Delivery.Fields
	Value []byte // the new value; nobody else has its memory
}

// Renew makes the signature of d again, with the time at, for an upstream that would refuse the sender's own as too old. It does so only for
// a signature that a secret of the route made, however old it is: d is what was verified when it arrived, byte for byte, and that same
// secret signs again. Where the sender's format has room for several signatures, each one that a secret of the route made is made again, in
// the same order, because the upstream may have any of those secrets while one is rolled; all others are left out, because they sign a time
// that is no longer there.
//
// The error is a *SignatureError where no secret of the route made the signature (it was rolled meanwhile), or ErrNotRenewable where only a
// public key fits it.
func (r *Renewer) Renew(d *Delivery, at time.Time) (Renewed, error) {
	if r == nil || r.verifier == nil {
		return Renewed{}, nil
	}
	return r.verifier.renew(d, at)
}

// signer makes the fields that sign d at a time, in the order in which the sender sends them. Every one of keys signs where the format has
// room for several signatures, else the first. A renewal and a sample are the same signing.
type signer func(d *Delivery, keys []*mac, at time.Time) ([]naming.Field, error)

// renewal makes d's signature again with the keys that made it. original is the time that it signs.
func (sign signer) renewal(d *Delivery, keys []*mac, original, at time.Time) (Renewed, error) {
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

// makersOf returns the keys that made the presented signatures of parts, each once, in the order of their signatures.
func makersOf(keys []*mac, enc encoding, parts, presented [][]byte) []*mac {
	var right [][]byte
	for _, m := range keys {
		right = append(right, m.sign(enc, parts...))
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

// stampField is a field whose value is a Unix time in a unit.
func stampField(name string, at time.Time, unit time.Duration) naming.Field {
	return naming.Field{Name: []byte(name), Value: digitsOf(at, unit)}
}

// digitsOf is what unixTime reads.
func digitsOf(at time.Time, unit time.Duration) []byte {
	n := at.Unix()
	if unit == time.Millisecond {
		n = at.UnixMilli()
	}
	return strconv.AppendInt(nil, n, 10)
}
