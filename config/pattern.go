package config

import (
	"fmt"
	"slices"
	"strings"
)

// maxPattern bounds a path pattern; real ones are a tenth of it.
const maxPattern = 1024

// segment is one step of a path pattern.
type segment struct {
	literal  string // empty for a variable
	variable string
	rest     bool // {x...}
}

// parsePattern reads a path pattern. The errors are sentences for a person.
func parsePattern(pattern string) ([]segment, error) {
	if !strings.HasPrefix(pattern, "/") {
		return nil, fmt.Errorf("%q must begin with /", pattern)
	}
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("is longer than %d bytes", maxPattern)
	}
	var segments []segment
	texts := strings.Split(pattern[1:], "/")
	for i, text := range texts {
		last := i == len(texts)-1
		s, err := parseSegment(text, last)
		if err != nil {
			return nil, err
		}
		if s.rest && !last {
			return nil, fmt.Errorf("{%s...} is the rest of the path, so nothing can come after it", s.variable)
		}
		if s.variable != "" && slices.ContainsFunc(segments, func(o segment) bool { return o.variable == s.variable }) {
			return nil, fmt.Errorf("{%s} occurs twice", s.variable)
		}
		segments = append(segments, s)
	}
	return segments, nil
}

func parseSegment(text string, last bool) (segment, error) {
	if !strings.ContainsAny(text, "{}") {
		return segment{literal: text}, checkLiteral(text, last)
	}
	name, opened := strings.CutPrefix(text, "{")
	name, closed := strings.CutSuffix(name, "}")
	name, rest := strings.CutSuffix(name, "...")
	if !opened || !closed || strings.ContainsAny(name, "{}") {
		return segment{}, fmt.Errorf("%q: a variable is a whole segment, such as /{account}/", text)
	}
	if !isName(name) {
		return segment{}, fmt.Errorf("%q: the name of a variable is made of letters, digits and _", text)
	}
	return segment{variable: name, rest: rest}, nil
}

// checkLiteral refuses what the path of a delivery, once normalised, never contains.
func checkLiteral(text string, last bool) error {
	switch {
	case text == "" && !last:
		return fmt.Errorf("// cannot match, because such a path is ambiguous")
	case text == "." || text == "..":
		return fmt.Errorf("%s cannot match, because such a path is ambiguous", text)
	case strings.Contains(text, "*"):
		return fmt.Errorf("%q: write {name} for one segment and {name...} for the rest of the path", text)
	case strings.ContainsAny(text, "?#"):
		return fmt.Errorf("%q: a pattern is of the path alone, without query and fragment", text)
	}
	for _, c := range []byte(text) {
		if !isPathByte(c) {
			return fmt.Errorf("%q: %q cannot be part of a pattern", text, rune(c))
		}
	}
	return nil
}

// isPathByte reports whether c stands for itself in a path (RFC 3986, pchar) and survives normalising: no % and no ;.
func isPathByte(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("-._~!$&'()+,=:@", c) >= 0
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func isName(s string) bool {
	for _, c := range []byte(s) {
		if !isAlphanumeric(c) && c != '_' {
			return false
		}
	}
	return s != ""
}

// variables are the names that the pattern captures.
func variables(segments []segment) []string {
	names := []string{}
	for _, s := range segments {
		if s.variable != "" {
			names = append(names, s.variable)
		}
	}
	return names
}

// covers reports whether every path that b matches is matched by a. It may say no where the answer is yes.
func covers(a, b []segment) bool {
	for i, s := range a {
		if i >= len(b) {
			return false
		}
		switch {
		case s.rest:
			return true
		case b[i].rest:
			return false
		case s.variable != "":
			// A variable needs a segment that is not empty; the empty one after a last slash is not covered.
			if b[i].variable == "" && b[i].literal == "" {
				return false
			}
		case b[i].variable != "" || b[i].literal != s.literal:
			return false
		}
	}
	return len(a) == len(b)
}

// scope is a route's match with its pattern read. The zero value is of a route whose pattern is wrong.
type scope struct {
	*Match
	segments []segment
}

// shadows reports whether no delivery reaches the later route, because the earlier one takes them all.
func (earlier scope) shadows(later scope) bool {
	if earlier.segments == nil || later.segments == nil || !covers(earlier.segments, later.segments) {
		return false
	}
	for _, method := range later.Methods {
		if !slices.Contains(earlier.Methods, method) {
			return false
		}
	}
	if len(earlier.Hosts) == 0 {
		return true
	}
	for _, host := range later.Hosts {
		if !slices.ContainsFunc(earlier.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
			return false
		}
	}
	return len(later.Hosts) > 0
}
