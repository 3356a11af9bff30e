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

// VisitMembers calls visit for each member of m that a template can read, at most limit times: headers, parameters of the query, variables of the
// path, and the members of a JSON body, an XML body or a form, each with its path in the spelling of a template. Empty values are left out, as
// templates miss them. An array has its length as a member, too, behind "#". value is good until visit returns.
//
// It returns false if the body has members that were not visited: it is longer than 64 KiB, has more members, or cannot be read.
func VisitMembers(m *Message, limit int, visit func(path string, value []byte)) bool {
	v := &visitor{left: limit, visit: visit, whole: true}
	for _, f := range m.Fields {
		v.add("header."+strings.ToLower(string(f.Name)), f.Value)
	}
	for _, p := range m.Vars {
		v.add("path."+p.Name, p.Raw)
	}
	v.parameters("query", m.Query)
	body := m.text()
	switch {
	case len(bytes.TrimSpace(body)) == 0:
	case len(body) > maxMembersBody:
		v.whole = false
	case m.isForm() && looksLikeForm(body):
		v.parameters("form", body)
	default:
		if parsed, err := fastjson.ParseBytes(body); err == nil {
			v.json("body", parsed, 0)
		} else if !bytes.Contains(body, []byte{'<'}) || !v.xml(m) {
			v.whole = false
		}
	}
	return v.whole
}

type visitor struct {
	left  int
	visit func(path string, value []byte)
	whole bool
}

func (v *visitor) add(path string, value []byte) {
	switch {
	case len(value) == 0:
	case v.left == 0 || len(path) > maxMemberName:
		v.whole = false
	default:
		v.left--
		v.visit(path, value)
	}
}

func (v *visitor) parameters(kind string, raw []byte) {
	for pair := range bytes.SplitSeq(raw, []byte{'&'}) {
		name, value, _ := bytes.Cut(pair, []byte{'='})
		plainName, ok := appendUnescaped(nil, name, true)
		plain, fine := appendUnescaped(nil, value, true)
		if !ok || !fine || len(plainName) == 0 {
			continue
		}
		path := kind + spelledStep(string(plainName))
		if first := bytes.TrimSpace(plain); kind == "form" && len(first) > 0 && (first[0] == '{' || first[0] == '[') {
			if parsed, err := fastjson.ParseBytes(plain); err == nil {
				v.json(path, parsed, 1)
				continue
			}
		}
		v.add(path, plain)
	}
}

// spelledStep spells a step to a member as a template does.
func spelledStep(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`.[]{}"?*\`, r) }) {
		return `["` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"]`
	}
	return "." + name
}

func (v *visitor) json(path string, value *fastjson.Value, depth int) {
	if v.left == 0 {
		v.whole = false
		return
	}
	switch value.Type() {
	case fastjson.TypeNull:
	case fastjson.TypeObject:
		if depth == maxVisitedDepth {
			v.add(path, value.MarshalTo(nil))
			return
		}
		value.GetObject().Visit(func(name []byte, member *fastjson.Value) { v.json(path+spelledStep(string(name)), member, depth+1) })
	case fastjson.TypeArray:
		elements := value.GetArray()
		v.add(path+"#", strconv.AppendInt(nil, int64(len(elements)), 10))
		if depth == maxVisitedDepth || len(elements) > maxElements {
			v.add(path, value.MarshalTo(nil))
			return
		}
		for i, e := range elements {
			v.json(path+"["+strconv.Itoa(i)+"]", e, depth+1)
		}
	case fastjson.TypeString:
		text := value.GetStringBytes()
		if depth < maxVisitedDepth && len(text) > 1 && (text[0] == '{' || text[0] == '[') && strings.HasPrefix(path, "body") {
			if inner, err := fastjson.ParseBytes(text); err == nil {
				v.json(path, inner, maxVisitedDepth-1)
				return
			}
		}
		v.add(path, text)
	default:
		v.add(path, value.MarshalTo(nil))
	}
}

// xml visits the elements without elements in them, if the body is XML that all readers read alike. Of several of one name in an element each has
// its index.
func (v *visitor) xml(m *Message) bool {
	w := &xmlVisit{open: []xmlVisited{{path: "xml"}}}
	for s := newXMLScanner(m); ; {
		kind, err := s.Next()
		switch {
		case err == io.EOF:
			for _, e := range w.found {
				v.add(w.indexed(e.path), bytes.TrimSpace(e.text))
			}
			return true
		case err != nil:
			return false
		case kind == xmlscan.Start:
			w.enter(string(s.Name()))
		case kind == xmlscan.Text && len(w.open) > 1:
			top := &w.open[len(w.open)-1]
			top.text = append(top.text, s.Text()...)
		case kind == xmlscan.End:
			w.leave()
		}
	}
}

// xmlVisit is one pass through a document.
type xmlVisit struct {
	open, found []xmlVisited
	twice       []string // paths of elements that have another one of their name beside them, in the order of the second one
}

// xmlVisited is an element.
type xmlVisited struct {
	path   string
	met    map[string]int // the elements in it, by their step
	text   []byte
	parent bool
}

func (w *xmlVisit) enter(name string) {
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

// indexed returns a path with the index 0 where others follow.
func (w *xmlVisit) indexed(path string) string {
	for _, first := range w.twice {
		if rest, found := strings.CutPrefix(path, first); found && (rest == "" || rest[0] == '.' || strings.HasPrefix(rest, `["`)) {
			path = first + "[0]" + rest
		}
	}
	return path
}

func (w *xmlVisit) leave() {
	last := len(w.open) - 1
	if top := w.open[last]; !top.parent && len(w.found) < 4*maxMembers {
		w.found = append(w.found, top)
	}
	w.open = w.open[:last]
}
