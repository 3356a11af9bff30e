package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"time"
)

// Status is the state of an execution. It begins as PENDING (it waits for a lock) or RUNNING, and
// ends as SUCCESS, FAILED or ABORTED; CANCEL_REQUESTED comes before an end. The first end never
// changes. Two statuses are of an event that has no execution: REFUSED if every delivery of it was
// refused, and RELEASED if a person removed its record and it has not run again.
type Status string

// The statuses of executions, and of events without one; see Status.
const (
	Pending         Status = "PENDING"
	Running         Status = "RUNNING"
	CancelRequested Status = "CANCEL_REQUESTED"
	Success         Status = "SUCCESS"
	Failed          Status = "FAILED"  // the service answered with a failure, or there was an error
	Aborted         Status = "ABORTED" // a person or a policy decided that
	Refused         Status = "REFUSED"
	Released        Status = "RELEASED"
)

// Statuses are all statuses, in the order of the life of an execution. Treat it as constant.
var Statuses = []Status{Pending, Running, CancelRequested, Success, Failed, Aborted, Refused, Released}

// Terminal reports whether an execution of this status has ended.
func (s Status) Terminal() bool { return s == Success || s == Failed || s == Aborted }

// Outcome is what is known of the effect of an execution. It is absent until the execution ends.
type Outcome string

// The outcomes.
const (
	Executed    Outcome = "executed"     // a whole answer came
	NotExecuted Outcome = "not_executed" // provably nothing reached the upstream
	Unknown     Outcome = "unknown"      // it may have taken effect, wholly or in part
)

// The values of Execution.RequestStored.
const (
	StoredYes     = "yes"
	StoredNo      = "no"
	StoredUnknown = "unknown" // the request store does not answer
)

// Execution is one attempt to run an event. Of the attempts before it, there is what an Attempt
// says. An event of status REFUSED or RELEASED has no execution: its executionId is empty, and
// startedAt of a REFUSED one is when it first arrived.
type Execution struct {
	ExecutionID    string `json:"executionId"`
	Workflow       string `json:"workflow"`
	Route          string `json:"route"` // empty for a lock of the lock API
	IdempotencyKey string `json:"idempotencyKey"`
	// The sender's ID of the event. Absent if the fingerprint is the key.
	EventID string `json:"eventId,omitempty"`
	// Other names that find the event. Absent if it has none.
	Labels      map[string]string `json:"labels,omitempty"`
	Fingerprint string            `json:"fingerprint,omitempty"` // absent for a lock of the lock API
	Status      Status            `json:"status"`
	Outcome     Outcome           `json:"outcome,omitempty"` // what is known of the effect; absent before the end
	Token       int64             `json:"token,omitempty"`   // the fencing token; absent while it waits
	Holder      string            `json:"holder,omitempty"`
	Slots       []OwnSlot         `json:"slots,omitempty"`   // the slots of limits that it has, or had
	Attempt     int               `json:"attempt,omitempty"` // which execution of the event it is: 1 is the first
	StartedAt   Time              `json:"startedAt"`
	FinishedAt  Time              `json:"finishedAt,omitzero"` // absent before the end
	Error       *Failure          `json:"error,omitempty"`     // of FAILED alone
	// When the cancel was asked for. Of ABORTED and CANCEL_REQUESTED alone, as abortedBy and
	// abortReason.
	AbortedAt Time `json:"abortedAt,omitzero"`
	// The name of the token. policy: max_duration ended it, or a newer event replaced it.
	AbortedBy   string `json:"abortedBy,omitempty"`
	AbortReason string `json:"abortReason,omitempty"`
	// The event was cancelled for good, and never runs again. Absent otherwise.
	Final bool `json:"final,omitempty"`
	// Of ABORTED: the newer execution because of which this one did not run.
	SupersededBy string    `json:"supersededBy,omitempty"`
	Order        *Order    `json:"order,omitempty"`
	Latest       *Latest   `json:"latest,omitempty"`
	Steps        []Step    `json:"steps"`
	Response     *Response `json:"response,omitempty"`
	// How many duplicates were answered without running. It may be a second old.
	Duplicates int64   `json:"duplicates"`
	TraceID    string  `json:"traceId,omitempty"`
	Parked     *Parked `json:"parked,omitempty"`
	// Of an execution that runs: its lock outlives the answer of its delivery, or is of the lock
	// API.
	Held bool `json:"held,omitempty"`
	// Of an execution that has ended: its request is stored, and it can be run again. Absent
	// otherwise.
	RequestKept bool `json:"requestKept,omitempty"`
	// Of an execution that was parked and has ended: how often the service was called.
	Tries int `json:"tries,omitempty"`
	// Of an execution that was parked and has ended: why it was parked.
	ParkedOn string `json:"parkedOn,omitempty"`
	// All executions of the event, the oldest first. Absent in lists, and if there is only this
	// one.
	Attempts []Attempt `json:"attempts,omitempty"`
	Arrivals *Arrivals `json:"arrivals,omitempty"`
	// The newest answers by which tries of a parked event failed, the oldest first.
	FailedAnswers []FailedAnswer `json:"failedAnswers,omitempty"`
	Asked         *Asked         `json:"asked,omitempty"`
	// When its end was recorded, if that was later than the end: by the replica that had run it and
	// was frozen meanwhile, or by another one, from the file of a replica that died. Absent
	// otherwise.
	ProvenAt Time `json:"provenAt,omitzero"`
	// Whether its request is in the request store, if its route keeps requests (requests.keep).
	// Absent if it does not, and in lists.
	RequestStored string `json:"requestStored,omitempty" jsonschema:"enum=yes,enum=no,enum=unknown"`
	// When the event was found to be possibly lost: it was refused, and did not come again in time.
	// Absent if it was not, and if it has come or run since.
	LostAt   Time               `json:"lostAt,omitzero"`
	Released *ReleasedExecution `json:"released,omitempty"`

	raw
}

