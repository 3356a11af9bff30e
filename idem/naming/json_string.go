package naming

import (
	"unicode/utf16"
	"unicode/utf8"
)

// appendJSONString appends the decoded inside of a checked JSON string. A surrogate without its
// other half is not ok: no text has it, and readers put different things in its place.
func appendJSONString(b, raw []byte) ([]byte, bool) {
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			b = append(b, raw[i])
			i++
			continue
		}
		c := raw[i+1]
		if c != 'u' {
			b = append(b, shortEscape(c))
			i += 2
			continue
		}
		r := hexRune(raw[i+2:])
		i += 6
		if utf16.IsSurrogate(r) {
			if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
				return b, false
			}
			if r = utf16.DecodeRune(r, hexRune(raw[i+2:])); r == utf8.RuneError {
				return b, false
			}
			i += 6
		}
		b = utf8.AppendRune(b, r)
	}
	return b, true
}

func hexRune(b []byte) rune {
	return rune(fromHex(b[0])<<12 | fromHex(b[1])<<8 | fromHex(b[2])<<4 | fromHex(b[3]))
}

// shortEscape is what a backslash and c stand for.
func shortEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c // quote, backslash, slash
}
