package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/idem"
)

const (
	needsPage = 20
	// needsReads bounds how many pages of a list are read: each read looks at a bounded number of records.
	needsReads = 3
	// reusedSince is for how long a reused event ID and a lost event need attention: they may never be resolved.
	reusedSince = "24h"
	// silentAfter is when a route that had deliveries counts as silent.
	silentAfter = time.Hour
	// attentionEvery is how often a stream reads what needs attention.
	attentionEvery = 10 * time.Second
	etcdAway       = "Not known: etcd does not answer."
	// spike is how many bad signatures on a route need attention, in the time that the status looks back.
	spike = 10
)

// concern is one kind of thing that needs attention.
type concern struct {
	section
	kind      idem.ConcernKind
	one, many string             // the thing, for its count
	found     []client.Execution // the newest of them
	routes    []client.RouteRate
	said      [][2]string // of routes, and what is wrong with them
	query     []string    // that finds the executions; nil = it is about routes
	open      string      // the screen that lists all of them
}

// needs shows everything that needs attention.
func needs(v *visit) ([]section, error) {
	all, checked, err := v.concerns()
	if err != nil {
		return nil, err
	}
	var shown []section
	for i := range all {
		if c := &all[i]; c.Count > 0 || c.More || c.Trouble != "" {
			c.Asks = v.asks(c)
			shown = append(shown, c.section)
		}
	}
	if len(shown) > 0 && v.status == nil {
		shown = append(shown, section{ID: "of-routes", Title: "Routes", Note: notAll})
	}
	if len(shown) == 0 {
		shown = []section{{ID: "none", Title: "Nothing needs attention", Note: checked}}
	}
	return append(shown, v.lookedAt(all)), nil
}

// ofExecutions are the kinds of concerns about executions. A new kind of list is an entry here.
func ofExecutions() []concern {
	return []concern{
		{section: section{ID: "letters", Title: "Dead letters", Note: "Accepted, tried and given up. The request is kept: retry it when the service is ready.",
			Asks: []ask{asking("Retry all…", "all-rerun", "state", string(client.ParkDeadLetter))}}, kind: idem.ConcernDeadLetters, one: "dead letter", many: "dead letters",
			query: []string{"parked", "true", "state", string(client.ParkDeadLetter)}, open: to("find", "state", string(client.ParkDeadLetter))},
		{section: section{ID: "blocked", Title: "Blocked queues", Note: "The first event of the queue keeps failing and needs a decision: try it now, or skip it."},
			kind: idem.ConcernBlocked, one: "blocked queue", many: "blocked queues",
			query: []string{"parked", "true", "state", string(client.ParkBlocked)}, open: to("find", "state", string(client.ParkBlocked))},
		{section: section{ID: "unknown", Title: "Unknown outcome", Note: "The request was sent and no whole answer came. Check the service, then allow the event again if it took no effect."},
			kind: idem.ConcernUnknown, one: "unknown outcome", many: "unknown outcomes",
			query: []string{"outcome", string(client.Unknown), "status", string(client.Failed)}, open: to("find", "outcome", string(client.Unknown), "status", string(client.Failed))},
		{section: section{ID: "reused", Title: "Reused event IDs", Note: "An event ID came again with another request and was refused, in the last 24 h: two events share an ID, or the sender changes what it sends."},
			kind: idem.ConcernReused, one: "reused event ID", many: "reused event IDs",
			query: []string{"decision", string(idem.DecisionMismatch), "since", reusedSince}, open: to("find", "decision", string(idem.DecisionMismatch), "since", reusedSince)},
		{section: section{ID: "lost", Title: "Possibly lost", Note: "Refused, and not come again in time, in the last 24 h: the sender seems not to repeat what is refused. Resend them there; the route can wait, park, or answer what the sender repeats (respond)."},
			kind: idem.ConcernLost, one: "event possibly lost", many: "events possibly lost",
			query: []string{"lost", "true", "since", reusedSince}, open: to("find", "lost", "true", "since", reusedSince)},
	}
}

// concerns returns all kinds, also empty ones, and a sentence that says what was checked. What was looked at is left out.
func (v *visit) concerns() (all []concern, checked string, err error) {
	away, err := v.readMarks()
	if err != nil {
		return nil, "", err
	}
	all = ofExecutions()
	for i := range all {
		if away { // each further request would wait for etcd as long
			all[i].Trouble, all[i].Asks = etcdAway, nil
			continue
		}
		if err := v.list(&all[i], needsPage); err != nil {
			return nil, "", err
		}
		away = all[i].Trouble == etcdAway
	}
	ofRoutes, checked, err := v.ofRoutes()
	return append(all, ofRoutes...), checked, err
}

