package page

import (
	"fmt"
	"strings"

	"hooklock/admin/client"
	"hooklock/admin/story"
)

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
	step := seconds(list.StepSeconds)
	if step <= 0 {
		return nil
	}
	t := &trend{Steps: int(list.Until.Sub(list.Since.Time)/step) + 1}
	most, busiest := int64(0), int64(0)
	for i := range r.Steps {
		busiest = max(busiest, r.Steps[i].Counts.Deliveries)
		most = max(most, busiest, failures(&r.Steps[i].Counts))
	}
	var all, failed strings.Builder
	for i := range r.Steps {
		at := r.Steps[i].At.Sub(list.Since.Time)
		if x := int(at / step); at >= 0 && x < t.Steps {
			c := &r.Steps[i].Counts
			stroke(&all, x, c.Deliveries, most, 1)
			stroke(&failed, x, failures(c), most, 2) // one of a thousand is seen, too
		}
	}
	if t.All, t.Failed = all.String(), failed.String(); t.All == "" && t.Failed == "" {
		return nil
	}
	t.Title = fmt.Sprintf("%s, %d failed; at most %d in %s", story.Count(r.Total.Deliveries, "delivery", "deliveries"),
		failures(&r.Total), busiest, story.Span(step))
	return t
}

// failures returns how many requests to the service had no success.
func failures(c *client.Counts) int64 { return c.Failed + c.Errors }

// stroke adds the line of a step: as high as count is of most, and at least as high as low. It adds
// none for 0.
func stroke(path *strings.Builder, x int, count, most int64, low int) {
	if count > 0 {
		fmt.Fprintf(path, "M%d %dV%d", x, trendHeight, trendHeight-max(low, int(count*trendHeight/most)))
	}
}
