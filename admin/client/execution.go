package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"time"
)

// Status is where an execution is in its life: PENDING, RUNNING, then SUCCESS, FAILED or ABORTED, with CANCEL_REQUESTED between an active
// status and an end. The first terminal status stays.
type Status string

// The statuses.
const (
	Pending         Status = "PENDING"
	Running         Status = "RUNNING"
	CancelRequested Status = "CANCEL_REQUESTED"
	Success         Status = "SUCCESS"
	Failed          Status = "FAILED"  // an error of the system or the upstream
	Aborted         Status = "ABORTED" // the decision of an operator or a policy
	// Refused stands for an event that has no execution: each of its deliveries was refused. It has no ExecutionID.
	Refused Status = "REFUSED"
	// Released stands for an event whose record was removed, so that it may run again, and that has not done so yet. It has no ExecutionID.
	Released Status = "RELEASED"
)

// Statuses are all of them, in the order of an execution's life, then Refused and Released. Treat it as constant.
var Statuses = []Status{Pending, Running, CancelRequested, Success, Failed, Aborted, Refused, Released}

// Terminal reports whether s is an end.
func (s Status) Terminal() bool { return s == Success || s == Failed || s == Aborted }

// Outcome is what is known of the effect of an execution; "" while it has not ended.
type Outcome string

// The outcomes.
const (
	Executed    Outcome = "executed"     // a whole answer came
	NotExecuted Outcome = "not_executed" // provably nothing reached the upstream
	Unknown     Outcome = "unknown"      // bytes were sent, and no whole answer came
)

// The values of RequestStored.
const (
	StoredYes     = "yes"
	StoredNo      = "no"
	StoredUnknown = "unknown"
)

// Execution is one attempt to run one delivery. Earlier attempts of an event have only the fields of Attempt.
type Execution struct {
	ExecutionID    string `json:"executionId"`
	Workflow       string `json:"workflow"`
	Route          string `json:"route"` // "" for a lock of the lock API
	IdempotencyKey string `json:"idempotencyKey"`
	EventID        string `json:"eventId,omitempty"` // the sender's ID of the event; "" if its payload is the key
	// Labels are what the event is found by, beside its IDs; nil = it has none.
	Labels       map[string]string `json:"labels,omitempty"`
	Fingerprint  string            `json:"fingerprint,omitempty"` // "" for a lock of the lock API
	Status       Status            `json:"status"`
	Outcome      Outcome           `json:"outcome,omitempty"`
	Token        int64             `json:"token,omitempty"` // the fencing token; 0 while it waits
	Holder       string            `json:"holder,omitempty"`
	Slots        []OwnSlot         `json:"slots,omitempty"`   // of limits; it has them, or had them
	Attempt      int               `json:"attempt,omitempty"` // 1 for the first execution of the event
	StartedAt    Time              `json:"startedAt"`
	FinishedAt   Time              `json:"finishedAt,omitzero"`
	Error        *Failure          `json:"error,omitempty"`    // of FAILED
	AbortedAt    Time              `json:"abortedAt,omitzero"` // this and the next two: of ABORTED, and of CANCEL_REQUESTED as requested
	AbortedBy    string            `json:"abortedBy,omitempty"`
	AbortReason  string            `json:"abortReason,omitempty"`
	Final        bool              `json:"final,omitempty"`        // it was cancelled for good: its event never runs again
	SupersededBy string            `json:"supersededBy,omitempty"` // of ABORTED: the newer execution of its scope because of which it did not run
	Order        *Order            `json:"order,omitempty"`        // its position in its scope; nil = the route does not judge order, or it could not be read
	Latest       *Latest           `json:"latest,omitempty"`       // while it waits under lock.strategy latest; else nil
	Steps        []Step            `json:"steps"`
	Response     *Response         `json:"response,omitempty"` // nil if no whole answer came
	Duplicates   int64             `json:"duplicates"`
	TraceID      string            `json:"traceId,omitempty"`
	Parked       *Parked           `json:"parked,omitempty"`      // nil: it is not parked, or has ended
	RequestKept  bool              `json:"requestKept,omitempty"` // of an ended execution: its request is kept, and it can be run again
	Tries        int               `json:"tries,omitempty"`       // of an ended execution: calls of the upstream while it was parked and before; 0 = it never was
	ParkedOn     string            `json:"parkedOn,omitempty"`    // of an ended execution: what it was parked for; "" = it was not, or an older release wrote it
	Attempts     []Attempt         `json:"attempts,omitempty"`    // all of the event, the oldest first; left out in lists, and if there is only one
	Arrivals     *Arrivals         `json:"arrivals,omitempty"`    // other deliveries of the event; nil = none are kept, or it is from a list without Decision
	// FailedAnswers are the newest answers of the service to failed tries of a parked event, the oldest first.
	FailedAnswers []FailedAnswer `json:"failedAnswers,omitempty"`
	// Asked is what the service said when the outcome was unknown; nil: it was not asked (on_unknown: ask).
	Asked *Asked `json:"asked,omitempty"`
	// ProvenAt is when its end was recorded late: by another process, out of the file of the one that ran it and died, or
	// by that one itself, which had stood still. Zero: it was recorded when it ended.
	ProvenAt Time `json:"provenAt,omitzero"`
	// RequestStored says whether its request is in the request store, where its route keeps it (requests.keep): yes, no,
	// or unknown if the store does not answer. "" = its route keeps none, or it is from a list.
	RequestStored string `json:"requestStored,omitempty"`
	// LostAt is when the event was found to be possibly lost: it was refused and did not come again in time. Zero: it was not, or it ran or came since.
	LostAt   Time               `json:"lostAt,omitzero"`
	Released *ReleasedExecution `json:"released,omitempty"` // the latest of the event whose record was removed, so that it runs again; nil = none

	raw
}

