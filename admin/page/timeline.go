package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

const (
	mostNeighbours = 12 // other events on a timeline
	rowHeight      = 24 // of a timeline, in pixels
	// letterWidth is about how wide a letter is on a timeline of 1200 pixels, in per cent
	letterWidth = 0.65
)

// spell is a time in which an event ran, or a moment at which one was delivered.
type spell struct {
	what, event, id, result string
	class                   string
	from, to                time.Time
	own                     bool
}

// timeline is a picture of an event and of the other events of its workflow at that time, with the
// same as a table.
type timeline struct {
	Height int
	Lanes  []stretch // names of groups of rows
	Bars   []stretch
	Ticks  []stretch
	Table  *table
}

// stretch is a part of a timeline. Its X and Width are per cent, as is LabelX, where its text
// begins, or ends if it stands before the stretch.
type stretch struct {
	X, Width, LabelX         string
	Before                   bool
	Y                        int
	Class, Text, Title, Href string
	At                       time.Time
}

// newTimeline draws spells; nil where there is nothing to compare.
func newTimeline(workflow string, spells []spell, now time.Time) *timeline {
	if len(spells) < 2 && !slices.ContainsFunc(spells, func(s spell) bool { return s.to.Sub(s.from) > 0 }) {
		return nil
	}
	slices.SortStableFunc(spells, func(a, b spell) int {
		if a.own == b.own {
			return a.from.Compare(b.from)
		} else if a.own {
			return -1
		}
		return 1
	})
	from, to := spellsRange(spells)
	d := drawing{t: &timeline{Height: 16}, from: from, whole: max(to.Sub(from), time.Millisecond)}
	others := slices.IndexFunc(spells, func(s spell) bool { return !s.own })
	if others < 0 {
		others = len(spells)
	}
	d.addLane("This event", spells[:others])
	d.addLane("Other events of "+cutCell(workflow).Text, spells[others:])
	d.addAxis()
	d.t.Table = spellTable(spells, now)
	return d.t
}

// spellsRange returns when the first of spells begins and the last ends.
func spellsRange(spells []spell) (from, to time.Time) {
	from, to = spells[0].from, spells[0].to
	for _, s := range spells {
		if s.from.Before(from) {
			from = s.from
		}
		if s.to.After(to) {
			to = s.to
		}
	}
	return from, to
}

// drawing is a timeline to which parts are added from top to bottom.
type drawing struct {
	t     *timeline
	from  time.Time
	whole time.Duration
}

// percentOf returns the place of a moment, or the width of a span, in per cent.
func (d *drawing) percentOf(span time.Duration) float64 { return float64(span) * 94 / float64(d.whole) }

// addLane adds spells, which are in the order in which they begin, on as few rows as they fit
// without overlap.
func (d *drawing) addLane(name string, spells []spell) {
	if len(spells) == 0 {
		return
	}
	if len(d.t.Lanes) > 0 {
		d.t.Height += 20
	}
	d.t.Lanes = append(d.t.Lanes, stretch{Y: d.t.Height, Text: name})
	top := d.t.Height + 6
	var ends []float64 // of the rows
	for _, s := range spells {
		p := d.placeOf(&s)
		row := slices.IndexFunc(ends, func(end float64) bool { return end <= min(p.x, p.from) })
		if row < 0 {
			row, ends = len(ends), append(ends, 0)
		}
		ends[row] = max(p.x+p.width, p.to)
		d.addBar(&s, p, top+row*rowHeight)
	}
	d.t.Height = top + len(ends)*rowHeight
}

// place is where a bar is, and from where to where its text goes, in per cent.
type place struct{ x, width, from, to float64 }

func (d *drawing) placeOf(s *spell) place {
	p := place{x: d.percentOf(s.from.Sub(d.from)), width: max(0.5, d.percentOf(s.to.Sub(s.from)))}
	p.from, p.to = p.x, p.x+float64(utf8.RuneCountInString(s.labelText()))*letterWidth
	if p.to > 100 {
		p.from, p.to = p.x+p.width-(p.to-p.from), p.x+p.width
	}
	return p
}

func (d *drawing) addBar(s *spell, p place, y int) {
	b := stretch{
		X: fmt.Sprintf("%.2f%%", p.x), Width: fmt.Sprintf("%.2f%%", p.width), Y: y,
		LabelX: fmt.Sprintf("%.2f%%", p.x), Before: p.from < p.x,
		Class: s.class, Text: s.labelText(), Title: s.what + ": " + s.labelText(),
	}
	if b.Before {
		b.LabelX = fmt.Sprintf("%.2f%%", p.to)
	}
	if s.id != "" && !s.own {
		b.Href = toExecution(s.id)
	}
	d.t.Bars = append(d.t.Bars, b)
}

