package naming

import "fmt"

// MaxQuestion bounds a question; bytes.
const MaxQuestion = 2048

// readQuestion returns the URL that says what became of the event of m; "" if a value is missing,
// is given twice or is a step of a path, or if the whole is longer than MaxQuestion. In each value
// only letters, digits and - . _ ~ stand as they are (RFC 3986, section 2.3), so that no delivery
// chooses another path or parameter.
func readQuestion(m *Message, t *Template) string {
	s := &m.scratch
	var failed *failure
	if s.order, failed = t.readParts(m, s.order[:0]); failed != nil {
		return ""
	}
	line := s.line[:0]
	for _, p := range s.order {
		switch {
		case p.source == nil:
			line = append(line, p.value...)
		case string(p.value) == "." || string(p.value) == "..":
			return ""
		default:
			line = appendEscaped(line, p.value)
		}
	}
	if s.line = line; len(line) > MaxQuestion {
		return ""
	}
	return string(line)
}

func appendEscaped(to, value []byte) []byte {
	for _, c := range value {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~':
			to = append(to, c)
		default:
			to = fmt.Appendf(to, "%%%02X", c)
		}
	}
	return to
}
