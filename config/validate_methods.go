package config

import (
	"slices"
	"strings"
)

// otherMethods warns about a method of the sender that the route does not take, and notes under
// observe that GET is not seen: such deliveries pass through unguarded, and no report has them.
func (v *validator) otherMethods(path string, r *Route) {
	path += ".match.methods"
	if known := findKnown(v.senders.Presets, r.Preset); known != nil {
		for method := range strings.SplitSeq(known.Settings["match.methods"], ",") {
			if method != "" && !slices.Contains(r.Match.Methods, method) {
				v.warn(path, "%s sends %s, too, which this route does not take: it passes unguarded, and no "+
					"duplicate of it is found; add %[2]s, or take the line out", r.Preset, method)
			}
		}
		return
	}
	if _, given := v.places[path]; given || r.Mode != ModeObserve || v.takesMethod(r.Match.Path, "GET") {
		return
	}
	v.notes = append(v.notes, Problem{Path: path, Text: "has no GET: a sender that calls with GET passes unguarded, " +
		"and neither log nor report shows what it sends; " +
		"if yours does, say match: {path: " + r.Match.Path + ", methods: [GET]}, and read its event ID from the query"})
}

// takesMethod reports whether a route of that path takes the method.
func (v *validator) takesMethod(path, method string) bool {
	return slices.ContainsFunc(v.config.Routes, func(r Route) bool {
		return r.Match.Path == path && slices.Contains(r.Match.Methods, method)
	})
}
