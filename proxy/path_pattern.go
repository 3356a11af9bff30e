package proxy

import "hooklock/idem/naming"

// Pattern is a path pattern, and the spellings that other servers may read as one of its paths.
type Pattern struct {
	*naming.Pattern
	folded []naming.Segment // its segments in the form of a foldedPath
}

// ParsePattern parses a pattern as naming.ParsePattern does.
func ParsePattern(text string) (*Pattern, error) {
	p, err := naming.ParsePattern(text)
	if err != nil {
		return nil, err
	}
	return &Pattern{p, foldedSegments(p)}, nil
}
