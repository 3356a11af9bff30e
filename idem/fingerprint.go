package idem

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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

// CredentialsDigest is a name for the credentials that a delivery came with, good for nothing but to see whether a duplicate
// came with the same ones: all values of Authorization and Cookie in their order, hashed together with the execution that
// they ran, so that equal passwords do not show as equal digests. It is empty when there are none of either.
func CredentialsDigest(execution ExecutionID, fields []Field) string {
	var b []byte
	for _, f := range fields {
		var name string
		switch {
		case equalFold(f.Name, "authorization"):
			name = "authorization"
		case equalFold(f.Name, "cookie"):
			name = "cookie"
		default:
			continue
		}
		if b == nil {
			b = appendSized(nil, string(execution))
		}
		b = appendSized(b, name)
		b = appendSized(b, f.Value)
	}
	if b == nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
