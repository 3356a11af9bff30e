package remote

import (
	"fmt"
	"strconv"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
)

// headHappened is the head of a column.
const headHappened = "WHAT HAPPENED"

// asEvents sets the columns of l for people: the event first, and those last that a narrow terminal leaves out.
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
		return []string{at, story.Name(x), string(x.Status), happened(x, now), x.Workflow, duration(x, now), x.ExecutionID}
	}
}

// shortRun is the least width of an execution's ID: its workflow's part, and enough of its event's part to find it.
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

// duration returns how long an execution ran, or has been running.
func duration(x *client.Execution, now time.Time) string {
	if x.FinishedAt.IsZero() && !x.StartedAt.IsZero() {
		return cli.Span(now.Sub(x.StartedAt.Time))
	}
	return took(x.StartedAt.Time, x.FinishedAt.Time)
}

// happened returns in a few words what happened to an event.
func happened(x *client.Execution, now time.Time) string {
	text := ended(x)
	switch p := x.Parked; {
	case x.Status == client.Refused:
		text = refused(x)
	case x.Status == client.Released && x.Released != nil:
		text = "allowed again by " + x.Released.By + ": " + x.Released.Reason
	case x.Status == client.CancelRequested:
		text = "cancel asked by " + x.AbortedBy + ": " + x.AbortReason
	case p != nil && p.Blocked != "":
		text = "blocked after " + tries(p.Tries, x)
	case p != nil && p.Tries > 0:
		text = "accepted, " + tries(p.Tries, x)
	case p != nil:
		text = "accepted, waits: " + p.On
	case x.Status == client.Pending:
		text = "waits for its turn"
	case x.Status == client.Running:
		text = "running"
	}
	if p := x.Parked; p != nil && p.Blocked == "" && !p.NextAttempt.IsZero() {
		text += ", next in " + cli.Span(max(0, p.NextAttempt.Sub(now)))
	}
	if x.Attempt > 1 {
		text += ", attempt " + strconv.Itoa(x.Attempt)
	}
	if x.Duplicates > 0 {
		text += ", " + story.Count(x.Duplicates, "duplicate", "duplicates")
	}
	return text
}

// ended says how an execution ended.
func ended(x *client.Execution) string {
	answer := ""
	if x.Response != nil {
		answer = strconv.Itoa(x.Response.Status) + x.LastFailed()
	}
	reason := answer
	if x.Error != nil && (answer == "" || x.Outcome == client.Unknown) {
		reason = x.Error.Code
		if x.Error.Detail != "" {
			reason += ": " + x.Error.Detail
		}
	}
	switch {
	case x.SupersededBy != "":
		return "replaced by a newer event"
	case x.Status == client.Aborted:
		return "cancelled by " + x.AbortedBy + ": " + x.AbortReason
	case x.RequestKept:
		return "dead letter, " + tries(x.Tries, x)
	case x.Status == client.Failed && x.Outcome == client.Unknown:
		return "outcome unknown: " + reason
	case x.Status == client.Failed && x.Outcome == client.NotExecuted:
		return "not sent: " + reason
	}
	return reason
}

// tries says how often a parked event was tried, and what came of the last try.
func tries(n int, x *client.Execution) string {
	last := ""
	switch {
	case len(x.FailedAnswers) > 0:
		last = strconv.Itoa(x.FailedAnswers[len(x.FailedAnswers)-1].Status) + x.LastFailed()
	case x.Parked != nil:
		last = evidence(x.Parked.LastEvidence)
	case x.Error != nil && x.Error.Detail != "":
		last = x.Error.Detail
	case x.Response != nil:
		last = strconv.Itoa(x.Response.Status)
	}
	text := story.Count(n, "try", "tries")
	if last != "" {
		text += ", last " + last
	}
	return text
}

// refused says how the newest delivery of an event was answered, and which event had the lock.
func refused(x *client.Execution) string {
	if x.Arrivals == nil || len(x.Arrivals.Newest) == 0 {
		return ""
	}
	a := &x.Arrivals.Newest[0]
	text := fmt.Sprintf("%d %s", a.Status, decided(a))
	if b := a.Behind; b != nil && b.EventID != "" {
		text += ", busy with " + b.EventID
		if lasted := took(b.StartedAt.Time, b.FinishedAt.Time); lasted != "" {
			text += " (" + lasted + ")"
		}
	}
	return text
}