// Failure says why an execution FAILED.
type Failure struct {
	Code   string `json:"code" jsonschema:"maxLength=256"`
	Detail string `json:"detail,omitempty" jsonschema:"maxLength=1024"`
}

// Order is the position of an event among those of its scope. It is absent if the route has no
// order, or if the position could not be read.
type Order struct {
	Scope    string `json:"scope,omitempty"` // absent if its workflow is the scope
	Position string `json:"position"`        // a number or a time, as the sender wrote it
	// How much older it was than the newest event that had gone through, when it could have run: a
	// duration (37s), or a number. Absent if it was not older.
	Stale  string `json:"stale,omitempty"`
	Newest string `json:"newest,omitempty"` // the execution of that newest event
}

// Latest is of an execution that waits under lock.strategy latest, which a newer event would
// replace.
type Latest struct {
	Since Time `json:"since"` // when the first of the events came that replaced each other
	// How many events did not run because of this one. Absent if none.
	Replaced int `json:"replaced,omitempty"`
	// Before then it does not run, because a newer event may come (lock.quiet). Absent if it need
	// not wait for that.
	NotBefore Time `json:"notBefore,omitzero"`
}

// Response is the service's answer in short. It is absent if no whole answer came.
type Response struct {
	Status int   `json:"status"`
	Bytes  int64 `json:"bytes"` // the length of the body that the first sender got
	// Duplicates get header and body; after `idempotency.replay_retention`, the status alone.
	Kept bool `json:"kept"`
	// Half of the SHA-256 of the body. It is there if `idempotency.replay_retention` bounds how
	// long the body is kept.
	Hash string `json:"hash,omitempty"`
}

// Step is a step of the work that the service has reported by guard.
type Step struct {
	Name string `json:"name"`
	// skipped: the execution was cancelled before the step began.
	Status     string `json:"status" jsonschema:"enum=running,enum=done,enum=skipped"`
	StartedAt  Time   `json:"startedAt,omitzero"`
	FinishedAt Time   `json:"finishedAt,omitzero"`
}

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (e *Execution) UnmarshalJSON(text []byte) error {
	type plain Execution
	err := e.read(text, (*plain)(e))
	if err == nil && e.ExecutionID == "" && e.Status != Refused && e.Status != Released {
		err = errors.New("an execution has an executionId")
	}
	return err
}

// ExecutionPage is a part of the list of executions. It may hold fewer items than its limit, even
// none, and not be the last one: only an empty nextCursor says that it is.
type ExecutionPage struct {
	Executions []Execution `json:"executions"`
	NextCursor string      `json:"nextCursor"`
}

