package naming

// Extractor reads the event ID of a delivery that no template can read: of a batch, or from a place
// that depends on the kind of the delivery. It is a pure function. Values that it returns may point
// into m.
type Extractor func(m *Message) Extracted

// Extracted is what an Extractor found. The zero value is no event ID. The rules are those of a
// template: an empty value is missing, one over MaxValue is too long, and each is hashed behind its
// length.
type Extracted struct {
	Values []string
	// Source names for operators where the values are from. It is hashed, too: the same values
	// under two sources are two events.
	Source string
	// Ambiguous says that the event ID is given twice. Then Values do not count.
	Ambiguous bool
}

// separator stands between the values in the printed event ID.
var separator = part{value: []byte("/")}

// readParts appends the values as the parts of a template.
func (e Extractor) readParts(m *Message, parts []part) ([]part, *failure) {
	found := e(m)
	a := &alternative{Source: Source{Kind: SourceExtractor, Name: found.Source, Text: found.Source},
		hashed: string(SourceExtractor) + "." + found.Source}
	if found.Source == "" {
		a.Text = "the sender's ID"
	}
	switch {
	case found.Ambiguous:
		return parts, &failure{ambiguous, a}
	case len(found.Values) == 0:
		return parts, &failure{missing, a}
	}
	for i, v := range found.Values {
		switch {
		case v == "":
			return parts, &failure{missing, a}
		case len(v) > MaxValue:
			return parts, &failure{tooLong, a}
		case i > 0:
			parts = append(parts, separator)
		}
		parts = append(parts, part{source: a, value: []byte(v)})
	}
	return parts, nil
}
