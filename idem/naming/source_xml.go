package naming

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
)

// maxXMLText bounds how much of an element is collected: white space around a value does not count for MaxValue, but it is read.
const maxXMLText = 8 * MaxValue

// xmlSource reads the text of an element of an XML body.
type xmlSource struct{ steps []xmlStep }

// xmlStep is an element by its local name; of several of that name the one with index, or, for -1, the only one.
type xmlStep struct {
	name  string
	index int
}

// read goes through the whole body, because only a whole one is XML, and to see whether the element is given twice.
func (x xmlSource) read(m *Message) ([]byte, result) {
	w, err := x.walk(m)
	switch {
	case err != nil:
		return nil, missing
	case w.twice:
		return nil, ambiguous
	case w.nested:
		return nil, missing
	case len(w.text) > maxXMLText:
		return nil, tooLong
	}
	s := &m.scratch
	from := len(s.values)
	return s.keep(append(s.values, bytes.TrimSpace(w.text)...), from), found
}

// walk goes through the body. Its error says why that is no XML document that all readers read alike.
func (x xmlSource) walk(m *Message) (*xmlWalk, error) {
	if !bytes.Contains(m.Body, []byte{'<'}) {
		return nil, errXMLNone
	}
	w := &xmlWalk{steps: x.steps, met: make([]int, len(x.steps))}
	return w, w.run(newXMLDecoder(m))
}

// Why a body is no document that can be read, beside its encoding.
var (
	errXMLNone    = errors.New("it is not XML")
	errXMLRoots   = errors.New("it has no single root element")
	errXMLDeep    = fmt.Errorf("its elements are nested deeper than %d", maxDepth)
	errXMLOutside = errors.New("it has text outside of its root element")
	errXMLDoctype = errors.New("it has a document type, whose entities each reader may read differently")
)

// xmlWalk is one pass through a document.
type xmlWalk struct {
	steps []xmlStep
	met   []int // for each step, how many of its elements were met
	depth int   // of the element that is open
	on    int   // how many steps the open elements follow
	roots int

	text   []byte // of the wanted element
	twice  bool   // it is there twice, or its text is one that XML readers read differently
	nested bool   // it has elements inside
}

// run returns nil if all of it is one XML document without a document type: what entities mean is up to the reader.
func (w *xmlWalk) run(d *xml.Decoder) error {
	for {
		token, err := d.Token()
		switch {
		case err == io.EOF && w.roots == 1:
			return nil
		case err == io.EOF:
			return errXMLRoots
		case err != nil:
			return err
		}
		if err := w.take(token); err != nil {
			return err
		}
	}
}

// take goes on by one token.
func (w *xmlWalk) take(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return w.enter(t.Name.Local)
	case xml.EndElement:
		w.leave()
	case xml.CharData:
		if w.depth == 0 && len(bytes.TrimSpace(t)) > 0 {
			return errXMLOutside
		}
		if w.inside() && len(w.text) <= maxXMLText {
			w.text = append(w.text, t...)
		}
	case xml.Comment, xml.ProcInst: // some readers take the text before it, some all of it
		w.twice = w.twice || w.inside()
	case xml.Directive:
		return errXMLDoctype
	}
	return nil
}

// inside reports whether the wanted element, or one in it, is open.
func (w *xmlWalk) inside() bool { return w.on == len(w.steps) }

func (w *xmlWalk) enter(name string) error {
	if w.depth == 0 {
		w.roots++
	}
	w.nested = w.nested || w.inside()
	if w.on == w.depth && !w.inside() && w.steps[w.on].name == name {
		w.meet()
	}
	w.depth++
	switch {
	case w.roots > 1:
		return errXMLRoots
	case w.depth > maxDepth:
		return errXMLDeep
	}
	return nil
}

func (w *xmlWalk) meet() {
	step, nth := &w.steps[w.on], w.met[w.on]
	w.met[w.on]++
	switch {
	case step.index < 0 && nth > 0:
		w.twice = true
	case step.index < 0 || step.index == nth:
		w.on++
	}
}

func (w *xmlWalk) leave() {
	if w.on == w.depth {
		w.on--
	}
	w.depth--
}
