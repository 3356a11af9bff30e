package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

const (
	chartHeight = 120 // of the bars, in pixels
	chartWidth  = 94  // of the bars, in per cent: the rest is room for the last label
)

// chart is a bar chart of the counts in each step of time, with the same as a table.
type chart struct {
	Height int // with the labels
	Bars   []block
	Ticks  []stretch
	Kinds  []countKind
	Table  *table
}

// block is a part of a stacked bar.
type block struct {
	X, Width  string // per cent
	Y, Height int
	Class     string
	Title     string
	Href      string // of the events that it counts
}

// countKind is the meaning of one colour of a chart.
type countKind struct {
	Class, Name string
	of          func(*client.Counts) int64
	filter      []string // finds such events; nil where no filter does, so that all of that time are shown
	screen      string   // that lists them; "" = find
}

// countCell shows how many of the kind c has, with a link to these events. where are the other
// filters.
func (k *countKind) countCell(c *client.Counts, where ...string) cell {
	n := numberCell(k.of(c))
	if n.Text != "" {
		n.Href = screenLink(cmp.Or(k.screen, "find"), slices.Concat(where, k.filter)...)
	}
	return n
}

// countKinds returns the colours of a chart, from below: results of deliveries, and tries of
// accepted events.
func countKinds() []countKind {
	return []countKind{
		{"succeeded", "Succeeded", func(c *client.Counts) int64 {
			return c.Succeeded
		}, []string{"status", string(client.Success)}, ""},
		{"failed", "Failed", func(c *client.Counts) int64 {
			return c.Failed
		}, []string{"status", string(client.Failed)}, ""},
		{"errors", "Errors", func(c *client.Counts) int64 {
			return c.Errors
		}, []string{"status", string(client.Failed)}, ""},
		{"parked", "Accepted", func(c *client.Counts) int64 { return c.Parked }, []string{"decision", "parked"}, ""},
		{"busy", "Busy", func(c *client.Counts) int64 { return c.Busy }, []string{"status", "REFUSED"}, ""},
		{"forged", "Bad signature", func(c *client.Counts) int64 { return c.BadSignatures }, nil, "signatures"},
		{"refused", "Refused", func(c *client.Counts) int64 {
			return c.Refused
		}, []string{"status", string(client.Refused)}, ""},
		{"copies", "Duplicates", func(c *client.Counts) int64 { return c.Duplicates }, nil, ""},
	}
}

// lookback is a time that the overview can show, with the length of a step.
type lookback struct{ name, since, step, title string }

func allLookbacks() []lookback {
	return []lookback{{"1h", "1h", "1m", "Last hour"}, {"24h", "24h", "15m", "24 hours"},
		{"30d", "720h", "6h", "30 days"}}
}

// countsSection shows the traffic of the routes over time, over all replicas. It reads counts and
// no records. status is nil if the token may not see it. Links to other times lead to that screen.
func (v *visit) countsSection(status *client.ReplicaStatus, screen string) (section, error) {
	s := section{ID: "rates", Title: "Routes"}
	if status == nil {
		s.Note = notAll
		return s, nil
	}
	span := allLookbacks()[1]
	for _, one := range allLookbacks() {
		s.Links = append(s.Links, link{one.title, screenLink(screen, v.queryWith("range", one.name)...)})
		if v.query.Get("range") == one.name {
			span = one
		}
	}
	list, err := v.getCounts(span.since, span.step)
	if err != nil {
		return s.withoutContent(err, "The counts are not known: etcd does not answer.")
	}
	s.Note = "All replicas, " + strings.ToLower(span.title) + ", also from before a restart. Succeeded: the service " +
		"answered 2xx. Failed: it answered another status. Errors: no whole answer came."
	s.Chart = chartOf(list)
	s.Table = tableOf("Deliveries by route", countColumns(list, status), list.Routes,
		func(r *client.RouteCounts) string {
			return r.Route
		})
	return s, nil
}

// getCounts reads the counts, once. A stream reads them again once in attentionEvery.
func (v *visit) getCounts(since, step string) (*client.CountList, error) {
	if v.kept != nil {
		if v.now.Sub(v.kept.countsAt) >= attentionEvery {
			v.kept.counts, v.kept.countsAt = nil, v.now
		}
		v.read = v.kept.counts
	}
	if list := v.read[since]; list != nil {
		return list, nil
	}
	list, err := readObject[client.CountList](v, "/v1/routes/counts", "since", since, "step", step, "latency", "false")
	if err != nil {
		return nil, err
	}
	if v.read == nil {
		v.read = map[string]*client.CountList{}
	}
	if v.read[since] = list; v.kept != nil {
		v.kept.counts = v.read
	}
	return list, nil
}

