package idem

import (
	"crypto/sha256"
	"encoding/binary"
)

// FingerprintOf is the SHA-256 of method, host (in lower case), path, query and body of m, each behind its length. Path and
// query count as they were spelled. Headers do not count: signatures and trace IDs are new in each attempt.
func FingerprintOf(m *Message) Fingerprint {
	s := &m.scratch
	if s.sum == nil {
		s.sum = sha256.New()
	}
	b := appendSized(s.line[:0], m.Method)
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.Host)))
	b = appendLower(b, m.Host)
	b = appendSized(b, m.Path)
	b = appendSized(b, m.Query)
	b = binary.BigEndian.AppendUint64(b, uint64(len(m.Body)))
	s.sum.Reset()
	s.sum.Write(b)
	s.sum.Write(m.Body)
	s.line = s.sum.Sum(b[:0])
	return Fingerprint(s.line)
}
