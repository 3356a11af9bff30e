package client

import (
	"context"
	"regexp"
	"strings"
)

// ExecutionQuery selects executions that match all fields that are set. The zero value selects all
// of them.
type ExecutionQuery struct {
	// Workflow is a name, or a pattern, in which * stands for any characters.
	Workflow string `query:"workflow"`
	// Prefix selects the workflows that begin with it.
	Prefix string `query:"prefix"`
	// Text is the beginning of the workflow, of the event ID, or of a part of that between slashes,
	// in any case; or a whole label (NAME=VALUE or NAME:VALUE), the whole value of one, or a trace
	// ID.
	Text    string  `query:"text"`
	Route   string  `query:"route"` // the name of a route
	Status  Status  `query:"status"`
	Outcome Outcome `query:"outcome"`
	// Decision selects the events of which a delivery was answered with this decision, as far as
	// arrivals are kept, and has their arrivals in the list. Those without an execution are
	// REFUSED.
	Decision string `query:"decision"`
	// Since selects what ended since then, or began if it has not ended; with decision, what
	// arrived since then. It is a time (RFC 3339), or how long ago (10m).
	Since string `query:"since"`
	// Until selects what ended until then, or began if it has not ended; with decision, what
	// arrived until then. It is a time (RFC 3339), or how long ago (10m).
	Until string `query:"until"`
	// EventID is the sender's ID of the event, or its fingerprint where the payload is the event.
	EventID string `query:"event"`
	Key     string `query:"key"` // the idempotency key, or its first half
	// ID is the beginning of an execution ID: of the latest execution of an event, or of an earlier
	// attempt.
	ID string `query:"id"`
	// TraceID is the ID of the trace of an execution, of an earlier attempt, or of an arrival.
	TraceID string `query:"trace"`
	// Label is NAME=VALUE, or the value of a label.
	Label string `query:"label"`
	// Parked selects executions whose request is stored; those that have waited longest are first.
	// Status and decision cannot be given with it.
	Parked bool `query:"parked"`
	// State selects the stored requests in this state. It needs parked.
	State ParkState `query:"state"`
	// Lost selects events that are possibly lost: they were refused and did not come again in time.
	// Since and until bound when that was found. Status, outcome, decision and parked cannot be
	// given with it.
	Lost bool `query:"lost"`
	// Unseen leaves out what a person has marked as looked at under this kind of concern.
	Unseen string `query:"unseen"`

	Limit  int    `query:"limit"`  // the most items of a page
	Cursor string `query:"cursor"` // nextCursor of the page before; absent: from the beginning
}

// ExecutionPage returns one page of the executions, the newest first: those that wait, then those
// that run, then those that have ended.
func (c *Client) ExecutionPage(ctx context.Context, q ExecutionQuery) (*ExecutionPage, error) {
	return get[ExecutionPage](ctx, c, "/v1/executions", "executions", queryOf(q))
}

var hexKey = regexp.MustCompile(`^[0-9a-f]{16}(-[0-9a-f]{32})?$`)

// Guesses returns the searches that find a text of which it is not known what it is: an execution
// ID or its beginning, an idempotency key or its first half, an event ID, or whatever
// ExecutionQuery.Text finds. Make them one after the other until one finds something: those that
// read the fewest records come first.
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
