package naming

import (
	"crypto/sha256"
	"hash"

	"hooklock/idem"
)

// maxScratch bounds the memory that a pooled Message keeps for the next delivery. An ordinary name
// needs some hundred bytes; larger memory is dropped.
const maxScratch = 16 << 10

// scratch is the memory in which names are built, so that only the strings that leave are
// allocated. Values point into it or into the Message, and are good until the next call of
// Keys.Name.
type scratch struct {
	route       string           // of the Keys at work
	fingerprint idem.Fingerprint // of the delivery
	longest     int              // decoded bytes of a value that is of use; 0 = any, as outside of names
	sum         hash.Hash        // SHA-256
	values      []byte           // decoded values, one behind the other; older ones stay valid when it grows
	path        []byte           // the normal path, where it is fingerprinted
	host        []byte           // as appendHost spells it
	line        []byte           // for one use at a time: hashed parts, built strings, decoded names
	workflow    []part
	event       []part
	order       []part
	body        bodyValues
	form        jsonScan // of the JSON in a parameter
}

// newHash returns the SHA-256 of nothing yet. It is for one use at a time.
func (s *scratch) newHash() hash.Hash {
	if s.sum == nil {
		s.sum = sha256.New()
	}
	s.sum.Reset()
	return s.sum
}

// beginDelivery prepares s for the next delivery of a route.
func (s *scratch) beginDelivery(route string) {
	s.route, s.longest = route, MaxValue
	s.values = s.values[:0]
	s.workflow = s.workflow[:0]
	s.event = s.event[:0]
	s.body.set = nil
}

// reset drops what points into the delivery, and what is too big to keep.
func (s *scratch) reset() {
	s.beginDelivery("")
	clear(s.workflow[:cap(s.workflow)])
	clear(s.event[:cap(s.event)])
	clear(s.order[:cap(s.order)])
	s.body.scan.text, s.form.text = nil, nil
	clear(s.body.scan.got[:cap(s.body.scan.got)])
	clear(s.form.got[:cap(s.form.got)])
	if cap(s.values) > maxScratch {
		s.values = nil
	}
	if cap(s.path) > maxScratch {
		s.path = nil
	}
	if cap(s.host) > maxScratch {
		s.host = nil
	}
	if cap(s.line) > maxScratch {
		s.line = nil
	}
}

// isTooLong reports whether a value of that many bytes is not worth decoding: if each byte of it
// stands for one of factor bytes, it is longer than a name may be.
func (s *scratch) isTooLong(encoded, factor int) bool {
	return s.longest > 0 && encoded > factor*s.longest
}

// commitValue puts what was appended to s.values since from into place, and returns it.
func (s *scratch) commitValue(values []byte, from int) []byte {
	s.values = values
	return values[from:len(values):len(values)]
}
