package naming

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxPattern bounds a path pattern; real ones are a tenth of it.
const maxPattern = 1024

const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// pathBytes stand for themselves in a path (RFC 3986, pchar) and survive normalising: no % and no
// ;.
const pathBytes = nameBytes + "-.~!$&'()+,=:@"

// Pattern is a path with variables: "/hooks/stripe/{account}". {x} matches one segment that is not
// empty, {x...} at the end the rest, also an empty one. Everything else is compared byte for byte
// with the raw path. It is never changed.
type Pattern struct {
	text     string
	segments []Segment // what stands between the slashes
	rest     string    // name of the {x...} at the end, if any
}

// Segment is one step of a pattern: a literal, which may be empty, or a variable.
type Segment struct {
	Literal  string
	Variable string // its name; empty for a literal
}

// ParsePattern reads a pattern. It refuses what no path could match; the errors say what to write
// instead.
func ParsePattern(text string) (*Pattern, error) {
	if !strings.HasPrefix(text, "/") {
		return nil, fmt.Errorf("%q must begin with /", text)
	}
	if len(text) > maxPattern {
		return nil, fmt.Errorf("is longer than %d bytes", maxPattern)
	}
	p := &Pattern{text: text}
	parts := strings.Split(text[1:], "/")
	for i, part := range parts {
		last := i == len(parts)-1
		s, rest, err := parseSegment(part, last)
		switch {
		case err != nil:
			return nil, err
		case rest && !last:
			return nil, fmt.Errorf("{%s...} is the rest of the path, so nothing can come after it", s.Variable)
		case s.Variable != "" && slices.Contains(p.Vars(), s.Variable):
			return nil, fmt.Errorf("{%s} occurs twice", s.Variable)
		case rest:
			p.rest = s.Variable
		default:
			p.segments = append(p.segments, s)
		}
	}
	return p, nil
}

func parseSegment(text string, last bool) (s Segment, rest bool, err error) {
	if !strings.ContainsAny(text, "{}") {
		return Segment{Literal: text}, false, checkLiteral(text, last)
	}
	if inside := strings.Trim(text, "{}"); strings.HasPrefix(text, "{{") && text == "{{"+inside+"}}" {
		return s, false, fmt.Errorf("%q: one brace is enough: write {%s}", text, inside)
	}
	name, opened := strings.CutPrefix(text, "{")
	name, closed := strings.CutSuffix(name, "}")
	name, rest = strings.CutSuffix(name, "...")
	if !opened || !closed || strings.ContainsAny(name, "{}") {
		return s, rest, fmt.Errorf("%q: a variable is a whole segment, such as /{account}/", text)
	}
	if name == "" || strings.Trim(name, nameBytes) != "" {
		return s, rest, fmt.Errorf("%q: the name of a variable is made of letters, digits and _", text)
	}
	return Segment{Variable: name}, rest, nil
}

// checkLiteral refuses what the path of a delivery, once normalised, never contains.
func checkLiteral(text string, last bool) error {
	name := strings.Trim(text, ":<>")
	switch {
	case len(name) > 0 && strings.Trim(name, nameBytes) == "" && (text == ":"+name || text == "<"+name+">"):
		return fmt.Errorf("%q: a variable is written {%s}", text, name)
	case text == "" && !last:
		return errors.New("// cannot match, because such a path is ambiguous")
	case text == "." || text == "..":
		return fmt.Errorf("%s cannot match, because such a path is ambiguous", text)
	case strings.Contains(text, "*"):
		return fmt.Errorf("%q: write {name} for one segment and {name...} for the rest of the path", text)
	case strings.ContainsAny(text, "?#"):
		return fmt.Errorf("%q: a pattern is of the path alone, without query and fragment", text)
	}
	for _, c := range []byte(text) {
		if strings.IndexByte(pathBytes, c) < 0 {
			return fmt.Errorf("%q: %q cannot be part of a pattern", text, rune(c))
		}
	}
	return nil
}

// IsLiteral reports whether a segment of a raw path can stand for itself in a pattern.
func IsLiteral(segment string) bool {
	return !strings.ContainsAny(segment, "{}") && checkLiteral(segment, true) == nil
}

// String returns the pattern as it was written.
func (p *Pattern) String() string { return p.text }

// Segments returns what stands between the slashes, without the {x...} at the end. The caller must
// not change it.
func (p *Pattern) Segments() []Segment { return p.segments }

// HasRest reports whether p ends with {x...}.
func (p *Pattern) HasRest() bool { return p.rest != "" }

// Vars returns the names of the variables.
func (p *Pattern) Vars() (names []string) {
	for _, s := range p.segments {
		if s.Variable != "" {
			names = append(names, s.Variable)
		}
	}
	if p.rest != "" {
		names = append(names, p.rest)
	}
	return names
}

// Match appends the variables of path to vars, and reports whether it matches. The values point
// into path.
func (p *Pattern) Match(path []byte, vars []PathVar) ([]PathVar, bool) {
	if len(path) == 0 || path[0] != '/' {
		return vars, false
	}
	left, more := path[1:], true
	for i := range p.segments {
		s := &p.segments[i]
		if !more {
			return vars, false
		}
		var part []byte
		part, left, more = bytes.Cut(left, []byte{'/'})
		switch {
		case s.Variable == "" && string(part) == s.Literal:
		case s.Variable != "" && len(part) > 0:
			vars = append(vars, PathVar{Name: s.Variable, Raw: part})
		default:
			return vars, false
		}
	}
	if p.rest != "" && more {
		return append(vars, PathVar{Name: p.rest, Raw: left}), true
	}
	return vars, p.rest == "" && !more
}

// Covers reports whether every path that other matches is matched by p.
func (p *Pattern) Covers(other *Pattern) bool {
	n := len(p.segments)
	if len(other.segments) < n {
		return false
	}
	for i, s := range p.segments {
		o := other.segments[i]
		switch {
		case s.Variable == "":
			if o != s {
				return false
			}
		case o == Segment{}: // the empty one after a last slash, which a variable does not match
			return false
		}
	}
	if p.rest != "" {
		return len(other.segments) > n || other.rest != ""
	}
	return len(other.segments) == n && other.rest == ""
}
