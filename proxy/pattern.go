package proxy

import (
	"bytes"
	"fmt"
	"strings"

	"hooklock/idem/naming"
)

// Pattern is a path with variables: "/hooks/stripe/{account}". {x} matches one segment that is not empty, {x...} at the end the
// rest, also an empty one. Everything else is compared byte for byte with the raw path.
type Pattern struct {
	text     string
	segments []segment // what stands between the slashes
	rest     string    // name of the {x...} at the end, if any
	folded   []segment // segments as a laxPath has them
}

type segment struct {
	literal string
	name    string // of a variable
}

// ParsePattern reads a pattern. Errors say what to write instead.
func ParsePattern(text string) (*Pattern, error) {
	if !strings.HasPrefix(text, "/") {
		return nil, fmt.Errorf("path %q: must begin with /", text)
	}
	if strings.ContainsAny(text, "?#") {
		return nil, fmt.Errorf("path %q: matches the path alone, write it without ? and #", text)
	}
	p := &Pattern{text: text}
	parts := strings.Split(text[1:], "/")
	for i, part := range parts {
		name, rest, err := variable(part)
		switch {
		case err != nil:
			return nil, fmt.Errorf("path %q: %w", text, err)
		case rest && i != len(parts)-1:
			return nil, fmt.Errorf("path %q: {%s...} may only stand at the end", text, name)
		case name != "" && p.has(name):
			return nil, fmt.Errorf("path %q: {%s} stands there twice", text, name)
		case rest:
			p.rest = name
		default:
			p.segments = append(p.segments, segment{literal: part, name: name})
		}
	}
	p.folded = p.lax()
	return p, nil
}

// variable takes the braces off "{x}" and "{x...}"; name is empty for a literal.
func variable(part string) (name string, rest bool, err error) {
	if !strings.ContainsAny(part, "{}") {
		return "", false, nil
	}
	name, ok := strings.CutPrefix(part, "{")
	name, ok2 := strings.CutSuffix(name, "}")
	name, rest = strings.CutSuffix(name, "...")
	if !ok || !ok2 || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return "", false, fmt.Errorf("segment %q: a variable is a whole segment, {name} or {name...}", part)
	}
	return name, rest, nil
}

func (p *Pattern) has(name string) bool {
	for _, s := range p.segments {
		if s.name == name {
			return true
		}
	}
	return false
}

// String is the pattern as it was written.
func (p *Pattern) String() string { return p.text }

// Match appends the variables of path to vars, and says whether it matches. The values point into path.
func (p *Pattern) Match(path []byte, vars []naming.PathVar) ([]naming.PathVar, bool) {
	if len(path) == 0 || path[0] != '/' {
		return vars, false
	}
	left, more := path[1:], true
	for _, s := range p.segments {
		if !more {
			return vars, false
		}
		var part []byte
		part, left, more = bytes.Cut(left, []byte{'/'})
		switch {
		case s.name == "" && string(part) == s.literal:
		case s.name != "" && len(part) > 0:
			vars = append(vars, naming.PathVar{Name: s.name, Raw: part})
		default:
			return vars, false
		}
	}
	if p.rest != "" && more {
		return append(vars, naming.PathVar{Name: p.rest, Raw: left}), true
	}
	return vars, p.rest == "" && !more
}
