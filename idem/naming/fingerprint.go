package naming

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"hooklock/idem"
)

// Open are the parts of a delivery that its signature does not cover, so that an attacker who captured it could change them. The zero value is
// for deliveries that are not signed, of which everything counts.
type Open struct {
	Method bool
	Host   bool
	// Target: query and spelling of the path. Its normal form stays, because it is what the route's variables are read from.
	Target bool
}

// FingerprintOf hashes method, host (in lower case), path, query and body of m, each behind its length, except for the parts that are open:
// changing these must not let a signed delivery run again. Path and query count as they were spelled. Headers do not count: signatures and
// trace IDs are new in each attempt.
func FingerprintOf(m *Message, open Open) idem.Fingerprint {
	s := &m.scratch
	if s.sum == nil {
		s.sum = sha256.New()
	}
	method, host, path, query := m.Method, m.Host, m.Path, m.Query
	if open.Method {
		method = nil
	}
	if open.Host {
		host = nil
	}
	if open.Target {
		s.path = NormalPath(path, s.path)
		path, query = s.path, nil
	}
	b := appendSized(s.line[:0], method)
	b = binary.BigEndian.AppendUint32(b, uint32(len(host)))
	b = appendLower(b, host)
	b = appendSized(b, path)
	b = appendSized(b, query)
	b = binary.BigEndian.AppendUint64(b, uint64(len(m.Body)))
	s.sum.Reset()
	s.sum.Write(b)
	s.sum.Write(m.Body)
	s.line = s.sum.Sum(b[:0])
	return idem.Fingerprint(s.line)
}

// partsOf returns a hash of each part that FingerprintOf hashes.
func partsOf(m *Message, open Open) (p idem.Parts) {
	s := &m.scratch
	if !open.Method {
		p.Set(idem.PartMethod, m.Method)
	}
	if !open.Host {
		s.line = appendLower(s.line[:0], m.Host)
		host, port := s.line, []byte(nil)
		if i := bytes.LastIndexByte(host, ':'); i > bytes.LastIndexByte(host, ']') { // an IPv6 address has colons of its own
			host, port = host[:i], host[i+1:]
		}
		p.Set(idem.PartHost, host)
		p.Set(idem.PartPort, port)
	}
	path := m.Path
	if open.Target {
		s.path = NormalPath(path, s.path)
		path = s.path
	} else {
		p.Set(idem.PartQuery, m.Query)
	}
	p.Set(idem.PartPath, path)
	p.Set(idem.PartBody, m.Body)
	return p
}