// Failure says why an execution is FAILED.
type Failure struct {
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"`
}

// Order is the position of an event in its scope.
type Order struct {
	Scope    string `json:"scope,omitempty"`  // "" = its workflow is one scope
	Position string `json:"position"`         // as its sender wrote it
	Stale    string `json:"stale,omitempty"`  // by how much it is older than Newest: "37s", or a bare number; "" = it was not older at its turn
	Newest   string `json:"newest,omitempty"` // the newest execution that had gone through; "" if Stale is
}

// Latest is what a newer event would replace.
type Latest struct {
	Since     Time `json:"since"`              // when the first of those that replaced each other came
	Replaced  int  `json:"replaced,omitempty"` // how many did not run, because of this one
	NotBefore Time `json:"notBefore,omitzero"` // it does not run before that, because a newer one may come; zero = it runs when the lock is free
}

// Response is the upstream's answer in short.
type Response struct {
	Status int   `json:"status"`
	Bytes  int64 `json:"bytes"` // of the body, as the first sender got it
	Kept   bool  `json:"kept"`  // it settles the event: duplicates get it
	// Hash is half of the SHA-256 of the body, in hex, if idempotency.replay_retention bounds how long that is kept; else "".
	Hash string `json:"hash,omitempty"`
}

// Step is one step that the upstream has reported with guard.
type Step struct {
	Name       string `json:"name"`
	Status     string `json:"status"` // running, done, or skipped: the execution was cancelled before it began
	StartedAt  Time   `json:"startedAt,omitzero"`
	FinishedAt Time   `json:"finishedAt,omitzero"`
}

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (e *Execution) UnmarshalJSON(text []byte) error {
	type plain Execution
	if err := json.Unmarshal(text, (*plain)(e)); err != nil {
		return err
	}
	if e.ExecutionID == "" && e.Status != Refused && e.Status != Released {
		return errors.New("an execution has an executionId")
	}
	e.keep(text)
	return nil
}

// ExecutionPage is a part of the executions; see LockPage.
type ExecutionPage struct {
	Executions []Execution `json:"executions"`
	NextCursor string      `json:"nextCursor"`
}

