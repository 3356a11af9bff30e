package wire

import "bytes"

// tokenBytes are the bytes of a field name or a method (RFC 9110 section 5.6.2).
var tokenBytes = byteSet("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

func byteSet(s string) (set [256]bool) {
	for i := range len(s) {
		set[s[i]] = true
	}
	return set
}

// isToken reports whether b is a non-empty token. White space is none, so `Name :` and folded lines
// fail here.
func isToken(b []byte) bool {
	for _, c := range b {
		if !tokenBytes[c] {
			return false
		}
	}
	return len(b) > 0
}

// isText reports whether b may be a field value or a reason: no control byte but the tab. CR, LF
// and NUL inside a line are what smuggling is made of.
func isText(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

func isAlnum(c byte) bool {
	c = lowerByte(c)
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
}

// equalFold compares b with want, which is in lower case, for ASCII only.
func equalFold(b []byte, want string) bool {
	return len(b) == len(want) && hasPrefixFold(b, want)
}

func hasPrefixFold(b []byte, want string) bool {
	if len(b) < len(want) {
		return false
	}
	for i := range len(want) {
		if lowerByte(b[i]) != want[i] {
			return false
		}
	}
	return true
}

// trimSpace cuts the optional white space of RFC 9110 section 5.6.3, which is SP and HTAB only.
func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// nextListed cuts the first element off a comma-separated list. An element may be empty.
func nextListed(list []byte) (element, rest []byte) {
	element, rest, _ = bytes.Cut(list, []byte{','})
	return trimSpace(element), rest
}

// listContains reports whether a comma-separated list names want (lower case).
func listContains(list []byte, want string) bool {
	for len(list) > 0 {
		var element []byte
		if element, list = nextListed(list); equalFold(element, want) {
			return true
		}
	}
	return false
}

const maxInt64 = 1<<63 - 1

// parseLength reads digits, and nothing but digits. False for anything else and for more than an
// int64.
func parseLength(b []byte) (int64, bool) {
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := int64(c - '0')
		if n > (maxInt64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, len(b) > 0
}

// parseHex is parseLength for the size of a chunk.
func parseHex(b []byte) (int64, bool) {
	var n int64
	for _, c := range b {
		var d int64
		switch c = lowerByte(c); {
		case '0' <= c && c <= '9':
			d = int64(c - '0')
		case 'a' <= c && c <= 'f':
			d = int64(c-'a') + 10
		default:
			return 0, false
		}
		if n > maxInt64>>5 {
			return 0, false
		}
		n = n<<4 | d
	}
	return n, len(b) > 0
}
