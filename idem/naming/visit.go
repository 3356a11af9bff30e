package naming

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"hooklock/idem/naming/xmlscan"
)

// maxVisitedDepth is how deep members are told apart; what lies deeper is one member.
const maxVisitedDepth = 12

// MemberVisitor takes deliveries apart. The zero value is ready. It keeps memory for the next
// delivery, as much as a body of 16 KiB takes, and no byte of a delivery that it shows to anyone.
// It is not safe for concurrent use.
type MemberVisitor struct {
	left  int
	visit func(path, value []byte)
	whole bool

	path, value []byte
	parser      *fastjson.Parser
}

// Visit calls visit for each member of m that a template can read, at most limit times: headers,
// parameters of the query, variables of the path, and the members of a JSON body, an XML body or a
// form, each with its path in the spelling of a template. Empty values are left out, as templates
// miss them. An array has its length as a member, too, behind "#". Path and value are good until
// visit returns.
//
// It returns false if the body has members that were not visited: it is longer than MaxVisited, has
// more members, or cannot be read.
func (v *MemberVisitor) Visit(m *Message, limit int, visit func(path, value []byte)) bool {
	v.left, v.visit, v.whole = limit, visit, true
	for _, f := range m.Fields {
		v.path = appendLower(append(v.path[:0], "header."...), f.Name)
		v.visitMember(f.Value)
	}
	for _, p := range m.Vars {
		v.path = append(append(v.path[:0], "path."...), p.Name...)
		v.visitMember(p.Raw)
	}
	v.visitParameters("query", m.Query)
	v.visitBody(m)
	v.visit = nil
	return v.whole
}

// MaxVisited is the longest body whose members are told apart, in bytes.
const MaxVisited = maxMembersBody

func (v *MemberVisitor) visitBody(m *Message) {
	body := m.bodyText()
	switch {
	case len(bytes.TrimSpace(body)) == 0:
	case len(body) > MaxVisited:
		v.whole = false
	case m.isForm() && looksLikeForm(body):
		v.visitParameters("form", body)
	default:
		v.path = append(v.path[:0], "body"...)
		if !v.visitJSONText(body, 0) && (!bytes.Contains(body, []byte{'<'}) || !v.visitXML(m)) {
			v.whole = false
		}
	}
}

// visitJSONText visits the members of JSON. It returns false, and visits none, if text is none.
func (v *MemberVisitor) visitJSONText(text []byte, depth int) bool {
	parser := v.parser // nil while it is in use, and what it has found needed
	if v.parser = nil; parser == nil {
		parser = new(fastjson.Parser)
	}
	parsed, err := parser.ParseBytes(text)
	if err == nil {
		v.visitJSON(parsed, depth)
	}
	if len(text) <= maxScratch {
		v.parser = parser
	}
	return err == nil
}

// visitMember visits the member at the path.
func (v *MemberVisitor) visitMember(value []byte) {
	switch {
	case len(value) == 0:
	case v.left == 0 || len(v.path) > maxMemberName:
		v.whole = false
	default:
		v.left--
		v.visit(v.path, value)
	}
}

func (v *MemberVisitor) visitParameters(kind string, raw []byte) {
	for rest := raw; len(rest) > 0; {
		var pair []byte
		pair, rest, _ = bytes.Cut(rest, []byte{'&'})
		name, value, _ := bytes.Cut(pair, []byte{'='})
		plainName, ok := appendUnescaped(nil, name, true)
		plain, fine := appendUnescaped(nil, value, true)
		if !ok || !fine || len(plainName) == 0 {
			continue
		}
		v.path = appendStep(append(v.path[:0], kind...), plainName)
		if first := bytes.TrimSpace(plain); kind == "form" && len(first) > 0 && (first[0] == '{' || first[0] == '[') &&
			v.visitJSONText(plain, 1) {
			continue
		}
		v.visitMember(plain)
	}
}

