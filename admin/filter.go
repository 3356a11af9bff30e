package admin

import (
	"fmt"
	"slices"
	"strings"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// executionFilters returns the filters of a list of executions.
func executionFilters() []string {
	return []string{
		"workflow", "text", "prefix", "route", "status", "outcome", "decision", "since", "until", "event", "key", "id",
		"trace", "label", "parked", "state", "lost", "unseen", "limit", "cursor",
	}
}

// executionQuery reads the query of a list of executions.
func (c *call) executionQuery() (q idem.ExecutionQuery, err error) {
	q = idem.ExecutionQuery{
		Workflow: naming.SpelledPattern(c.query("workflow")), Prefix: c.query("prefix"),
		Text: naming.Spelled(c.query("text")), Route: c.query("route"), EventID: naming.Spelled(c.query("event")),
		Key:       c.query("key"),
		Beginning: c.query("id"), TraceID: c.query("trace"),
	}
	if q.Label, err = labelOf(c.query("label")); err != nil {
		return q, err
	}
	if q.PageSize, err = c.limit(); err != nil {
		return q, err
	}
	statuses := []idem.Status{idem.Pending, idem.Running, idem.CancelRequested, idem.Success, idem.Failed, idem.Aborted,
		idem.Refused, idem.Released}
	if q.Status, err = oneOf(c, "status", statuses); err != nil {
		return q, err
	}
	if q.Outcome, err = oneOf(c, "outcome", []idem.Outcome{idem.Executed, idem.NotExecuted, idem.Unknown}); err != nil {
		return q, err
	}
	var decisions []idem.Decision
	for _, row := range idem.Decisions() {
		decisions = append(decisions, row.Decision)
	}
	if q.Decision, err = oneOf(c, "decision", decisions); err != nil {
		return q, err
	}
	switch lost := c.query("lost"); {
	case lost != "" && lost != "true":
		return q, refuse("bad_request", "lost="+quote(lost)+": give true; without it all executions are listed")
	case lost != "" && (q.Status != "" || q.Outcome != "" || q.Decision != "" || c.query("parked") != ""):
		return q, refuse("bad_request", "lost=true is for events that were refused and did not come again: leave "+
			"out status, outcome, decision and parked")
	default:
		q.Lost = lost != ""
	}
	if q.Since, q.Until, err = c.period(c.query("since"), c.query("until")); err != nil {
		return q, err
	}
	q.Cursor, err = c.caller.openCursor(c.query("cursor"))
	return q, err
}

// labelOf reads a label of a filter; "" is none.
func labelOf(text string) (l idem.Label, err error) {
	if text == "" {
		return l, nil
	}
	if l = idem.ParseLabel(text); l.Value == "" {
		return l, refuse("bad_request", "label="+quote(text)+": give NAME=VALUE, or a value")
	}
	if name, value, ok := strings.Cut(l.Value, ":"); ok && l.Name == "" {
		return l, refuse("bad_request", "label="+quote(text)+": give NAME=VALUE, such as "+quote(name+"="+value)+
			"; a value that has a colon needs its name")
	}
	l.Value = naming.SpelledLabel(l.Value)
	return l, nil
}

// oneOf reads a query parameter that is one of some words, or not given.
func oneOf[T ~string](c *call, name string, words []T) (T, error) {
	text := T(c.query(name))
	if text == "" || slices.Contains(words, text) {
		return text, nil
	}
	return "", refuse("bad_request", fmt.Sprintf("%s=%s: give one of %s", name, quote(string(text)),
		strings.Trim(fmt.Sprint(words), "[]")))
}
