package naming

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of a template.
const (
	maxTemplate = 4096 // bytes
	maxSources  = 32
)

// TemplateError says what is wrong in a template and what to write instead.
type TemplateError struct {
	Column  int // where, in characters of the template, from 1
	Problem string
}

// Error returns column and problem.
func (e *TemplateError) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Problem) }

// CompileTemplate reads a template. Its errors are *TemplateError.
//
//	template = { text | "{" alternative { "??" alternative } "}" }
//	alternative = source | quoted
//	source = "path." name | "query." name | "header." name [ "[" part "]" ] | "form." name | "form[" quoted "]" { step }
//	       | "body" steps | "xml" steps | "host" | "method" | "route" | "fingerprint" | "body_sha256"
//	steps = step { step } ; step = "." member | "[" digits "]" | "[" quoted "]"
//
// "{{" and "}}" in text are braces, but not around a source, where other tools want two. A quoted
// text stands in double quotes, with \" and \\ inside. It may only be the last alternative, because
// it is never missing. Members and parameters whose names hold dots, spaces, brackets or braces are
// quoted: body["a.b"].c, form["payload id"], query["a b"].
//
// A part is one of those that HeaderParts finds: header.X[t] of "t=1,v1=5f2b". form.payload.team.id
// is the parameter of that name, or else a member of the JSON in the parameter payload;
// form["payload"].team.id is the latter alone. xml.Envelope.Body.note[0].id goes from the root to
// the text of an element, by names without prefixes; of several of one name the index says which,
// from 0.
//
// An alternative that is missing in a delivery gives way to the next; if all of them are, the whole
// template is missing. Missing are: what is absent, null or empty, an object, an array, any member
// of a body that is not JSON or nests deeper than 300, a percent-encoding or a \u surrogate that is
// broken, a form parameter of a body that is no application/x-www-form-urlencoded, an element that
// has others inside, or whose document has a document type or is no XML, the body_sha256 of an
// empty body. A header line, part, parameter, JSON member or element that is given twice is an
// error, and so is an element with a comment in its text, and a value over MaxValue bytes.
func CompileTemplate(text string) (*Template, error) { return compileTemplate(text, new(bodySet)) }

func compileTemplate(text string, set *bodySet) (*Template, error) {
	p := &templateParser{text: text, set: set, template: &Template{text: text}}
	if text == "" {
		return nil, p.errorAt(0, "the template is empty: write text, a source such as {route}, or both")
	}
	if len(text) > maxTemplate {
		return nil, p.errorAt(0, "the template is longer than %d bytes: write a shorter one", maxTemplate)
	}
	if !utf8.ValidString(text) {
		return nil, p.errorAt(0, "the template is not UTF-8: write it in UTF-8")
	}
	if err := p.run(); err != nil {
		return nil, err
	}
	return p.template, nil
}

type templateParser struct {
	text     string
	at       int // byte offset
	set      *bodySet
	literal  []byte // text since the last brace
	sources  int
	template *Template
	wild     bool // [*] and .* are steps
}

// errorAt makes the error for the character at byte offset at.
func (p *templateParser) errorAt(at int, format string, args ...any) error {
	return &TemplateError{Column: p.columnOf(at), Problem: fmt.Sprintf(format, args...)}
}

func (p *templateParser) columnOf(at int) int {
	return utf8.RuneCountInString(p.text[:min(at, len(p.text))]) + 1
}

func (p *templateParser) run() error {
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		switch {
		case strings.HasPrefix(rest, "{{") && p.isDoubled():
			return p.errorAt(p.at, `"{{" is a plain brace, so this is text and no source: write {%s}`,
				strings.TrimSpace(rest[2:strings.Index(rest, "}}")]))
		case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
			p.literal = append(p.literal, rest[0])
			p.at += 2
		case rest[0] == '}':
			return p.errorAt(p.at, `"}" closes nothing: write "}}" for a brace`)
		case rest[0] == '{':
			p.flushLiteral()
			if err := p.parseBraces(); err != nil {
				return err
			}
		case rest[0] < 0x20 || rest[0] == 0x7f:
			return p.errorAt(p.at, "control character %q: leave it out", rest[0])
		default:
			p.literal = append(p.literal, rest[0])
			p.at++
		}
	}
	p.flushLiteral()
	return nil
}

// isDoubled reports whether a source stands here between two braces and two.
func (p *templateParser) isDoubled() bool {
	inside, _, closed := strings.Cut(p.text[p.at+2:], "}}")
	if !closed || strings.ContainsAny(inside, "{}") {
		return false
	}
	inner := &templateParser{text: "{" + inside + "}", set: new(bodySet), template: new(Template)}
	return inner.parseBraces() == nil && inner.at == len(inner.text) &&
		inner.template.pieces[0].alternatives[0].Kind != SourceLiteral
}

func (p *templateParser) flushLiteral() {
	if len(p.literal) > 0 {
		p.template.pieces = append(p.template.pieces, piece{literal: p.literal})
		p.literal = nil
	}
}

// parseBraces reads from "{" to "}".
func (p *templateParser) parseBraces() error {
	open := p.at
	p.at++
	var all []alternative
	for {
		p.skipSpaces()
		if p.at >= len(p.text) {
			return p.errorAt(open, `"{" is not closed: add "}", or write "{{" for a brace`)
		}
		start := p.at
		a, err := p.parseAlternative()
		if err != nil {
			return err
		}
		all = append(all, a)
		if p.sources++; p.sources > maxSources {
			return p.errorAt(start, "more than %d sources: write fewer", maxSources)
		}
		p.skipSpaces()
		if p.skipIf("}") {
			p.template.pieces = append(p.template.pieces, piece{alternatives: all})
			return nil
		}
		if p.at >= len(p.text) {
			return p.errorAt(open, `"{" is not closed: add "}", or write "{{" for a brace`)
		}
		if !p.skipIf("??") {
			return p.errorAt(p.at, `unexpected %q: write "??" between two sources, or "}"`, firstRune(p.text[p.at:]))
		}
		if a.Kind == SourceLiteral {
			return p.errorAt(p.at-2, "a quoted text is never missing, so nothing behind it is ever used: put it last")
		}
	}
}
