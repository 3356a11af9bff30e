package naming

import (
	"bytes"
	"encoding/binary"
	"math"
	"mime"
	"strings"
)

// What is hashed in place of a body's length before a digest: no body is so long.
const (
	sizeOfRemainder = math.MaxUint64 - iota
	sizeOfMultipart
)

// hashedBody returns what a fingerprint has of the body, and the size to hash before it: the body
// and its length; a digest of what is left without what is ignored; or, of a multipart body, one of
// the text between its boundaries. The library that writes such a body makes up the boundary, so a
// sender's retry has another.
func (m *Message) hashedBody(ignored *Ignored) (body []byte, size uint64) {
	if digest, ok := ignored.bodyDigest(m); ok {
		return digest, sizeOfRemainder
	}
	first := m.boundary()
	if first == "" || !bytes.HasPrefix(m.Body, []byte(first)) {
		return m.Body, uint64(len(m.Body))
	}
	sum := m.scratch.hash()
	rest, delimiter, more := m.Body[len(first):], []byte("\r\n"+first), true
	for more {
		var text []byte
		text, rest, more = bytes.Cut(rest, delimiter)
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		sum.Write(text)
	}
	return sum.Sum(nil), sizeOfMultipart
}

// boundary returns the delimiter of a multipart body, without its line break (RFC 2046, section
// 5.1.1); "" if the body is none.
func (m *Message) boundary() string {
	if !bytes.HasPrefix(m.Body, []byte("--")) {
		return ""
	}
	value, r := headerSource{name: "content-type"}.read(m)
	if r != found {
		return ""
	}
	kind, parameters, err := mime.ParseMediaType(string(value))
	if err != nil || !strings.HasPrefix(kind, "multipart/") || parameters["boundary"] == "" {
		return ""
	}
	return "--" + parameters["boundary"]
}
