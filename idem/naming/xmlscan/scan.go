// Package xmlscan reads XML that strangers send, in memory that does not grow with the document. A
// token of encoding/xml has all attributes of its element, and text as long as the document: 8 MiB
// of attributes took 300 MiB.
package xmlscan

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// What a document may have at most; one that has more is refused.
const (
	MaxDepth = 300  // elements inside of each other
	MaxName  = 1024 // bytes of the name of an element or attribute
	// maxDeclaration bounds the instruction <?xml …?>, in bytes.
	maxDeclaration = 1024
	// maxChunk is how many bytes of text one token has, and a character more.
	maxChunk = 1024
)

// Kind says what a token is.
type Kind uint8

// The kinds of tokens. An element without content is a Start and an End.
const (
	Start Kind = iota + 1
	End
	Text  // a piece of text: text of some length is several tokens
	Aside // a comment or processing instruction
)

// Why a document is not read, beside errors of its form: what the entities of a document type mean
// is up to the reader.
var (
	ErrDoctype = errors.New("it has a document type, whose entities each reader may read differently")
	errRoots   = errors.New("it has no single root element")
	errOutside = errors.New("it has text outside of its root element")
	errDeep    = fmt.Errorf("its elements are nested deeper than %d", MaxDepth)
	errLate    = errors.New("it declares an encoding after its beginning")
	errEnd     = errors.New("it is not well-formed: it ends too early")
	errLong    = fmt.Errorf("it has a name of more than %d bytes", MaxName)
)

// A Scanner reads one XML 1.0 document. It accepts nothing that encoding/xml refuses, names with
// newer letters excepted, and refuses, beside what is over the bounds: a document type, two roots,
// text beside the root, and an XML declaration that is not at the beginning. It is not safe for
// concurrent use.
type Scanner struct {
	// Charset returns a reader of UTF-8 for the rest of a document that declares another encoding.
	// Nil: such a document is an error.
	Charset func(label string, rest io.Reader) (io.Reader, error)

	in      *bufio.Reader
	started bool
	roots   int
	mode    mode
	open    []byte // the names of the open elements, one behind the other
	ends    []int  // where each of them ends in open
	name    []byte // of the name that was read last
	local   []byte // of the element of the token
	text    []byte // of the token
	closing int    // how many "]" the text ended in last; in CDATA those of them that are in no piece yet, 2 at most
	err     error
}

// mode is where the scanner is between two tokens.
type mode uint8

const (
	inContent mode = iota
	inCDATA
	inEmpty // behind the start of an element that has no content
)

// New returns a scanner of the document that r reads.
func New(r io.Reader) *Scanner { return &Scanner{in: bufio.NewReaderSize(r, 1024)} }

// Name returns the local name of the element of a Start or End. It is valid until the next token.
func (s *Scanner) Name() []byte { return s.local }

// Text returns the decoded text of a Text. It is valid until the next token.
func (s *Scanner) Text() []byte { return s.text }

// Depth returns how many elements are open: behind a Start its element is, behind an End it is not.
func (s *Scanner) Depth() int { return len(s.ends) }

// Next reads the next token. It returns io.EOF at the end of a whole document, and afterwards the
// same error again.
func (s *Scanner) Next() (kind Kind, err error) {
	if s.err == nil {
		kind, s.err = s.next()
	}
	if s.err != nil {
		return 0, s.err
	}
	return kind, nil
}

func (s *Scanner) next() (Kind, error) {
	switch s.mode {
	case inEmpty:
		s.mode = inContent
		s.closeElement()
		return End, nil
	case inCDATA:
		return s.readCDATA()
	}
	if !s.started {
		s.skipByteOrderMark()
	}
	c, err := s.in.ReadByte()
	switch {
	case err == io.EOF && s.roots == 0:
		return 0, errRoots
	case err == io.EOF && len(s.ends) > 0:
		return 0, errEnd
	case err != nil:
		return 0, err
	case c != '<':
		s.started = true
		return s.readText(c)
	}
	s.closing = 0
	if c, err = s.readRequired(); err != nil {
		return 0, err
	}
	first := !s.started
	s.started = true
	switch c {
	case '/':
		return s.readEnd()
	case '?':
		return s.readInstruction(first)
	case '!':
		return s.readDeclaration()
	}
	return s.readStart(c)
}

func (s *Scanner) skipByteOrderMark() {
	if mark, _ := s.in.Peek(3); string(mark) == "\ufeff" {
		_, _ = s.in.Discard(3)
	}
}

