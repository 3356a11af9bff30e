package story

import (
	"fmt"
	"strconv"
	"time"

	"hooklock/admin/client"
)

// Short says in a few words what happened to an event, for a row of a list.
func Short(x *client.Execution, now time.Time) string {
	s := Story{Execution: x, Now: now}
	text := s.shortEnd()
	switch p := x.Parked; {
	case x.Status == client.Refused:
		text = s.shortRefusal()
	case x.Status == client.Released && x.Released != nil:
		text = "allowed again by " + x.Released.By + ": " + x.Released.Reason
	case x.Status == client.CancelRequested:
		text = "cancel asked by " + x.AbortedBy + ": " + x.AbortReason
	case x.Held:
		text = "held"
	case p != nil && p.Blocked != "":
		text = "blocked after " + s.shortTries(p.Tries)
	case p != nil && p.Tries > 0:
		text = "accepted, " + s.shortTries(p.Tries)
	case p != nil:
		text = "accepted, waits: " + p.On
	case x.Status == client.Pending:
		text = "waits for its turn"
	case x.Status == client.Running:
		text = "running"
	}
	if p := x.Parked; p != nil && p.Blocked == "" && !p.NextAttempt.IsZero() {
		text += ", next in " + Span(p.NextAttempt.Sub(now))
	}
	if !x.LostAt.IsZero() {
		text += ", and did not come again"
	}
	if x.Attempt > 1 {
		text += ", attempt " + strconv.Itoa(x.Attempt)
	}
	if x.Duplicates > 0 {
		text += ", " + Count(x.Duplicates, "duplicate", "duplicates")
	}
	return text
}

// shortEnd says how an execution ended.
func (s *Story) shortEnd() string {
	reason := ""
	if s.Response != nil {
		reason = strconv.Itoa(s.Response.Status) + s.LastFailed()
	}
	if s.Error != nil && (reason == "" || s.Outcome == client.Unknown) {
		reason = s.Error.Code
		if s.Error.Detail != "" {
			reason += ": " + s.Error.Detail
		}
	}
	switch {
	case s.SupersededBy != "":
		return "replaced by a newer event"
	case s.Status == client.Aborted:
		return "cancelled by " + s.AbortedBy + ": " + s.AbortReason
	case s.RequestKept:
		return "dead letter, " + s.shortTries(s.Tries)
	case s.Status == client.Failed && s.Outcome == client.Unknown:
		return "outcome unknown: " + reason
	case s.Status == client.Failed && s.Outcome == client.NotExecuted:
		return "not sent: " + reason
	}
	return reason
}

// shortTries says how often a parked event was tried, and what the last try came to.
func (s *Story) shortTries(n int) string {
	last := s.lastTry()
	switch {
	case last != "":
	case s.Error != nil && s.Error.Detail != "":
		last = s.Error.Detail
	case s.Response != nil:
		last = strconv.Itoa(s.Response.Status)
	}
	text := Count(n, "try", "tries")
	if last != "" {
		text += ", last " + last
	}
	return text
}

// shortRefusal says how the newest delivery of an event was answered, and which event had the lock.
func (s *Story) shortRefusal() string {
	a := s.lastArrival()
	if a.Decision == "" {
		return ""
	}
	text := fmt.Sprintf("%d %s", a.Status, a.Decision)
	if a.Would != "" {
		text += ", would be " + a.Would
	}
	if b := a.Behind; b != nil && b.EventID != "" {
		text += ", busy with " + b.EventID
		if !b.FinishedAt.IsZero() {
			text += " (" + Span(b.FinishedAt.Sub(b.StartedAt.Time)) + ")"
		}
	}
	return text
}
