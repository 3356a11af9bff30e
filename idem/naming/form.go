package naming

import "bytes"

// querySource reads a parameter of the query.
type querySource struct{ name string }

func (q querySource) readValue(m *Message) ([]byte, result) {
	return m.scratch.readParameter(m.Query, q.name)
}

// formSource reads a parameter of a form. Multipart forms are not read.
type formSource struct{ name string }

func (f formSource) readValue(m *Message) ([]byte, result) {
	if !m.isForm() {
		return nil, missing
	}
	return m.scratch.readParameter(m.bodyText(), f.name)
}

// maxFormJSON bounds JSON in a form, which is decoded before it is read, in bytes.
const maxFormJSON = 1 << 20

// formMember reads a member of the JSON in a parameter of a form, as Slack's buttons send it.
type formMember struct {
	whole     string // a parameter that is read instead, if the form has it; "" for none
	parameter string
	set       *bodySet // one path
}

func (f formMember) readValue(m *Message) ([]byte, result) {
	if !m.isForm() {
		return nil, missing
	}
	s := &m.scratch
	if f.whole != "" {
		if value, r := s.readParameter(m.bodyText(), f.whole); r != missing {
			return value, r
		}
	}
	raw, r := s.findParameter(m.bodyText(), f.parameter)
	switch {
	case r != found:
		return nil, r
	case len(raw) > maxFormJSON:
		return nil, longJSON
	}
	text, ok := s.unescapeValue(raw, true)
	if !ok || !s.form.scanText(text, f.set) {
		return nil, missing
	}
	return s.decodeMember(s.form.got[0])
}

// isForm reports whether the one Content-Type says application/x-www-form-urlencoded, whatever its
// parameters.
func (m *Message) isForm() bool {
	value, r := headerSource{name: "content-type"}.readValue(m)
	if r != found {
		return false
	}
	kind, _, _ := bytes.Cut(value, []byte{';'})
	return equalFold(bytes.TrimRight(kind, " \t"), "application/x-www-form-urlencoded")
}

// readParameter reads a parameter among those of a query or form.
func (s *scratch) readParameter(raw []byte, name string) ([]byte, result) {
	value, r := s.findParameter(raw, name)
	switch {
	case r != found:
		return nil, r
	case s.isTooLong(len(value), 3):
		return nil, tooLong
	}
	value, ok := s.unescapeValue(value, true)
	if !ok {
		return nil, missing
	}
	return value, found
}

// findParameter finds the value of a parameter, still encoded, among those of a query or form, as
// the URL standard reads them: "&" alone separates, and names count in their decoded form.
func (s *scratch) findParameter(raw []byte, name string) (value []byte, r result) {
	for len(raw) > 0 {
		var pair []byte
		pair, raw, _ = bytes.Cut(raw, []byte{'&'})
		n, v, _ := bytes.Cut(pair, []byte{'='})
		if !s.isNamed(n, name) {
			continue
		}
		if r == found {
			return nil, ambiguous
		}
		value, r = v, found
	}
	return value, r
}

// isNamed reports whether raw is an encoding of name. A malformed one is none.
func (s *scratch) isNamed(raw []byte, name string) bool {
	if len(raw) < len(name) || len(raw) > 3*len(name) {
		return false
	}
	if !isEncoded(raw, true) {
		return string(raw) == name
	}
	line, ok := appendUnescaped(s.line[:0], raw, true)
	s.line = line
	return ok && string(line) == name
}
