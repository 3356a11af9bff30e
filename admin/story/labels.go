package story

import (
	"maps"
	"slices"
	"strings"

	"hooklock/admin/client"
)

// Labels returns the labels of an event on one line: order=1042 shop=acme.
func Labels(x *client.Execution) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(x.Labels)) {
		all = append(all, name+"="+x.Labels[name])
	}
	return strings.Join(all, " ")
}