// list adds the executions that the query of a concern finds, at most so many.
func (v *visit) list(c *concern, most int) error {
	page := &client.ExecutionPage{}
	for range needsReads {
		cursor := page.NextCursor
		page = &client.ExecutionPage{}
		err := v.api.get("/v1/executions", values(append(slices.Clone(c.query), "unseen", string(c.kind), "limit", fmt.Sprint(most-len(c.found)), "cursor", cursor)...), page)
		if is(err, client.CodeStoreUnavailable) {
			c.Trouble, c.Asks = etcdAway, nil
			return nil
		}
		if err != nil {
			return err
		}
		if c.found = append(c.found, page.Executions...); page.NextCursor == "" || len(c.found) >= most {
			break
		}
	}
	c.Count, c.More = len(c.found), page.NextCursor != ""
	switch {
	case c.Count > 0:
		c.Table = tableOf(c.Title, executionColumns(), c.found, func(x *client.Execution) string { return x.ExecutionID + x.IdempotencyKey })
		c.Links = []link{{"All", c.open}}
	case c.More:
		c.Trouble, c.Asks = "No match among the newest records; there are older ones.", nil
		c.Links = []link{{"Search further", to("find", append(slices.Clone(c.query), "cursor", page.NextCursor)...)}}
	default:
		c.Asks = nil
	}
	return nil
}

// ofRoutes returns the concerns about routes, as seen by this replica, and a sentence that says what was checked.
func (v *visit) ofRoutes() (all []concern, checked string, err error) {
	s, err := v.replica()
	if err != nil {
		if note, is := limited(err); is {
			return nil, "No dead letter, blocked queue, unknown outcome or reused event ID among its workflows. Routes: " + note, nil
		}
		return nil, "", err
	}
	no := "No"
	if len(v.marks) > 0 {
		no = "Besides what was looked at: no"
	}
	up := story.Span(s.At.Sub(s.StartedAt.Time))
	checked = no + " dead letter, blocked queue, unknown outcome or reused event ID on any replica; on this replica, which started " + up + " ago, no route with " +
		fmt.Sprint(spike) + " bad signatures in " + story.Span(looksBack(s)) + " and no silent route."
	forged := concern{kind: idem.ConcernBadSignatures, one: "route with bad signatures", many: "routes with bad signatures", open: "#routes",
		section: section{ID: "unverified", Title: "Bad signatures", Note: "A secret changed on one side, or someone guessing. This replica, last " + story.Span(looksBack(s)) + "."}}
	silent := concern{kind: idem.ConcernSilent, one: "silent route", many: "silent routes", open: "#routes",
		section: section{ID: "silent", Title: "Silent routes", Note: "No delivery for an hour, after earlier ones: the sender may have disabled this endpoint."}}
	for _, r := range s.Routes {
		if r.Decisions[string(idem.DecisionUnverified)] >= spike && !v.looked(forged.kind, r.Route, s.At.Add(-looksBack(s))) {
			forged.routes = append(forged.routes, r)
		}
		if !r.LastAt.IsZero() && s.At.Sub(r.LastAt.Time) > silentAfter && !v.looked(silent.kind, r.Route, r.LastAt.Time) {
			silent.routes = append(silent.routes, r)
		}
	}
	wrong, err := v.wrongIDs(s)
	if err != nil {
		return nil, "", err
	}
	all = append([]concern{forged, silent}, wrong...)
	for i := range all {
		c := &all[i]
		if c.Count = len(c.routes); c.Count == 0 {
			continue
		}
		if c.Links = []link{{"Examples", "#routes"}}; c.Table == nil {
			c.Table = tableOf(c.Title, rateColumns(s), c.routes, func(r *client.RouteRate) string { return r.Route })
		}
	}
	return all, checked, nil
}

