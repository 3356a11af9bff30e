package naming

// Template builds a name out of a delivery. It is literal text and parts in braces; see
// CompileTemplate for the grammar. It is immutable and may be shared.
type Template struct {
	text   string
	pieces []piece
}

// piece is literal text, or the alternatives of one pair of braces.
type piece struct {
	literal      []byte
	alternatives []alternative // nil for literal text
}

// alternative is one source in braces.
type alternative struct {
	Source
	// hashed is Text in its one spelling, so that a configuration that is only written differently
	// keeps its keys.
	hashed string
	reader reader
}

// Source is one place that a template reads.
type Source struct {
	Kind SourceKind
	// Name is what follows the kind: the path variable, the query or form parameter, the header,
	// the members of the body ("data.object.id"), the text of a literal. Empty for the kinds that
	// stand alone.
	Name string
	// Text is the source as the template spells it: "header.Idempotency-Key".
	Text string
	// Column is where it begins in the template's text, in characters, from 1.
	Column int
}

// SourceKind says what a Source reads.
type SourceKind string

// The kinds of sources, by their names in templates.
const (
	SourcePath   SourceKind = "path"   // a variable of the route's pattern, percent-decoded once
	SourceQuery  SourceKind = "query"  // a query parameter, decoded
	SourceHeader SourceKind = "header" // a header line, or a named part of it
	SourceBody   SourceKind = "body"   // a member of a JSON body
	// a parameter of an application/x-www-form-urlencoded body, or a member of JSON in it
	SourceForm        SourceKind = "form"
	SourceXML         SourceKind = "xml"         // the text of an element of an XML body
	SourceHost        SourceKind = "host"        // the host in lower case, with its port if that is not the default
	SourceMethod      SourceKind = "method"      // the method
	SourceRoute       SourceKind = "route"       // the route's name
	SourceFingerprint SourceKind = "fingerprint" // the fingerprint in hex
	SourceBodySHA256  SourceKind = "body_sha256" // SHA-256 of the raw body in hex; an empty body is missing
	SourceLiteral     SourceKind = "literal"     // a quoted text, the last resort of "??"
	SourceExtractor   SourceKind = "extractor"   // what an Extractor found; no template can name it
)

// String returns the text that t was compiled from.
func (t *Template) String() string { return t.text }

// Sources lists what t reads, in the order of its text, alternatives and quoted texts included,
// plain text not.
func (t *Template) Sources() []Source {
	var all []Source
	for _, p := range t.pieces {
		for _, a := range p.alternatives {
			all = append(all, a.Source)
		}
	}
	return all
}

// Constant reports whether nothing in t comes from the single delivery: literal text, route, host
// and method alone. As an event ID it would make every delivery the same event.
func (t *Template) Constant() bool {
	for _, p := range t.pieces {
		for _, a := range p.alternatives {
			if !a.Kind.isConstant() {
				return false
			}
		}
	}
	return true
}

func (k SourceKind) isConstant() bool {
	switch k {
	case SourceHost, SourceMethod, SourceRoute, SourceLiteral:
		return true
	}
	return false
}

// part is one piece of a template with its value in one delivery.
type part struct {
	source *alternative // nil for literal text
	value  []byte
}

// readParts appends the values of t's pieces to parts. When one of them has no value it returns
// that piece's failure and the parts so far, with one that is too long.
func (t *Template) readParts(m *Message, parts []part) ([]part, *failure) {
	for i := range t.pieces {
		p := &t.pieces[i]
		if p.alternatives == nil {
			parts = append(parts, part{value: p.literal})
			continue
		}
		found, failed := p.readPart(m)
		if failed != nil {
			if failed.result.byteLimit() > 0 {
				parts = append(parts, found)
			}
			return parts, failed
		}
		parts = append(parts, found)
	}
	return parts, nil
}

// readPart tries one alternative after the other. Only a missing value leads on to the next: one
// that is there and cannot be read (given twice, too long) is an error, because otherwise the
// sender would choose which of two IDs counts. A value that is too long is returned too.
func (p *piece) readPart(m *Message) (part, *failure) {
	for i := range p.alternatives {
		a := &p.alternatives[i]
		value, result := a.reader.readValue(m)
		if result == found && len(value) == 0 {
			result = missing
		}
		if result == found && len(value) > MaxValue {
			result = tooLong
		}
		switch result {
		case found:
			return part{source: a, value: value}, nil
		case missing:
		default:
			return part{source: a, value: value}, &failure{result, a}
		}
	}
	return part{}, &failure{missing, &p.alternatives[0]}
}

// failure is why a template has no value.
type failure struct {
	result result
	source *alternative // the one at fault; for a missing value the first that was tried
}

// result is how a source was read in a delivery.
type result uint8

const (
	missing result = iota
	found
	ambiguous // given twice
	tooLong   // over MaxValue
	longJSON  // the JSON that it is in is over maxFormJSON, or maxInner
)

// byteLimit returns the bytes that a value may have which is too long, or what it is in; 0 = it is
// not too long.
func (r result) byteLimit() int {
	switch r {
	case tooLong:
		return MaxValue
	case longJSON:
		return maxFormJSON
	}
	return 0
}

// reader reads one source. The value is good until the next call of Keys.Name.
type reader interface {
	readValue(m *Message) ([]byte, result)
}
