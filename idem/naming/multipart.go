package naming

import (
	"bytes"
	"encoding/binary"
	"hash"
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
	first := m.multipartBoundary()
	if first == "" {
		return m.Body, uint64(len(m.Body))
	}
	sum := m.scratch.newHash()
	writeParts(sum, m.Body, first)
	return sum.Sum(nil), sizeOfMultipart
}

// HashBody writes what a fingerprint has of the body: all of it, or what is between its boundaries.
func (m *Message) HashBody(to hash.Hash) {
	if first := m.multipartBoundary(); first != "" {
		writeParts(to, m.Body, first)
		return
	}
	to.Write(m.Body)
}

// writeParts writes each text between the boundaries of a body, behind its length.
func writeParts(to hash.Hash, body []byte, first string) {
	rest, delimiter, more := body[len(first):], []byte("\r\n"+first), true
	for more {
		var text []byte
		text, rest, more = bytes.Cut(rest, delimiter)
		to.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		to.Write(text)
	}
}

// multipartBoundary returns the delimiter of a multipart body, without its line break (RFC 2046,
// section 5.1.1), which the body begins with; "" if the body is none.
func (m *Message) multipartBoundary() string {
	if !bytes.HasPrefix(m.Body, []byte("--")) {
		return ""
	}
	value, r := headerSource{name: "content-type"}.readValue(m)
	if r != found {
		return ""
	}
	kind, parameters, err := mime.ParseMediaType(string(value))
	if err != nil || !strings.HasPrefix(kind, "multipart/") || parameters["boundary"] == "" {
		return ""
	}
	first := "--" + parameters["boundary"]
	if !bytes.HasPrefix(m.Body, []byte(first)) {
		return ""
	}
	return first
}
