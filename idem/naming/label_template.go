package naming

import (
	"fmt"
	"unicode/utf8"

	"hooklock/idem"
)

// MaxLabels bounds the labels of a route.
const MaxLabels = 4

// maxLabel bounds the value of a label, in bytes.
const maxLabel = 128

// LabelSpec is the name of a label and its template.
type LabelSpec struct{ Name, Template string }

type label struct {
	name     string
	template *Template
}

func newLabels(specs []LabelSpec, set *bodySet) ([]label, error) {
	if len(specs) > MaxLabels {
		return nil, fmt.Errorf("labels: %d, and at most %d are kept", len(specs), MaxLabels)
	}
	var all []label
	for _, spec := range specs {
		t, err := compileTemplate(spec.Template, set)
		if err != nil {
			return nil, fmt.Errorf("labels.%s: %w", spec.Name, err)
		}
		all = append(all, label{spec.Name, t})
	}
	return all, nil
}

// readLabels returns the labels that m has. A label whose value is missing or given twice is left
// out: labels refuse nothing.
func readLabels(m *Message, labels []label) idem.Labels {
	s := &m.scratch
	found := make(idem.Labels, 0, len(labels))
	for _, l := range labels {
		var failed *failure
		if s.order, failed = l.template.readParts(m, s.order[:0]); failed != nil && failed.result.byteLimit() == 0 {
			continue
		}
		line := s.line[:0]
		for _, p := range s.order {
			if p.source == nil {
				line = append(line, p.value...)
			} else {
				line = appendPrintable(line, p.value)
			}
		}
		s.line = line
		if line = cutLabel(line, failed != nil); len(line) > 0 {
			found = append(found, idem.Label{Name: l.name, Value: string(line)})
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// SpelledLabel converts the value of a label from its sender's spelling to the one in Names.
func SpelledLabel(value string) string { return string(cutLabel([]byte(Spelled(value)), false)) }

// cutMark ends a value that was cut.
const cutMark = "…"

// cutLabel cuts v between two letters to what a label keeps; more says that the delivery has more
// of it than v.
func cutLabel(v []byte, more bool) []byte {
	if len(v) <= maxLabel && (!more || len(v) == 0) {
		return v
	}
	end := min(len(v), maxLabel-len(cutMark))
	for end < len(v) && end > 0 && !utf8.RuneStart(v[end]) {
		end--
	}
	return append(v[:end], cutMark...)
}
