package protocol

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// codec writes a value field by field, or reads one: one description of a value serves both. The
// first error stays, and ends a reading.
type codec struct {
	data  []byte // what is written, or what is left to be read
	reads bool
	kind  string // of the value that is read, for errors
	err   error
}

// newReader returns a codec that reads b, whose first byte is its version. That comes first: a
// newer release may have changed everything after it.
func newReader(kind string, b []byte, known byte) codec {
	c := codec{reads: true, kind: kind}
	switch {
	case len(b) == 0 || b[0] == 0:
		c.err = corruptError(kind)
	case b[0] == '{':
		c.err = fmt.Errorf("read %s: %w", kind, ErrOlder)
	case b[0] > known:
		c.err = &NewerError{kind, int(b[0]), int(known)}
	case b[0] < known:
		c.err = fmt.Errorf("read %s of version %d: %w", kind, b[0], ErrOlder)
	default:
		c.data = b[1:]
	}
	return c
}

var errShort = errors.New("the value ends too early")

func (c *codec) fail(err error) {
	if c.err != nil {
		return
	}
	if c.err = err; c.reads {
		c.data, c.err = nil, fmt.Errorf("%w: %w", corruptError(c.kind), err)
	}
}

// codeLiteral writes or expects these bytes.
func (c *codec) codeLiteral(b []byte) {
	if !c.reads {
		c.data = append(c.data, b...)
		return
	}
	if len(c.data) < len(b) {
		c.fail(errShort)
		return
	}
	copy(b, c.data)
	c.data = c.data[len(b):]
}

func (c *codec) codeNumber(n *int64) {
	if !c.reads {
		c.data = binary.AppendVarint(c.data, *n)
		return
	}
	v, size := binary.Varint(c.data)
	if size <= 0 {
		c.fail(errShort)
		return
	}
	*n, c.data = v, c.data[size:]
}

func (c *codec) codeUint(n *uint64) {
	if !c.reads {
		c.data = binary.AppendUvarint(c.data, *n)
		return
	}
	v, size := binary.Uvarint(c.data)
	if size <= 0 {
		c.fail(errShort)
		return
	}
	*n, c.data = v, c.data[size:]
}

func (c *codec) codeInt(n *int) {
	wide := int64(*n)
	if c.codeNumber(&wide); wide < math.MinInt32 || wide > math.MaxInt32 {
		c.fail(errors.New("a number is too large"))
		return
	}
	*n = int(wide)
}

// codeFlags codes all flags as one number.
func (c *codec) codeFlags(flags ...*bool) {
	var bits uint64
	for i, flag := range flags {
		if *flag {
			bits |= 1 << i
		}
	}
	c.codeUint(&bits)
	for i, flag := range flags {
		*flag = bits>>i&1 == 1
	}
	if bits>>len(flags) != 0 {
		c.fail(errors.New("a flag is not known"))
	}
}

