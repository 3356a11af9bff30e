package naming

import (
	"bytes"
	"iter"
)

// HeaderParts returns the values of the part called name in a header that is a list, such as
// "t=1767225600, v1=5f2b…, v1=a3c1…" or "ts=1767225600;h1=5f2b…". Items stand between commas,
// semicolons or spaces; a value may stand in double quotes. With an empty name the items themselves
// are the values. The values point into header.
func HeaderParts(header []byte, name string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for item := range bytes.FieldsFuncSeq(header, betweenItems) {
			value := item
			if name != "" {
				var key []byte
				var is bool
				if key, value, is = bytes.Cut(item, []byte{'='}); !is || string(key) != name {
					continue
				}
			}
			if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
				value = value[1 : n-1]
			}
			if !yield(value) {
				return
			}
		}
	}
}

func betweenItems(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\t' }

// partSource reads a named part of a header.
type partSource struct {
	header headerSource
	name   string
}

func (p partSource) readValue(m *Message) ([]byte, result) {
	list, r := p.header.readValue(m)
	if r != found {
		return nil, r
	}
	return onePart(list, p.name)
}

// onePart returns the only value of HeaderParts.
func onePart(list []byte, name string) (value []byte, r result) {
	for v := range HeaderParts(list, name) {
		if r == found {
			return nil, ambiguous
		}
		value, r = v, found
	}
	return value, r
}
