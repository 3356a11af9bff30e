package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Reasons why an answer is broken. They are the upstream's fault.
var (
	ErrStatusLine    = errors.New("upstream's status line is malformed")
	ErrAnswerLine    = errors.New("upstream's header line is malformed")
	ErrAnswerHead    = errors.New("upstream's header is larger than the limit")
	ErrAnswerFraming = errors.New("length of the upstream's answer can be read in two ways")
	ErrAnswerChunk   = errors.New("upstream's answer is not correctly chunked")
	ErrInterim       = errors.New("upstream sent more than 100 interim answers")
	ErrSwitched      = errors.New("upstream switched protocols although no upgrade was forwarded")
)

const maxInterim = 100

// readAnswerHead reads status line and header of the final answer into ans; interim ones (1xx) are
// swallowed, but 101 is final. It fails on what is not strictly formed; ans.head then holds what
// came.
func readAnswerHead(br *bufio.Reader, limit int, ans *Answer) error {
	for range maxInterim + 1 {
		if err := readBlock(br, limit, ans); err != nil {
			return err
		}
		if err := parseAnswerHead(ans); err != nil {
			return err
		}
		if ans.Status >= 200 || ans.Status == 101 {
			return nil
		}
	}
	return ErrInterim
}

// readBlock reads lines up to an empty one into ans.head. Every line ends with CRLF.
func readBlock(br *bufio.Reader, limit int, ans *Answer) error {
	ans.head, ans.ends = ans.head[:0], ans.ends[:0]
	start := 0
	for {
		part, err := br.ReadSlice('\n')
		if len(ans.head)+len(part) > limit {
			return ErrAnswerHead
		}
		ans.head = append(ans.head, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return asUnexpectedEOF(err)
		}
		end := len(ans.head) - 2
		if end < start || ans.head[end] != '\r' {
			return ErrAnswerLine // bare LF
		}
		if end == start {
			return nil // an empty first line has no end and fails as a status line
		}
		ans.ends = append(ans.ends, end)
		start = end + 2
	}
}

func parseAnswerHead(ans *Answer) error {
	ans.Fields = ans.Fields[:0]
	start := 0
	for i, end := range ans.ends {
		whole := ans.head[start:end:end]
		start = end + 2
		if i == 0 {
			if err := parseStatusLine(whole, ans); err != nil {
				return err
			}
			continue
		}
		f, ok := splitLine(whole)
		if !ok {
			return ErrAnswerLine
		}
		ans.Fields = append(ans.Fields, f)
	}
	if len(ans.ends) == 0 {
		return ErrStatusLine
	}
	return nil
}

// parseStatusLine reads `HTTP/1.x NNN reason`. The space before an empty reason may be missing, as
// many servers do.
func parseStatusLine(whole []byte, ans *Answer) error {
	const version = "HTTP/1."
	if len(whole) < len("HTTP/1.1 200") || string(whole[:len(version)]) != version {
		return ErrStatusLine
	}
	minor, digits, reason := whole[len(version)], whole[9:12], whole[12:]
	status, ok := parseLength(digits)
	if minor != '0' && minor != '1' || whole[8] != ' ' || !ok || status < 100 || !isText(reason) {
		return ErrStatusLine
	}
	if len(reason) > 0 {
		if reason[0] != ' ' {
			return ErrStatusLine
		}
		reason = reason[1:]
	}
	ans.Status, ans.Reason = int(status), reason
	return nil
}

// framing says how the body of an answer ends.
type framing struct {
	chunked  bool
	toEnd    bool  // at the end of the connection
	length   int64 // otherwise
	declared int64 // Content-Length, also of an answer without a body; -1 without
	close    bool  // the connection cannot be used again
}