// readRequired reads a byte that has to be there.
func (s *Scanner) readRequired() (byte, error) {
	c, err := s.in.ReadByte()
	if err == io.EOF {
		err = errEnd
	}
	return c, err
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// mustAfterSpace reads the first byte that is no space.
func (s *Scanner) mustAfterSpace() (byte, error) {
	for {
		if c, err := s.readRequired(); err != nil || !isSpace(c) {
			return c, err
		}
	}
}

func malformedError(format string, args ...any) error {
	return fmt.Errorf("it is not well-formed: "+format, args...)
}

// readName reads a name that begins with c, and the byte behind it.
func (s *Scanner) readName(c byte) (behind byte, err error) {
	s.name = s.name[:0]
	for isNameByte(c) {
		if len(s.name) == MaxName {
			return 0, errLong
		}
		s.name = append(s.name, c)
		if c, err = s.readRequired(); err != nil {
			return 0, err
		}
	}
	if !isName(s.name) {
		return 0, malformedError("%q is no name", s.name)
	}
	return c, nil
}

// readQualifiedName is readName of an element or attribute. It returns the part of the name behind
// the prefix, too.
func (s *Scanner) readQualifiedName(c byte) (local []byte, behind byte, err error) {
	if behind, err = s.readName(c); err != nil {
		return nil, 0, err
	}
	prefix, local, ok := bytes.Cut(s.name, []byte{':'})
	switch {
	case bytes.IndexByte(local, ':') >= 0:
		return nil, 0, malformedError("%q has two prefixes", s.name)
	case !ok || len(prefix) == 0 || len(local) == 0:
		local = s.name
	}
	return local, behind, nil
}

func (s *Scanner) readStart(c byte) (Kind, error) {
	local, c, err := s.readQualifiedName(c)
	switch {
	case err != nil:
		return 0, err
	case len(s.ends) == MaxDepth:
		return 0, errDeep
	case len(s.ends) == 0 && s.roots > 0:
		return 0, errRoots
	case len(s.ends) == 0:
		s.roots++
	}
	s.local = append(s.local[:0], local...)
	s.open = append(s.open, s.name...)
	s.ends = append(s.ends, len(s.open))
	for {
		if isSpace(c) {
			if c, err = s.mustAfterSpace(); err != nil {
				return 0, err
			}
		}
		switch c {
		case '/':
			if c, err = s.readRequired(); err == nil && c != '>' {
				err = malformedError(`%q stands behind the "/" of an element`, c)
			}
			s.mode = inEmpty
			return Start, err
		case '>':
			return Start, nil
		}
		if err = s.skipAttribute(c); err != nil {
			return 0, err
		}
		if c, err = s.readRequired(); err != nil {
			return 0, err
		}
	}
}

// skipAttribute reads an attribute that begins with c.
func (s *Scanner) skipAttribute(c byte) error {
	_, c, err := s.readQualifiedName(c)
	if err == nil && isSpace(c) {
		c, err = s.mustAfterSpace()
	}
	if err == nil && c != '=' {
		err = malformedError(`the attribute %q has no "="`, s.name)
	}
	var quote byte
	if err == nil {
		quote, err = s.mustAfterSpace()
	}
	if err == nil && quote != '"' && quote != '\'' {
		err = malformedError("the value of the attribute %q has no quotes", s.name)
	}
	for err == nil {
		if c, err = s.readRequired(); err != nil {
			return err
		}
		switch c {
		case quote:
			return nil
		case '<':
			return malformedError(`the value of the attribute %q has a "<"`, s.name)
		case '&':
			_, err = s.readReference()
		default:
			_, err = s.readRune(c)
		}
	}
	return err
}

func (s *Scanner) readEnd() (Kind, error) {
	c, err := s.readRequired()
	if err != nil {
		return 0, err
	}
	local, c, err := s.readQualifiedName(c)
	if err == nil && isSpace(c) {
		c, err = s.mustAfterSpace()
	}
	switch {
	case err != nil:
		return 0, err
	case c != '>':
		return 0, malformedError("%q stands in the end of %q", c, s.name)
	case !bytes.Equal(s.openName(), s.name):
		return 0, malformedError("%q ends where %q is open", s.name, s.openName())
	}
	s.local = append(s.local[:0], local...)
	s.closeElement()
	return End, nil
}

// openName returns the whole name of the innermost open element, nil if none is open.
func (s *Scanner) openName() []byte {
	switch n := len(s.ends); n {
	case 0:
		return nil
	case 1:
		return s.open
	default:
		return s.open[s.ends[n-2]:]
	}
}

func (s *Scanner) closeElement() {
	s.open = s.open[:len(s.open)-len(s.openName())]
	s.ends = s.ends[:len(s.ends)-1]
}

// readInstruction reads a processing instruction. first: it is at the beginning of the document.
func (s *Scanner) readInstruction(first bool) (Kind, error) {
	c, err := s.readRequired()
	if err == nil {
		c, err = s.readName(c)
	}
	if err != nil {
		return 0, err
	}
	declares := string(s.name) == "xml"
	if declares && !first {
		return 0, errLate
	}
	var content []byte
	for last := byte(0); last != '?' || c != '>'; {
		if declares {
			if content = append(content, c); len(content) > maxDeclaration {
				return 0, malformedError("the document's declaration is longer than %d bytes", maxDeclaration)
			}
		}
		last = c
		if c, err = s.readRequired(); err != nil {
			return 0, err
		}
	}
	if declares {
		err = s.readEncoding(string(content))
	}
	return Aside, err
}

// readEncoding goes on in the encoding that the content of an XML declaration names.
func (s *Scanner) readEncoding(content string) error {
	if version, ok := declaredValue(content, "version"); ok && version != "1.0" {
		return fmt.Errorf("it is of XML %q, and 1.0 alone is read", version)
	}
	label, ok := declaredValue(content, "encoding")
	if !ok || strings.EqualFold(label, "utf-8") {
		return nil
	}
	if s.Charset == nil {
		return fmt.Errorf("it declares the encoding %q, and UTF-8 alone is read", label)
	}
	r, err := s.Charset(label, s.in)
	if err == nil {
		s.in = bufio.NewReader(r)
	}
	return err
}

// declaredValue returns what the content of an XML declaration has under a name.
func declaredValue(content, name string) (value string, ok bool) {
	for rest := content; ; {
		_, behind, found := strings.Cut(rest, name)
		if !found {
			return "", false
		}
		rest = behind
		behind, found = strings.CutPrefix(strings.TrimLeft(behind, " \t\r\n"), "=")
		behind = strings.TrimLeft(behind, " \t\r\n")
		if !found || behind == "" || behind[0] != '"' && behind[0] != '\'' {
			continue
		}
		value, _, ok = strings.Cut(behind[1:], behind[:1])
		return value, ok
	}
}

// readDeclaration reads what begins with "<!": a comment or the beginning of a CDATA section.
func (s *Scanner) readDeclaration() (Kind, error) {
	c, err := s.readRequired()
	if err != nil {
		return 0, err
	}
	switch c {
	case '-':
		return s.skipComment()
	case '[':
		for _, want := range []byte("CDATA[") {
			if c, err = s.readRequired(); err != nil {
				return 0, err
			}
			if c != want {
				return 0, malformedError(`the document has a "<![" without CDATA`)
			}
		}
		if len(s.ends) == 0 {
			return 0, errOutside
		}
		s.mode = inCDATA
		return s.readCDATA()
	}
	return 0, ErrDoctype
}

func (s *Scanner) skipComment() (Kind, error) {
	c, err := s.readRequired()
	if err == nil && c != '-' {
		err = malformedError(`the document has a "<!-" that begins no comment`)
	}
	for dashes := 0; err == nil; {
		if c, err = s.readRequired(); err != nil {
			break
		}
		switch {
		case dashes == 2 && c == '>':
			return Aside, nil
		case dashes == 2:
			return 0, malformedError(`a comment has a "--" inside`)
		case c == '-':
			dashes++
		default:
			dashes = 0
		}
	}
	return 0, err
}

// readCDATA reads a piece of a CDATA section. Brackets that may belong to its end are in no piece
// until more is known.
func (s *Scanner) readCDATA() (Kind, error) {
	s.text = s.text[:0]
	for len(s.text) < maxChunk {
		c, err := s.readRequired()
		if err != nil {
			return 0, err
		}
		switch {
		case c == ']' && s.closing < 2:
			s.closing++
			continue
		case c == ']':
			s.text = append(s.text, ']')
			continue
		case c == '>' && s.closing == 2:
			s.mode, s.closing = inContent, 0
			return Text, nil
		}
		s.text = append(s.text, "]]"[:s.closing]...)
		s.closing = 0
		if err := s.appendRune(c); err != nil {
			return 0, err
		}
	}
	return Text, nil
}

// readText reads a piece of text that begins with c.
func (s *Scanner) readText(c byte) (Kind, error) {
	s.text = s.text[:0]
	for {
		if err := s.appendText(c); err != nil {
			return 0, err
		}
		if len(s.text) >= maxChunk {
			break
		}
		var err error
		if c, err = s.in.ReadByte(); err == io.EOF {
			break
		} else if err != nil {
			return 0, err
		}
		if c == '<' {
			_ = s.in.UnreadByte()
			break
		}
	}
	if len(s.ends) == 0 && len(bytes.TrimLeft(s.text, " \t\r\n")) > 0 {
		return 0, errOutside
	}
	return Text, nil
}

func (s *Scanner) appendText(c byte) error {
	if c == '&' {
		s.closing = 0
		r, err := s.readReference()
		s.text = utf8.AppendRune(s.text, r)
		return err
	}
	switch {
	case c == ']':
		s.closing++
	case c == '>' && s.closing >= 2:
		return malformedError(`the document's text has a "]]>"`)
	default:
		s.closing = 0
	}
	return s.appendRune(c)
}

// appendRune appends the character that begins with c to the text. Line ends become "\n" (XML 1.0,
// section 2.11).
func (s *Scanner) appendRune(c byte) error {
	if c == '\r' {
		if next, err := s.in.ReadByte(); err == nil && next != '\n' {
			_ = s.in.UnreadByte()
		}
		c = '\n'
	}
	r, err := s.readRune(c)
	s.text = utf8.AppendRune(s.text, r)
	return err
}
