package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"time"
)

// Parked says of an execution that its sender was told that the event is accepted, and that it
// has not ended.
type Parked struct {
	Since Time `json:"since"`
	// What it was parked for.
	On string `json:"on" jsonschema:"enum=locked,enum=slow,enum=unreachable,enum=unknown,enum=failed,enum=paused,enum=sender_limit,enum=again"`
	// How often the upstream was called, the call before it was parked included.
	Tries    int `json:"tries"`
	Failures int `json:"failures"` // those of them that count against park.attempts
	// Absent: now, or after those before it in its line, or not before a person says so.
	NextAttempt  Time      `json:"nextAttempt,omitzero"`
	LastEvidence *Evidence `json:"lastEvidence,omitempty"`
	Blocked      string    `json:"blocked,omitempty"` // why it waits for a person. Absent: it does not.
}

// Evidence is what is known of the latest try that ended.
type Evidence struct {
	Outcome Outcome `json:"outcome"`          // what is known of the effect. Absent before the end.
	Status  int     `json:"status,omitempty"` // of the upstream's answer; absent where none came
	Code    string  `json:"code,omitempty"`
	Detail  string  `json:"detail,omitempty"`
	At      Time    `json:"at"`
}

// ParkState is the state of a stored request: its execution waits or is tried, waits for a
// person, or has ended.
type ParkState string

// The states of a stored request.
const (
	ParkWaiting    ParkState = "parked"      // its execution waits, or is tried
	ParkBlocked    ParkState = "blocked"     // its execution needs a decision
	ParkDeadLetter ParkState = "dead_letter" // its execution has ended, and can be run again
)

// ParkedAction is an action on a parked execution or a dead letter.
type ParkedAction string

// The actions.
const (
	// Run lets a parked execution be tried now, also if it needs a decision.
	Run ParkedAction = "run"
	// Skip ends a parked execution as a dead letter, and the next one of its queue runs.
	Skip ParkedAction = "skip"
	// Rerun lets the event of a dead letter run again: a new execution, the last of its queue.
	Rerun ParkedAction = "rerun"
)

// Act runs an action, with a reason that the audit log will show, and with Skip the record. It
// returns the execution after that; with Rerun the new one. A *Problem with CodeNotParked,
// CodeRequestNotKept, CodeAlreadyFinished or CodeInFlight says why it cannot be done.
func (c *Client) Act(ctx context.Context, action ParkedAction, id, reason string) (*Execution, error) {
	return c.act(ctx, id, string(action), map[string]any{"reason": reason})
}

// RunAgain lets an event run again that has ended, also one that was settled: as the next attempt
// of the same event, the last of its queue. Its route has to keep the requests of all events. It
// returns the new execution, and problems as Act does.
func (c *Client) RunAgain(ctx context.Context, id, reason string) (*Execution, error) {
	return c.act(ctx, id, string(Rerun), map[string]any{"reason": reason, "again": true})
}

func (c *Client) act(ctx context.Context, id, action string, body map[string]any) (*Execution, error) {
	return ask[Execution](ctx, c, call{method: http.MethodPost, path: executionPath(id, action), body: body,
		has: "executionId"})
}

// Bulk is a request to act on many executions. A job (NewJob) does the same without its client.
type Bulk struct {
	// Reason goes into the audit log, and with skip into the records. Only a dry run needs none.
	Reason string `json:"reason,omitempty"`
	// Filter has at least one member. An execution must match all that are given.
	Filter BulkFilter `json:"filter"`
	// DryRun does nothing, and returns what would be done.
	DryRun bool `json:"dryRun,omitempty"`
	// Rate is how many executions are acted on in a second, at most.
	Rate int `json:"rate,omitempty"`
	// Limit is how many executions one request acts on at most. It ends after 20 s in any case.
	Limit int `json:"limit,omitempty"`
	// Cursor is nextCursor of the request before. Absent: from the beginning.
	Cursor string `json:"cursor,omitempty"`
}

// BulkFilter selects executions that match all fields that are set.
type BulkFilter struct {
	// Workflow is a name, or a pattern, in which * stands for any characters.
	Workflow string `json:"workflow,omitempty"`
	Route    string `json:"route,omitempty"` // the name of a route
	// State is that of the stored request: rerun is for dead letters, run and skip for the others.
	State ParkState `json:"state,omitempty"`
	// Since selects what ended since then, or began if it has not ended: a time (RFC 3339), or how
	// long ago.
	Since string `json:"since,omitempty"`
	// Until selects what ended until then, or began if it has not ended: a time (RFC 3339), or how
	// long ago.
	Until string `json:"until,omitempty"`
	// Label is NAME=VALUE, or the value alone.
	Label string `json:"label,omitempty"`
	// Status is how the executions ended. It needs `again`.
	Status Status `json:"status,omitempty"`
}

// BulkResult is the result of one request of a bulk.
type BulkResult struct {
	Matched    int        `json:"matched"` // how many there are, with those that are left for the next request
	Done       int        `json:"done"`
	Refused    int        `json:"refused"`
	Executions []BulkItem `json:"executions"`
	NextCursor string     `json:"nextCursor"` // empty: there are no more

	raw
}

// BulkItem is one execution of a bulk.
type BulkItem struct {
	ExecutionID string    `json:"executionId"`
	Workflow    string    `json:"workflow"`
	Route       string    `json:"route"`
	State       ParkState `json:"state"`
	Since       Time      `json:"since"`
	// would: of a dry run.
	Result  string `json:"result" jsonschema:"enum=would,enum=done,enum=refused"`
	Code    string `json:"code,omitempty"`    // why it was refused
	Status  Status `json:"status,omitempty"`  // as it is after that
	NewID   string `json:"newId,omitempty"`   // of the execution that rerun made
	Message string `json:"message,omitempty"` // for people, where it was refused
}

// bulkTime is what the server takes at most for one request.
const bulkTime = 30 * time.Second

// Bulk runs an action on all executions that match, in the order of each queue. It yields the
// result of each request. After an error it ends; the cursor of the result before it goes on.
func (c *Client) Bulk(ctx context.Context, action ParkedAction, b Bulk) iter.Seq2[*BulkResult, error] {
	return pages(&b.Cursor, func() (*BulkResult, error) {
		return ask[BulkResult](ctx, c, call{method: http.MethodPost, path: "/v1/executions/" + string(action), body: b,
			has: "matched", wait: bulkTime})
	}, func(r *BulkResult) string { return r.NextCursor })
}

// Request writes the request of an execution as it came: head and body, the body without its
// transfer coding. It needs a token with the scope bodies. A *Problem with CodeRequestNotKept means
// that it is not stored.
func (c *Client) Request(ctx context.Context, id string, to io.Writer) error {
	return c.RequestFor(ctx, id, "", to)
}

// RequestFor is Request with a reason, which the audit log will show.
func (c *Client) RequestFor(ctx context.Context, id, reason string, to io.Writer) error {
	return c.stream(ctx, call{path: executionPath(id, "request"), query: query("reason", reason)}, "message/http", to)
}