// appendStep appends a step to a member as a template spells it.
func appendStep(path, name []byte) []byte {
	if len(name) > 0 && bytes.IndexFunc(name, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`.[]{}"?*\`, r)
	}) < 0 {
		return append(append(path, '.'), name...)
	}
	path = append(path, `["`...)
	for _, c := range name {
		if c == '\\' || c == '"' {
			path = append(path, '\\')
		}
		path = append(path, c)
	}
	return append(path, `"]`...)
}

// spelledStep spells a step to a member as a template does.
func spelledStep(name string) string { return string(appendStep(nil, []byte(name))) }

// visitText visits a value as JSON has it.
func (v *MemberVisitor) visitText(value *fastjson.Value) {
	v.value = value.MarshalTo(v.value[:0])
	v.visitMember(v.value)
	if cap(v.value) > maxScratch {
		v.value = nil
	}
}

func (v *MemberVisitor) visitJSON(value *fastjson.Value, depth int) {
	if v.left == 0 {
		v.whole = false
		return
	}
	at := len(v.path)
	defer func() { v.path = v.path[:at] }()
	switch value.Type() {
	case fastjson.TypeNull:
	case fastjson.TypeObject:
		if depth == maxVisitedDepth {
			v.visitText(value)
			return
		}
		value.GetObject().Visit(func(name []byte, member *fastjson.Value) {
			v.path = appendStep(v.path[:at], name)
			v.visitJSON(member, depth+1)
		})
	case fastjson.TypeArray:
		v.visitElements(value, depth)
	case fastjson.TypeString:
		text := value.GetStringBytes()
		if depth < maxVisitedDepth && len(text) > 1 && (text[0] == '{' || text[0] == '[') &&
			bytes.HasPrefix(v.path, []byte("body")) && v.visitJSONText(text, maxVisitedDepth-1) {
			return
		}
		v.visitMember(text)
	default:
		v.visitText(value)
	}
}

func (v *MemberVisitor) visitElements(value *fastjson.Value, depth int) {
	at, elements := len(v.path), value.GetArray()
	v.path = append(v.path, '#')
	v.visitMember(strconv.AppendInt(nil, int64(len(elements)), 10))
	v.path = v.path[:at]
	if depth == maxVisitedDepth || len(elements) > maxElements {
		v.visitText(value)
		return
	}
	for i, e := range elements {
		v.path = append(strconv.AppendInt(append(v.path[:at], '['), int64(i), 10), ']')
		v.visitJSON(e, depth+1)
	}
}

// visitXML visits the elements without elements in them, if the body is XML that all readers read
// alike. Of several of one name in an element each has its index.
func (v *MemberVisitor) visitXML(m *Message) bool {
	w := &xmlVisit{open: []xmlVisited{{path: "xml"}}}
	for s := newXMLScanner(m); ; {
		kind, err := s.Next()
		switch {
		case err == io.EOF:
			for _, e := range w.found {
				v.path = append(v.path[:0], w.indexedPath(e.path)...)
				v.visitMember(bytes.TrimSpace(e.text))
			}
			return true
		case err != nil:
			return false
		case kind == xmlscan.Start:
			w.openElement(string(s.Name()))
		case kind == xmlscan.Text && len(w.open) > 1:
			top := &w.open[len(w.open)-1]
			top.text = append(top.text, s.Text()...)
		case kind == xmlscan.End:
			w.closeElement()
		}
	}
}

// xmlVisit is one pass through a document.
type xmlVisit struct {
	open, found []xmlVisited
	// paths of elements that have another one of their name beside them, in the order of the second
	// one
	twice []string
}

// xmlVisited is an element.
type xmlVisited struct {
	path   string
	met    map[string]int // the elements in it, by their step
	text   []byte
	parent bool
}

func (w *xmlVisit) openElement(name string) {
	top, step := &w.open[len(w.open)-1], spelledStep(name)
	if top.met == nil {
		top.met = map[string]int{}
	}
	path := top.path + step
	if n := top.met[step]; n > 0 {
		if n == 1 && len(w.twice) < maxMembers {
			w.twice = append(w.twice, path)
		}
		path += "[" + strconv.Itoa(n) + "]"
	}
	top.met[step]++
	top.parent = true
	w.open = append(w.open, xmlVisited{path: path})
}

// indexedPath returns a path with the index 0 where others follow.
func (w *xmlVisit) indexedPath(path string) string {
	for _, first := range w.twice {
		if rest, found := strings.CutPrefix(path, first); found &&
			(rest == "" || rest[0] == '.' || strings.HasPrefix(rest, `["`)) {
			path = first + "[0]" + rest
		}
	}
	return path
}

func (w *xmlVisit) closeElement() {
	last := len(w.open) - 1
	if top := w.open[last]; !top.parent && len(w.found) < 4*maxMembers {
		w.found = append(w.found, top)
	}
	w.open = w.open[:last]
}
