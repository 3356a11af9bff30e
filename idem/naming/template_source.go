package naming

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseAlternative reads a source or a quoted text.
func (p *templateParser) parseAlternative() (alternative, error) {
	start := p.at
	if p.text[p.at] == '"' {
		text, err := p.parseQuoted()
		if err != nil {
			return alternative{}, err
		}
		if text == "" || len(text) > MaxValue {
			return alternative{}, p.errorAt(start, "a quoted text needs 1 to %d bytes: write another", MaxValue)
		}
		return p.newAlternative(start, SourceLiteral, text, literalSource{[]byte(text)}), nil
	}
	head := p.upTo(".[")
	if head == "" && p.isEndOfSource() {
		return alternative{}, p.errorAt(start, "a source is missing here: write one of %s", sourceExamples)
	}
	switch kind := SourceKind(head); kind {
	case SourcePath, SourceQuery, SourceForm, SourceHeader:
		return p.parseNamed(start, kind)
	case SourceBody:
		return p.parseBody(start)
	case SourceXML:
		return p.parseXML(start)
	case SourceHost, SourceMethod, SourceRoute, SourceFingerprint, SourceBodySHA256:
		if !p.isEndOfSource() {
			return alternative{}, p.errorAt(start, "%s has no parts: write {%s}", head, head)
		}
		return p.newAlternative(start, kind, "", plainReader(kind)), nil
	}
	rest := p.upTo("")
	return alternative{}, p.errorAt(start, "unknown source %q%s", head+rest, sourceHint(head+rest))
}

func plainReader(kind SourceKind) reader {
	switch kind {
	case SourceHost:
		return hostSource{}
	case SourceMethod:
		return methodSource{}
	case SourceRoute:
		return routeSource{}
	case SourceFingerprint:
		return fingerprintSource{}
	}
	return bodyHashSource{}
}

// newAlternative makes the alternative that was read from start up to here.
func (p *templateParser) newAlternative(start int, kind SourceKind, name string, r reader) alternative {
	a := alternative{
		Source: Source{Kind: kind, Name: name, Text: p.text[start:p.at], Column: p.columnOf(start)},
		hashed: string(kind),
		reader: r,
	}
	if name != "" {
		a.hashed += "." + name
	}
	return a
}

// parseNamed reads the name of a path variable, parameter or header.
func (p *templateParser) parseNamed(start int, kind SourceKind) (alternative, error) {
	var name string
	quoted := p.skipIf(`["`)
	switch {
	case quoted:
		p.at--
		var err error
		if name, err = p.parseQuoted(); err != nil {
			return alternative{}, err
		}
		if !p.skipIf("]") {
			return alternative{}, p.errorAt(p.at, `write "]" behind the quoted name`)
		}
	case p.skipIf("."):
		name = p.upTo(kind.stopCharacters())
	}
	if name == "" {
		return alternative{}, p.errorAt(start, "%s needs a name: write {%s}", kind, exampleOf[kind])
	}
	switch kind {
	case SourceForm:
		return p.parseForm(start, name, quoted)
	case SourceHeader:
		return p.parseHeader(start, name)
	}
	if !p.isEndOfSource() {
		return alternative{}, p.unexpectedError()
	}
	if kind == SourcePath {
		return p.newAlternative(start, kind, name, pathSource{name}), nil
	}
	return p.newAlternative(start, kind, name, querySource{name}), nil
}

// stopCharacters returns the characters that end an unquoted name of a kind, beside those that end
// every source.
func (k SourceKind) stopCharacters() string {
	if k == SourceHeader {
		return "["
	}
	return ""
}

func (p *templateParser) unexpectedError() error {
	return p.errorAt(p.at, `unexpected %q: write "??" or "}"`, firstRune(p.text[p.at:]))
}

