package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"time"
)

// Status is where an execution is in its life: PENDING, RUNNING, then SUCCESS, FAILED or ABORTED,
// with CANCEL_REQUESTED between an active status and an end. The first terminal status stays.
// REFUSED is an event of which no execution is known: each of its deliveries was refused.
// RELEASED is one whose record a person removed, so that it runs again, and that has not done so
// yet.
type Status string

// The statuses.
const (
	Pending         Status = "PENDING"
	Running         Status = "RUNNING"
	CancelRequested Status = "CANCEL_REQUESTED"
	Success         Status = "SUCCESS"
	Failed          Status = "FAILED"  // an error of the system or the upstream
	Aborted         Status = "ABORTED" // the decision of an operator or a policy
	Refused         Status = "REFUSED"
	Released        Status = "RELEASED"
)

// Statuses are all of them, in the order of an execution's life, then Refused and Released. Treat
// it as constant.
var Statuses = []Status{Pending, Running, CancelRequested, Success, Failed, Aborted, Refused, Released}

// Terminal reports whether s is an end.
func (s Status) Terminal() bool { return s == Success || s == Failed || s == Aborted }

// Outcome is what is known of the effect of an execution; absent while it has not ended.
type Outcome string

// The outcomes.
const (
	Executed    Outcome = "executed"     // a whole answer came
	NotExecuted Outcome = "not_executed" // provably nothing reached the upstream
	Unknown     Outcome = "unknown"      // it may have taken effect, wholly or in part
)

// The values of RequestStored.
const (
	StoredYes     = "yes"
	StoredNo      = "no"
	StoredUnknown = "unknown"
)

// Execution is one attempt to run one delivery. Of an earlier attempt of an event there is what
// an Attempt says. An event of status REFUSED or RELEASED has no execution: its executionId is
// empty, and startedAt of a REFUSED one is when it first arrived.
type Execution struct {
	ExecutionID    string `json:"executionId"`
	Workflow       string `json:"workflow"`
	Route          string `json:"route"` // empty for a lock of the lock API
	IdempotencyKey string `json:"idempotencyKey"`
	// What the sender calls the event; absent where the fingerprint is the key.
	EventID string `json:"eventId,omitempty"`
	// What the event is found by, besides, by name. Absent where it has none.
	Labels      map[string]string `json:"labels,omitempty"`
	Fingerprint string            `json:"fingerprint,omitempty"` // absent for a lock of the lock API
	Status      Status            `json:"status"`
	Outcome     Outcome           `json:"outcome,omitempty"` // what is known of the effect. Absent before the end.
	Token       int64             `json:"token,omitempty"`   // the fencing token; absent while it waits
	Holder      string            `json:"holder,omitempty"`
	Slots       []OwnSlot         `json:"slots,omitempty"`   // of limits, that it has, or had
	Attempt     int               `json:"attempt,omitempty"` // counts the executions of the event
	StartedAt   Time              `json:"startedAt"`
	FinishedAt  Time              `json:"finishedAt,omitzero"` // absent before the end
	Error       *Failure          `json:"error,omitempty"`     // of FAILED alone
	// When it was asked. Of ABORTED and CANCEL_REQUESTED alone, as the next two.
	AbortedAt Time `json:"abortedAt,omitzero"`
	// The token's name, or policy for max_duration and for what was superseded.
	AbortedBy   string `json:"abortedBy,omitempty"`
	AbortReason string `json:"abortReason,omitempty"`
	// It was cancelled for good: its event never runs again. Absent otherwise.
	Final bool `json:"final,omitempty"`
	// Of ABORTED: the newer execution of its scope, because of which it did not run.
	SupersededBy string    `json:"supersededBy,omitempty"`
	Order        *Order    `json:"order,omitempty"`
	Latest       *Latest   `json:"latest,omitempty"`
	Steps        []Step    `json:"steps"`
	Response     *Response `json:"response,omitempty"`
	Duplicates   int64     `json:"duplicates"` // copies that were answered without running; right within 1 s
	TraceID      string    `json:"traceId,omitempty"`
	Parked       *Parked   `json:"parked,omitempty"`
	// Of what runs: its lock outlives the answer of its delivery, or is a client's of the lock API.
	Held bool `json:"held,omitempty"`
	// Of what has ended: its request is kept, and it can be run again. Absent: it is not.
	RequestKept bool `json:"requestKept,omitempty"`
	// Of what has ended and was parked: how often the upstream was called.
	Tries    int    `json:"tries,omitempty"`
	ParkedOn string `json:"parkedOn,omitempty"` // of what has ended and was parked: what it was parked for
	// All executions of the event, the oldest first. Absent in lists, and where there is one
	// alone.
	Attempts []Attempt `json:"attempts,omitempty"`
	Arrivals *Arrivals `json:"arrivals,omitempty"`
	// The newest answers of the service that said that a try of a parked event failed, the
	// oldest first.
	FailedAnswers []FailedAnswer `json:"failedAnswers,omitempty"`
	Asked         *Asked         `json:"asked,omitempty"`
	// When its end was recorded late: by another process, out of the file of the one that ran it
	// and died, or by that one itself, which had stood still. Absent where it was recorded when
	// it ended.
	ProvenAt Time `json:"provenAt,omitzero"`
	// Of one execution: whether its request is in the request store, where its route keeps it
	// (requests.keep). Absent: its route keeps none, or this is from a list.
	RequestStored string `json:"requestStored,omitempty" jsonschema:"enum=yes,enum=no,enum=unknown"`
	// When the event was found to be possibly lost: it was refused and did not come again in
	// time. Left out if it was not, or if it ran or came since.
	LostAt   Time               `json:"lostAt,omitzero"`
	Released *ReleasedExecution `json:"released,omitempty"`

	raw
}

