package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

const (
	mostNeighbours = 12 // other events on a timeline
	rowHeight      = 24 // of a timeline, in pixels
)

// spell is a time in which an event ran, or a moment at which one was delivered.
type spell struct {
	what, event, id, result string
	class                   string
	from, to                time.Time
	own                     bool
}

// timeline is a picture of an event and of the other events of its workflow at that time, with the same as a table.
type timeline struct {
	Height int
	Lanes  []stretch // names of groups of rows
	Bars   []stretch
	Ticks  []stretch
	Table  *table
}

// stretch is a part of a timeline. Its X and Width are per cent.
type stretch struct {
	X, Width                 string
	Y                        int
	Class, Text, Title, Href string
	At                       time.Time
}

// newTimeline draws spells; nil where there is nothing to compare.
func newTimeline(workflow string, spells []spell, now time.Time) *timeline {
	if len(spells) < 2 && !slices.ContainsFunc(spells, func(s spell) bool { return s.to.Sub(s.from) > 0 }) {
		return nil
	}
	slices.SortStableFunc(spells, func(a, b spell) int { return cmp.Or(compareBool(b.own, a.own), a.from.Compare(b.from)) })
	from, to := spells[0].from, spells[0].to
	for _, s := range spells {
		if s.from.Before(from) {
			from = s.from
		}
		if s.to.After(to) {
			to = s.to
		}
	}
	whole := max(to.Sub(from), time.Millisecond)
	percent := func(d time.Duration) float64 { return float64(d) * 94 / float64(whole) }
	t := &timeline{Height: 16}
	var ends []time.Time // of the rows of this group
	top := 0
	group := func(name string) {
		t.Lanes = append(t.Lanes, stretch{Y: t.Height, Text: name})
		top, ends = t.Height+6, nil
	}
	for i, s := range spells {
		if i == 0 && s.own {
			group("This event")
		}
		if !s.own && (i == 0 || spells[i-1].own) {
			if i > 0 {
				t.Height += 20
			}
			group("Other events of " + cut(workflow).Text)
		}
		row := slices.IndexFunc(ends, func(end time.Time) bool { return !end.After(s.from) })
		if row < 0 {
			row, ends = len(ends), append(ends, time.Time{})
		}
		ends[row] = s.to.Add(whole / 8) // room for the text of a short one
		t.Height = top + (row+1)*rowHeight
		b := stretch{
			X: fmt.Sprintf("%.2f%%", percent(s.from.Sub(from))), Width: fmt.Sprintf("%.2f%%", max(0.5, percent(s.to.Sub(s.from)))), Y: top + row*rowHeight,
			Class: s.class, Text: s.label(), Title: s.what + ": " + s.label(),
		}
		if s.id != "" && !s.own {
			b.Href = toExecution(s.id)
		}
		t.Bars = append(t.Bars, b)
	}
	t.Height += 6
	for n := range 5 {
		after := whole * time.Duration(n) / 4
		tick := stretch{X: fmt.Sprintf("%.2f%%", percent(after)), Y: t.Height + 16, Text: "+" + story.Span(after.Truncate(precision(whole)))}
		if n == 0 {
			tick.At = from
		}
		t.Ticks = append(t.Ticks, tick)
	}
	t.Height += 22
	t.Table = spellTable(spells, now)
	return t
}

// spellTable is a timeline as a table.
func spellTable(spells []spell, now time.Time) *table {
	return tableOf("Timeline", []column[spell]{
		{"What", func(s *spell) cell { return text(s.what) }},
		{"Event", func(s *spell) cell {
			c := middle(s.event)
			if s.id != "" {
				c.Href = toExecution(s.id)
			}
			return c
		}},
		{"From", func(s *spell) cell { return cell{At: s.from, Way: "at"} }},
		{"To", func(s *spell) cell {
			switch s.to {
			case s.from:
				return cell{}
			case now:
				return text("now")
			}
			return cell{At: s.to, Way: "at"}
		}},
		{"Result", func(s *spell) cell { return text(s.result) }},
	}, spells, func(s *spell) string { return s.what + s.id + s.from.String() })
}

