package story

import (
	"fmt"
	"slices"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

// Looked reports whether a person has looked at what happened of a concern at that time.
func Looked(marks []client.SeenMark, of idem.Concern, at time.Time) bool {
	return slices.ContainsFunc(marks, func(m client.SeenMark) bool {
		mark := idem.Acknowledgement{Until: m.Until.Time}
		return m.Concern == of.String() && mark.Covers(at)
	})
}

// ChangedRoute is a route of which most duplicates were other requests than the first delivery of
// their event ID.
type ChangedRoute struct {
	Route               string
	Changed, Duplicates int64
}

// ChangedRoutes returns the routes of which most duplicates were other requests, but for steps of
// time that were looked at, and for senders that are known to change a delivery between attempts.
// counts may be nil: they are not known.
func ChangedRoutes(s *client.ReplicaStatus, counts *client.CountList, marks []client.SeenMark) (all []ChangedRoute) {
	if counts == nil {
		return nil
	}
	for i := range counts.Routes {
		c := ChangedRoute{Route: counts.Routes[i].Route}
		if slices.ContainsFunc(s.Routes, func(r client.RouteRate) bool { return r.Route == c.Route && r.Changes }) {
			continue
		}
		for _, step := range counts.Routes[i].Steps {
			if !Looked(marks, idem.Concern{Kind: idem.ConcernChanged, Route: c.Route}, step.At.Time) {
				c.Changed, c.Duplicates = c.Changed+step.Counts.Changed, c.Duplicates+step.Counts.Duplicates
			}
		}
		if 2*c.Changed > c.Duplicates {
			all = append(all, c)
		}
	}
	return all
}

// Text says what is wrong.
func (c *ChangedRoute) Text() string {
	return fmt.Sprintf("%d of %d duplicates of %s were other requests", c.Changed,
		max(c.Duplicates, c.Changed), c.Route)
}