// Executions yields the executions from q.Cursor on, the newest first, page after page. After an error it ends. An execution that moves in the
// list meanwhile may come twice.
func (c *Client) Executions(ctx context.Context, q ExecutionQuery) iter.Seq2[*Execution, error] {
	return each(q.Cursor, func(cursor string) ([]Execution, string, error) {
		q.Cursor = cursor
		page, err := c.ExecutionPage(ctx, q)
		if err != nil {
			return nil, "", err
		}
		return page.Executions, page.NextCursor, nil
	})
}

// errNoExecutionID prevents a call about one execution from becoming one about all of them.
var errNoExecutionID = errors.New("the execution ID is empty")

// executionPath returns the path of an execution.
func executionPath(id, action string) string {
	path := "/v1/executions/" + segment(id)
	if action != "" {
		path += "/" + action
	}
	return path
}

// Execution returns the execution as of now. A *Problem with CodeExecutionNotFound means that there is no trace of it.
func (c *Client) Execution(ctx context.Context, id string) (*Execution, error) {
	return c.AwaitExecution(ctx, id, 0)
}

// AwaitExecution returns an execution at once if it has ended, else on its next change, and after wait at the latest. The server takes at most
// 5 minutes.
func (c *Client) AwaitExecution(ctx context.Context, id string, wait time.Duration) (*Execution, error) {
	if id == "" {
		return nil, errNoExecutionID
	}
	q := query()
	if wait > 0 {
		q.Set("wait", wait.String())
	}
	return ask[Execution](ctx, c, call{method: http.MethodGet, path: executionPath(id, ""), query: q, wait: wait, has: "executionId"})
}

// Cancelled is the result of a cancel.
type Cancelled struct {
	Execution
	Success bool   `json:"success"`
	Message string `json:"message"`
	Before  bool   `json:"-"` // it was requested before, and this call changed nothing
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

// Cancel asks an execution to stop, for a reason that its record will show. One that waits is ABORTED at once; one that runs has its upstream
// call closed; one that is held learns it from its next guard or heartbeat. final settles the event: it never runs again. A *Problem with
// CodeAlreadyFinished means that the execution had ended.
func (c *Client) Cancel(ctx context.Context, id, reason string, final bool) (*Cancelled, error) {
	return c.CancelIf(ctx, id, "", reason, final)
}

// CancelIf is Cancel if the execution still has that status: Pending, Running or CancelRequested; "" is any. Otherwise nothing is done, and the
// error is a *Problem with CodeStatusChanged.
func (c *Client) CancelIf(ctx context.Context, id string, only Status, reason string, final bool) (*Cancelled, error) {
	if id == "" {
		return nil, errNoExecutionID
	}
	body := struct {
		Reason string `json:"reason"`
		Final  bool   `json:"final"`
		Only   Status `json:"ifStatus,omitempty"`
	}{reason, final, only}
	cancelled := new(Cancelled)
	status, err := c.do(ctx, call{method: http.MethodPost, path: executionPath(id, "cancel"), body: body, into: cancelled, has: "executionId"})
	if err != nil {
		return nil, err
	}
	cancelled.Before = status == http.StatusOK
	return cancelled, nil
}

// Forget removes the record of an ended execution: its event may run again, on every replica within 2 s. It returns the removed execution. A
// *Problem with status 409 means that it has not ended.
func (c *Client) Forget(ctx context.Context, id, reason string) (*Execution, error) {
	if id == "" {
		return nil, errNoExecutionID
	}
	return ask[Execution](ctx, c, call{method: http.MethodDelete, path: executionPath(id, ""), query: query("reason", reason), has: "executionId"})
}

// Erase is Forget that also deletes the kept requests of all attempts of the event, and how it arrived.
func (c *Client) Erase(ctx context.Context, id, reason string) (*Execution, error) {
	if id == "" {
		return nil, errNoExecutionID
	}
	return ask[Execution](ctx, c, call{
		method: http.MethodDelete, path: executionPath(id, ""), query: query("reason", reason, "erase", "true"), has: "executionId",
	})
}
