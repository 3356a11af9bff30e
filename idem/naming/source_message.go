package naming

import (
	"crypto/sha256"
	"encoding/hex"
)

// pathSource reads what the route's pattern captured. Its value is decoded exactly once, as the
// upstream will; a "+" stays.
type pathSource struct{ name string }

func (p pathSource) readValue(m *Message) ([]byte, result) {
	for _, v := range m.Vars {
		if v.Name != p.name {
			continue
		}
		if m.scratch.isTooLong(len(v.Raw), 3) {
			return nil, tooLong
		}
		if value, ok := m.scratch.unescapeValue(v.Raw, false); ok {
			return value, found
		}
		return nil, missing
	}
	return nil, missing
}

// headerSource reads a header line.
type headerSource struct {
	name string // in lower case
	// quoted: the value may be a structured-field string, and means what is inside of the quotes.
	quoted bool
}

func (h headerSource) readValue(m *Message) ([]byte, result) {
	var value []byte
	seen := false
	for i := range m.Fields {
		f := &m.Fields[i]
		if !equalFold(f.Name, h.name) {
			continue
		}
		if seen {
			return nil, ambiguous
		}
		value, seen = f.Value, true
	}
	if !seen {
		return nil, missing
	}
	if h.quoted {
		value = m.scratch.unquoteValue(value)
	}
	return value, found
}

// unquoteValue returns the content of a string of RFC 8941, section 3.3.3, if v is one and nothing
// else; otherwise v. The draft of the Idempotency-Key header wants such a string, and senders such
// as GitLab write the bare key.
func (s *scratch) unquoteValue(v []byte) []byte {
	if len(v) < 2 || v[0] != '"' || v[len(v)-1] != '"' {
		return v
	}
	inside := v[1 : len(v)-1]
	from, values := len(s.values), s.values
	for i := 0; i < len(inside); i++ {
		c := inside[i]
		if c == '\\' && i+1 < len(inside) && (inside[i+1] == '"' || inside[i+1] == '\\') {
			i++
			c = inside[i]
		} else if c == '"' || c == '\\' || c < 0x20 || c > 0x7e {
			return v
		}
		values = append(values, c)
	}
	return s.commitValue(values, from)
}

type hostSource struct{}

func (hostSource) readValue(m *Message) ([]byte, result) {
	s := &m.scratch
	from := len(s.values)
	return s.commitValue(appendHost(s.values, m.Host), from), found
}

type methodSource struct{}

func (methodSource) readValue(m *Message) ([]byte, result) { return m.Method, found }

type routeSource struct{}

func (routeSource) readValue(m *Message) ([]byte, result) {
	s := &m.scratch
	from := len(s.values)
	return s.commitValue(append(s.values, s.route...), from), found
}

type fingerprintSource struct{}

func (fingerprintSource) readValue(m *Message) ([]byte, result) {
	s := &m.scratch
	from := len(s.values)
	return s.commitValue(hex.AppendEncode(s.values, s.fingerprint[:]), from), found
}

// bodyHashSource names a delivery by its raw body. Without a body there is nothing to tell
// deliveries apart.
type bodyHashSource struct{}

func (bodyHashSource) readValue(m *Message) ([]byte, result) {
	if len(m.Body) == 0 {
		return nil, missing
	}
	s := &m.scratch
	from := len(s.values)
	sum := sha256.Sum256(m.Body)
	return s.commitValue(hex.AppendEncode(s.values, sum[:]), from), found
}

type literalSource struct{ text []byte }

func (l literalSource) readValue(*Message) ([]byte, result) { return l.text, found }
