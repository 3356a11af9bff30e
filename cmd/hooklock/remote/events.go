package remote

import (
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
)

// headHappened is the head of a column.
const headHappened = "WHAT HAPPENED"

// asEvents sets the columns of l for readers: the event first, and those last that a narrow
// terminal leaves out.
func (d *Desk) asEvents(l *listing[client.Execution]) {
	now := time.Now()
	l.head = []string{d.shown.Head(now), "EVENT", "STATUS", headHappened, "WORKFLOW", "DURATION", "RUN"}
	l.drop, l.middle = []string{"RUN", "DURATION", "WORKFLOW"}, []string{"EVENT", "WORKFLOW"}
	l.cut = map[string]int{"EVENT": 17, headHappened: 20, "WORKFLOW": 12, "RUN": shortRun}
	l.row = func(x *client.Execution) []string {
		at := ""
		if t := cameAt(x); !t.IsZero() {
			at = d.shown.Clock(t, now)
		}
		return []string{at, story.Name(x), story.ShownStatus(x), story.Short(x, now), x.Workflow, duration(x, now),
			x.ExecutionID}
	}
}

// shortRun is the least width of an execution's ID: its workflow's part, and enough of its event's
// part to find it.
const shortRun = len(idPrefix) + 20 + len("…")

// cameAt returns when an event arrived, or when its newest delivery was refused.
func cameAt(x *client.Execution) time.Time {
	switch {
	case !x.StartedAt.IsZero():
		return x.StartedAt.Time
	case x.Parked != nil:
		return x.Parked.Since.Time
	case x.Status == client.Released && x.Released != nil:
		return x.Released.At.Time
	case x.Arrivals != nil && len(x.Arrivals.Newest) > 0:
		return x.Arrivals.Newest[0].At.Time
	}
	return time.Time{}
}

// duration returns how long an execution ran, or has been running, or what a refusal took; "" if
// there is none.
func duration(x *client.Execution, now time.Time) string {
	if took, known := story.Took(x); known {
		return cli.Span(took)
	}
	if x.Status == client.Refused || x.StartedAt.IsZero() || x.Parked != nil && x.Parked.Blocked != "" {
		return ""
	}
	return cli.Span(now.Sub(x.StartedAt.Time))
}