func (d *drawing) addAxis() {
	d.t.Height += 6
	for n := range 5 {
		after := d.whole * time.Duration(n) / 4
		tick := stretch{X: fmt.Sprintf("%.2f%%", d.percentOf(after)), Y: d.t.Height + 16,
			Text: "+" + story.Span(after.Truncate(axisPrecision(d.whole)))}
		if n == 0 {
			tick.At = d.from
		}
		d.t.Ticks = append(d.t.Ticks, tick)
	}
	d.t.Height += 22
}

// spellTable returns a timeline as a table.
func spellTable(spells []spell, now time.Time) *table {
	return tableOf("Timeline", []column[spell]{
		{"What", func(s *spell) cell { return textCell(s.what) }},
		{"Event", func(s *spell) cell {
			c := middleCutCell(s.event)
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
				return textCell("now")
			}
			return cell{At: s.to, Way: "at"}
		}},
		{"Result", func(s *spell) cell { return textCell(s.result) }},
	}, spells, func(s *spell) string { return s.what + s.id + s.from.String() })
}

// toExecution links to the event of an execution.
func toExecution(id string) string { return screenLink("story", "id", id) }

// axisPrecision returns how exact the labels of an axis are.
func axisPrecision(whole time.Duration) time.Duration {
	switch {
	case whole < 100*time.Millisecond:
		return 100 * time.Microsecond
	case whole < 10*time.Second:
		return 10 * time.Millisecond
	}
	return time.Second
}

// labelText returns the text of a bar.
func (s *spell) labelText() string {
	if s.own {
		return s.result
	}
	return middleCutCell(s.event).Text + " " + s.result
}

// spellsOf returns the attempts and deliveries of an event, and the other events that ran at the
// time. It returns nil if no time of the event is known.
func (v *visit) spellsOf(x *client.Execution, lock *client.Lock) []spell {
	own := slices.DeleteFunc(append(v.attemptSpells(x), deliverySpells(x)...), func(s spell) bool {
		return s.from.IsZero()
	})
	if len(own) == 0 {
		return nil
	}
	others := neighbours{own: ownAttempts(x), now: v.now}
	for _, a := range arrivalsOf(x) {
		if b := a.Behind; b != nil {
			others.add(a.ExecutionID, cmp.Or(b.EventID, shortID(a.ExecutionID)), "", b.StartedAt.Time,
				b.FinishedAt.Time)
		}
	}
	if lock != nil && !lock.Cooling {
		others.add(lock.ExecutionID, lockEvent(lock), "running", lock.LockedAt.Time, time.Time{})
	}
	from, to := spellsRange(slices.Concat(own, others.spells))
	page, err := readObject[client.ExecutionPage](v, "/v1/executions", "workflow", x.Workflow, "since",
		from.UTC().Format(time.RFC3339Nano), "until", to.UTC().Format(time.RFC3339Nano), "limit",
		fmt.Sprint(mostNeighbours))
	if err != nil { // the picture of what is known already
		return append(own, others.spells...)
	}
	for i := range page.Executions {
		if n := &page.Executions[i]; n.Status != client.Pending {
			a := latestAttempt(n)
			others.add(n.ExecutionID, story.Name(n), resultOf(&a), n.StartedAt.Time, n.FinishedAt.Time)
		}
	}
	return append(own, others.spells...)
}

func (v *visit) attemptSpells(x *client.Execution) (all []spell) {
	for i, a := range attemptsOf(x) {
		s := spell{what: fmt.Sprintf("Attempt %d", i+1), event: story.Name(x), id: a.ExecutionID,
			from: a.StartedAt.Time, to: a.FinishedAt.Time, result: resultOf(&a), own: true, class: "done"}
		if s.to.IsZero() {
			s.to, s.class = v.now, "open"
		} else if a.Status != client.Success {
			s.class = "failed"
		}
		all = append(all, s)
	}
	return all
}

func deliverySpells(x *client.Execution) (all []spell) {
	for _, a := range arrivalsOf(x) {
		to := a.At.Time
		if a.Answered().Sub(to) >= longWait {
			to = a.Answered()
		}
		all = append(all, spell{what: "Delivery", event: story.Name(x), from: a.At.Time, to: to,
			result: fmt.Sprintf("%d %s", a.Status, story.Words(a.Decision)), own: true, class: "arrival"})
	}
	return all
}

// neighbours are the other events on a timeline, at most mostNeighbours, each once.
type neighbours struct {
	own    map[string]time.Time // the executions of the event itself
	now    time.Time
	spells []spell
}

// add adds an execution. A zero to means that it runs.
func (n *neighbours) add(id, event, result string, from, to time.Time) {
	_, own := n.own[id]
	known := slices.ContainsFunc(n.spells, func(s spell) bool { return s.id == id })
	if id == "" || own || known || len(n.spells) >= mostNeighbours || from.IsZero() {
		return
	}
	if to.IsZero() {
		to, result = n.now, "running"
	}
	n.spells = append(n.spells, spell{what: "Other event", event: event, id: id, from: from, to: to, result: result,
		class: "other"})
}

// resultOf returns an attempt's result in two words.
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
