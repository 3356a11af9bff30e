package naming

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"io"
	"slices"
)

// remainder hashes what is left of a body, in memory that does not grow with it.
type remainder struct {
	sum    hash.Hash
	inside bool // the text is that of a string
}

// hashJSON hashes a JSON text without white space and without what is ignored. It returns false if
// text is no JSON; then the sum means nothing.
func (w *remainder) hashJSON(text []byte, ignored []*pathNode) bool {
	j := &jsonRemainder{jsonScan: jsonScan{text: text}, out: w}
	j.skipSpaces()
	if !j.keepValue(ignored, 0) {
		return false
	}
	j.skipSpaces()
	return j.at == len(text)
}

// jsonRemainder is one pass through a JSON text.
type jsonRemainder struct {
	jsonScan

	out  *remainder
	mute int     // the values that are open and left out
	mark [1]byte // what writeMark writes
}

func (j *jsonRemainder) writeRange(from, to int) {
	if j.mute == 0 {
		j.out.sum.Write(j.text[from:to])
	}
}

// keepValue hashes one value. next are the steps that may lead from it.
func (j *jsonRemainder) keepValue(next []*pathNode, depth int) bool {
	if j.at >= len(j.text) {
		return false
	}
	from := j.at
	switch j.text[from] {
	case '{':
		return depth < maxDepth && j.keepObject(next, depth+1)
	case '[':
		return depth < maxDepth && j.keepArray(next, depth+1)
	case '"':
		start, end, escaped, ok := j.scanString()
		if ok && (len(next) == 0 || j.mute > 0 || !j.keepInner(next, start, end, escaped)) {
			j.writeRange(from, j.at)
		}
		return ok
	}
	if !j.scanValue(nil, depth) {
		return false
	}
	j.writeRange(from, j.at)
	return true
}

// keepInner hashes what is left of the JSON in a string.
func (j *jsonRemainder) keepInner(next []*pathNode, start, end int, escaped bool) bool {
	raw := j.text[start:end]
	if j.out.inside || len(raw) > maxInner {
		return false
	}
	if escaped {
		decoded, ok := appendJSONString(make([]byte, 0, len(raw)), raw)
		if !ok {
			return false
		}
		raw = decoded
	}
	if first := bytes.TrimLeft(raw, " \t\r\n"); len(first) == 0 || first[0] != '{' && first[0] != '[' {
		return false
	}
	inner := &remainder{sum: sha256.New(), inside: true}
	if !inner.hashJSON(raw, next) {
		return false
	}
	j.out.sum.Write([]byte{'"', 0})
	j.out.sum.Write(inner.sum.Sum(nil))
	return true
}

func (j *jsonRemainder) keepObject(next []*pathNode, depth int) bool {
	j.writeRange(j.at, j.at+1)
	j.skipIf('{')
	for first := true; !j.skipIf('}'); first = false {
		if !first && !j.skipIf(',') || j.at >= len(j.text) || j.text[j.at] != '"' {
			return false
		}
		from := j.at
		start, end, escaped, ok := j.scanString()
		if !ok {
			return false
		}
		to := j.at
		j.skipSpaces()
		if !j.skipIf(':') {
			return false
		}
		steps, ignored := nextSteps(next, func(s *pathNode) bool {
			return !s.isIndex && (s.name == anyName || j.isNamed(j.text[start:end], escaped, s.name))
		})
		if !ignored {
			j.writeRange(from, to)
		}
		if !j.keepChild(steps, ignored, depth) {
			return false
		}
	}
	j.writeMark('}')
	return true
}

func (j *jsonRemainder) keepArray(next []*pathNode, depth int) bool {
	j.writeRange(j.at, j.at+1)
	j.skipIf('[')
	for i := 0; !j.skipIf(']'); i++ {
		if i > 0 && !j.skipIf(',') {
			return false
		}
		steps, ignored := nextSteps(next, func(s *pathNode) bool {
			return s.isIndex && (s.index == anyIndex || s.index == i)
		})
		if !j.keepChild(steps, ignored, depth) {
			return false
		}
	}
	j.writeMark(']')
	return true
}

// keepChild hashes a value in an object or array, with a comma behind it, unless it is ignored.
func (j *jsonRemainder) keepChild(next []*pathNode, ignored bool, depth int) bool {
	if ignored {
		j.mute++
	}
	ok := j.keepValue(next, depth)
	if ignored {
		j.mute--
	} else {
		j.writeMark(',')
	}
	j.skipSpaces()
	return ok
}

func (j *jsonRemainder) writeMark(c byte) {
	if j.mute == 0 {
		j.mark[0] = c
		j.out.sum.Write(j.mark[:])
	}
}

