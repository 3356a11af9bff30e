package naming

import (
	"encoding/binary"

	"hooklock/idem"
)

// Open are the parts of a delivery that its signature does not cover, so that an attacker who
// captured it could change them. The zero value is for deliveries that are not signed, of which
// everything counts.
type Open struct {
	Method bool
	Host   bool
	// Target: query and spelling of the path. Its normal form stays, because it is what the route's
	// variables are read from.
	Target bool
}

// FingerprintOf hashes method, host (in its one spelling), path, query and body of m, each behind
// its length, except for the parts that are open: changing these must not let a signed delivery run
// again. Path and query count as they were spelled. Headers and the boundary of a multipart body do
// not count: signatures, trace IDs and boundaries are new in each attempt. What is ignored does not
// count either; nil: nothing is.
func FingerprintOf(m *Message, open Open, ignored *Ignored) idem.Fingerprint {
	s := &m.scratch
	body, size := m.hashedBody(ignored)
	s.host = appendHost(s.host[:0], m.Host)
	method, host, path, query := m.Method, s.host, m.Path, ignored.queryOf(m)
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
	b = appendSized(b, host)
	b = appendSized(b, path)
	b = appendSized(b, query)
	b = binary.BigEndian.AppendUint64(b, size)
	sum := s.newHash()
	sum.Write(b)
	sum.Write(body)
	s.line = sum.Sum(b[:0])
	return idem.Fingerprint(s.line)
}

// partsOf returns a hash of each part that FingerprintOf hashes.
func partsOf(m *Message, open Open, ignored *Ignored) (p idem.Parts) {
	s := &m.scratch
	if !open.Method {
		p.Set(idem.PartMethod, m.Method)
	}
	if !open.Host {
		name, port := SplitHost(m.Host)
		s.line = appendLower(s.line[:0], name)
		p.Set(idem.PartHost, s.line)
		p.Set(idem.PartPort, port)
	}
	path := m.Path
	if open.Target {
		s.path = NormalPath(path, s.path)
		path = s.path
	} else {
		p.Set(idem.PartQuery, ignored.queryOf(m))
	}
	p.Set(idem.PartPath, path)
	body, _ := m.hashedBody(ignored)
	p.Set(idem.PartBody, body)
	return p
}
