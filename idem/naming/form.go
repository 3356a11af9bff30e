package naming

import "bytes"

// querySource reads a parameter of the query.
type querySource struct{ name string }

func (q querySource) read(m *Message) ([]byte, result) { return m.scratch.parameter(m.Query, q.name) }

// formSource reads a parameter of a form. Multipart forms are not read.
type formSource struct{ name string }

func (f formSource) read(m *Message) ([]byte, result) {
	if !m.isForm() {
		return nil, missing
	}
	return m.scratch.parameter(m.Body, f.name)
}

// isForm reports whether the one Content-Type says application/x-www-form-urlencoded, whatever its parameters.
func (m *Message) isForm() bool {
	value, r := headerSource{name: "content-type"}.read(m)
	if r != found {
		return false
	}
	kind, _, _ := bytes.Cut(value, []byte{';'})
	return equalFold(bytes.TrimRight(kind, " \t"), "application/x-www-form-urlencoded")
}

// parameter finds a parameter among those of a query or form, as the URL standard reads them: "&" alone separates, and names
// count in their decoded form.
func (s *scratch) parameter(raw []byte, name string) ([]byte, result) {
	var value []byte
	seen := false
	for len(raw) > 0 {
		var pair []byte
		pair, raw, _ = bytes.Cut(raw, []byte{'&'})
		n, v, _ := bytes.Cut(pair, []byte{'='})
		if !s.isNamed(n, name) {
			continue
		}
		if seen {
			return nil, ambiguous
		}
		value, seen = v, true
	}
	if len(value) > 3*MaxValue {
		return nil, tooLong
	}
	value, ok := s.unescape(value, true)
	if !seen || !ok {
		return nil, missing
	}
	return value, found
}

// isNamed reports whether raw is an encoding of name. A malformed one is none.
func (s *scratch) isNamed(raw []byte, name string) bool {
	if len(raw) < len(name) || len(raw) > 3*len(name) {
		return false
	}
	if !encoded(raw, true) {
		return string(raw) == name
	}
	line, ok := appendUnescaped(s.line[:0], raw, true)
	s.line = line
	return ok && string(line) == name
}
