package naming

// Lookup reads one source of a delivery outside of a template. It is immutable and may be shared.
type Lookup struct{ source alternative }

// Reading is the result of a Lookup in a delivery.
type Reading uint8

// The readings.
const (
	ReadMissing   = Reading(missing)
	ReadFound     = Reading(found)
	ReadAmbiguous = Reading(ambiguous) // given twice
	ReadTooLong   = Reading(tooLong)
)

// CompileLookup reads a source as templates spell it, without braces: header.X, body.a.b. Its
// errors are *TemplateError.
func CompileLookup(text string) (*Lookup, error) {
	p := &templateParser{text: text, set: new(bodySet), template: &Template{}}
	if p.isEndOfSource() {
		return nil, p.errorAt(0, "a source is missing here: write one of %s", sourceExamples)
	}
	a, err := p.parseAlternative()
	if err != nil {
		return nil, err
	}
	if p.at < len(p.text) {
		return nil, p.unexpectedError()
	}
	return &Lookup{a}, nil
}

// Source returns what l reads.
func (l *Lookup) Source() Source { return l.source.Source }

// Read reads m. A value that is empty is missing; it may be as long as the delivery. It is good
// until m names a delivery.
func (l *Lookup) Read(m *Message) ([]byte, Reading) {
	defer func(longest int) { m.scratch.longest = longest }(m.scratch.longest)
	m.scratch.longest = 0
	value, r := l.source.reader.readValue(m)
	switch {
	case r.byteLimit() > 0:
		return nil, ReadTooLong
	case r != found:
		return nil, Reading(r)
	case len(value) == 0:
		return nil, ReadMissing
	}
	return value, ReadFound
}

// Part returns the name of the part of a header that l reads; ok is false if it reads something
// else, or the whole of a header.
func (l *Lookup) Part() (name string, ok bool) {
	p, ok := l.source.reader.(partSource)
	return p.name, ok
}
