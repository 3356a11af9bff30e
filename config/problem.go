package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Source kinds of an Origin.
const (
	FromDefault     = "default"
	FromPreset      = "preset"
	FromScheme      = "scheme"
	FromFile        = "file"
	FromEnvironment = "environment"
)

// Origin says where a value came from, or where a problem is. The zero value means nowhere in
// particular.
type Origin struct {
	Kind string `json:"kind,omitempty"` // FromDefault, FromPreset, FromScheme, FromFile, FromEnvironment
	// Name is the path of the file as it was given, or the name of the preset, scheme or
	// environment variable.
	Name   string `json:"name,omitempty"`
	Line   int    `json:"line,omitempty"`   // from 1; 0 where there is none
	Column int    `json:"column,omitempty"` // from 1, in characters; 0 where there is none
}

// isFilledIn reports whether a value came with a preset or scheme, and not from the user.
func (o Origin) isFilledIn() bool { return o.Kind == FromPreset || o.Kind == FromScheme }

// String returns the name that `config show --origin` prints: default, preset NAME,
// sidecar.yaml:12, environment NAME.
func (o Origin) String() string {
	switch o.Kind {
	case FromFile:
		if o.Line == 0 {
			return o.Name
		}
		return fmt.Sprintf("%s:%d", o.Name, o.Line)
	case FromEnvironment, FromPreset, FromScheme:
		return o.Kind + " " + o.Name
	}
	return o.Kind
}

// Problem is an error or a warning, and its place.
type Problem struct {
	Origin Origin `json:"origin,omitzero"` // where the setting was written
	Path   string `json:"path,omitempty"`  // such as routes[0].lock.strategy; empty for the file as a whole
	Text   string `json:"message"`         // what is wrong and what to do
	// Unless is a path whose setting makes this a warning if the user has written it; "": none
	// does.
	Unless string `json:"-"`
}

// String returns a line such as sidecar.yaml:8:5: routes[0].retension: unknown key.
func (p Problem) String() string {
	var parts []string
	if place := p.Origin.String(); place != "" && p.Origin.Kind != FromDefault {
		if p.Origin.Column > 0 {
			place = fmt.Sprintf("%s:%d", place, p.Origin.Column)
		}
		parts = append(parts, place)
	}
	if p.Path != "" {
		parts = append(parts, p.Path)
	}
	return strings.Join(append(parts, p.Text), ": ")
}

// Problems are all errors of a configuration. As an error it prints one problem a line. Callers
// that find more may append them.
type Problems []Problem

// Error returns one problem a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sort sorts the problems for readers: the file from top to bottom, then the rest.
func (ps Problems) sort() {
	rank := map[string]int{FromFile: 0, FromEnvironment: 1, FromDefault: 2, FromPreset: 2, FromScheme: 2, "": 2}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(rank[a.Origin.Kind], rank[b.Origin.Kind]),
			cmp.Compare(a.Origin.Line, b.Origin.Line),
			cmp.Compare(a.Origin.Column, b.Origin.Column),
			cmp.Compare(a.Origin.Name, b.Origin.Name),
		)
	})
}
