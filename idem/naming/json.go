package naming

import "bytes"

// maxDepth is how deep arrays and objects may nest. A deeper body counts as no JSON.
const maxDepth = 300

// jsonScan checks that a text is one JSON value (RFC 8259) and notes on the way where the wanted
// members are. It builds no tree: for 8 MiB of "[0,0,..." a parser's tree (fastjson v1.6.10) took
// 381 MiB, which a pooled parser keeps, and seconds to build. All that this one keeps grows with
// the wanted paths, not with the body.
type jsonScan struct {
	text []byte
	at   int
	seen []bool       // by pathNode.id: the member was met
	got  []jsonMember // by pathNode.slot
	name []byte       // a decoded member name
	// inside: text is that of a string. What a string in it holds is not looked at.
	inside bool
}

// jsonMember is what one wanted path leads to.
type jsonMember struct {
	result     result
	text       []byte // that it is in: the scanned one, or that of a string
	start, end int    // within text; of a string without its quotes
	escaped    bool   // a string with escapes
}

// scanText scans text for the members of set, and reports whether it is JSON. Only then j.got means
// something.
func (j *jsonScan) scanText(text []byte, set *bodySet) bool {
	j.text, j.at, j.inside = text, 0, false
	j.seen = zeroedSlice(j.seen, set.nodes)
	j.got = zeroedSlice(j.got, set.slots)
	j.skipSpaces()
	if !j.scanValue(&set.root, 0) {
		return false
	}
	j.skipSpaces()
	return j.at == len(j.text)
}