// parseFraming reads the framing of a final answer (RFC 9112 section 6.3), refusing what could be
// read in two ways.
func parseFraming(ans *Answer, isHead bool) (f framing, err error) {
	http10 := ans.head[len("HTTP/1.")] == '0'
	f.declared, f.close = -1, http10
	for _, field := range ans.Fields {
		switch {
		case equalFold(field.Name, "content-length"):
			n, ok := parseLength(field.Value)
			if !ok || f.declared >= 0 && n != f.declared || f.chunked {
				return f, ErrAnswerFraming
			}
			f.declared = n
		case equalFold(field.Name, "transfer-encoding"):
			if f.chunked || f.declared >= 0 || http10 || !equalFold(field.Value, "chunked") {
				return f, ErrAnswerFraming
			}
			f.chunked = true
		case equalFold(field.Name, "connection"):
			f.close = f.close || listContains(field.Value, "close")
		}
	}
	switch {
	case isHead, ans.Status == 204, ans.Status == 304:
		f.chunked = false
	case f.chunked:
	case f.declared >= 0:
		f.length = f.declared
	default:
		f.toEnd, f.close = true, true
	}
	return f, nil
}

// bodyReader reads the body of one answer off its connection and stops at its end. io.EOF is the
// true end, and it stays.
type bodyReader struct {
	br    *bufio.Reader
	limit int // bytes of the trailer section
	framing
	left  int64 // of the body, or of the chunk
	begun bool  // (chunked) the first chunk was seen
	err   error
}

func newBodyReader(br *bufio.Reader, f framing, limit int) bodyReader {
	return bodyReader{br: br, framing: f, limit: limit, left: f.length}
}

func (b *bodyReader) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	var n int
	n, b.err = b.read(p)
	if n > 0 && b.err == nil && !b.chunked && !b.toEnd && b.left == 0 {
		b.err = io.EOF // so that the connection is free as soon as the last byte came
	}
	if n > 0 {
		return n, nil
	}
	return n, b.err
}

// isEmpty reports whether there is no body at all.
func (b *bodyReader) isEmpty() bool { return !b.chunked && !b.toEnd && b.length == 0 }

// hasEnded reports whether the true end was reached.
func (b *bodyReader) hasEnded() bool { return b.err == io.EOF }

func (b *bodyReader) read(p []byte) (int, error) {
	if b.toEnd {
		return b.br.Read(p) // TLS gives io.EOF only after close_notify, else io.ErrUnexpectedEOF
	}
	if b.left == 0 {
		if !b.chunked {
			return 0, io.EOF
		}
		if err := b.nextChunk(); err != nil {
			return 0, err
		}
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.br.Read(p)
	b.left -= int64(n)
	return n, asUnexpectedEOF(err)
}

// nextChunk reads the line before the next chunk, and after the last one the trailer section, which
// is dropped. io.EOF is the end of the body.
func (b *bodyReader) nextChunk() error {
	if b.begun {
		line, err := b.readLine()
		if err != nil {
			return err
		}
		if len(line) > 0 {
			return ErrAnswerChunk
		}
	}
	b.begun = true
	line, err := b.readLine()
	if err != nil {
		return err
	}
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, ok := parseHex(trimRight(size)) // old servers pad the size
	if !ok || !isText(line) {
		return ErrAnswerChunk
	}
	if b.left = n; n > 0 {
		return nil
	}
	for total := 0; ; {
		line, err := b.readLine()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return io.EOF
		}
		if total += len(line) + 2; total > b.limit {
			return fmt.Errorf("%w: trailer section too long", ErrAnswerChunk)
		}
		if _, ok := splitLine(line); !ok {
			return fmt.Errorf("%w: malformed trailer", ErrAnswerChunk)
		}
	}
}

// readLine reads one line of the chunked framing, without its CRLF.
func (b *bodyReader) readLine() ([]byte, error) {
	line, err := b.br.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		return nil, ErrAnswerChunk
	}
	if err != nil {
		return nil, asUnexpectedEOF(err)
	}
	if len(line) < 2 || line[len(line)-2] != '\r' {
		return nil, ErrAnswerChunk
	}
	return line[:len(line)-2], nil
}

func trimRight(b []byte) []byte { return bytes.TrimRight(b, " \t") }

// asUnexpectedEOF turns an end of the connection into a cut.
func asUnexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
