package idem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Label is what an event is found by, beside its ID, such as an order number or the name of an
// object.
type Label struct {
	Name  string // as the route calls it
	Value string // at most 128 bytes
}

// Labels are those of one event, sorted by name. In JSON they are an object.
type Labels []Label

// MarshalJSON implements json.Marshaler.
func (l Labels) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, label := range l {
		name, _ := json.Marshal(label.Name) // a string always encodes
		value, _ := json.Marshal(label.Value)
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Labels) UnmarshalJSON(text []byte) error {
	var values map[string]string
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	*l = nil
	for name, value := range values {
		*l = append(*l, Label{name, value})
	}
	slices.SortFunc(*l, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// ParseLabel reads NAME=VALUE, or a value alone. The text before the first "=" is a name if a label
// can have it.
func ParseLabel(text string) Label {
	name, value, ok := strings.Cut(text, "=")
	if !ok || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return Label{Value: text}
	}
	return Label{name, value}
}

// Has reports whether one of the labels has the wanted value, and the wanted name if that is set.
func (l Labels) Has(wanted Label) bool {
	return slices.ContainsFunc(l, func(o Label) bool {
		return o.Value == wanted.Value && (wanted.Name == "" || o.Name == wanted.Name)
	})
}