func zeroedSlice[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

func (j *jsonScan) skipSpaces() {
	for j.at < len(j.text) {
		switch j.text[j.at] {
		case ' ', '\t', '\n', '\r':
			j.at++
		default:
			return
		}
	}
}

// skipIf steps over c and the space behind it, if c is next.
func (j *jsonScan) skipIf(c byte) bool {
	if j.at >= len(j.text) || j.text[j.at] != c {
		return false
	}
	j.at++
	j.skipSpaces()
	return true
}

// scanValue scans one value. n is its node in the wanted paths, nil if neither it nor anything in
// it is wanted.
func (j *jsonScan) scanValue(n *pathNode, depth int) bool {
	if j.at >= len(j.text) {
		return false
	}
	var m jsonMember
	var ok bool
	switch c := j.text[j.at]; c {
	case '{':
		return depth < maxDepth && j.scanObject(n, depth+1)
	case '[':
		return depth < maxDepth && j.scanArray(n, depth+1)
	case 'n':
		return j.scanWord("null")
	case '"':
		if m.start, m.end, m.escaped, ok = j.scanString(); ok && n != nil && len(n.children) > 0 {
			j.inString(n, &m)
		}
	case 't', 'f':
		m.start = j.at
		ok = c == 't' && j.scanWord("true") || c == 'f' && j.scanWord("false")
		m.end = j.at
	default:
		m.start = j.at
		ok = j.scanNumber()
		m.end = j.at
	}
	if ok && n != nil && n.slot >= 0 {
		m.result, m.text = found, j.text
		j.got[n.slot] = m
	}
	return ok
}

func (j *jsonScan) scanWord(w string) bool {
	if len(j.text)-j.at < len(w) || string(j.text[j.at:j.at+len(w)]) != w {
		return false
	}
	j.at += len(w)
	return true
}

func (j *jsonScan) scanObject(n *pathNode, depth int) bool {
	j.skipIf('{')
	for first := true; !j.skipIf('}'); first = false {
		if !first && !j.skipIf(',') || j.at >= len(j.text) || j.text[j.at] != '"' {
			return false
		}
		start, end, escaped, ok := j.scanString()
		if !ok {
			return false
		}
		j.skipSpaces()
		if !j.skipIf(':') || !j.scanValue(j.memberNode(n, start, end, escaped), depth) {
			return false
		}
		j.skipSpaces()
	}
	return true
}

// memberNode finds the node of a member of n. A member that is met again makes all that is wanted
// of it ambiguous: JSON readers disagree on which one counts.
func (j *jsonScan) memberNode(n *pathNode, start, end int, escaped bool) *pathNode {
	if n == nil {
		return nil
	}
	name := j.text[start:end]
	for _, child := range n.children {
		if child.isIndex || !j.isNamed(name, escaped, child.name) {
			continue
		}
		if j.seen[child.id] {
			j.markFailed(child, ambiguous)
			return nil
		}
		j.seen[child.id] = true
		return child
	}
	return nil
}

func (j *jsonScan) isNamed(raw []byte, escaped bool, name string) bool {
	if !escaped {
		return string(raw) == name
	}
	if len(raw) > 6*len(name) {
		return false
	}
	decoded, ok := appendJSONString(j.name[:0], raw)
	j.name = decoded
	return ok && string(decoded) == name
}

// maxInner bounds the JSON in a string, which is decoded before it is read; bytes as they are
// spelled.
const maxInner = 1 << 20

// inString scans the string m for what is wanted below n, if JSON is in it: some senders carry that
// of another program so.
func (j *jsonScan) inString(n *pathNode, m *jsonMember) {
	raw := j.text[m.start:m.end]
	if j.inside {
		return
	}
	if len(raw) > maxInner {
		if first := bytes.TrimLeft(raw, " "); len(first) > 0 && (first[0] == '{' || first[0] == '[') {
			for _, child := range n.children {
				j.markFailed(child, longJSON)
			}
		}
		return
	}
	inner, ok := raw, true
	if m.escaped {
		inner, ok = appendJSONString(make([]byte, 0, len(raw)), raw)
	}
	text, at := j.text, j.at
	j.text, j.at, j.inside = inner, 0, true
	j.skipSpaces()
	ok = ok && j.scanValue(&pathNode{id: n.id, slot: -1, children: n.children}, 0)
	if j.skipSpaces(); !ok || j.at < len(inner) {
		j.dropBelow(n)
	}
	j.text, j.at, j.inside = text, at, false
}

// dropBelow takes back what was found below n, in a text that turned out to be no JSON.
func (j *jsonScan) dropBelow(n *pathNode) {
	for _, child := range n.children {
		if child.slot >= 0 {
			j.got[child.slot] = jsonMember{}
		}
		j.dropBelow(child)
	}
}

// markFailed notes why there is no value at n, and below it.
func (j *jsonScan) markFailed(n *pathNode, why result) {
	if n.slot >= 0 {
		j.got[n.slot].result = why
	}
	for _, child := range n.children {
		j.markFailed(child, why)
	}
}

func (j *jsonScan) scanArray(n *pathNode, depth int) bool {
	j.skipIf('[')
	for i := 0; !j.skipIf(']'); i++ {
		if i > 0 && !j.skipIf(',') || !j.scanValue(n.elementNode(i), depth) {
			return false
		}
		j.skipSpaces()
	}
	return true
}

// scanString steps over a string and returns where its inside is.
func (j *jsonScan) scanString() (start, end int, escaped, ok bool) {
	j.at++
	start = j.at
	for j.at < len(j.text) {
		c := j.text[j.at]
		switch {
		case c == '"':
			j.at++
			return start, j.at - 1, escaped, true
		case c < 0x20:
			return 0, 0, false, false
		case c == '\\':
			escaped = true
			if !j.scanEscape() {
				return 0, 0, false, false
			}
		default:
			j.at++
		}
	}
	return 0, 0, false, false
}

func (j *jsonScan) scanEscape() bool {
	if j.at+1 >= len(j.text) {
		return false
	}
	switch j.text[j.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		j.at += 2
		return true
	case 'u':
		if j.at+6 > len(j.text) {
			return false
		}
		for _, c := range j.text[j.at+2 : j.at+6] {
			if fromHex(c) < 0 {
				return false
			}
		}
		j.at += 6
		return true
	}
	return false
}

func (j *jsonScan) scanNumber() bool {
	if j.isNext('-') {
		j.at++
	}
	if j.isNext('0') {
		j.at++
	} else if !j.scanDigits() {
		return false
	}
	if j.isNext('.') {
		j.at++
		if !j.scanDigits() {
			return false
		}
	}
	if j.isNext('e') || j.isNext('E') {
		j.at++
		if j.isNext('+') || j.isNext('-') {
			j.at++
		}
		return j.scanDigits()
	}
	return true
}

func (j *jsonScan) isNext(c byte) bool { return j.at < len(j.text) && j.text[j.at] == c }

// scanDigits steps over one digit or more.
func (j *jsonScan) scanDigits() bool {
	from := j.at
	for j.at < len(j.text) && j.text[j.at] >= '0' && j.text[j.at] <= '9' {
		j.at++
	}
	return j.at > from
}
