package naming

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// maxIgnored bounds the members that a route may leave out.
const maxIgnored = 64

// ignoreAll stands for every member of the body.
const ignoreAll = "*"

// Ignored are members of a delivery that say nothing about which event it is, such as the time of
// sending or the number of the attempt. The fingerprint and the payload key leave them out; what is
// forwarded has them. It is immutable and may be shared. A nil *Ignored leaves out nothing.
//
// In a body that is read, white space between the members and XML elements does not count either. A
// body that cannot be read (broken JSON, XML with a document type, UTF-16, a multipart form) counts
// as a whole.
type Ignored struct {
	all   bool
	json  bodySet
	xml   bodySet
	form  []ignoredParameter
	query []string
}

// ignoredParameter is a parameter of a form, or members of the JSON in one.
type ignoredParameter struct {
	name  string      // that is left out
	inner string      // the parameter that the JSON is in; "" for none
	steps []*pathNode // into that JSON
}

// CompileIgnored reads the paths of members, as templates spell sources: body.sent_at, form.t,
// xml.Envelope.Header.Time, query.t. In a path into JSON or XML [*] is each element of an array and
// .* each member. "*" alone is the whole body. Its errors say which path is wrong.
func CompileIgnored(paths []string) (*Ignored, error) {
	if len(paths) == 0 {
		return nil, nil //nolint:nilnil // nil leaves out nothing
	}
	if len(paths) > maxIgnored {
		return nil, fmt.Errorf("has %d members; at most %d", len(paths), maxIgnored)
	}
	ignored := &Ignored{}
	for _, path := range paths {
		if err := ignored.addPath(path); err != nil {
			return nil, fmt.Errorf("%q: %w", path, err)
		}
	}
	return ignored, nil
}

func (g *Ignored) addPath(text string) error {
	if text == ignoreAll {
		g.all = true
		return nil
	}
	p := &templateParser{text: text, set: new(bodySet), template: &Template{}, wild: true}
	if p.isEndOfSource() {
		return p.errorAt(0, "a member is missing here: write body.sent_at, form.t, xml.a.b, query.t or *")
	}
	switch kind := SourceKind(p.upTo(".[")); kind {
	case SourceBody, SourceXML:
		steps, err := p.parseSteps()
		if err == nil && p.at < len(text) {
			err = p.unexpectedError()
		}
		switch {
		case err != nil:
			return err
		case len(steps) == 0 || len(steps) > maxDepth:
			return p.errorAt(0, "write a path of 1 to %d steps, or * for the whole body", maxDepth)
		case kind == SourceBody:
			g.json.addPath(steps)
		default:
			g.xml.addPath(mergeIndexes(steps))
		}
		return nil
	case SourceForm, SourceQuery:
		p.at = 0
		source, err := p.parseAlternative()
		if err == nil && p.at < len(text) {
			err = p.unexpectedError()
		}
		if err != nil {
			return err
		}
		g.addParameter(source)
		return nil
	}
	return p.errorAt(0, "only members of the body or the query can be left out: write body.sent_at, form.t, xml.a.b, "+
		"query.t or *. Headers never count")
}

func (g *Ignored) addParameter(source alternative) {
	switch r := source.reader.(type) {
	case querySource:
		g.query = append(g.query, r.name)
	case formSource:
		g.form = append(g.form, ignoredParameter{name: r.name})
	case formMember:
		g.form = append(g.form, ignoredParameter{r.whole, r.parameter, r.set.root.children})
	}
}

// mergeIndexes puts each index into the step of the element that it counts: in XML an index is no
// step of its own. Without an index a step means each element of that name.
func mergeIndexes(path []pathStep) []pathStep {
	var steps []pathStep
	for _, step := range path {
		switch {
		case !step.isIndex:
			steps = append(steps, pathStep{name: step.name, index: anyIndex})
		case len(steps) > 0:
			steps[len(steps)-1].index = step.index
		}
	}
	return steps
}

// anyIndex is the index of [*], anyName the name of .*.
const (
	anyIndex = -1
	anyName  = "*"
)

// readsBody reports whether a member of the body is left out.
func (g *Ignored) readsBody() bool {
	return g != nil && (g.all || g.json.slots > 0 || g.xml.slots > 0 || g.form != nil)
}

// bodyDigest returns the SHA-256 of what is left of the body. ok is false if the body counts as it
// is.
func (g *Ignored) bodyDigest(m *Message) (digest []byte, ok bool) {
	if !g.readsBody() || len(m.Body) == 0 {
		return nil, false
	}
	w := &remainder{sum: sha256.New()}
	switch {
	case g.all:
		ok = true
	case g.form != nil && m.isForm():
		ok = w.hashForm(m.bodyText(), g.form)
	case g.json.slots > 0 && w.hashJSON(m.bodyText(), g.json.root.children):
		ok = true
	case g.xml.slots > 0:
		w.sum.Reset()
		ok = w.hashXML(m, g.xml.root.children)
	}
	return w.sum.Sum(nil), ok
}

// queryOf returns the query without the parameters that are left out.
func (g *Ignored) queryOf(m *Message) []byte {
	if g == nil || g.query == nil || len(m.Query) == 0 {
		return m.Query
	}
	var left [][]byte
	for pair := range bytes.SplitSeq(m.Query, []byte{'&'}) {
		name, _, _ := bytes.Cut(pair, []byte{'='})
		if !slices.ContainsFunc(g.query, func(n string) bool { return m.scratch.isNamed(name, n) }) {
			left = append(left, pair)
		}
	}
	if left == nil {
		return nil
	}
	return bytes.Join(left, []byte{'&'})
}

// hashForm hashes the parameters that are left of a form.
func (w *remainder) hashForm(body []byte, ignored []ignoredParameter) bool {
	if !looksLikeForm(body) {
		return false
	}
	s := new(scratch)
	for pair := range bytes.SplitSeq(body, []byte{'&'}) {
		name, value, _ := bytes.Cut(pair, []byte{'='})
		if slices.ContainsFunc(ignored, func(p ignoredParameter) bool {
			return p.name != "" && s.isNamed(name, p.name)
		}) {
			continue
		}
		i := slices.IndexFunc(ignored, func(p ignoredParameter) bool {
			return p.inner != "" && s.isNamed(name, p.inner)
		})
		if i >= 0 && len(value) <= maxFormJSON {
			if digest, ok := innerDigest(value, ignored, ignored[i].inner); ok {
				w.writeSized(name)
				w.writeSized(digest)
				continue
			}
		}
		w.writeSized(name)
		w.writeSized(value)
	}
	return true
}

// innerDigest hashes what is left of the JSON in a parameter.
func innerDigest(value []byte, ignored []ignoredParameter, inner string) ([]byte, bool) {
	var steps []*pathNode
	for _, p := range ignored {
		if p.inner == inner {
			steps = append(steps, p.steps...)
		}
	}
	text, ok := appendUnescaped(nil, value, true)
	w := &remainder{sum: sha256.New()}
	if !ok || !w.hashJSON(text, steps) {
		return nil, false
	}
	return w.sum.Sum(nil), true
}

// writeSized hashes v behind its length.
func (w *remainder) writeSized(v []byte) {
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(v))) //nolint:gosec // a body is shorter
	w.sum.Write(length[:])
	w.sum.Write(v)
}
