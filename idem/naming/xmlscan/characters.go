package xmlscan

import "unicode/utf8"

// readRune reads the rest of the character that begins with c.
func (s *Scanner) readRune(c byte) (rune, error) {
	r := rune(c)
	if c >= utf8.RuneSelf {
		_ = s.in.UnreadByte()
		read, size, err := s.in.ReadRune()
		if err != nil {
			return 0, err
		}
		if r = read; r == utf8.RuneError && size == 1 {
			return 0, malformedError("the document is not UTF-8")
		}
	}
	if !isCharacter(r) {
		return 0, malformedError("the document has the character %U", r)
	}
	return r, nil
}

// isCharacter is the production Char of XML 1.0, section 2.2.
func isCharacter(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd ||
		r >= 0x10000 && r <= utf8.MaxRune
}

// readReference reads the reference to a character behind its "&".
func (s *Scanner) readReference() (rune, error) {
	c, err := s.readRequired()
	if err != nil {
		return 0, err
	}
	if c == '#' {
		return s.readCharacterCode()
	}
	if _, err = s.readName(c); err != nil {
		return 0, err
	}
	_ = s.in.UnreadByte()
	if c, err = s.readRequired(); err != nil {
		return 0, err
	}
	r, ok := entities[string(s.name)]
	if c != ';' || !ok {
		return 0, malformedError("%q is no entity that each reader knows", s.name)
	}
	return r, nil
}

// entities are the ones of XML 1.0, section 4.6, which need no document type.
var entities = map[string]rune{"lt": '<', "gt": '>', "amp": '&', "apos": '\'', "quot": '"'}

// readCharacterCode reads the digits of a reference, behind its "&#".
func (s *Scanner) readCharacterCode() (rune, error) {
	c, err := s.readRequired()
	base := rune(10)
	if err == nil && c == 'x' {
		base = 16
		c, err = s.readRequired()
	}
	code, digits := rune(0), 0
	for ; err == nil; digits++ {
		digit := digitOf(c)
		if digit < 0 || digit >= base {
			break
		}
		code = min(code*base+digit, utf8.MaxRune+1) // which is no character, as all that are greater
		c, err = s.readRequired()
	}
	switch {
	case err != nil:
		return 0, err
	case digits == 0 || c != ';' || !isCharacter(code):
		return 0, malformedError("a reference names no character")
	}
	return code, nil
}

// digitOf returns the value of a hexadecimal digit, -1 for another byte.
func digitOf(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == ':' || c == '.' ||
		c == '-' || c >= utf8.RuneSelf
}

// isName is the production Name of XML 1.0 (fifth edition), section 2.3.
func isName(name []byte) bool {
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRune(name[i:])
		if r == utf8.RuneError && size == 1 || !startsName(r) && (i == 0 || !continuesName(r)) {
			return false
		}
		i += size
	}
	return len(name) > 0
}

func startsName(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' || r == ':'
	case r < 0x2000:
		return r >= 0xc0 && r != 0xd7 && r != 0xf7 && (r < 0x300 || r >= 0x370) && r != 0x37e
	}
	return r == 0x200c || r == 0x200d || r >= 0x2070 && r <= 0x218f || r >= 0x2c00 && r <= 0x2fef ||
		r >= 0x3001 && r <= 0xd7ff ||
		r >= 0xf900 && r <= 0xfdcf || r >= 0xfdf0 && r <= 0xfffd || r >= 0x10000 && r <= 0xeffff
}

func continuesName(r rune) bool {
	return r >= '0' && r <= '9' || r == '-' || r == '.' || r == 0xb7 || r >= 0x300 && r <= 0x36f || r == 0x203f ||
		r == 0x2040
}
