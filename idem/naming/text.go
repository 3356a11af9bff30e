package naming

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const upperHex = "0123456789ABCDEF"

// appendPrintable appends v with "%", control characters, line and direction marks, and bytes that
// are no UTF-8 as %XX. What is escaped is a fixed list, not Unicode's tables, because two releases
// must build the same workflow from the same value.
func appendPrintable(b, v []byte) []byte {
	for i := 0; i < len(v); {
		if c := v[i]; c < utf8.RuneSelf {
			if c < 0x20 || c == 0x7f || c == '%' {
				b = append(b, '%', upperHex[c>>4], upperHex[c&15])
			} else {
				b = append(b, c)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(v[i:])
		for _, c := range v[i : i+size] {
			if r == utf8.RuneError && size == 1 || isHidden(r) {
				b = append(b, '%', upperHex[c>>4], upperHex[c&15])
			} else {
				b = append(b, c)
			}
		}
		i += size
	}
	return b
}

// Spelled converts an event ID from its sender's spelling to the one in Names. An ID that is
// already spelled so stays: if the sender itself writes in that spelling, as "a%25b", the caller
// has to give what Names have, "a%2525b".
func Spelled(eventID string) string {
	given := []byte(eventID)
	if plain, ok := appendUnescaped(nil, given, false); ok && string(appendPrintable(nil, plain)) == eventID {
		return eventID
	}
	return string(appendPrintable(nil, given))
}

// SpelledPattern converts a pattern of workflows to the spelling in Names. It takes a name as Names
// have it, as a URL has it ("a%20b"), and as it is ("50%"). An escaped "*" does not become one that
// stands for any characters.
func SpelledPattern(pattern string) string {
	plain, ok := appendUnescaped(nil, []byte(pattern), false)
	if !ok || bytes.Count(plain, []byte("*")) != strings.Count(pattern, "*") {
		return Spelled(pattern)
	}
	return string(appendPrintable(nil, plain))
}

// isHidden reports whether r is one of the C1 controls, line and paragraph separators, and marks
// that turn or hide the text around them.
func isHidden(r rune) bool {
	return r >= 0x80 && r < 0xa0 || r == 0x61c || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e ||
		r >= 0x2060 && r <= 0x206f || r == 0xfeff
}

// appendLower appends v with the letters A to Z in lower case.
func appendLower(b, v []byte) []byte {
	for _, c := range v {
		b = append(b, lowerByte(c))
	}
	return b
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// equalFold compares b with an ASCII text, without regard to case. What folds to an ASCII letter
// from elsewhere is longer.
func equalFold(b []byte, text string) bool {
	return len(b) == len(text) && bytes.EqualFold(b, []byte(text))
}

// unescapeValue decodes the %XX of v once, and "+" as a space if plus is set. It returns v itself
// where nothing is encoded, else memory at the end of s.values. A malformed escape is not ok:
// readers disagree on what it means.
func (s *scratch) unescapeValue(v []byte, plus bool) (value []byte, ok bool) {
	if !isEncoded(v, plus) {
		return v, true
	}
	from := len(s.values)
	values, ok := appendUnescaped(s.values, v, plus)
	if !ok {
		return nil, false
	}
	return s.commitValue(values, from), true
}

func isEncoded(v []byte, plus bool) bool {
	for _, c := range v {
		if c == '%' || plus && c == '+' {
			return true
		}
	}
	return false
}

func appendUnescaped(b, v []byte, plus bool) ([]byte, bool) {
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case c == '+' && plus:
			c = ' '
		case c == '%':
			if i+2 >= len(v) || fromHex(v[i+1]) < 0 || fromHex(v[i+2]) < 0 {
				return b, false
			}
			c = byte(fromHex(v[i+1])<<4 | fromHex(v[i+2]))
			i += 2
		}
		b = append(b, c)
	}
	return b, true
}

// fromHex returns the value of a hex digit, or -1.
func fromHex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
