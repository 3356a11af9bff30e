package sender

import (
	"hooklock/idem/naming"
)

// Delivery is what a Verifier, a handshake or an event ID is read from. The caller owns all of its bytes, and nothing in
// this package keeps or changes them.
type Delivery struct {
	Method []byte
	Target []byte // the request target as received: raw path and query
	Fields []naming.Field
	Body   []byte // raw, without any transfer coding
}

// header returns the value of the first field of that name, and how many fields have it. Names are compared as RFC 9110
// section 5.1 says: ASCII letters without their case.
func (d *Delivery) header(name string) (value []byte, count int) {
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

// has reports whether a field of that name is there.
func (d *Delivery) has(name string) bool {
	_, count := d.header(name)
	return count > 0
}

// one returns the value of a field that a signature rests on. Absent or empty is missing; given twice is malformed, because
// the upstream might read the other one.
func (d *Delivery) one(scheme, name string) ([]byte, error) {
	value, count := d.header(name)
	switch {
	case count > 1:
		return nil, &SignatureError{scheme, Malformed, name, "given more than once"}
	case len(value) == 0:
		return nil, &SignatureError{scheme, Missing, name, "the delivery has no such header"}
	}
	return value, nil
}

// equalName compares a field name with an ASCII name.
func equalName(field []byte, name string) bool {
	if len(field) != len(name) {
		return false
	}
	for i := range field {
		if lower(field[i]) != lower(name[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
