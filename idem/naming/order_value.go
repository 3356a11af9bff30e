package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"hooklock/idem"
)

// Ordered says how the position of an event in its scope was found. The zero value: it was not
// looked for.
type Ordered string

// How it was found.
const (
	OrderedOK         Ordered = "ok"
	OrderedMissing    Ordered = "missing"
	OrderedAmbiguous  Ordered = "ambiguous" // given twice
	OrderedTooLong    Ordered = "too_long"
	OrderedUnreadable Ordered = "unreadable" // neither a number nor a time of RFC 3339
)

// ordering reads the positions of a route's events in their scopes.
type ordering struct {
	by    *Template
	scope *Template // nil: the workflow is one scope
	unit  idem.OrderUnit
}

func newOrdering(spec *KeySpec, set *bodySet) (*ordering, error) {
	if spec.OrderBy == "" {
		return nil, nil
	}
	o := &ordering{unit: spec.OrderUnit}
	if o.unit == idem.UnitNone {
		o.unit = ""
	}
	var err error
	if o.by, err = compileTemplate(spec.OrderBy, set); err != nil {
		return nil, fmt.Errorf("order.by: %w", err)
	}
	if o.by.Constant() {
		return nil, errors.New("order.by: reads nothing of the delivery: use a source such as {body.created}")
	}
	if spec.OrderScope == "" {
		return o, nil
	}
	if o.scope, err = compileTemplate(spec.OrderScope, set); err != nil {
		return nil, fmt.Errorf("order.scope: %w", err)
	}
	return o, nil
}

// readPosition reads the position of the event. Two events have the same mark if by, both their
// scopes and the kinds of their positions are the same. A position that cannot be read refuses
// nothing.
func (o *ordering) readPosition(m *Message, names *Names) {
	s := &m.scratch
	at, result := o.readText(m, o.by)
	if names.Ordered = result; result != OrderedOK {
		return
	}
	position, ok := idem.ParsePosition(at)
	if !ok {
		names.Ordered = OrderedUnreadable
		return
	}
	scope := ""
	s.order = s.order[:0]
	if o.scope != nil {
		if scope, names.Ordered = o.readText(m, o.scope); names.Ordered != OrderedOK {
			return
		}
	}
	b := appendSized(s.line[:0], o.by.text)
	b = appendSized(b, position.Kind())
	for _, p := range s.order {
		b = appendSized(b, p.value)
	}
	s.line = b
	sum := sha256.Sum256(b)
	names.Order = &idem.Order{ScopeKey: hex.EncodeToString(sum[:16]), Scope: scope, At: at, Unit: o.unit}
}

func (o *ordering) readText(m *Message, t *Template) (string, Ordered) {
	s := &m.scratch
	var failed *failure
	s.order, failed = t.readParts(m, s.order[:0])
	switch {
	case failed == nil:
	case failed.result == ambiguous:
		return "", OrderedAmbiguous
	case failed.result.byteLimit() > 0:
		return "", OrderedTooLong
	default:
		return "", OrderedMissing
	}
	text, err := s.printableName(s.order, "")
	if err != nil {
		return "", OrderedTooLong
	}
	return text, OrderedOK
}