// chartOf draws counts; nil if there are none. Its links have the filters in where, too.
func chartOf(list *client.CountList, where ...string) *chart {
	sums := map[time.Time]*client.Counts{}
	step := secondsDuration(list.StepSeconds)
	kinds := countKinds()
	for i := range list.Routes {
		for _, one := range list.Routes[i].Steps {
			if sums[one.At.Time] == nil {
				sums[one.At.Time] = &client.Counts{}
			}
			addCounts(sums[one.At.Time], &one.Counts)
		}
	}
	var steps []client.CountStep
	most := int64(0)
	n := 0
	for at := list.Since.Time; step > 0 && !at.After(list.Until.Time); at = at.Add(step) {
		if n++; sums[at] != nil {
			steps = append(steps, client.CountStep{At: client.Time{Time: at}, Counts: *sums[at]})
			most = max(most, sumOf(sums[at], kinds))
		}
	}
	if most == 0 {
		return nil
	}
	c := &chart{Height: chartHeight + 20, Kinds: kinds}
	during := func(at client.Time) []string {
		return append([]string{"since", at.UTC().Format(time.RFC3339),
			"until", at.Add(step).UTC().Format(time.RFC3339)}, where...)
	}
	percent := func(d time.Duration) string {
		return fmt.Sprintf("%.2f%%", chartWidth*float64(d)/float64(step)/float64(n))
	}
	for i := range steps {
		y := chartHeight
		for _, k := range kinds {
			count := k.of(&steps[i].Counts)
			if count == 0 {
				continue
			}
			height := max(1, int(count*chartHeight/most))
			y = max(0, y-height)
			c.Bars = append(c.Bars, block{
				X: percent(steps[i].At.Sub(list.Since.Time)), Width: percent(step * 9 / 10), Y: y, Height: height,
				Class: k.Class,
				Title: fmt.Sprintf("%s: %d", k.Name, count),
				Href:  k.countCell(&steps[i].Counts, during(steps[i].At)...).Href,
			})
		}
	}
	c.Ticks = ticksOf(list.Since.Time, list.Until.Time, step, chartHeight+16, percent)
	columns := []column[client.CountStep]{{"From", func(s *client.CountStep) cell { return timeCell(s.At, "at") }}}
	for _, k := range kinds {
		columns = append(columns, column[client.CountStep]{k.Name, func(s *client.CountStep) cell {
			return k.countCell(&s.Counts, during(s.At)...)
		}})
	}
	c.Table = tableOf("Outcomes over time", columns, steps, func(s *client.CountStep) string { return s.At.String() })
	return c
}

func sumOf(c *client.Counts, kinds []countKind) (n int64) {
	for _, k := range kinds {
		n += k.of(c)
	}
	return n
}

func addCounts(to, more *client.Counts) {
	to.Succeeded, to.Failed, to.Errors = to.Succeeded+more.Succeeded, to.Failed+more.Failed, to.Errors+more.Errors
	to.Parked, to.Busy, to.Duplicates = to.Parked+more.Parked, to.Busy+more.Busy, to.Duplicates+more.Duplicates
	to.BadSignatures, to.Refused = to.BadSignatures+more.BadSignatures, to.Refused+more.Refused
}

// roughSeconds formats an estimate in seconds.
func roughSeconds(estimate float64) string {
	d := story.Estimate(estimate)
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return story.Span(d)
}

// countColumns show the counts of a route. status may be nil.
func countColumns(list *client.CountList, status *client.ReplicaStatus) []column[client.RouteCounts] {
	var parked client.ParkedStatus
	if status != nil {
		parked = status.Parked
	}
	columns := []column[client.RouteCounts]{
		{"Route", func(r *client.RouteCounts) cell {
			return cell{Text: r.Route, Href: screenLink("find", "route", r.Route)}
		}},
		{"Mode", func(r *client.RouteCounts) cell {
			for i := range status.Routes {
				if status.Routes[i].Route == r.Route {
					return modeCell(status.Routes[i].Mode)
				}
			}
			return cell{}
		}},
		{"per min", func(r *client.RouteCounts) cell {
			return cell{Text: fmt.Sprintf("%.1f", r.PerMinute), Title: "in the last hour, on all replicas"}
		}},
	}
	for _, k := range countKinds() {
		columns = append(columns, column[client.RouteCounts]{k.Name, func(r *client.RouteCounts) cell {
			return k.countCell(&r.Total, "route", r.Route, "since", list.Since.UTC().Format(time.RFC3339))
		}})
	}
	return append(columns,
		column[client.RouteCounts]{"Waiting", eventsNow(parked.Routes)},
		column[client.RouteCounts]{"Dead letters", eventsNow(parked.DeadLetterRoutes)},
		column[client.RouteCounts]{"p50 / p95", func(r *client.RouteCounts) cell {
			if r.P95Seconds == 0 {
				return cell{}
			}
			return cell{Text: roughSeconds(r.P50Seconds) + " / " + roughSeconds(r.P95Seconds),
				Href: screenLink("latency", "route", r.Route), Title: "over time"}
		}},
		column[client.RouteCounts]{"Trend", func(r *client.RouteCounts) cell { return cell{Trend: trendOf(list, r)} }},
		column[client.RouteCounts]{"Last", func(r *client.RouteCounts) cell {
			if r.LastAt.IsZero() {
				return cell{Text: "none", Class: "dim"}
			}
			return timeCell(r.LastAt, "ago")
		}},
		column[client.RouteCounts]{"Actions", func(r *client.RouteCounts) cell {
			return cell{Asks: []ask{pauseAsk("route:"+r.Route, status)}}
		}},
	)
}

// eventsNow shows how many events of a route there are at this time.
func eventsNow(counts []client.RouteCount) func(*client.RouteCounts) cell {
	return func(r *client.RouteCounts) cell {
		for _, n := range counts {
			if n.Route == r.Route {
				return numberCell(int64(n.Count))
			}
		}
		return cell{}
	}
}

// ticksOf returns the labels of a time axis, at round times: the first step may begin up to a step
// before what was asked for. percent returns the place of a time after since.
func ticksOf(since, until time.Time, step time.Duration, y int, percent func(time.Duration) string) (all []stretch) {
	whole := until.Sub(since)
	quarter := whole.Truncate(4*step) / 4
	for ago := 4 * quarter; ago > 0; ago -= quarter {
		all = append(all, stretch{X: percent(whole - ago), Y: y, Text: story.Span(ago) + " ago"})
	}
	return all
}