// codeDuration codes two numbers, mostly of few bytes: whole seconds, and nanoseconds.
func (c *codec) codeDuration(d *time.Duration) {
	whole, nanos := int64(*d/time.Second), int64(*d%time.Second)
	if nanos < 0 {
		whole, nanos = whole-1, nanos+int64(time.Second)
	}
	c.codeNumber(&whole)
	rest := uint64(nanos) //nolint:gosec // it is not negative
	if c.codeUint(&rest); rest >= uint64(time.Second) {
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

// codeTime codes a time in UTC, as the difference to base.
func (c *codec) codeTime(t *time.Time, base time.Time) {
	since, nanos := t.Unix()-base.Unix(), uint64(t.Nanosecond()) //nolint:gosec // it is not negative
	c.codeNumber(&since)
	if c.codeUint(&nanos); nanos >= uint64(time.Second) {
		c.fail(errors.New("more than a second of nanoseconds"))
		return
	}
	if c.reads {
		*t = time.Unix(base.Unix()+since, int64(nanos)).UTC() //nolint:gosec // checked here
	}
}

// codeMicros codes a time in whole microseconds, in fewer bytes than codeTime.
func (c *codec) codeMicros(t *time.Time, base time.Time) {
	since := t.UnixMicro() - base.UnixMicro()
	if c.codeNumber(&since); c.reads {
		*t = time.UnixMicro(base.UnixMicro() + since).UTC()
	}
}

// epoch is the base of times without a better one: 2026-01-01.
var epoch = time.Unix(1767225600, 0)

// form is a way to store text of a few characters: groups of them as one number each, and what is
// left of it as it is.
type form struct {
	digits       string
	chars, bytes int        // of a group
	values       [256]int16 // of each character: its place in digits; -1 = it has none
}

func newForm(digits string, chars, bytes int) *form {
	f := &form{digits: digits, chars: chars, bytes: bytes}
	for i := range f.values {
		f.values[i] = int16(strings.IndexByte(digits, byte(i))) //nolint:gosec // both are below 256
	}
	return f
}

// forms has the shortest first. The last one takes any text, as it is.
var forms = [4]*form{
	newForm("0123456789abcdef", 2, 1),
	newForm("0123456789abcdefghijklmnopqrstuvwxyz-./_", 3, 2),
	newForm("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz/_", 4, 3),
	{chars: math.MaxInt},
}

func (f *form) canPack(s string) bool {
	for i := range len(s) {
		if f.values[s[i]] < 0 {
			return false
		}
	}
	return true
}

// codeText codes text in the first form that takes it, behind its length and the number of the
// form: names, IDs and hashes are most of a record.
func (c *codec) codeText(s *string) {
	i := 0
	for !forms[i].canPack(*s) {
		i++
	}
	n := uint64(len(*s)*len(forms) + i) //nolint:gosec // neither is negative
	if c.codeUint(&n); c.reads {
		*s = forms[n%uint64(len(forms))].unpackText(c, n/uint64(len(forms)))
		return
	}
	forms[i].packText(c, *s)
}

// packText writes s. It must be a text that f can pack.
func (f *form) packText(c *codec, s string) {
	for ; len(s) >= f.chars; s = s[f.chars:] {
		n := 0
		for i := range f.chars {
			n = n*len(f.digits) + int(f.values[s[i]])
		}
		for i := f.bytes - 1; i >= 0; i-- {
			c.data = append(c.data, byte(n>>(8*i))) //nolint:gosec // one of its bytes
		}
	}
	c.data = append(c.data, s...)
}

// unpackText reads text of so many characters. No form has more than two in a byte.
func (f *form) unpackText(c *codec, size uint64) string {
	if size > 2*uint64(len(c.data)) {
		c.fail(errShort)
		return ""
	}
	text := make([]byte, int(size)) //nolint:gosec // checked here
	at := 0
	for ; at+f.chars <= len(text); at += f.chars {
		n := 0
		for _, b := range c.takeBytes(uint64(f.bytes)) { //nolint:gosec // it is not negative
			n = n<<8 | int(b)
		}
		for i := f.chars - 1; i >= 0; i-- {
			text[at+i] = f.digits[n%len(f.digits)]
			n /= len(f.digits)
		}
		if n > 0 {
			c.fail(errors.New("a group of text is too large"))
		}
	}
	copy(text[at:], c.takeBytes(uint64(len(text)-at))) //nolint:gosec // it is not negative
	return string(text)
}

// codeTrace codes a trace parent of version 00 without its dashes, which leaves nothing but hex.
func (c *codec) codeTrace(s *string) {
	text := *s
	if len(text) == 55 && text[:3] == "00-" && text[35] == '-' && text[52] == '-' {
		text = text[3:35] + text[36:52] + text[53:]
	}
	if c.codeText(&text); len(text) == 50 {
		text = "00-" + text[:32] + "-" + text[32:48] + "-" + text[48:]
	}
	*s = text
}

// takeBytes returns the next n bytes of the input, without a copy.
func (c *codec) takeBytes(n uint64) []byte {
	if n > uint64(len(c.data)) {
		c.fail(errShort)
		return nil
	}
	b := c.data[:n:n]
	c.data = c.data[n:]
	return b
}

// codeWord codes one of a few words, or another text.
func codeWord[T ~string](c *codec, s *T, words []T) {
	var n uint64
	if !c.reads {
		for i, w := range words {
			if w == *s {
				n = uint64(i) + 1 //nolint:gosec // it is small
			}
		}
	}
	switch c.codeUint(&n); {
	case n > uint64(len(words)):
		c.fail(errors.New("a word is not known"))
	case n > 0:
		*s = words[n-1]
	default:
		codeTextOf(c, s)
	}
}

// codeTextOf codes a text of any type.
func codeTextOf[T ~string](c *codec, s *T) {
	text := string(*s)
	c.codeText(&text)
	*s = T(text)
}

// codeJSON codes fields that few values have, in one array.
func (c *codec) codeJSON(fields ...any) {
	var text []byte
	if !c.reads {
		var err error
		if text, err = json.Marshal(fields); err != nil {
			c.fail(err)
		}
	}
	n := uint64(len(text))
	c.codeUint(&n)
	if !c.reads {
		c.data = append(c.data, text...)
		return
	}
	if err := json.Unmarshal(c.takeBytes(n), &fields); err != nil {
		c.fail(err)
	}
}
