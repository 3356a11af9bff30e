package page

import (
	"fmt"
	"slices"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/idem"
)

const (
	needsPage = 20
	// needsReads is how often a list is read on that is not at its end: each read looks at so many records only.
	needsReads = 3
	// mismatchesSince is for how long a mismatch needs attention: nothing settles one.
	mismatchesSince = "24h"
	// silentAfter is when a route to which something had come is called silent.
	silentAfter = time.Hour
	// spike is how many deliveries without a valid signature are worth a look, in what the status looks back.
	spike = 10
)

// needs shows what waits for somebody. Each list is a section; a new one is a line here.
func needs(v *visit) ([]section, error) {
	lists := []struct {
		id, title, note, well string
		query                 []string
	}{
		{"unknown", "Unknown outcome", "Something was sent and no whole answer came: nobody knows whether it took effect. Look at the service, then forget it, so that it runs again, or leave it.",
			"No outcome is unknown.", []string{"outcome", string(client.Unknown)}},
		{"blocked", "Blocked", "A parked event waits for a person, and its line with it. Run it, or skip it.", "No line waits for a person.", []string{"parked", "true", "state", string(client.ParkBlocked)}},
		{"letters", "Dead letters", "Accepted, tried and given up. The request is kept, and can run again.", "There is no dead letter.", []string{"parked", "true", "state", string(client.ParkDeadLetter)}},
		{"mismatches", "Mismatches", "An event ID came again with another request, and was refused: two events with one ID, or a sender that changes what it sends.",
			"Nothing came with an ID that was used.", []string{"decision", string(idem.DecisionMismatch), "since", mismatchesSince}},
	}
	var all []section
	for _, l := range lists {
		s, err := v.list(l.query)
		if err != nil {
			return nil, err
		}
		s.ID, s.Title, s.Note = l.id, l.title, l.note
		if !s.More {
			s.Well = l.well
		}
		if s.Table != nil {
			s.Table.Name = l.title
		}
		all = append(all, s)
	}
	cooling, err := v.cooling()
	if err != nil {
		return nil, err
	}
	of, err := v.ofRoutes()
	if err != nil {
		return nil, err
	}
	return append(all, append([]section{cooling}, of...)...), nil
}

// list is a section with the executions that fit.
func (v *visit) list(query []string) (section, error) {
	found, page := []client.Execution{}, &client.ExecutionPage{}
	for range needsReads {
		cursor := page.NextCursor
		page = &client.ExecutionPage{}
		err := v.api.get("/v1/executions", values(append(query, "limit", fmt.Sprint(needsPage-len(found)), "cursor", cursor)...), page)
		if is(err, client.CodeStoreUnavailable) {
			return section{Trouble: "Not known: etcd does not answer."}, nil
		}
		if err != nil {
			return section{}, err
		}
		if found = append(found, page.Executions...); page.NextCursor == "" || len(found) >= needsPage {
			break
		}
	}
	if query[0] == "parked" { // the filter of the search has no such word
		query = query[2:]
	}
	s := section{Count: len(found), More: page.NextCursor != ""}
	switch {
	case s.Count > 0:
		s.Table = tableOf("Executions", executionColumns(), found, func(x *client.Execution) string { return x.ExecutionID + x.IdempotencyKey })
		s.Links = []link{{"All of them", to("find", query...)}}
	case s.More:
		s.Trouble = "None among the newest records; there are more, and this page does not read them all."
		s.Links = []link{{"Look further", to("find", append(query, "cursor", page.NextCursor)...)}}
	}
	return s, nil
}

// cooling are the locks that stay closed after an unknown outcome.
func (v *visit) cooling() (section, error) {
	s := section{
		ID: "cooling", Title: "Cooling",
		Note: "The execution has ended with an unknown outcome, and release_delay keeps its workflow closed: the upstream may still be at work.",
	}
	all, more, err := v.allLocks()
	if is(err, client.CodeStoreUnavailable) {
		s.Trouble = "Not known: etcd does not answer."
		return s, nil
	}
	if err != nil {
		return s, err
	}
	all = slices.DeleteFunc(all, func(l client.Lock) bool { return !l.Cooling })
	s.Count, s.More = len(all), more
	switch {
	case s.Count > 0:
		s.Table = tableOf("Locks that cool", lockColumns(), all, lockKey)
	case more:
		s.Trouble = fmt.Sprintf("None among the first %d locks; there are more, and this page does not read them all.", maxLocks)
	default:
		s.Well = "No lock is closed after an unknown outcome."
	}
	return s, nil
}

// ofRoutes are what this replica has seen of its routes.
func (v *visit) ofRoutes() ([]section, error) {
	forged := section{
		ID: "unverified", Title: "Not verified", Note: "Signatures that were not accepted: a secret that was changed on one side, or an attack.",
	}
	silent := section{ID: "silent", Title: "Silent routes", Note: "Deliveries came, and none any more: a sender that has given up the endpoint says nothing."}
	s := &client.ReplicaStatus{}
	if err := v.api.get("/v1/status", nil, s); err != nil {
		if note, is := limited(err); is {
			forged.Note, silent.Note = note, note
			return []section{forged, silent}, nil
		}
		return nil, err
	}
	forged.Well = fmt.Sprintf("In the last %s no route of this replica got %d deliveries with a wrong signature.", story.Span(looksBack(s)), spike)
	if up := s.At.Sub(s.StartedAt.Time); up > silentAfter {
		silent.Well = fmt.Sprintf("Each route that got a delivery since this replica started, %s ago, got one in the last hour.", story.Span(up))
	} else {
		silent.Note += fmt.Sprintf(" This replica started %s ago, and can tell after an hour.", story.Span(up))
	}
	var wrong, quiet []client.RouteRate
	for _, r := range s.Routes {
		if r.Decisions[string(idem.DecisionUnverified)] >= spike {
			wrong = append(wrong, r)
		}
		if !r.LastAt.IsZero() && s.At.Sub(r.LastAt.Time) > silentAfter {
			quiet = append(quiet, r)
		}
	}
	key := func(r *client.RouteRate) string { return r.Route }
	if forged.Count = len(wrong); forged.Count > 0 {
		forged.Table = tableOf("Routes that get wrong signatures", rateColumns(s), wrong, key)
		forged.Links = []link{{"What was found", "#routes"}}
	}
	if silent.Count = len(quiet); silent.Count > 0 {
		silent.Table = tableOf("Routes that are silent", rateColumns(s), quiet, key)
	}
	return []section{forged, silent}, nil
}
