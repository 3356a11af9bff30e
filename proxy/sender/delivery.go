package sender

import (
	"bytes"

	"hooklock/idem/naming"
)

// Delivery is the request that signatures, handshakes and event IDs are read from. The caller owns
// its bytes; this package neither keeps nor changes them.
type Delivery struct {
	Method []byte
	Target []byte // the request target as received: raw path and query
	Fields []naming.Field
	Body   []byte // raw, without any transfer coding
}

// findHeader returns the value of the first field with that name, and the number of such fields. It
// ignores the case of ASCII letters (RFC 9110 section 5.1).
func (d *Delivery) findHeader(name string) (value []byte, count int) {
	for i := range d.Fields {
		if !equalName(d.Fields[i].Name, name) {
			continue
		}
		if count == 0 {
			value = d.Fields[i].Value
		}
		count++
	}
	return value, count
}

// hasHeader reports whether d has a field with that name.
func (d *Delivery) hasHeader(name string) bool {
	_, count := d.findHeader(name)
	return count > 0
}

// requireOne returns the value of a field that a signature depends on. The error is Missing if the
// field is absent or empty, and Malformed if it is given twice, because the upstream might read the
// other one.
func (d *Delivery) requireOne(scheme, name string) ([]byte, error) {
	value, count := d.findHeader(name)
	switch {
	case count > 1:
		return nil, &SignatureError{scheme, Malformed, name, "given more than once"}
	case len(value) == 0:
		return nil, &SignatureError{scheme, Missing, name, "the delivery has no such header"}
	}
	return value, nil
}

// equalName reports whether a field name equals an ASCII name, without regard to case. What folds
// to an ASCII letter from elsewhere is longer.
func equalName(field []byte, name string) bool {
	return len(field) == len(name) && bytes.EqualFold(field, []byte(name))
}
