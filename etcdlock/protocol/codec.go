package protocol

import (
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"
)

// codec writes a value field by field, or reads one: one description of a value serves both. The first error stays, and ends a reading.
type codec struct {
	b     []byte // what is written, or what is left to be read
	reads bool
	err   error
}

var errShort = errors.New("the value ends too early")

func (c *codec) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	if c.reads {
		c.b = nil
	}
}

// fixed writes or expects these bytes.
func (c *codec) fixed(b []byte) {
	if !c.reads {
		c.b = append(c.b, b...)
		return
	}
	if len(c.b) < len(b) {
		c.fail(errShort)
		return
	}
	copy(b, c.b)
	c.b = c.b[len(b):]
}

func (c *codec) number(n *int64) {
	if !c.reads {
		c.b = binary.AppendVarint(c.b, *n)
		return
	}
	v, size := binary.Varint(c.b)
	if size <= 0 {
		c.fail(errShort)
		return
	}
	*n, c.b = v, c.b[size:]
}

func (c *codec) unsigned(n *uint64) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, *n)
		return
	}
	v, size := binary.Uvarint(c.b)
	if size <= 0 {
		c.fail(errShort)
		return
	}
	*n, c.b = v, c.b[size:]
}

func (c *codec) int(n *int) {
	wide := int64(*n)
	if c.number(&wide); wide < math.MinInt32 || wide > math.MaxInt32 {
		c.fail(errors.New("a number is too large"))
		return
	}
	*n = int(wide)
}

// flags codes all flags as one number.
func (c *codec) flags(flags ...*bool) {
	var bits uint64
	for i, flag := range flags {
		if *flag {
			bits |= 1 << i
		}
	}
	c.unsigned(&bits)
	for i, flag := range flags {
		*flag = bits>>i&1 == 1
	}
	if bits>>len(flags) != 0 {
		c.fail(errors.New("a flag is not known"))
	}
}

// duration codes two numbers, mostly of few bytes: whole seconds, and nanoseconds.
func (c *codec) duration(d *time.Duration) {
	whole, nanos := int64(*d/time.Second), int64(*d%time.Second)
	if nanos < 0 {
		whole, nanos = whole-1, nanos+int64(time.Second)
	}
	c.number(&whole)
	rest := uint64(nanos) //nolint:gosec // it is not negative
	if c.unsigned(&rest); rest >= uint64(time.Second) {
		c.fail(errors.New("more than a second of nanoseconds"))
		return
	}
	nanos = int64(rest) //nolint:gosec // checked here
	if most := int64(math.MaxInt64/time.Second) - 1; whole > most || whole < -most {
		c.fail(errors.New("a time is too long"))
		return
	}
	*d = time.Duration(whole)*time.Second + time.Duration(nanos)
}

// time codes a time in UTC, as the difference to base.
func (c *codec) time(t *time.Time, base time.Time) {
	since, nanos := t.Unix()-base.Unix(), uint64(t.Nanosecond()) //nolint:gosec // it is not negative
	c.number(&since)
	if c.unsigned(&nanos); nanos >= uint64(time.Second) {
		c.fail(errors.New("more than a second of nanoseconds"))
		return
	}
	if c.reads {
		*t = time.Unix(base.Unix()+since, int64(nanos)).UTC() //nolint:gosec // checked here
	}
}

// micros codes a time in whole microseconds, in fewer bytes than time.
func (c *codec) micros(t *time.Time, base time.Time) {
	since := t.UnixMicro() - base.UnixMicro()
	if c.number(&since); c.reads {
		*t = time.UnixMicro(base.UnixMicro() + since).UTC()
	}
}

// epoch is the base of times without a better one: 2026-01-01.
var epoch = time.Unix(1767225600, 0)

