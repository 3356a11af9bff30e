package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"time"
)

// Parked is of an execution whose sender was told that the event is accepted, and that has not
// ended.
type Parked struct {
	Since Time `json:"since"`
	// Why it was parked.
	On string `json:"on" jsonschema:"enum=locked,enum=slow,enum=unreachable,enum=unknown,enum=failed,enum=paused,enum=sender_limit,enum=again"`
	// How often the service was called, with the call before it was parked.
	Tries    int `json:"tries"`
	Failures int `json:"failures"` // how many of the tries count against park.attempts
	// When it is tried next. Absent if that is now, after those before it in its queue, or when a
	// person says so.
	NextAttempt  Time      `json:"nextAttempt,omitzero"`
	LastEvidence *Evidence `json:"lastEvidence,omitempty"`
	Blocked      string    `json:"blocked,omitempty"` // Why it waits for a person. Absent if it does not.
}

// Evidence is what is known of the latest try that ended.
type Evidence struct {
	Outcome Outcome `json:"outcome"`          // what is known of the effect
	Status  int     `json:"status,omitempty"` // the status of the service's answer; absent if none came
	Code    string  `json:"code,omitempty"`
	Detail  string  `json:"detail,omitempty"`
	At      Time    `json:"at"`
}

// ParkState is the state of a stored request: parked if its execution waits or is tried, blocked if
// that waits for a person, and dead_letter if it has ended and can be run again.
type ParkState string

// The states of a stored request.
const (
	ParkWaiting    ParkState = "parked"      // its execution waits, or is tried
	ParkBlocked    ParkState = "blocked"     // its execution needs a decision
	ParkDeadLetter ParkState = "dead_letter" // its execution has ended, and can be run again
)

// ParkedAction is an action on a parked execution or a dead letter.
type ParkedAction string

// The actions on parked executions and dead letters.
const (
	// Run lets a parked execution be tried now, also if it needs a decision.
	Run ParkedAction = "run"
	// Skip ends a parked execution as a dead letter, and the next one of its queue runs.
	Skip ParkedAction = "skip"
	// Rerun lets the event of a dead letter run again: a new execution, the last of its queue.
	Rerun ParkedAction = "rerun"
)

// Act runs an action on an execution. The audit log shows the reason, and after Skip the record
// does, too. It returns the execution as it is then, and after Rerun the new one. A *Problem with
// CodeNotParked, CodeRequestNotKept, CodeAlreadyFinished or CodeInFlight says why it cannot be
// done.
func (c *Client) Act(ctx context.Context, action ParkedAction, id, reason string) (*Execution, error) {
	return c.sendAction(ctx, id, string(action), map[string]any{"reason": reason})
}

// RunAgain lets an event run again that has ended, also one that was settled. It runs as the next
// attempt, the last of its queue, and RunAgain returns that execution. The route must keep the
// requests of all events. The problems are those of Act.
func (c *Client) RunAgain(ctx context.Context, id, reason string) (*Execution, error) {
	return c.sendAction(ctx, id, string(Rerun), map[string]any{"reason": reason, "again": true})
}

func (c *Client) sendAction(ctx context.Context, id, action string, body map[string]any) (*Execution, error) {
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

// BulkResult is the answer to one request of a Bulk.
type BulkResult struct {
	// how many executions match that were not acted on before this request
	Matched    int        `json:"matched"`
	Done       int        `json:"done"`
	Refused    int        `json:"refused"`
	Executions []BulkItem `json:"executions"`
	NextCursor string     `json:"nextCursor"` // empty if there are no more

	raw
}

// BulkItem is one execution that a Bulk acted on, or would act on.
type BulkItem struct {
	ExecutionID string    `json:"executionId"`
	Workflow    string    `json:"workflow"`
	Route       string    `json:"route"`
	State       ParkState `json:"state"`
	Since       Time      `json:"since"` // when it came into its state
	// would: of a dry run.
	Result string `json:"result" jsonschema:"enum=would,enum=done,enum=refused"`
	Code   string `json:"code,omitempty"`   // why it was refused
	Status Status `json:"status,omitempty"` // its status after that
	// The execution that rerun made.
	NewID string `json:"newId,omitempty"`
	// Why it was refused, for people.
	Message string `json:"message,omitempty"`
}

// bulkTime is what the server takes at most for one request.
const bulkTime = 30 * time.Second

// Bulk runs an action on all executions that match, in the order of each queue, and returns the
// answer to each request that this takes. The sequence ends after an error; a Bulk with the last
// NextCursor goes on there.
func (c *Client) Bulk(ctx context.Context, action ParkedAction, b Bulk) iter.Seq2[*BulkResult, error] {
	return eachPage(&b.Cursor, func() (*BulkResult, error) {
		return ask[BulkResult](ctx, c, call{method: http.MethodPost, path: "/v1/executions/" + string(action), body: b,
			has: "matched", wait: bulkTime})
	}, func(r *BulkResult) string { return r.NextCursor })
}

// Request writes the stored request of an execution to a writer as it came: head and body, the body
// without its transfer coding. The token needs the scope bodies. A *Problem with CodeRequestNotKept
// means that it is not stored.
func (c *Client) Request(ctx context.Context, id string, to io.Writer) error {
	return c.RequestFor(ctx, id, "", to)
}

// RequestFor is Request with a reason, which the audit log shows.
func (c *Client) RequestFor(ctx context.Context, id, reason string, to io.Writer) error {
	return c.streamTo(ctx, call{path: executionPath(id, "request"), query: queryOfPairs("reason", reason)},
		"message/http", to)
}
