package guard

import (
	"encoding/binary"
	"math"

	"hooklock/idem"
)

// arena stores the records of a Cache without pointers, so that the garbage collector has nothing
// to follow: as objects of their own, the records of a full cache took a fifth of what new events
// cost. Records refer to each other by number, and their text lies in blocks. A arena grows and
// does not shrink: records and blocks that are freed are used again.
type arena struct {
	records  [][]remembered // chunks, so that growing moves nothing
	blocks   [][]block
	unused   uint32 // the first free record, whose next is another one; 0: none
	unfilled uint32 // the first free block
	made     uint32 // records that were ever in use; the first one is the head of the ring
	cut      uint32 // blocks that were ever in use; the first one is never used
}

// block is a part of a record's text.
type block struct {
	next uint32 // 0: it is the last one
	text [blockText]byte
}

const (
	blockSize = 128 // bytes
	blockText = blockSize - 4
	chunk     = 512 // records, or blocks
)

func newArena() arena {
	s := arena{cut: 1}
	s.takeRecord() // the head of the ring
	return s
}

func (s *arena) recordAt(n uint32) *remembered { return &s.records[n/chunk][n%chunk] }

func (s *arena) blockAt(n uint32) *block { return &s.blocks[n/chunk][n%chunk] }

// takeRecord returns a free record.
func (s *arena) takeRecord() uint32 {
	if n := s.unused; n != 0 {
		s.unused = s.recordAt(n).next
		return n
	}
	if int(s.made) == len(s.records)*chunk {
		s.records = append(s.records, make([]remembered, chunk))
	}
	s.made++
	return s.made - 1
}

// freeRecord frees a record and its text.
func (s *arena) freeRecord(n uint32) {
	r := s.recordAt(n)
	for at := r.text; at != 0; {
		b := s.blockAt(at)
		at, b.next, s.unfilled = b.next, s.unfilled, at
	}
	*r = remembered{next: s.unused}
	s.unused = n
}

// writeText puts text into blocks and returns the first one; 0 for no text.
func (s *arena) writeText(text []byte) (first uint32) {
	link := &first
	for len(text) > 0 {
		n := s.unfilled
		if n != 0 {
			s.unfilled = s.blockAt(n).next
		} else {
			n = s.cut
			if s.cut++; int(n) >= len(s.blocks)*chunk {
				s.blocks = append(s.blocks, make([]block, chunk))
			}
		}
		b := s.blockAt(n)
		text = text[copy(b.text[:], text):]
		*link, b.next = n, 0
		link = &b.next
	}
	return first
}

// readText returns a copy of the text.
func (s *arena) readText(first uint32, size int) []byte {
	text := make([]byte, 0, size)
	for at := first; at != 0; at = s.blockAt(at).next {
		text = append(text, s.blockAt(at).text[:min(blockText, size-len(text))]...)
	}
	return text
}

// inBlocks returns the memory that a text of this size takes.
func inBlocks(size int) int { return (size + blockText - 1) / blockText * blockSize }

// encodeAnswer encodes credentials and answer of a record. It returns nothing for a record that has
// neither.
func encodeAnswer(credentials string, a *idem.Answer) []byte {
	if credentials == "" && a == nil {
		return nil
	}
	size := len(credentials) + 3*binary.MaxVarintLen64
	if a != nil {
		size += len(a.Body) + 4*binary.MaxVarintLen64
		for _, f := range a.Header {
			size += len(f.Name) + len(f.Value) + 2*binary.MaxVarintLen32
		}
	}
	b := appendText(make([]byte, 0, size), credentials)
	if a == nil {
		return b
	}
	b = binary.AppendUvarint(b, formOf(a))
	b = binary.AppendVarint(b, int64(a.Status))
	b = binary.AppendVarint(b, a.Bytes)
	b = binary.AppendUvarint(b, uint64(len(a.Header)))
	for _, f := range a.Header {
		b = appendText(appendText(b, f.Name), f.Value)
	}
	return append(b, a.Body...)
}

// The forms of an answer.
const (
	formBare uint64 = iota
	formWhole
	formLeft
)

func formOf(a *idem.Answer) uint64 {
	switch {
	case a.Whole:
		return formWhole
	case a.Left:
		return formLeft
	}
	return formBare
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// decodeAnswer decodes what encodeAnswer has made.
func decodeAnswer(b []byte) (credentials string, a *idem.Answer) {
	if len(b) == 0 {
		return "", nil
	}
	r := unspeller{b}
	if credentials = r.readText(); len(r.left) == 0 {
		return credentials, nil
	}
	form := r.readCount()
	a = &idem.Answer{Whole: form == formWhole, Left: form == formLeft, Status: int(r.readNumber()),
		Bytes: r.readNumber()}
	if n := r.readCount(); n > 0 {
		a.Header = make([]idem.HeaderField, n)
	}
	for i := range a.Header {
		a.Header[i] = idem.HeaderField{Name: r.readText(), Value: r.readText()}
	}
	if len(r.left) > 0 {
		a.Body = r.left
	}
	return credentials, a
}

// unspeller decodes what encodeAnswer has made in this process, so it checks nothing.
type unspeller struct{ left []byte }

func (r *unspeller) readCount() uint64 {
	v, n := binary.Uvarint(r.left)
	r.left = r.left[n:]
	return v
}

func (r *unspeller) readNumber() int64 {
	v, n := binary.Varint(r.left)
	r.left = r.left[n:]
	return v
}

func (r *unspeller) readText() string {
	n := r.readCount()
	text := string(r.left[:n])
	r.left = r.left[n:]
	return text
}

// most is the maximum size of a record's text.
const most = math.MaxInt32
