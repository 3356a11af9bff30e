package sender

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hooklock/idem/naming"
)

// pieces is literal text with sources of a delivery in braces: what a generic scheme signs, or what
// answers a handshake.
type pieces []piece

// piece is literal text or one source.
type piece struct {
	literal []byte
	source  string // body, method, url, target, header or lookup; empty for literal text
	name    string // as it was written
	header  string
	lookup  *naming.Lookup
	mac     bool // its digest is used instead of its value
}

// macSource is the prefix of a source whose digest is used instead of its value.
const macSource = "hmac."

// parsePieces parses literal text with {body}, {method}, {url}, {target} and template sources. "{{"
// and "}}" are braces. Errors name setting.
func parsePieces(setting, content string) (pieces, error) {
	var all pieces
	var literal []byte
	flush := func() {
		if len(literal) > 0 {
			all, literal = append(all, piece{literal: literal}), nil
		}
	}
	for rest := content; rest != ""; {
		switch c := rest[0]; {
		case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
			literal, rest = append(literal, c), rest[2:]
		case c == '}':
			return nil, fmt.Errorf("%s %q: a } without its {", setting, content)
		case c == '{':
			name, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return nil, fmt.Errorf("%s %q: a { without its }", setting, content)
			}
			p, err := parsePiece(name)
			if err != nil {
				return nil, fmt.Errorf("%s %q: {%s}: %w", setting, content, name, err)
			}
			flush()
			all, rest = append(all, p), after
		default:
			literal, rest = append(literal, c), rest[1:]
		}
	}
	flush()
	return all, nil
}

func parsePiece(name string) (piece, error) {
	p := piece{source: name, name: name}
	switch name {
	case "body", "method", "url", "target":
		return p, nil
	}
	source, mac := strings.CutPrefix(name, macSource)
	l, err := parseLookup(source)
	if err != nil {
		return p, err
	}
	p.source, p.lookup, p.mac = "lookup", l, mac
	if _, part := l.Part(); l.Source().Kind == naming.SourceHeader && !part {
		p.source, p.header = "header", l.Source().Name
	}
	return p, nil
}

// parseLookup parses a template source. It rejects path, because a delivery does not know what the
// pattern of its route captures.
func parseLookup(source string) (*naming.Lookup, error) {
	l, err := naming.CompileLookup(source)
	if bad, ok := errors.AsType[*naming.TemplateError](err); ok {
		return nil, errors.New(bad.Problem)
	}
	switch kind := l.Source().Kind; kind {
	case naming.SourcePath, naming.SourceRoute, naming.SourceFingerprint, naming.SourceLiteral:
		return nil, fmt.Errorf("%s is nothing that a sender signs; give {body}, {method}, {url}, {target} or a "+
			"source such as {header.X}", kind)
	}
	return l, nil
}

// needsURL reports whether t has the public URL.
func (t pieces) needsURL() bool {
	return slices.ContainsFunc(t, func(p piece) bool { return p.source == "url" })
}

// readValue returns the value of the piece in a delivery, read for claim c.
func (p *piece) readValue(scheme string, d *Delivery, c *claim, url *publicURL) ([]byte, error) {
	switch p.source {
	case "body":
		return d.Body, nil
	case "method":
		return d.Method, nil
	case "url":
		return url.signedURL(scheme, d)
	case "target":
		return d.Target, nil
	case "header":
		return d.requireOne(scheme, p.header)
	case "lookup":
		return c.lookUp(scheme, p.lookup, d)
	}
	return p.literal, nil
}

// lookUp returns the value of a source in a delivery.
func (c *claim) lookUp(scheme string, l *naming.Lookup, d *Delivery) ([]byte, error) {
	if c.message == nil {
		c.message = d.asMessage()
	}
	part := partOf(l.Source())
	value, r := l.Read(c.message)
	switch r {
	case naming.ReadFound:
		return value, nil
	case naming.ReadAmbiguous:
		return nil, &SignatureError{scheme, Malformed, part, "given more than once"}
	case naming.ReadTooLong:
		return nil, &SignatureError{scheme, Malformed, part, "is too long"}
	}
	return nil, &SignatureError{scheme, Missing, part, "the delivery has no such value"}
}

// partOf returns the name of a source for errors. Headers are named without "header.", as in all
// errors of this package.
func partOf(s naming.Source) string {
	if s.Kind == naming.SourceHeader {
		return strings.TrimPrefix(s.Text, "header.")
	}
	return s.Text
}

// asMessage returns d in the form that templates read.
func (d *Delivery) asMessage() *naming.Message {
	path, query, _ := bytes.Cut(d.Target, []byte{'?'})
	host, _ := d.findHeader("host")
	return &naming.Message{Method: d.Method, Target: d.Target, Path: path, Query: query, Host: host, Fields: d.Fields,
		Body: d.Body}
}

// coveredParts returns what a signature over t covers.
func (t pieces) coveredParts() Coverage {
	var cov Coverage
	for _, p := range t {
		switch p.source {
		case "body":
			cov.Body = true
		case "method":
			cov.Method = true
		case "url", "target":
			cov.URL = true
		case "header":
			cov.Headers = append(cov.Headers, p.header)
		case "lookup":
			switch s := p.lookup.Source(); s.Kind {
			case naming.SourceBodySHA256:
				cov.Body = true
			case naming.SourceMethod:
				cov.Method = true
			case naming.SourceHost:
				cov.Headers = append(cov.Headers, "Host")
			case naming.SourceHeader: // a part of it leaves the rest open
				cov.Sources = append(cov.Sources, s.Text)
			default:
				cov.Sources = append(cov.Sources, s.Text)
			}
		}
	}
	return cov
}
