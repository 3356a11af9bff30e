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

// run scans text for the members of set, and reports whether it is JSON. Only then j.got means
// something.
func (j *jsonScan) run(text []byte, set *bodySet) bool {
	j.text, j.at, j.inside = text, 0, false
	j.seen = cleared(j.seen, set.nodes)
	j.got = cleared(j.got, set.slots)
	j.space()
	if !j.value(&set.root, 0) {
		return false
	}
	j.space()
	return j.at == len(j.text)
}

func cleared[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

func (j *jsonScan) space() {
	for j.at < len(j.text) {
		switch j.text[j.at] {
		case ' ', '\t', '\n', '\r':
			j.at++
		default:
			return
		}
	}
}

// take steps over c and the space behind it, if c is next.
func (j *jsonScan) take(c byte) bool {
	if j.at >= len(j.text) || j.text[j.at] != c {
		return false
	}
	j.at++
	j.space()
	return true
}

// value scans one value. n is its node in the wanted paths, nil if neither it nor anything in it is
// wanted.
func (j *jsonScan) value(n *pathNode, depth int) bool {
	if j.at >= len(j.text) {
		return false
	}
	var m jsonMember
	var ok bool
	switch c := j.text[j.at]; c {
	case '{':
		return depth < maxDepth && j.object(n, depth+1)
	case '[':
		return depth < maxDepth && j.array(n, depth+1)
	case 'n':
		return j.word("null")
	case '"':
		if m.start, m.end, m.escaped, ok = j.str(); ok && n != nil && len(n.children) > 0 {
			j.inString(n, &m)
		}
	case 't', 'f':
		m.start = j.at
		ok = c == 't' && j.word("true") || c == 'f' && j.word("false")
		m.end = j.at
	default:
		m.start = j.at
		ok = j.number()
		m.end = j.at
	}
	if ok && n != nil && n.slot >= 0 {
		m.result, m.text = found, j.text
		j.got[n.slot] = m
	}
	return ok
}

func (j *jsonScan) word(w string) bool {
	if len(j.text)-j.at < len(w) || string(j.text[j.at:j.at+len(w)]) != w {
		return false
	}
	j.at += len(w)
	return true
}

func (j *jsonScan) object(n *pathNode, depth int) bool {
	j.take('{')
	if j.take('}') {
		return true
	}
	for {
		if j.at >= len(j.text) || j.text[j.at] != '"' {
			return false
		}
		start, end, escaped, ok := j.str()
		if !ok {
			return false
		}
		j.space()
		if !j.take(':') || !j.value(j.member(n, start, end, escaped), depth) {
			return false
		}
		j.space()
		if j.take('}') {
			return true
		}
		if !j.take(',') {
			return false
		}
	}
}

// member finds the node of a member of n. A member that is met again makes all that is wanted of it
// ambiguous: JSON readers disagree on which one counts.
func (j *jsonScan) member(n *pathNode, start, end int, escaped bool) *pathNode {
	if n == nil {
		return nil
	}
	name := j.text[start:end]
	for _, child := range n.children {
		if child.isIndex || !j.isNamed(name, escaped, child.name) {
			continue
		}
		if j.seen[child.id] {
			j.mark(child, ambiguous)
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
				j.mark(child, longJSON)
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
	j.space()
	ok = ok && j.value(&pathNode{id: n.id, slot: -1, children: n.children}, 0)
	if j.space(); !ok || j.at < len(inner) {
		j.drop(n)
	}
	j.text, j.at, j.inside = text, at, false
}

// drop takes back what was found below n, in a text that turned out to be no JSON.
func (j *jsonScan) drop(n *pathNode) {
	for _, child := range n.children {
		if child.slot >= 0 {
			j.got[child.slot] = jsonMember{}
		}
		j.drop(child)
	}
}

// mark says why there is no value at n, and below it.
func (j *jsonScan) mark(n *pathNode, why result) {
	if n.slot >= 0 {
		j.got[n.slot].result = why
	}
	for _, child := range n.children {
		j.mark(child, why)
	}
}

func (j *jsonScan) array(n *pathNode, depth int) bool {
	j.take('[')
	if j.take(']') {
		return true
	}
	for i := 0; ; i++ {
		if !j.value(n.element(i), depth) {
			return false
		}
		j.space()
		if j.take(']') {
			return true
		}
		if !j.take(',') {
			return false
		}
	}
}

// str steps over a string and returns where its inside is.
func (j *jsonScan) str() (start, end int, escaped, ok bool) {
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
			if !j.escape() {
				return 0, 0, false, false
			}
		default:
			j.at++
		}
	}
	return 0, 0, false, false
}

func (j *jsonScan) escape() bool {
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

func (j *jsonScan) number() bool {
	if j.is('-') {
		j.at++
	}
	if j.is('0') {
		j.at++
	} else if !j.digits() {
		return false
	}
	if j.is('.') {
		j.at++
		if !j.digits() {
			return false
		}
	}
	if j.is('e') || j.is('E') {
		j.at++
		if j.is('+') || j.is('-') {
			j.at++
		}
		return j.digits()
	}
	return true
}

func (j *jsonScan) is(c byte) bool { return j.at < len(j.text) && j.text[j.at] == c }

// digits steps over one digit or more.
func (j *jsonScan) digits() bool {
	from := j.at
	for j.at < len(j.text) && j.text[j.at] >= '0' && j.text[j.at] <= '9' {
		j.at++
	}
	return j.at > from
}
