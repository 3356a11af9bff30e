package admin

import (
	"fmt"
	"slices"
	"strings"

	"hooklock/admin/client"
	"hooklock/idem"
	"hooklock/idem/naming"
)

// allDecisions are all decisions about a delivery.
func allDecisions() (all []idem.Decision) {
	for _, row := range idem.Decisions() {
		all = append(all, row.Decision)
	}
	return all
}

// executionQuery reads the query of a list of executions.
func (c *call) executionQuery() (q idem.ExecutionQuery, err error) {
	q = idem.ExecutionQuery{
		Workflow: naming.SpelledPattern(c.query("workflow")), Prefix: c.query("prefix"),
		SearchText: naming.Spelled(c.query("text")), Route: c.query("route"), EventID: naming.Spelled(c.query("event")),
		Key:      c.query("key"),
		IDPrefix: c.query("id"), TraceID: c.query("trace"),
	}
	if q.Label, err = labelOf(c.query("label")); err != nil {
		return q, err
	}
	if q.PageSize, err = c.readPageSize(); err != nil {
		return q, err
	}
	status, err := oneOf(c, "status", client.Statuses)
	if err != nil {
		return q, err
	}
	q.Status = idem.Status(status)
	if q.Outcome, err = oneOf(c, "outcome", []idem.Outcome{idem.Executed, idem.NotExecuted, idem.Unknown}); err != nil {
		return q, err
	}
	if q.Decision, err = oneOf(c, "decision", allDecisions()); err != nil {
		return q, err
	}
	switch lost := c.query("lost"); {
	case lost != "" && lost != "true":
		return q, refuse("bad_request", "lost="+quoteText(lost)+": give true; without it all executions are listed")
	case lost != "" && (q.Status != "" || q.Outcome != "" || q.Decision != "" || c.query("parked") != ""):
		return q, refuse("bad_request", "lost=true is for events that were refused and did not come again: leave "+
			"out status, outcome, decision and parked")
	default:
		q.Lost = lost != ""
	}
	if q.Since, q.Until, err = c.readPeriod(c.query("since"), c.query("until")); err != nil {
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
		return l, refuse("bad_request", "label="+quoteText(text)+": give NAME=VALUE, or a value")
	}
	if name, value, ok := strings.Cut(l.Value, ":"); ok && l.Name == "" {
		return l, refuse("bad_request", "label="+quoteText(text)+": give NAME=VALUE, such as "+quoteText(
			name+"="+value)+
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
	return "", refuse("bad_request", fmt.Sprintf("%s=%s: give one of %s", name, quoteText(string(text)),
		strings.Trim(fmt.Sprint(words), "[]")))
}
