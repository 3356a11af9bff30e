package remote

import (
	"context"
	"slices"
	"strings"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/idem/naming"
)

// whyNone returns what is wrong with a filter by a route or a label that matches nothing, behind a
// semicolon; "" = nothing is known to be wrong. Either may be empty.
func (d *Desk) whyNone(ctx context.Context, route, label string) string {
	if label != "" && !strings.Contains(label, "=") {
		return "; a --label without a name is looked for among the values: give NAME=VALUE"
	}
	if route == "" {
		return ""
	}
	l, err := d.Routes(ctx)
	if err != nil || slices.ContainsFunc(l.Routes, func(r client.RouteRules) bool { return r.Route == route }) {
		return ""
	}
	var names []string
	for i := range l.Routes {
		names = append(names, l.Routes[i].Route)
	}
	said := "; no route of this replica has the name " + cli.Plain(route)
	if near := naming.Nearest(route, names); near != "" {
		return said + ", did you mean " + cli.Plain(near) + "?"
	}
	return said + "; hooklock status lists them"
}
