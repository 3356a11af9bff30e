package naming

import (
	"bytes"
	"errors"
	"io"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"hooklock/idem/naming/xmlscan"
)

// maxGrowth bounds how many bytes of UTF-8 one byte of a body becomes. No encoding makes more of
// one: a byte is a letter of three bytes at most, and an encoding of several bytes for a letter
// makes fewer.
const maxGrowth = 3

// Why a document in another encoding than UTF-8 cannot be read. XML 1.0, section 4.3.3 wants an
// error for each of them.
var (
	errXMLEncodingUnknown = errors.New("it declares an encoding that Hooklock does not know")
	errXMLEncodingWrong   = errors.New("its bytes are not in the encoding that it declares")
)

// utf16Of returns the encoding of a document in UTF-16, and the document without its byte order
// mark; nil for another document. Without the mark the two characters "<?" tell, as XML 1.0,
// appendix F says.
func utf16Of(body []byte) (transform.Transformer, []byte) {
	for _, is := range []struct {
		order unicode.Endianness
		mark  string
		begin string
	}{
		{unicode.BigEndian, "\xfe\xff", "\x00<\x00?"},
		{unicode.LittleEndian, "\xff\xfe", "<\x00?\x00"},
	} {
		text, marked := bytes.CutPrefix(body, []byte(is.mark))
		if marked || bytes.HasPrefix(body, []byte(is.begin)) {
			return unicode.UTF16(is.order, unicode.IgnoreBOM).NewDecoder(), text
		}
	}
	return nil, nil
}

// newXMLScanner returns a scanner of the body of m, in UTF-8 or the encoding that it declares. It
// converts as it reads.
func newXMLScanner(m *Message) *xmlscan.Scanner {
	r, charsetReader := xmlInput(m)
	s := xmlscan.New(r)
	s.Charset = charsetReader
	return s
}

// xmlInput returns a reader of the body of m up to the end of its XML declaration, in UTF-8, and
// what makes one of the rest of the encoding that the declaration names.
func xmlInput(m *Message) (begin io.Reader, rest func(label string, r io.Reader) (io.Reader, error)) {
	if decoding, text := utf16Of(m.Body); decoding != nil {
		return newStrictReader(bytes.NewReader(text), decoding, len(text)),
			func(label string, r io.Reader) (io.Reader, error) {
				if _, name := charset.Lookup(label); !isUTF16(name) {
					return nil, errXMLEncodingWrong
				}
				return r, nil
			}
	}
	text := m.bodyText()
	return bytes.NewReader(text), func(label string, r io.Reader) (io.Reader, error) {
		encoding, name := charset.Lookup(label)
		switch {
		case encoding == nil:
			return nil, errXMLEncodingUnknown
		case isUTF16(name), len(text) < len(m.Body): // the byte order mark says UTF-8
			return nil, errXMLEncodingWrong
		}
		return newStrictReader(r, encoding.NewDecoder(), len(text)), nil
	}
}

func isUTF16(name string) bool { return name == "utf-16le" || name == "utf-16be" }

// strictReader reads decoded text. Bytes that their encoding does not have are an error, and not
// the replacement character: otherwise two values that differ in such bytes alone would be one.
type strictReader struct {
	decoded io.Reader
	left    int // how many bytes may follow
	matched int // how many bytes of the replacement character were last
}

func newStrictReader(r io.Reader, decoding transform.Transformer, size int) *strictReader {
	return &strictReader{decoded: transform.NewReader(r, decoding), left: maxGrowth * size}
}

const replacement = "\ufffd"

// Read fills p. It returns errXMLEncodingWrong at the first character that is not in the encoding.
func (s *strictReader) Read(p []byte) (int, error) {
	n, err := s.decoded.Read(p)
	if s.left -= n; s.left < 0 {
		return 0, errXMLEncodingWrong
	}
	for _, c := range p[:n] {
		switch c {
		case replacement[s.matched]:
			s.matched++
		case replacement[0]:
			s.matched = 1
		default:
			s.matched = 0
		}
		if s.matched == len(replacement) {
			return 0, errXMLEncodingWrong
		}
	}
	return n, err
}