// parseHeader reads what follows the name of a header: the name of a part of it in brackets, or
// nothing.
func (p *templateParser) parseHeader(start int, name string) (alternative, error) {
	const kind = SourceHeader
	if i := strings.IndexFunc(name, func(r rune) bool { return !isToken(r) }); i >= 0 {
		return alternative{}, p.errorAt(start, "%q cannot be in a header's name: write it as {%s}", firstRune(name[i:]),
			exampleOf[kind])
	}
	lowered := string(appendLower(nil, []byte(name)))
	whole := headerSource{name: lowered, quoted: lowered == "idempotency-key"}
	var r reader = whole
	hashed := string(kind) + "." + lowered
	if open := p.at; p.skipIf("[") {
		part := p.upTo("]")
		if !p.skipIf("]") {
			return alternative{}, p.errorAt(open, `"[" is not closed: write "]" behind the name of the header's part`)
		}
		r = partSource{headerSource{name: lowered}, part}
		hashed += "[" + part + "]"
	}
	if !p.isEndOfSource() {
		return alternative{}, p.unexpectedError()
	}
	a := p.newAlternative(start, kind, name, r)
	a.hashed = hashed
	return a, nil
}

// parseForm reads what follows the name of a parameter of a form. Behind a quoted name that are
// steps into the JSON of its value. An unquoted name with dots or brackets is that of a parameter,
// and, where the form has none of that name, the steps into the JSON of the parameter that it
// begins with.
func (p *templateParser) parseForm(start int, name string, quoted bool) (alternative, error) {
	parameter, steps := name, []pathStep(nil)
	if quoted {
		var err error
		if steps, err = p.parseSteps(); err != nil {
			return alternative{}, err
		}
	} else {
		if end := strings.IndexAny(name, ".["); end > 0 {
			inner := &templateParser{text: name, at: end}
			if read, err := inner.parseSteps(); err == nil {
				parameter, steps = name[:end], read
			}
		}
	}
	if !p.isEndOfSource() {
		return alternative{}, p.unexpectedError()
	}
	if steps == nil {
		return p.newAlternative(start, SourceForm, name, formSource{name}), nil
	}
	member := formMember{parameter: parameter, set: new(bodySet)}
	member.set.addPath(steps)
	if quoted {
		a := p.newAlternative(start, SourceForm, p.text[start+len("form"):p.at], member)
		a.hashed = fmt.Sprintf("form[%q]%s", parameter, strings.TrimPrefix(canonicalPath(steps), "body"))
		return a, nil
	}
	member.whole = name
	return p.newAlternative(start, SourceForm, name, member), nil
}

// parseXML reads the names of elements, from the root on.
func (p *templateParser) parseXML(start int) (alternative, error) {
	path, err := p.parseSteps()
	if err != nil {
		return alternative{}, err
	}
	var steps []xmlStep
	for i, step := range path {
		switch {
		case !step.isIndex && strings.Contains(step.name, ":"):
			return alternative{}, p.errorAt(start, "%q: write the element's name without the prefix before the colon",
				step.name)
		case !step.isIndex:
			steps = append(steps, xmlStep{step.name, -1})
		case i == 0 || path[i-1].isIndex:
			return alternative{}, p.errorAt(start, "an index stands behind an element's name: write {%s}",
				exampleOf[SourceXML])
		default:
			steps[len(steps)-1].index = step.index
		}
	}
	if len(steps) == 0 {
		return alternative{}, p.errorAt(start, "xml needs an element: write {%s}", exampleOf[SourceXML])
	}
	if len(path) > maxDepth {
		return alternative{}, p.errorAt(start, "more than %d steps into the body: write fewer", maxDepth)
	}
	a := p.newAlternative(start, SourceXML, strings.TrimPrefix(p.text[start+len("xml"):p.at], "."), xmlSource{steps})
	a.hashed = string(SourceXML) + strings.TrimPrefix(canonicalPath(path), "body")
	return a, nil
}

// parseSteps reads what leads into a body, up to the end of the source.
func (p *templateParser) parseSteps() ([]pathStep, error) {
	var path []pathStep
	for !p.isEndOfSource() {
		step, err := p.parseStep()
		if err != nil {
			return nil, err
		}
		path = append(path, step)
	}
	return path, nil
}

