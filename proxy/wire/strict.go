package wire

import (
	"bytes"
	"errors"
	"io"
)

// Reasons why the bytes of a sender are refused before they are parsed.
var (
	errBareLF   = errors.New("line ends with a bare LF")
	errChunk    = errors.New("chunk is not strictly formed")
	errTrailer  = errors.New("trailer line is not strictly formed")
	errLongLine = errors.New("line of the chunked framing, or one that frames the body, is too long")
)

const (
	// framingLine bounds a header line that frames the body: its name and twenty digits or
	// `chunked`, with some white space.
	framingLine = 64
	// chunkLine bounds a line of the chunked framing: a chunk's size with its extension, or a
	// trailer.
	chunkLine = 4 << 10
	// trailerBytes bounds a trailer section.
	trailerBytes = 16 << 10
)

// strict follows the raw bytes that a sender's connection brings, and lets none through from the
// first on that a strictly formed request does not have there. fasthttp v1.78 reads behind it, and
// forgives in the request line and in the chunked framing what no caller can see afterwards: bare
// LF, white space before a trailer's colon, folded trailers, control bytes and no end in a chunk's
// extension.
//
// It has no say in what a request means: it finds the ends of lines, bodies and chunks, and can
// only refuse. What is inside the lines of a head is the affair of ParseHead.
type strict struct {
	scan    func(s *strict, p []byte) (int, error) // what is expected now; nil at the beginning of a request
	framing bodyFraming
	upgrade bool  // the request at hand offers one
	begun   bool  // (head) the request line was read
	left    int64 // bytes of the body, or of a chunk's data and its CRLF
	trailer int   // bytes of the trailer section
	line    []byte
	length  int // bytes of the line so far: more than is in line where only its beginning matters
	last    byte
	err     error // for good

	free    bool   // the connection carries another protocol now
	pending []byte // what came behind the head of a request that offers an upgrade
}

// bodyFraming says how the body of a request ends. The zero value is a request without one.
type bodyFraming struct {
	framed bool  // a length was declared, or chunks
	length int64 // -1: chunked
}

// addField takes a line of that kind; other kinds change nothing.
func (f *bodyFraming) addField(k kind, value []byte) error {
	switch k {
	case kindLength:
		n, ok := parseLength(value)
		if !ok || f.framed {
			return ErrFraming
		}
		f.framed, f.length = true, n
	case kindChunked:
		if f.framed || !equalFold(value, "chunked") {
			return ErrFraming
		}
		f.framed, f.length = true, -1
	case kindAlias:
		return ErrFraming
	}
	return nil
}

// read reads from the connection and returns what is in order. An error for what is not comes with
// the next call.
func (s *strict) read(from io.Reader, p []byte) (n int, err error) {
	if s.err != nil {
		return 0, s.err
	}
	held := len(s.pending) > 0
	if held {
		n = copy(p, s.pending)
	} else {
		n, err = from.Read(p)
	}
	good := n
	if !s.free {
		good, s.err = s.checkBytes(p[:n])
	}
	switch {
	case held:
		if s.pending = s.pending[good:]; len(s.pending) == 0 {
			s.pending = nil
		}
	case s.err == nil && good < n:
		s.pending = append([]byte(nil), p[good:n]...)
		err = nil // it comes again behind them
	}
	if good == 0 && s.err != nil {
		return 0, s.err
	}
	if s.err != nil {
		err = nil
	}
	return good, err
}

// checkBytes returns how much of p is in order. It stops without an error behind the head of a
// request that offers an upgrade: what follows may be the other protocol already.
func (s *strict) checkBytes(p []byte) (good int, err error) {
	for good < len(p) {
		if s.scan == nil {
			s.beginRequest()
		}
		n, err := s.scan(s, p[good:])
		good += n
		if err != nil {
			return good, err
		}
		if s.scan == nil && s.upgrade {
			break
		}
	}
	return good, nil
}

// beginRequest begins a request.
func (s *strict) beginRequest() {
	s.scan, s.framing, s.upgrade, s.begun = (*strict).scanHead, bodyFraming{}, false, false
}

