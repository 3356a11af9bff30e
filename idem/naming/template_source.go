package naming

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// alternative reads a source or a quoted text.
func (p *templateParser) alternative() (alternative, error) {
	start := p.at
	if p.text[p.at] == '"' {
		text, err := p.quoted()
		if err != nil {
			return alternative{}, err
		}
		if text == "" || len(text) > MaxValue {
			return alternative{}, p.fail(start, "a quoted text needs 1 to %d bytes: write another", MaxValue)
		}
		return p.made(start, SourceLiteral, text, literalSource{[]byte(text)}), nil
	}
	head := p.upTo(".[")
	if head == "" && p.isEndOfSource() {
		return alternative{}, p.fail(start, "a source is missing here: write one of %s", sourceExamples)
	}
	switch kind := SourceKind(head); kind {
	case SourcePath, SourceQuery, SourceForm, SourceHeader:
		return p.named(start, kind)
	case SourceBody:
		return p.body(start)
	case SourceHost, SourceMethod, SourceRoute, SourceFingerprint, SourceBodySHA256:
		if !p.isEndOfSource() {
			return alternative{}, p.fail(start, "%s has no parts: write {%s}", head, head)
		}
		return p.made(start, kind, "", plainReader(kind)), nil
	}
	rest := p.upTo("")
	return alternative{}, p.fail(start, "unknown source %q%s", head+rest, suggest(head+rest))
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

// made is the alternative that was read from start up to here.
func (p *templateParser) made(start int, kind SourceKind, name string, r reader) alternative {
	a := alternative{
		Source: Source{Kind: kind, Name: name, Text: p.text[start:p.at], Column: p.column(start)},
		hashed: string(kind),
		reader: r,
	}
	if name != "" {
		a.hashed += "." + name
	}
	return a
}

// named reads the name of a path variable, parameter or header.
func (p *templateParser) named(start int, kind SourceKind) (alternative, error) {
	var name string
	switch {
	case p.take(`["`):
		p.at--
		var err error
		if name, err = p.quoted(); err != nil {
			return alternative{}, err
		}
		if !p.take("]") {
			return alternative{}, p.fail(p.at, `write "]" behind the quoted name`)
		}
	case p.take("."):
		name = p.upTo("")
	}
	if name == "" {
		return alternative{}, p.fail(start, "%s needs a name: write {%s}", kind, exampleOf[kind])
	}
	if !p.isEndOfSource() {
		return alternative{}, p.fail(p.at, `unexpected %q: write "??" or "}"`, firstRune(p.text[p.at:]))
	}
	switch kind {
	case SourcePath:
		return p.made(start, kind, name, pathSource{name}), nil
	case SourceQuery:
		return p.made(start, kind, name, querySource{name}), nil
	case SourceForm:
		return p.made(start, kind, name, formSource{name}), nil
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return !isToken(r) }); i >= 0 {
		return alternative{}, p.fail(start, "%q cannot be in a header's name: write it as {%s}", firstRune(name[i:]), exampleOf[kind])
	}
	lowered := string(appendLower(nil, []byte(name)))
	a := p.made(start, kind, name, headerSource{name: lowered, quoted: lowered == "idempotency-key"})
	a.hashed = string(kind) + "." + lowered
	return a, nil
}

// body reads the steps into a JSON body.
func (p *templateParser) body(start int) (alternative, error) {
	var path []pathStep
	for !p.isEndOfSource() {
		step, err := p.step()
		if err != nil {
			return alternative{}, err
		}
		path = append(path, step)
	}
	if len(path) == 0 {
		return alternative{}, p.fail(start, "body needs a member: write {%s}, or {body_sha256} for the whole body", exampleOf[SourceBody])
	}
	if len(path) > maxDepth {
		return alternative{}, p.fail(start, "more than %d steps into the body: write fewer", maxDepth)
	}
	name := strings.TrimPrefix(p.text[start+len("body"):p.at], ".")
	a := p.made(start, SourceBody, name, bodySource{p.set, p.set.add(path)})
	a.hashed = spell(path)
	return a, nil
}

// spell writes a path in its one spelling.
func spell(path []pathStep) string {
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

// step reads ".member", "[0]" or "[\"member\"]".
func (p *templateParser) step() (pathStep, error) {
	start := p.at
	if p.take(".") {
		if name := p.upTo(".["); name != "" {
			return pathStep{name: name}, nil
		}
		return pathStep{}, p.fail(p.at, `a member's name is missing behind ".": write body.id, or body["odd name"]`)
	}
	if !p.take("[") {
		return pathStep{}, p.fail(p.at, `unexpected %q: write ".member" or "[0]"`, firstRune(p.text[p.at:]))
	}
	var step pathStep
	if strings.HasPrefix(p.text[p.at:], `"`) {
		name, err := p.quoted()
		if err != nil {
			return step, err
		}
		step.name = name
	} else {
		digits := p.upTo("]")
		index, err := strconv.ParseUint(digits, 10, 31)
		if err != nil {
			return step, p.fail(start, `%q is no index: write a number such as [0], or quote a name as ["name"]`, digits)
		}
		step.index, step.isIndex = int(index), true
	}
	if !p.take("]") {
		return step, p.fail(start, `"[" is not closed: write "]"`)
	}
	return step, nil
}

// quoted reads a text in double quotes.
func (p *templateParser) quoted() (string, error) {
	start := p.at
	var text []byte
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return string(text), nil
		case c < 0x20 || c == 0x7f:
			return "", p.fail(p.at, "control character %q: leave it out", c)
		case c == '\\':
			p.at++
			if p.at >= len(p.text) || p.text[p.at] != '"' && p.text[p.at] != '\\' {
				return "", p.fail(p.at-1, `a backslash in quotes: write \\, or \" for a quote`)
			}
		}
		text = append(text, p.text[p.at])
	}
	return "", p.fail(start, `the quote is not closed: write "\""`)
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

func (p *templateParser) spaces() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

func (p *templateParser) take(token string) bool {
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
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