// parseBody reads the steps into a JSON body.
func (p *templateParser) parseBody(start int) (alternative, error) {
	path, err := p.parseSteps()
	if err != nil {
		return alternative{}, err
	}
	if len(path) == 0 {
		return alternative{}, p.errorAt(start, "body needs a member: write {%s}, or {body_sha256} for the whole body",
			exampleOf[SourceBody])
	}
	if len(path) > maxDepth {
		return alternative{}, p.errorAt(start, "more than %d steps into the body: write fewer", maxDepth)
	}
	name := strings.TrimPrefix(p.text[start+len("body"):p.at], ".")
	a := p.newAlternative(start, SourceBody, name, bodySource{p.set, p.set.addPath(path)})
	a.hashed = canonicalPath(path)
	return a, nil
}

// canonicalPath writes a path in its canonical spelling.
func canonicalPath(path []pathStep) string {
	var b strings.Builder
	b.WriteString("body")
	for _, s := range path {
		if s.isIndex {
			fmt.Fprintf(&b, "[%d]", s.index)
		} else {
			fmt.Fprintf(&b, "[%q]", s.name)
		}
	}
	return b.String()
}

// parseStep reads ".member", "[0]" or "[\"member\"]".
func (p *templateParser) parseStep() (pathStep, error) {
	start := p.at
	if p.skipIf(".") {
		if name := p.upTo(".["); name != "" {
			return pathStep{name: name}, nil
		}
		return pathStep{}, p.errorAt(p.at, `a member's name is missing behind ".": write body.id, or body["odd name"]`)
	}
	if !p.skipIf("[") {
		return pathStep{}, p.errorAt(p.at, `unexpected %q: write ".member" or "[0]"`, firstRune(p.text[p.at:]))
	}
	var step pathStep
	if strings.HasPrefix(p.text[p.at:], `"`) {
		name, err := p.parseQuoted()
		if err != nil {
			return step, err
		}
		step.name = name
	} else {
		digits := p.upTo("]")
		if p.wild && digits == "*" && p.skipIf("]") {
			return pathStep{index: anyIndex, isIndex: true}, nil
		}
		index, err := strconv.ParseUint(digits, 10, 31)
		if err != nil {
			return step, p.errorAt(start, `%q is no index: write a number such as [0], or quote a name as ["name"]`,
				digits)
		}
		step.index, step.isIndex = int(index), true
	}
	if !p.skipIf("]") {
		return step, p.errorAt(start, `"[" is not closed: write "]"`)
	}
	return step, nil
}

// parseQuoted reads a text in double quotes.
func (p *templateParser) parseQuoted() (string, error) {
	start := p.at
	var text []byte
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return string(text), nil
		case c < 0x20 || c == 0x7f:
			return "", p.errorAt(p.at, "control character %q: leave it out", c)
		case c == '\\':
			p.at++
			if p.at >= len(p.text) || p.text[p.at] != '"' && p.text[p.at] != '\\' {
				return "", p.errorAt(p.at-1, `a backslash in quotes: write \\, or \" for a quote`)
			}
		}
		text = append(text, p.text[p.at])
	}
	return "", p.errorAt(start, `the quote is not closed: write "\""`)
}

// upTo takes what is before the source's end and before any of stops.
func (p *templateParser) upTo(stops string) string {
	start := p.at
	for !p.isEndOfSource() && !strings.ContainsRune(stops, rune(p.text[p.at])) {
		p.at++
	}
	return p.text[start:p.at]
}

// isEndOfSource reports whether something follows that no unquoted name holds.
func (p *templateParser) isEndOfSource() bool {
	if p.at >= len(p.text) {
		return true
	}
	switch c := p.text[p.at]; c {
	case '{', '}', '"':
		return true
	case '?':
		return strings.HasPrefix(p.text[p.at:], "??")
	default:
		return c <= ' ' || c == 0x7f
	}
}

func (p *templateParser) skipSpaces() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

func (p *templateParser) skipIf(token string) bool {
	if !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

func firstRune(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return s[:size]
}

// isToken reports whether a header's name may hold r (RFC 9110, section 5.6.2).
func isToken(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
		strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