// takeLine takes bytes of p up to the end of a line, and keeps at most the first keep of them. done
// says that s.line is now a whole line without its CRLF, or the beginning of one that is longer.
func (s *strict) takeLine(p []byte, keep int) (n int, done bool, err error) {
	end := bytes.IndexByte(p, '\n')
	if n = end + 1; end < 0 {
		n, end = len(p), len(p)
	} else {
		done = true
	}
	if end > 0 {
		s.last = p[end-1]
	}
	s.length += end
	s.line = append(s.line, p[:min(end, max(keep-len(s.line), 0))]...)
	if !done {
		return n, false, nil
	}
	if s.length == 0 || s.last != '\r' {
		return end, false, errBareLF
	}
	s.length--
	if len(s.line) > s.length {
		s.line = s.line[:s.length]
	}
	return n, true, nil
}

// endLine forgets the line. Most lines need little room, and connections live long.
func (s *strict) endLine() {
	if s.line, s.length = s.line[:0], 0; cap(s.line) > 2*framingLine {
		s.line = nil
	}
}

// scanHead takes a line of the head. Empty ones before the request line are skipped, as all servers
// do.
func (s *strict) scanHead(p []byte) (int, error) {
	n, done, err := s.takeLine(p, framingLine+len("\r"))
	if err != nil || !done {
		return n, err
	}
	defer s.endLine()
	switch {
	case s.length == 0 && s.begun:
		s.beginBody()
	case s.length == 0:
	case !s.begun:
		s.begun = true
	default:
		err = s.noteField()
	}
	return n, err
}

// noteField notes a header line that says how the body ends.
func (s *strict) noteField() error {
	name, value, _ := bytes.Cut(s.line, []byte{':'})
	switch k := kindOf(name); k {
	case kindLength, kindChunked, kindAlias:
		if s.length > framingLine {
			return errLongLine
		}
		return s.framing.addField(k, trimSpace(value))
	case kindUpgrade:
		s.upgrade = true
	}
	return nil
}

// beginBody begins what follows the head.
func (s *strict) beginBody() {
	switch {
	case s.framing.length < 0:
		s.scan = (*strict).scanChunk
	case s.framing.length > 0:
		s.scan, s.left = (*strict).scanData, s.framing.length
	default:
		s.scan = nil
		return
	}
	s.upgrade = false // with a body there is none
}

// scanData skips a body of declared length.
func (s *strict) scanData(p []byte) (int, error) {
	n := min(s.left, int64(len(p)))
	if s.left -= n; s.left == 0 {
		s.scan = nil
	}
	return int(n), nil
}

// scanChunk takes the line with a chunk's size.
func (s *strict) scanChunk(p []byte) (int, error) {
	n, done, err := s.chunkLine(p)
	if err != nil || !done {
		return n, err
	}
	defer s.endLine()
	digits, _, _ := bytes.Cut(s.line, []byte{';'})
	size, ok := parseHex(trimRight(digits)) // old senders pad the size
	if !ok || !isText(s.line) {
		return n, errChunk
	}
	s.scan, s.left = (*strict).scanChunkData, size+int64(len("\r\n"))
	if size == 0 {
		s.scan, s.trailer = (*strict).scanTrailers, 0
	}
	return n, nil
}

func (s *strict) chunkLine(p []byte) (n int, done bool, err error) {
	n, done, err = s.takeLine(p, chunkLine)
	length := s.length
	if !done && s.last == '\r' {
		length-- // the line may end here
	}
	// this comes before what is wrong with its end, which in shorter pieces would not have been
	// read
	if length > chunkLine {
		err = errLongLine
	}
	return n, done, err
}

// scanChunkData skips the data of a chunk, and checks the CRLF behind it.
func (s *strict) scanChunkData(p []byte) (int, error) {
	if data := s.left - int64(len("\r\n")); data > 0 {
		n := min(data, int64(len(p)))
		s.left -= n
		return int(n), nil
	}
	if p[0] != "\n\r"[s.left-1] {
		return 0, errChunk
	}
	if s.left--; s.left == 0 {
		s.scan = (*strict).scanChunk
	}
	return 1, nil
}

// scanTrailers takes a line of the trailer section, or its end.
func (s *strict) scanTrailers(p []byte) (int, error) {
	n, done, err := s.chunkLine(p)
	if err != nil || !done {
		return n, err
	}
	defer s.endLine()
	if s.length == 0 {
		s.scan = nil
		return n, nil
	}
	if s.trailer += s.length; s.trailer > trailerBytes {
		return n, errLongLine
	}
	if _, ok := splitLine(s.line); !ok {
		return n, errTrailer
	}
	return n, nil
}