// wrongIDs returns the concerns about event IDs that name more than one event: by the counts of all replicas of the last day, and by what this one saw.
func (v *visit) wrongIDs(s *client.ReplicaStatus) ([]concern, error) {
	changed := concern{kind: idem.ConcernChanged, one: "route with changed duplicates", many: "routes with changed duplicates", open: "#routes",
		section: section{ID: "changed", Title: "Duplicates that were other requests", Note: "Most duplicates of the last 24 h, on all replicas, had other bytes than the first delivery of their event ID, and theirs never ran. If they are events of their own, correct event_id."}}
	wrong := concern{kind: idem.ConcernEventIDs, one: "route with a wrong event ID", many: "routes with wrong event IDs", open: "#routes",
		section: section{ID: "event-ids", Title: "Wrong event IDs", Note: "An event ID that names no single event, on this replica in the last 24 h: all its events are taken for one."}}
	for _, r := range s.Routes {
		if w := r.WrongEventID; w != nil && !v.looked(wrong.kind, r.Route, w.At.Time) {
			wrong.says(r.Route, w.Text())
		}
	}
	day := lookbacks()[1]
	counts, err := v.counts(day.since, day.step)
	switch {
	case is(err, client.CodeStoreUnavailable):
		changed.Trouble = etcdAway
	case err != nil:
		return nil, err
	}
	for _, c := range story.ChangedRoutes(s, counts, v.marks) {
		changed.says(c.Route, story.Sentence(c.Text()))
	}
	return []concern{changed, wrong}, nil
}

// says adds a route of which something is wrong.
func (c *concern) says(route, what string) {
	c.routes, c.said = append(c.routes, client.RouteRate{Route: route}), append(c.said, [2]string{route, what})
	c.Table = tableOf(c.Title, []column[[2]string]{
		{"Route", func(s *[2]string) cell { return text(s[0]) }}, {"What is wrong", func(s *[2]string) cell { return text(s[1]) }},
	}, c.said, func(s *[2]string) string { return s[0] })
}

// kept is what a stream shows for a while: the summary, and what was counted.
type kept struct {
	section
	at       time.Time
	counts   map[string]*client.CountList // by how far they go back
	countsAt time.Time
}

// attention returns the summary at the top of the overview: one line for each kind.
func (v *visit) attention() (section, error) {
	if v.kept == nil {
		return v.summary()
	}
	if v.now.Sub(v.kept.at) >= attentionEvery {
		s, err := v.summary()
		if err != nil {
			return s, err
		}
		v.kept.section, v.kept.at = s, v.now
	}
	return v.kept.section, nil
}

func (v *visit) summary() (section, error) {
	all, checked, err := v.concerns()
	if err != nil {
		return section{}, err
	}
	s := section{ID: "attention", Title: "Needs attention"}
	if n := len(v.marks); n > 0 {
		s.Links = []link{{fmt.Sprintf("%d looked at", n), "#needs"}}
	}
	all = slices.DeleteFunc(all, func(c concern) bool { return c.Count == 0 && c.Trouble == "" })
	for i := range all {
		s.Count += all[i].Count
		s.More = s.More || all[i].More
	}
	if len(all) == 0 {
		s.Note = checked
		return s, nil
	}
	s.Table = tableOf("What needs attention", []column[concern]{
		{"What", func(c *concern) cell {
			if c.Count == 0 {
				return cell{Text: c.Title + ": " + c.Trouble, Class: "warn"}
			}
			n := fmt.Sprint(c.Count)
			if c.More {
				n += "+"
			}
			name := c.many
			if n == "1" {
				name = c.one
			}
			return cell{Text: n + " " + name, Class: "bad", Href: c.open}
		}},
		{"Route", func(c *concern) cell { return cut(strings.Join(c.names(), ", ")) }},
		{"Newest", func(c *concern) cell { return c.newest(ended) }},
		{"Cause", func(c *concern) cell { return c.newest(func(x *client.Execution) cell { return cut(why(x)) }) }},
		{"Actions", func(c *concern) cell {
			if len(c.found) == 1 {
				c.Asks = asksOf(&c.found[0])
			}
			return cell{Asks: v.asks(c)}
		}},
	}, all, func(c *concern) string { return c.ID })
	return s, nil
}

// newest shows the newest execution of a concern, if it is about executions.
func (c *concern) newest(show func(*client.Execution) cell) cell {
	if len(c.found) == 0 {
		return cell{}
	}
	x := slices.MaxFunc(c.found, func(a, b client.Execution) int { return ended(&a).At.Compare(ended(&b).At) })
	return show(&x)
}

// names returns the routes that a concern is about.
func (c *concern) names() (names []string) {
	for i := range c.found {
		names = append(names, c.found[i].Route)
	}
	for i := range c.routes {
		names = append(names, c.routes[i].Route)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
