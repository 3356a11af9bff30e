package naming

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fastjson"

	"hooklock/idem"
)

// Bounds of what Members tells apart.
const (
	maxMembersBody = 64 << 10 // bytes; a longer body is one member
	maxMembers     = 128
	maxMemberDepth = 5
	maxMemberName  = 100 // bytes of a path
	maxElements    = 8   // of an array that are told apart
)

// Members takes a delivery apart, to see what differs between two attempts of an event: the members
// of a JSON body, the parameters of a form, and what is not the body. It costs far more than a
// name, and is for deliveries that went wrong.
func Members(m *Message) []idem.Member {
	w := memberWalk{all: []idem.Member{{Path: "the method, host or target",
		Sum: sumOf(m.Method, []byte{0}, appendHost(nil, m.Host), []byte{0}, m.Target)}}}
	switch {
	case len(m.Body) > maxMembersBody:
		w.addMember("the body", m.Body)
	case m.isForm() && looksLikeForm(m.Body):
		for pair := range bytes.SplitSeq(m.Body, []byte{'&'}) {
			name, value, _ := bytes.Cut(pair, []byte{'='})
			w.addMember("form."+string(name), value)
		}
	default:
		if v, err := fastjson.ParseBytes(m.Body); err == nil {
			w.walkValue("body", v, 0)
		} else {
			w.addMember("the body", m.Body)
		}
	}
	return w.all
}

// looksLikeForm reports whether a body that is declared to be a form is one: many clients declare
// it of JSON, XML and text, too (curl -d), whose beginning would then be taken for the name of a
// parameter and be shown.
func looksLikeForm(body []byte) bool {
	for pair := range bytes.SplitSeq(body, []byte{'&'}) {
		name, _, _ := bytes.Cut(pair, []byte{'='})
		if bytes.ContainsFunc(name, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`"<>{}`, r) }) {
			return false
		}
	}
	return bytes.IndexByte(body, '=') >= 0
}

type memberWalk struct{ all []idem.Member }

func (w *memberWalk) addMember(path string, value []byte) {
	sum := sumOf(value)
	if len(path) > maxMemberName { // what is cut off tells two names apart
		sum = sumOf([]byte(path), []byte{0}, value)
		path = strings.ToValidUTF8(path[:maxMemberName], "") + "…"
	}
	if len(w.all) < maxMembers {
		w.all = append(w.all, idem.Member{Path: path, Sum: sum})
		return
	}
	rest := &w.all[maxMembers-1]
	rest.Path, rest.Sum = "further members", sumOf([]byte(fmt.Sprint(rest.Sum)), []byte(path), []byte(fmt.Sprint(sum)))
}

func (w *memberWalk) walkValue(path string, v *fastjson.Value, depth int) {
	switch {
	case depth == maxMemberDepth:
	case v.Type() == fastjson.TypeObject && v.GetObject().Len() > 0:
		v.GetObject().Visit(func(name []byte, member *fastjson.Value) {
			w.walkValue(path+"."+string(name), member, depth+1)
		})
		return
	case v.Type() == fastjson.TypeArray && len(v.GetArray()) > 0 && len(v.GetArray()) <= maxElements:
		for i, e := range v.GetArray() {
			w.walkValue(fmt.Sprintf("%s[%d]", path, i), e, depth+1)
		}
		return
	}
	w.addMember(path, v.MarshalTo(nil))
}

func sumOf(values ...[]byte) uint64 {
	h := xxhash.New()
	for _, v := range values {
		_, _ = h.Write(v)
	}
	return h.Sum64()
}