// nextSteps returns the steps behind those of steps that lead to a member, and whether a path ends
// there.
func nextSteps(steps []*pathNode, leads func(*pathNode) bool) (next []*pathNode, ends bool) {
	for _, s := range steps {
		if !leads(s) {
			continue
		}
		ends = ends || s.slot >= 0
		if next == nil {
			next = s.children // most often the only one
		} else {
			next = append(slices.Clip(next), s.children...)
		}
	}
	return next, ends
}

// hashXML hashes an XML document without the white space between elements and without the elements
// that are ignored. Attributes count. It returns false if the body is no XML that all readers read
// alike.
func (w *remainder) hashXML(m *Message, ignored []*pathNode) bool {
	body := m.bodyText()
	if bytes.IndexByte(body, 0) >= 0 || !isWholeXML(m) {
		return false
	}
	x := &xmlRemainder{out: w, open: []xmlLevel{{next: ignored}}}
	for len(body) > 0 {
		body = x.keepToken(body)
	}
	return true
}

func isWholeXML(m *Message) bool {
	if !bytes.Contains(m.Body, []byte{'<'}) {
		return false
	}
	s := newXMLScanner(m)
	for {
		if _, err := s.Next(); err != nil {
			return err == io.EOF
		}
	}
}

// xmlRemainder is one pass through a document that is known to be whole.
type xmlRemainder struct {
	out  *remainder
	open []xmlLevel // the document, and each open element
	mute int        // the level of the element that is left out, as an index of open; 0: none is
}

// xmlLevel is an open element, or the document.
type xmlLevel struct {
	next []*pathNode
	met  []int // how many elements of each of next were met
}

// keepToken hashes one tag or text at the beginning of body, unless it is left out, and returns the
// rest.
func (x *xmlRemainder) keepToken(body []byte) []byte {
	if body[0] != '<' {
		end := bytes.IndexByte(body, '<')
		if end < 0 {
			end = len(body)
		}
		if text := bytes.TrimSpace(body[:end]); len(text) > 0 {
			x.writeToken(body[:end])
		}
		return body[end:]
	}
	for _, aside := range [...][2]string{{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}} {
		if !bytes.HasPrefix(body, []byte(aside[0])) {
			continue
		}
		end := bytes.Index(body[len(aside[0]):], []byte(aside[1]))
		if end < 0 {
			return nil
		}
		end += len(aside[0]) + len(aside[1])
		x.writeToken(body[:end])
		return body[end:]
	}
	end := endOfTag(body)
	tag, rest := body[:end], body[end:]
	if len(tag) > 1 && tag[1] == '/' {
		x.closeElement(tag)
		return rest
	}
	x.openElement(tag)
	if bytes.HasSuffix(tag, []byte("/>")) {
		x.closeElement(nil)
	}
	return rest
}

func (x *xmlRemainder) writeToken(token []byte) {
	if x.mute == 0 {
		x.out.writeSized(token)
	}
}

// openElement opens the element of a start tag.
func (x *xmlRemainder) openElement(tag []byte) {
	name := tag[1:]
	if end := bytes.IndexAny(name, " \t\r\n/>"); end >= 0 {
		name = name[:end]
	}
	if _, local, prefixed := bytes.Cut(name, []byte{':'}); prefixed {
		name = local
	}
	var next []*pathNode
	ignored := false
	if x.mute == 0 {
		next, ignored = x.open[len(x.open)-1].childSteps(name)
	}
	x.open = append(x.open, xmlLevel{next: next})
	if ignored {
		x.mute = len(x.open) - 1
	}
	x.writeToken(tag)
}

// childSteps returns the steps behind an element of l, and whether it is left out.
func (l *xmlLevel) childSteps(name []byte) ([]*pathNode, bool) {
	if len(l.next) == 0 {
		return nil, false
	}
	if l.met == nil {
		l.met = make([]int, len(l.next))
	}
	i := -1
	return nextSteps(l.next, func(s *pathNode) bool {
		i++
		if s.name != anyName && s.name != string(name) {
			return false
		}
		l.met[i]++
		return s.index == anyIndex || s.index == l.met[i]-1
	})
}

// closeElement closes the innermost element; tag is nil for one without content.
func (x *xmlRemainder) closeElement(tag []byte) {
	last := len(x.open) - 1
	if last == 0 {
		return
	}
	if tag != nil {
		x.writeToken(tag)
	}
	x.open = x.open[:last]
	if x.mute == last {
		x.mute = 0
	}
}

// endOfTag returns the length of the tag at the beginning of body.
func endOfTag(body []byte) int {
	var quote byte
	for i, c := range body {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return i + 1
		}
	}
	return len(body)
}