// toExecution links to the event of an execution.
func toExecution(id string) string { return to("story", "id", id) }

// precision is how exact the labels of an axis are.
func precision(whole time.Duration) time.Duration {
	switch {
	case whole < 100*time.Millisecond:
		return 100 * time.Microsecond
	case whole < 10*time.Second:
		return 10 * time.Millisecond
	}
	return time.Second
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// label is the text at a bar.
func (s *spell) label() string {
	if s.own {
		return s.result
	}
	return middle(s.event).Text + " " + s.result
}

// spellsOf are the attempts and deliveries of an event, and the other events that ran at the time.
func (v *visit) spellsOf(x *client.Execution, lock *client.Lock) []spell {
	var all []spell
	own := map[string]bool{}
	for i, a := range attemptsOf(x) {
		own[a.ExecutionID] = true
		s := spell{what: fmt.Sprintf("Attempt %d", i+1), event: story.Name(x), id: a.ExecutionID, from: a.StartedAt.Time, to: a.FinishedAt.Time, result: resultOf(&a), own: true, class: "done"}
		if s.to.IsZero() {
			s.to, s.class = v.now, "open"
		} else if a.Status != client.Success {
			s.class = "failed"
		}
		all = append(all, s)
	}
	neighbours := map[string]bool{}
	add := func(id, event, result string, from, to time.Time) {
		if id == "" || own[id] || neighbours[id] || len(neighbours) >= mostNeighbours || from.IsZero() {
			return
		}
		neighbours[id] = true
		s := spell{what: "Other event", event: event, id: id, from: from, to: to, result: result, class: "other"}
		if to.IsZero() {
			s.to, s.result = v.now, "running"
		}
		all = append(all, s)
	}
	for _, a := range arrivalsOf(x) {
		all = append(all, spell{what: "Delivery", event: story.Name(x), from: a.At.Time, to: a.At.Time, result: fmt.Sprintf("%d %s", a.Status, story.Words(a.Decision)), own: true, class: "arrival"})
		if b := a.Behind; b != nil {
			add(a.ExecutionID, cmp.Or(b.EventID, shortID(a.ExecutionID)), "", b.StartedAt.Time, b.FinishedAt.Time)
		}
	}
	all = slices.DeleteFunc(all, func(s spell) bool { return s.from.IsZero() })
	if len(all) == 0 {
		return nil
	}
	if lock != nil && !lock.Cooling {
		add(lock.ExecutionID, lockEvent(lock), "running", lock.LockedAt.Time, time.Time{})
	}
	from, to := all[0].from, all[0].to
	for _, s := range all {
		if s.from.Before(from) {
			from = s.from
		}
		if s.to.After(to) {
			to = s.to
		}
	}
	page := &client.ExecutionPage{}
	query := values("workflow", x.Workflow, "since", from.UTC().Format(time.RFC3339Nano), "until", to.UTC().Format(time.RFC3339Nano), "limit", fmt.Sprint(mostNeighbours))
	if v.api.get("/v1/executions", query, page) == nil {
		for i := range page.Executions {
			n := &page.Executions[i]
			if n.Status != client.Pending {
				a := client.Attempt{Status: n.Status, Outcome: n.Outcome}
				if n.Response != nil {
					a.Answer = n.Response.Status
				}
				add(n.ExecutionID, story.Name(n), resultOf(&a), n.StartedAt.Time, n.FinishedAt.Time)
			}
		}
	}
	return all
}

// resultOf is an attempt's result in two words.
func resultOf(a *client.Attempt) string {
	switch {
	case a.Answer != 0:
		return fmt.Sprintf("answered %d", a.Answer)
	case a.Outcome == client.Unknown:
		return "outcome unknown"
	case a.Outcome == client.NotExecuted:
		return "not sent"
	case a.Status == client.Pending:
		return "waiting"
	}
	return string(a.Status)
}
