package page

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/idem"
)

// mostSeen bounds what one question marks as looked at.
const mostSeen = 500

// readMarks reads what was looked at. away: etcd does not answer. A token that is limited to some workflows sees no marks, and nothing is hidden from it.
func (v *visit) readMarks() (away bool, err error) {
	list := &client.SeenList{}
	if err = v.api.get("/v1/seen", nil, list); err == nil {
		v.marks, v.marker = list.Seen, true
		return false, nil
	}
	if _, is := limited(err); is {
		return false, nil
	}
	if is(err, client.CodeStoreUnavailable) {
		return true, nil
	}
	return false, err
}

// looked reports whether something of a route was looked at that happened at that time.
func (v *visit) looked(kind idem.ConcernKind, route string, at time.Time) bool {
	return story.Looked(v.marks, idem.Concern{Kind: kind, Route: route}, at)
}

// asks are the buttons of a concern.
func (v *visit) asks(c *concern) []ask {
	if !v.marker || c.Count == 0 {
		return c.Asks
	}
	return append(slices.Clip(c.Asks), asking("Looked at…", "seen", "kind", string(c.kind)))
}

// lookedAt lists the marks; the section is hidden if there is none.
func (v *visit) lookedAt(all []concern) section {
	s := section{ID: "seen"}
	if len(v.marks) == 0 {
		return s
	}
	s.Title, s.Count, s.Note = "Looked at", len(v.marks), "Left out above and in the count, on all replicas, for 30 days. What is newer is not left out."
	s.Table = tableOf("What was looked at", []column[client.SeenMark]{
		{"What", func(m *client.SeenMark) cell {
			kind, route, _ := strings.Cut(m.Concern, ":")
			i := slices.IndexFunc(all, func(c concern) bool { return string(c.kind) == kind })
			if i < 0 { // of a newer release
				return cut(m.Concern)
			}
			c := cut(all[i].Title + " of " + route)
			if c.Href = all[i].open; all[i].query != nil {
				c.Href += "&" + url.Values{"route": {route}}.Encode()
			}
			return c
		}},
		{"Until", func(m *client.SeenMark) cell { return when(m.Until, "at") }},
		{"By", func(m *client.SeenMark) cell { return cut(m.By) }},
		{"Reason", func(m *client.SeenMark) cell { return cut(m.Reason) }},
		{"Actions", func(m *client.SeenMark) cell {
			return cell{Asks: []ask{asking("Show again…", "unseen", "concern", m.Concern)}}
		}},
	}, v.marks, func(m *client.SeenMark) string { return m.Concern })
	return s
}

// concern returns the concern of one kind, with more of it than a screen shows.
func (v *visit) concern(kind string) (*concern, error) {
	if _, err := v.readMarks(); err != nil {
		return nil, err
	}
	all := ofExecutions()
	i := slices.IndexFunc(all, func(c concern) bool { return string(c.kind) == kind })
	if i >= 0 {
		return &all[i], v.list(&all[i], mostSeen)
	}
	all, _, err := v.ofRoutes()
	if err != nil {
		return nil, err
	}
	if i = slices.IndexFunc(all, func(c concern) bool { return string(c.kind) == kind }); i < 0 {
		return nil, &client.Problem{Status: http.StatusNotFound, Code: client.CodeNotFound, Detail: "no such kind"}
	}
	return &all[i], nil
}

// of says how much of a concern is of a route, and when the newest of that happened.
func (c *concern) of(route string, now time.Time) (n int, newest time.Time) {
	if c.query == nil {
		return 1, now
	}
	for i := range c.found {
		x := &c.found[i]
		if x.Route != route {
			continue
		}
		n++
		times := []time.Time{newest, x.StartedAt.Time, x.FinishedAt.Time, x.LostAt.Time}
		if x.Parked != nil && x.Parked.LastEvidence != nil {
			times = append(times, x.Parked.LastEvidence.At.Time)
		}
		if x.Arrivals != nil {
			for _, a := range x.Arrivals.Newest {
				times = append(times, a.At.Time)
			}
		}
		newest = slices.MaxFunc(times, time.Time.Compare)
	}
	return n, newest
}

// seen asks whether what needs attention is to be marked as looked at.
func seen(v *visit) (*question, error) {
	c, err := v.concern(v.query.Get("kind"))
	if err != nil {
		return nil, err
	}
	q := &question{Title: "Looked at: " + c.many, Verb: "Mark as looked at", Reason: true}
	if c.Count == 0 {
		q.Stop = cmp.Or(c.Trouble, "None is left.")
		return q, nil
	}
	for _, route := range c.names() {
		if route == "" { // of a lock of the lock API
			continue
		}
		n, newest := c.of(route, v.now)
		concern, until := idem.Concern{Kind: c.kind, Route: route}.String(), newest.UTC().Format("2006-01-02T15:04:05.000Z")
		q.Facts = append(q.Facts, fmt.Sprintf("%s: %s, up to %s.", route, story.Count(n, c.one, c.many), stamp(newest)))
		q.Requests = append(q.Requests, request{
			Method: http.MethodPost, Path: "v1/seen", Body: map[string]any{"concern": concern, "until": until}, Reason: "body", Names: concern, Done: concern + " is marked as looked at",
		})
		q.Commands = append(q.Commands, command("seen", argument(concern), "--until", until, "--reason", theReason))
	}
	q.Facts = append(q.Facts, "These leave the list and the count, on all replicas, for 30 days. Nothing is done with the events.", "What is newer, of the same kind and route, needs attention again.")
	return q, nil
}

// unseen asks whether a mark is to be removed.
func unseen(v *visit) (*question, error) {
	concern := v.query.Get("concern")
	return &question{
		Title: "Show again: " + concern, Verb: "Show again", Reason: true, Facts: []string{"All of it that is still kept needs attention again, on all replicas."},
		Requests: []request{{Method: http.MethodDelete, Path: "v1/seen/" + escape(concern), Reason: "query", Names: concern, Done: concern + " is shown again"}},
		Commands: []shellLine{command("seen", argument(concern), "--undo", "--reason", theReason)},
	}, nil
}