// Failure says why an execution is FAILED.
type Failure struct {
	Code   string `json:"code" jsonschema:"maxLength=256"`
	Detail string `json:"detail,omitempty" jsonschema:"maxLength=1024"`
}

// Order is where an event stands among those of its scope; absent where its route does not ask,
// or where it could not be read.
type Order struct {
	Scope    string `json:"scope,omitempty"` // absent where its workflow is one
	Position string `json:"position"`        // a number or a time, as its sender wrote it
	// By how much it is older than the newest that had gone through when it was its turn: 37s,
	// or a bare number. Absent where it was not older.
	Stale  string `json:"stale,omitempty"`
	Newest string `json:"newest,omitempty"` // the execution of that newest one
}

// Latest is of an execution that waits under lock.strategy latest: a newer one would replace it.
type Latest struct {
	Since    Time `json:"since"`              // when the first of those that replaced each other came
	Replaced int  `json:"replaced,omitempty"` // how many did not run, because of this one. Absent: none.
	// It does not run before that, because a newer one may come (lock.quiet). Absent: it runs in
	// its turn.
	NotBefore Time `json:"notBefore,omitzero"`
}

// Response is the upstream's answer in short; absent where no whole answer came.
type Response struct {
	Status int   `json:"status"`
	Bytes  int64 `json:"bytes"` // of the body, as the first sender got it
	// Duplicates get it, with headers and body; after `idempotency.replay_retention` its status
	// alone.
	Kept bool `json:"kept"`
	// Half of the SHA-256 of the body, where `idempotency.replay_retention` bounds how long that
	// is kept.
	Hash string `json:"hash,omitempty"`
}

// Step is one step that the upstream has reported with guard.
type Step struct {
	Name string `json:"name"`
	// skipped: the execution was cancelled before it began.
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

// ExecutionPage is a part of the executions; see LockPage.
type ExecutionPage struct {
	Executions []Execution `json:"executions"`
	NextCursor string      `json:"nextCursor"`
}

// Executions yields the executions from q.Cursor on, the newest first, page after page. After an
// error it ends. An execution that moves in the list meanwhile may come twice.
func (c *Client) Executions(ctx context.Context, q ExecutionQuery) iter.Seq2[*Execution, error] {
	return each(&q.Cursor, func() (*ExecutionPage, error) { return c.ExecutionPage(ctx, q) },
		func(p *ExecutionPage) ([]Execution, string) { return p.Executions, p.NextCursor })
}

// executionPath returns the path of an execution.
func executionPath(id, action string) string {
	path := "/v1/executions/" + segment(id)
	if action != "" {
		path += "/" + action
	}
	return path
}

// Execution returns the execution as of now. A *Problem with CodeExecutionNotFound means that there
// is no trace of it.
func (c *Client) Execution(ctx context.Context, id string) (*Execution, error) {
	return c.AwaitExecution(ctx, id, 0)
}

// AwaitExecution returns an execution at once if it has ended, else on its next change, and after
// wait at the latest. The server takes at most 5 minutes.
func (c *Client) AwaitExecution(ctx context.Context, id string, wait time.Duration) (*Execution, error) {
	q := query()
	if wait > 0 {
		q.Set("wait", wait.String())
	}
	return ask[Execution](ctx, c,
		call{method: http.MethodGet, path: executionPath(id, ""), query: q, wait: wait, has: "executionId"})
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

// Cancel asks an execution to stop, for a reason that its record will show. One that waits is
// ABORTED at once; one that runs has its upstream call closed; one that is held learns it from its
// next guard or heartbeat. final settles the event: it never runs again. A *Problem with
// CodeAlreadyFinished means that the execution had ended.
func (c *Client) Cancel(ctx context.Context, id, reason string, final bool) (*Cancelled, error) {
	return c.CancelIf(ctx, id, "", reason, final)
}

// CancelIf is Cancel if the execution still has that status: Pending, Running or CancelRequested;
// "" is any. Otherwise nothing is done, and the error is a *Problem with CodeStatusChanged.
func (c *Client) CancelIf(ctx context.Context, id string, only Status, reason string, final bool) (*Cancelled, error) {
	body := struct {
		Reason string `json:"reason"`
		Final  bool   `json:"final"`
		Only   Status `json:"ifStatus,omitempty"`
	}{reason, final, only}
	cancelled := new(Cancelled)
	status, err := c.do(ctx,
		call{method: http.MethodPost, path: executionPath(id, "cancel"), body: body, into: cancelled,
			has: "executionId"})
	if err != nil {
		return nil, err
	}
	cancelled.Before = status == http.StatusOK
	return cancelled, nil
}

// Forget removes the record of an ended execution: its event may run again, on every replica within
// 2 s. It returns the removed execution. A *Problem with status 409 means that it has not ended.
func (c *Client) Forget(ctx context.Context, id, reason string) (*Execution, error) {
	return ask[Execution](ctx, c,
		call{method: http.MethodDelete, path: executionPath(id, ""), query: query("reason", reason),
			has: "executionId"})
}

// Erase is Forget that also deletes the kept requests of all attempts of the event, and how it
// arrived.
func (c *Client) Erase(ctx context.Context, id, reason string) (*Execution, error) {
	return ask[Execution](ctx, c, call{
		method: http.MethodDelete, path: executionPath(id, ""), query: query("reason", reason, "erase", "true"),
		has: "executionId",
	})
}