// Executions returns all executions from q.Cursor on, in the order of ExecutionPage, page after
// page. The sequence ends after an error. An execution that moves in the list meanwhile may come
// twice.
func (c *Client) Executions(ctx context.Context, q ExecutionQuery) iter.Seq2[*Execution, error] {
	return eachOfPages(&q.Cursor, func() (*ExecutionPage, error) { return c.ExecutionPage(ctx, q) },
		func(p *ExecutionPage) ([]Execution, string) { return p.Executions, p.NextCursor })
}

// executionPath returns the path of an execution.
func executionPath(id, action string) string {
	path := "/v1/executions/" + pathSegment(id)
	if action != "" {
		path += "/" + action
	}
	return path
}

// Execution returns an execution as it is now. A *Problem with CodeExecutionNotFound means that
// there is none, or none any more.
func (c *Client) Execution(ctx context.Context, id string) (*Execution, error) {
	return c.AwaitExecution(ctx, id, 0)
}

// AwaitExecution returns an execution as soon as it changes, at once if it has ended, and after
// wait as it is then. The server waits for at most 5 minutes.
func (c *Client) AwaitExecution(ctx context.Context, id string, wait time.Duration) (*Execution, error) {
	q := queryOfPairs()
	if wait > 0 {
		q.Set("wait", wait.String())
	}
	return ask[Execution](ctx, c,
		call{method: http.MethodGet, path: executionPath(id, ""), query: q, wait: wait, has: "executionId"})
}

// Cancelled is the answer to a cancel: the execution as it is now.
type Cancelled struct {
	Execution
	Success bool   `json:"success"`
	Message string `json:"message"`
	Before  bool   `json:"-"` // It had been cancelled before, and this call changed nothing.
}

// UnmarshalJSON reads the execution and what is beside it.
func (r *Cancelled) UnmarshalJSON(text []byte) error {
	var beside struct {
		Success bool   `json:"success"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(text, &beside); err != nil {
		return err
	}
	r.Success, r.Message = beside.Success, beside.Message
	return r.Execution.UnmarshalJSON(text)
}

// Cancel stops an execution; its record shows the reason. One that waits is ABORTED at once. The
// call to the service of one that runs is closed. One that is held hears of it at its next guard or
// heartbeat. With final the event never runs again: its duplicates are refused. A *Problem with
// CodeAlreadyFinished means that the execution had ended.
func (c *Client) Cancel(ctx context.Context, id, reason string, final bool) (*Cancelled, error) {
	return c.CancelIf(ctx, id, "", reason, final)
}

// CancelIf is Cancel for an execution that still has the status only: Pending, Running or
// CancelRequested; "" is any. Otherwise it does nothing, and returns a *Problem with
// CodeStatusChanged.
func (c *Client) CancelIf(ctx context.Context, id string, only Status, reason string, final bool) (*Cancelled, error) {
	body := struct {
		Reason string `json:"reason"`
		Final  bool   `json:"final"`
		Only   Status `json:"ifStatus,omitempty"`
	}{reason, final, only}
	cancelled := new(Cancelled)
	status, err := c.sendOnce(ctx,
		call{method: http.MethodPost, path: executionPath(id, "cancel"), body: body, into: cancelled,
			has: "executionId"})
	if err != nil {
		return nil, err
	}
	cancelled.Before = status == http.StatusOK
	return cancelled, nil
}

// Forget removes the record of an execution that has ended, and returns the execution: its event
// can run again, on every replica within 2 s. A *Problem with CodeInFlight means that it has not
// ended, one with CodeSuperseded that the event has run again since.
func (c *Client) Forget(ctx context.Context, id, reason string) (*Execution, error) {
	return ask[Execution](ctx, c,
		call{method: http.MethodDelete, path: executionPath(id, ""), query: queryOfPairs("reason", reason),
			has: "executionId"})
}

// Erase is Forget, and also deletes the stored requests of all attempts of the event, and how it
// arrived.
func (c *Client) Erase(ctx context.Context, id, reason string) (*Execution, error) {
	return ask[Execution](ctx, c, call{
		method: http.MethodDelete, path: executionPath(id, ""), query: queryOfPairs("reason", reason, "erase", "true"),
		has: "executionId",
	})
}
