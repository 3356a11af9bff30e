package naming

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"hooklock/idem/naming/xmlscan"
)

// xmlTextFactor times the longest value is how much of an element is collected for a name: white
// space around a value does not count for MaxValue, but it is read.
const xmlTextFactor = 8

// xmlSource reads the text of an element of an XML body.
type xmlSource struct{ steps []xmlStep }

// xmlStep is an element by its local name; of several of that name the one with index, or, for -1,
// the only one.
type xmlStep struct {
	name  string
	index int
}

// readValue goes through the whole body, because only a whole one is XML, and to see whether the
// element is given twice.
func (x xmlSource) readValue(m *Message) ([]byte, result) {
	w, err := x.walkBody(m)
	switch {
	case err != nil:
		return nil, missing
	case w.twice:
		return nil, ambiguous
	case w.nested:
		return nil, missing
	case m.scratch.isTooLong(len(w.text), xmlTextFactor):
		return nil, tooLong
	}
	return bytes.TrimSpace(w.text), found
}

// walkBody goes through the body. Its error says why that is no XML document that all readers read
// alike.
func (x xmlSource) walkBody(m *Message) (*xmlWalk, error) {
	if !bytes.Contains(m.Body, []byte{'<'}) {
		return nil, errXMLNone
	}
	w := &xmlWalk{scratch: &m.scratch, room: len(m.Body), steps: x.steps, met: make([]int, len(x.steps))}
	return w, w.run(newXMLScanner(m))
}

var errXMLNone = errors.New("it is not XML")

// xmlWalk is one pass through a document.
type xmlWalk struct {
	scratch *scratch
	room    int // bytes to grow the text by, once it is long; 0 = it has grown
	steps   []xmlStep
	met     []int // for each step, how many of its elements were met
	on      int   // how many steps the open elements follow

	text   []byte // of the wanted element
	twice  bool   // it is there twice, or its text is one that XML readers read differently
	nested bool   // it has elements inside
}

// run returns nil if all of it is one XML document without a document type: what entities mean is
// up to the reader.
func (w *xmlWalk) run(s *xmlscan.Scanner) error {
	for {
		kind, err := s.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		switch kind {
		case xmlscan.Start:
			w.openElement(s.Name(), s.Depth()-1)
		case xmlscan.End:
			w.closeElement(s.Depth())
		case xmlscan.Text:
			if w.isInside() && !w.scratch.isTooLong(len(w.text), xmlTextFactor) {
				// copied each time it grows, it would take five times its size
				if len(w.text) > xmlTextFactor*MaxValue {
					w.text, w.room = slices.Grow(w.text, w.room), 0
				}
				w.text = append(w.text, s.Text()...)
			}
		case xmlscan.Aside: // some readers take the text before it, some all of it
			w.twice = w.twice || w.isInside()
		}
	}
}

// isInside reports whether the wanted element, or one in it, is open.
func (w *xmlWalk) isInside() bool { return w.on == len(w.steps) }

// openElement notes an element inside of depth others.
func (w *xmlWalk) openElement(name []byte, depth int) {
	w.nested = w.nested || w.isInside()
	if w.on == depth && !w.isInside() && w.steps[w.on].name == string(name) {
		w.countElement()
	}
}

func (w *xmlWalk) countElement() {
	step, nth := &w.steps[w.on], w.met[w.on]
	w.met[w.on]++
	switch {
	case step.index < 0 && nth > 0:
		w.twice = true
	case step.index < 0 || step.index == nth:
		w.on++
	}
}

// closeElement notes the end of an element that was inside of depth others.
func (w *xmlWalk) closeElement(depth int) { w.on = min(w.on, depth) }
