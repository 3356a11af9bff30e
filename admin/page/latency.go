package page

import (
	"fmt"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

// latencyHeight is the height of a line chart in its own units, as in the viewBox of its template.
const latencyHeight = 120

// lineChart shows how long the service of a route took over time, with the same as a table.
type lineChart struct {
	Title  string
	Width  int // steps
	Height int
	Top    string // what the top of it stands for
	Lines  []chartLine
	Ticks  []stretch
	Table  *table
}

// chartLine is one line of it: an SVG path.
type chartLine struct{ Class, Name, Path string }

// timeRange is a time that the screen of a route shows. before: it is half of what is read, and the
// other half is the time before, to compare with.
type timeRange struct {
	lookback
	before bool
}

func timeRanges() []timeRange {
	return []timeRange{
		{lookback{"1h", "1h", "1m", "Last hour"}, false}, {lookback{"24h", "24h", "15m", "24 hours"}, false},
		{lookback{"7d", "336h", "1h", "This week and the last"}, true},
		{lookback{"30d", "720h", "24h", "30 days"}, false},
	}
}

// latencyScreen shows one route over time: how long its service took, and outcomes.
func latencyScreen(v *visit) ([]section, error) {
	route := v.query.Get("route")
	s := section{ID: "latency", Title: "Route " + route, Empty: "The service was not called in this time."}
	span := timeRanges()[1]
	for _, one := range timeRanges() {
		s.Links = append(s.Links, link{one.title, screenLink("latency", v.queryWith("range", one.name)...)})
		if v.query.Get("range") == one.name {
			span = one
		}
	}
	list, err := readObject[client.CountList](v, "/v1/routes/counts", "since", span.since, "step", span.step)
	if err != nil {
		return s.aloneWithout(err, "The counts are not known: etcd does not answer.")
	}
	r := list.Of(route)
	if r == nil {
		s.Empty = "Nothing is known of this route."
		return []section{s}, nil
	}
	s.Note = "How long the service took, on all replicas: half of its answers came within p50, 95 of 100 within p95."
	s.Lines = linesOf(list, r.Steps, span.before)
	outcomes := section{ID: "outcomes", Title: "Outcomes", Chart: chartOf(lastOf(list, r, span.before), "route", route)}
	return []section{s, outcomes}, nil
}

// halfOf returns where the second half of a list begins, after whole steps.
func halfOf(list *client.CountList) time.Time {
	step := secondsDuration(list.StepSeconds)
	return list.Since.Add((list.Until.Sub(list.Since.Time) / 2).Truncate(step))
}

// lastOf returns the counts of one route, of the second half alone if before is set.
func lastOf(list *client.CountList, r *client.RouteCounts, before bool) *client.CountList {
	one := &client.CountList{Since: list.Since, Until: list.Until, StepSeconds: list.StepSeconds}
	if before {
		one.Since = client.Time{Time: halfOf(list)}
	}
	one.Routes = []client.RouteCounts{{Route: r.Route, Steps: r.Steps}}
	return one
}

// stepTimes is what a line chart shows of one step.
type stepTimes struct {
	at       time.Time
	now, old *client.CountStep // old is that of the time before; nil: there was no call
}

// linesOf draws the times of steps; nil if there are none.
func linesOf(list *client.CountList, steps []client.CountStep, before bool) *lineChart {
	step, from := secondsDuration(list.StepSeconds), list.Since.Time
	if step <= 0 {
		return nil
	}
	if before {
		from = halfOf(list)
	}
	all := make([]stepTimes, int(list.Until.Sub(from)/step)+1)
	for n := range all {
		all[n].at = from.Add(time.Duration(n) * step)
	}
	most := 0.0
	for i := range steps {
		one := &steps[i]
		if one.P95Seconds == 0 {
			continue
		}
		most = max(most, one.P95Seconds)
		if n := int(one.At.Sub(from) / step); !one.At.Before(from) && n < len(all) {
			all[n].now = one
		} else if n := int(one.At.Sub(list.Since.Time) / step); one.At.Before(from) && n < len(all) {
			all[n].old = one
		}
	}
	if most == 0 {
		return nil
	}
	c := &lineChart{Title: "p50 and p95 of the service", Width: len(all), Height: latencyHeight,
		Top: roughSeconds(most)}
	now := func(s *stepTimes) *client.CountStep { return s.now }
	old := func(s *stepTimes) *client.CountStep { return s.old }
	p50 := func(s *client.CountStep) float64 { return s.P50Seconds }
	p95 := func(s *client.CountStep) float64 { return s.P95Seconds }
	c.addLine("p95", "p95", all, now, p95, most)
	c.addLine("p50", "p50", all, now, p50, most)
	if before {
		c.addLine("p95 before", "p95 a week before", all, old, p95, most)
		c.addLine("p50 before", "p50 a week before", all, old, p50, most)
	}
	c.Ticks = ticksOf(from, list.Until.Time, step, 16, func(after time.Duration) string {
		return fmt.Sprintf("%.2f%%", chartWidth*float64(after)/float64(step)/float64(len(all)))
	})
	c.Table = timesTable(all, before)
	return c
}

// addLine adds a line. It has a gap where there was no call.
func (c *lineChart) addLine(class, name string, all []stepTimes, of func(*stepTimes) *client.CountStep,
	value func(*client.CountStep) float64, most float64) {
	var path strings.Builder
	pen := "M"
	for n := range all {
		one := of(&all[n])
		if one == nil {
			pen = "M"
			continue
		}
		y := latencyHeight - value(one)/most*(latencyHeight-2) - 1
		if fmt.Fprintf(&path, "%s%d %.1f", pen, n, y); pen == "M" {
			fmt.Fprintf(&path, "h.6") // a step without neighbours is seen, too
		}
		pen = "L"
	}
	c.Lines = append(c.Lines, chartLine{class, name, path.String()})
}

func timesTable(all []stepTimes, before bool) *table {
	time := func(of func(*stepTimes) *client.CountStep, value func(*client.CountStep) float64) func(*stepTimes) cell {
		return func(s *stepTimes) cell {
			one := of(s)
			if one == nil {
				return cell{}
			}
			return textCell(roughSeconds(value(one)))
		}
	}
	now := func(s *stepTimes) *client.CountStep { return s.now }
	old := func(s *stepTimes) *client.CountStep { return s.old }
	p50 := func(s *client.CountStep) float64 { return s.P50Seconds }
	p95 := func(s *client.CountStep) float64 { return s.P95Seconds }
	columns := []column[stepTimes]{
		{"From", func(s *stepTimes) cell { return cell{At: s.at, Way: "at"} }},
		{"p50", time(now, p50)}, {"p95", time(now, p95)},
	}
	if before {
		columns = append(columns, column[stepTimes]{"p50 a week before", time(old, p50)},
			column[stepTimes]{"p95 a week before", time(old, p95)})
	}
	var some []stepTimes
	for _, s := range all {
		if s.now != nil || s.old != nil {
			some = append(some, s)
		}
	}
	return tableOf("Latency over time", columns, some, func(s *stepTimes) string { return s.at.String() })
}

// trendHeight is the height of a trend in units of its own, as in the viewBox of its template: the
// style sheet sets its size.
const trendHeight = 24

// trend is a small bar chart in the row of a route: its deliveries in each step of time, and those
// that failed before them.
type trend struct {
	Steps       int
	All, Failed string // paths with a line for each step that has any
	Title       string
}

// trendOf draws the counts of a route; nil if there are none.
func trendOf(list *client.CountList, r *client.RouteCounts) *trend {
	step := secondsDuration(list.StepSeconds)
	if step <= 0 {
		return nil
	}
	t := &trend{Steps: int(list.Until.Sub(list.Since.Time)/step) + 1}
	most, busiest := int64(0), int64(0)
	for i := range r.Steps {
		busiest = max(busiest, r.Steps[i].Counts.Deliveries)
		most = max(most, busiest, failureCount(&r.Steps[i].Counts))
	}
	var all, failed strings.Builder
	for i := range r.Steps {
		at := r.Steps[i].At.Sub(list.Since.Time)
		if x := int(at / step); at >= 0 && x < t.Steps {
			c := &r.Steps[i].Counts
			addStroke(&all, x, c.Deliveries, most, 1)
			addStroke(&failed, x, failureCount(c), most, 2) // one of a thousand is seen, too
		}
	}
	if t.All, t.Failed = all.String(), failed.String(); t.All == "" && t.Failed == "" {
		return nil
	}
	t.Title = fmt.Sprintf("%s, %d failed; at most %d in %s", story.Count(r.Total.Deliveries, "delivery", "deliveries"),
		failureCount(&r.Total), busiest, story.Span(step))
	return t
}

// failureCount returns how many requests to the service had no success.
func failureCount(c *client.Counts) int64 { return c.Failed + c.Errors }

// addStroke adds the line of a step: as high as count is of most, and at least as high as low. It
// adds none for 0.
func addStroke(path *strings.Builder, x int, count, most int64, low int) {
	if count > 0 {
		fmt.Fprintf(path, "M%d %dV%d", x, trendHeight, trendHeight-max(low, int(count*trendHeight/most)))
	}
}