// The forms of text, in the lowest bits of its length: as it is, or as the bytes that it encodes.
const (
	textPlain  = iota
	textHex    // lower case
	textBase32 // lower case, without padding
	textTrace  // a traceparent of version 00
	textForms  = 4
)

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// text codes hex in half as many bytes, and base32 in five eighths: hashes and names of sessions are most of an entry.
func (c *codec) text(s *string) {
	if !c.reads {
		c.pack(*s)
		return
	}
	var n uint64
	c.unsigned(&n)
	bytes := c.take(n / textForms)
	switch n % textForms {
	case textHex:
		*s = hex.EncodeToString(bytes)
	case textBase32:
		*s = lowerBase32.EncodeToString(bytes)
	case textTrace:
		if len(bytes) != traceBytes {
			c.fail(errors.New("a trace has another length"))
			return
		}
		*s = "00-" + hex.EncodeToString(bytes[:16]) + "-" + hex.EncodeToString(bytes[16:24]) + "-" + hex.EncodeToString(bytes[24:])
	default:
		*s = string(bytes)
	}
}

const traceBytes = 16 + 8 + 1

// pack writes text in its shortest form.
func (c *codec) pack(s string) {
	n, before := len(s), len(c.b)
	if n == 55 && strings.HasPrefix(s, "00-") && s[35] == '-' && s[52] == '-' {
		c.length(traceBytes, textTrace)
		if c.unhex(s[3:35]) && c.unhex(s[36:52]) && c.unhex(s[53:]) {
			return
		}
		c.b = c.b[:before]
	}
	if n > 0 && n%2 == 0 {
		if c.length(n/2, textHex); c.unhex(s) {
			return
		}
		c.b = c.b[:before]
	}
	if n > 0 && n%8 == 0 && strings.IndexFunc(s, notBase32) < 0 {
		c.length(n/8*5, textBase32)
		c.b, _ = lowerBase32.AppendDecode(c.b, []byte(s)) // it has whole groups of letters of that alphabet
		return
	}
	c.length(n, textPlain)
	c.b = append(c.b, s...)
}

func notBase32(r rune) bool { return (r < 'a' || r > 'z') && (r < '2' || r > '7') }

func (c *codec) length(n, form int) {
	c.b = binary.AppendUvarint(c.b, uint64(n*textForms+form)) //nolint:gosec // neither is negative
}

// unhex appends the bytes of lower-case hex of an even length; false: s is not hex.
func (c *codec) unhex(s string) bool {
	for i := 0; i < len(s); i += 2 {
		high, low := nibble(s[i]), nibble(s[i+1])
		if high < 0 || low < 0 {
			return false
		}
		c.b = append(c.b, byte(high<<4|low)) //nolint:gosec // both are below 16
	}
	return true
}

func nibble(digit byte) int {
	switch {
	case digit >= '0' && digit <= '9':
		return int(digit - '0')
	case digit >= 'a' && digit <= 'f':
		return int(digit - 'a' + 10)
	}
	return -1
}

// take returns the next n bytes of the input, without a copy.
func (c *codec) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.fail(errShort)
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

// word codes one of a few words, or another text.
func word[T ~string](c *codec, s *T, words []T) {
	var n uint64
	if !c.reads {
		for i, w := range words {
			if w == *s {
				n = uint64(i) + 1 //nolint:gosec // it is small
			}
		}
	}
	switch c.unsigned(&n); {
	case n > uint64(len(words)):
		c.fail(errors.New("a word is not known"))
	case n > 0:
		*s = words[n-1]
	default:
		text := string(*s)
		c.text(&text)
		*s = T(text)
	}
}

// json codes fields that few values have, in one array.
func (c *codec) json(fields ...any) {
	var text []byte
	if !c.reads {
		var err error
		if text, err = json.Marshal(fields); err != nil {
			c.fail(err)
		}
	}
	n := uint64(len(text))
	c.unsigned(&n)
	if !c.reads {
		c.b = append(c.b, text...)
		return
	}
	if err := json.Unmarshal(c.take(n), &fields); err != nil {
		c.fail(err)
	}
}
