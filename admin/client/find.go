package client

import (
	"context"
	"net/http"
	"regexp"
	"strings"
)

// ExecutionQuery selects executions that match all fields that are set. The zero value selects all
// of them.
type ExecutionQuery struct {
	Workflow string // a name, or a pattern, in which * stands for any characters; "" = any
	Prefix   string // the beginning of the workflow
	// the beginning of the workflow, of the event ID, or of a part of that, in any case; or a
	// label, its value, or a trace ID
	Text    string
	Route   string // "" = any
	Status  Status // "" = any
	Outcome Outcome
	// events with a delivery of this decision between Since and Until; those without an execution
	// are REFUSED
	Decision string
	// a time (RFC 3339), or how long ago ("10m"); of its end, or of its start if it has not ended;
	// "" = unbounded
	Since   string
	Until   string
	EventID string // the sender's ID of the event; the fingerprint if the payload is the event
	Key     string // the idempotency key, or its first half
	ID      string // the beginning of its ID, or of that of an earlier attempt
	TraceID string
	Label   string // NAME=VALUE, or the value of a label
	// Parked: only executions whose request is kept, those first that have waited longest. Status
	// and Decision cannot be combined with it.
	Parked bool
	State  ParkState // with Parked; "" = any
	// Lost: only events that were refused and did not come again in time, by when that was found.
	Lost   bool
	Unseen string // leaves out what a person has looked at as that kind of concern; "" = nothing

	Limit  int    // at most so many on a page; 0 = the server's choice
	Cursor string // NextCursor of the page before; "" = from the beginning
}

// ExecutionPage gets one page.
func (c *Client) ExecutionPage(ctx context.Context, q ExecutionQuery) (*ExecutionPage, error) {
	parked := ""
	if q.Parked {
		parked = "true"
	}
	lost := ""
	if q.Lost {
		lost = "true"
	}
	return ask[ExecutionPage](ctx, c, call{
		method: http.MethodGet, path: "/v1/executions", has: "executions",
		query: query(
			"workflow", q.Workflow, "prefix", q.Prefix, "text", q.Text, "route", q.Route, "status", string(q.Status),
			"outcome", string(q.Outcome), "decision", q.Decision,
			"since", q.Since, "until", q.Until, "event", q.EventID, "key", q.Key, "id", q.ID, "trace", q.TraceID,
			"label", q.Label,
			"parked", parked, "state", string(q.State), "lost", lost, "unseen", q.Unseen, "limit", count(q.Limit),
			"cursor", q.Cursor,
		),
	})
}

var hexKey = regexp.MustCompile(`^[0-9a-f]{16}(-[0-9a-f]{32})?$`)

// Guesses returns the searches for a text of unknown kind: an event ID, its beginning or that of a
// part of it, an execution ID or its beginning, an idempotency key or its first half, a trace ID, a
// workflow or its beginning, a label as NAME:VALUE or its value. Whole IDs and keys come first:
// such a search reads few records. The last one takes the rest.
func Guesses(text string) []ExecutionQuery {
	text = strings.TrimSuffix(text, "…") // as the page cuts it
	var all []ExecutionQuery
	if strings.HasPrefix(text, "exec_") {
		all = append(all, ExecutionQuery{ID: text})
	}
	if hexKey.MatchString(text) {
		all = append(all, ExecutionQuery{Key: text})
	}
	return append(all, ExecutionQuery{EventID: text}, ExecutionQuery{Text: text})
}
