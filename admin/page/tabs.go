package page

import (
	"cmp"
	"slices"
	"strconv"

	"hooklock/admin/client"
)

// The tabs of the list of events that can have a number.
const (
	tabSucceeded = "Succeeded"
	tabWaiting   = "Accepted, waiting"
	tabBlocked   = "Blocked"
	tabDead      = "Dead letters"
)

// tabs returns links to the same search by the state of an event. A tab that is in numbers has its
// number in its text.
func (v *visit) tabs(numbers map[string]int64) []link {
	keep := func(tab, name, value string) link {
		pairs := v.keep("cursor", "", "status", "", "outcome", "", "state", "")
		if name != "" {
			pairs = append(pairs, name, value)
		}
		if n, known := numbers[tab]; known {
			tab += " " + strconv.FormatInt(n, 10)
		}
		return link{tab, to("find", pairs...)}
	}
	return []link{
		keep("All", "", ""), keep(tabSucceeded, "status", string(client.Success)),
		keep("Failed", "status", string(client.Failed)), keep("Unknown", "outcome", string(client.Unknown)),
		keep("Refused", "status", string(client.Refused)), keep("Running", "status", string(client.Running)),
		keep(tabWaiting, "state", string(client.ParkWaiting)),
		keep(tabBlocked, "state", string(client.ParkBlocked)), keep(tabDead, "state", string(client.ParkDeadLetter)),
		keep("Cancelled", "status", string(client.Aborted)),
	}
}

// otherRoutes is the name under which routes beyond the first hundred are counted together.
const otherRoutes = "(others)"

// numbers returns the numbers of the tabs, and what they count. They come from counts, which cost
// no search: there are none for a filter by anything but route and since, and for a token that is
// limited to some workflows.
func (v *visit) numbers() (numbers map[string]int64, note string) {
	for _, name := range append([]string{"text"}, qualifiers...) {
		if v.query.Get(parameter(name)) != "" &&
			!slices.Contains([]string{"route", "since", "status", "outcome", "state"}, name) {
			return nil, ""
		}
	}
	route, since := v.query.Get("route"), v.query.Get("since")
	list, err := v.counts(cmp.Or(since, "24h"), "")
	if err != nil {
		return nil, ""
	}
	// of failed tries several may be of one event, which may have succeeded since: they are not the
	// number of a tab
	succeeded := int64(0)
	for i := range list.Routes {
		r := &list.Routes[i]
		if route != "" && r.Route == otherRoutes { // the route may be one of these
			return nil, ""
		}
		if route == "" || r.Route == route {
			succeeded += r.Total.Succeeded
		}
	}
	numbers = map[string]int64{tabSucceeded: succeeded}
	if since != "" {
		return numbers, "Succeeded counts that time."
	}
	note = "Succeeded counts the last 24 hours."
	status, err := v.replica()
	if route != "" || err != nil {
		return numbers, note
	}
	numbers[tabWaiting], numbers[tabBlocked], numbers[tabDead] = int64(status.Parked.Count-status.Parked.Blocked),
		int64(status.Parked.Blocked), int64(status.Parked.DeadLetters)
	return numbers, note
}
