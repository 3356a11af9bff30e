package proxy

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
)

// verdict is one row of the only table from decisions to what a sender sees (docs/decisions.md).
type verdict struct {
	status   int
	code     string
	executed string // "yes", "no", "unknown": the one fact that a sender needs
	title    string
	conflict bool // carries the fields that callers of the older in-application locks read
}

// verdictOf is the table. Decisions that pass the upstream's or the first answer on have no row: status 0.
func verdictOf(d idem.Decision) verdict {
	switch d {
	case idem.DecisionInFlight:
		return verdict{409, "execution_in_flight", "no", "This event is being executed", true}
	case idem.DecisionLocked:
		return verdict{409, "workflow_locked", "no", "The workflow is locked", true}
	case idem.DecisionWaitTimeout:
		return verdict{409, "lock_wait_timeout", "no", "The lock did not become free in time", true}
	case idem.DecisionQueueFull:
		return verdict{429, "too_many_waiting", "no", "Too many deliveries wait", false}
	case idem.DecisionThrottled:
		return verdict{503, "too_many_new_events", "no", "Too many new events on this route", false}
	case idem.DecisionMismatch:
		return verdict{422, "idempotency_key_reused", "no", "This event ID was used for another request", false}
	case idem.DecisionUnknown:
		return verdict{409, "outcome_unknown", "unknown", "An earlier execution of this event ended with an unknown outcome", false}
	case idem.DecisionAborted:
		return verdict{503, "execution_aborted", "unknown", "The execution was aborted", false}
	case idem.DecisionLockLost:
		return verdict{503, "lock_lost", "unknown", "The lock was lost while the event was executed", false}
	case idem.DecisionUpstreamUnreachable:
		return verdict{502, "upstream_unreachable", "no", "The upstream could not be reached", false}
	case idem.DecisionUpstreamFailed:
		return verdict{502, "upstream_failed", "unknown", "The upstream broke off", false}
	case idem.DecisionUpstreamTimeout:
		return verdict{504, "upstream_timeout", "unknown", "The upstream did not answer in time", false}
	case idem.DecisionStoreUnavailable:
		return verdict{503, "store_unavailable", "no", "The lock store cannot decide now", false}
	case idem.DecisionUnverified:
		return verdict{401, "signature_invalid", "no", "The signature is not valid", false}
	case idem.DecisionInternalError:
		return verdict{500, "internal_error", "unknown", "Internal error", false}
	}
	return verdict{}
}

// Rejection is a delivery that was refused for what it is: it never reaches the upstream, takes no lock and burns no key.
type Rejection struct {
	Status int
	Code   string
	Title  string
	Detail string
	// Sent says that the upstream had begun to get it: its body broke on the way through.
	Sent bool
	// About is the route that the delivery was meant for and may not take; nil where that is not why.
	About *Route
}

func (r *Rejection) about(route *Route) *Rejection {
	r.About = route
	return r
}

// Error makes a Rejection an error.
func (r *Rejection) Error() string { return r.Code + ": " + r.Detail }

// reject lists every code of the decision "rejected", and of unmatched paths, with its status.
func reject(code, detail string) *Rejection {
	status, title := 400, "Bad request"
	switch code {
	case "route_not_found":
		status, title = 404, "No route"
	case "method_not_allowed":
		status, title = 405, "Method not allowed on this route"
	case "request_timeout":
		status, title = 408, "The request came too slowly"
	case "body_too_large":
		status, title = 413, "The body is too large"
	case "header_too_large":
		status, title = 431, "The request head is too large"
	case "memory_exhausted":
		status, title = 503, "No memory is left for bodies"
	case "ambiguous_path":
		title = "The path is not spelled as the route is"
	case "workflow_missing", "event_id_missing", "event_id_ambiguous", "key_too_long":
		title = "The delivery cannot be named"
	case "upgrade_refused":
		title = "Upgrade is not possible on a route"
	}
	return &Rejection{Status: status, Code: code, Title: title, Detail: detail}
}

func bodyTooLarge() *Rejection {
	return reject("body_too_large", "the body is larger than limits.request_body")
}

func upgradeRefused() *Rejection {
	return reject("upgrade_refused", "a delivery on a route is one request with one answer, and cannot become another protocol")
}

// problem is RFC 9457, with our members, and with the fields of the older in-application locks where they apply.
type problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	Code       string `json:"code"`
	Executed   string `json:"executed"`
	Execution  string `json:"executionId,omitempty"`
	Workflow   string `json:"workflow,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"`
	// ClosedUntil is when a lock is free whose execution has ended; absent where it has not.
	ClosedUntil time.Time `json:"closedUntil,omitzero"`

	*conflict
}

type conflict struct {
	Success  bool   `json:"success"`
	Error    string `json:"error"`
	Details  string `json:"details"`
	Existing string `json:"existingExecutionId"`
}

// refusal is everything that one answer made by Hooklock itself says.
type refusal struct {
	verdict
	status    int // differs from verdict.status where the route's respond says so
	detail    string
	execution idem.ExecutionID
	workflow  string
	// closedUntil: execution has ended, and its lock stays closed; zero: it has not.
	closedUntil time.Time
	retryAfter  time.Duration
	retryUnit   time.Duration // of the header, where the sender does not take seconds; 0 means a second
	effect      string        // as executed; "" = what the decision says
}

// write makes r the answer.
func (r *refusal) write(ctx *fasthttp.RequestCtx) {
	own(ctx)
	p := problem{
		Type: "urn:hooklock:problem:" + r.code, Title: r.title, Status: r.status, Detail: r.detail, Code: r.code,
		Executed: r.executed, Execution: string(r.execution), Workflow: r.workflow,
	}
	if retryable(r.status) {
		p.RetryAfter = seconds(r.retryAfter)
		ctx.Response.Header.Set("Retry-After", inUnit(p.RetryAfter, r.retryUnit))
	}
	p.ClosedUntil = r.closedUntil.UTC()
	if r.conflict {
		p.conflict = &conflict{
			Error:    "Workflow currently executing",
			Details:  "Only one execution can run at a time. Currently executing: " + string(r.execution),
			Existing: string(r.execution),
		}
		if !r.closedUntil.IsZero() {
			p.Details = "Only one execution can run at a time. " + idem.Closed(r.execution, r.closedUntil)
		}
	}
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers alone
	}
	ctx.Response.SetStatusCode(r.status)
	ctx.Response.Header.SetContentType("application/problem+json")
	ctx.Response.SetBodyRaw(body)
}

// own begins an answer that Hooklock makes itself: nothing is in it but the Date.
func own(ctx *fasthttp.RequestCtx) {
	closing := ctx.Response.ConnectionClose()
	ctx.Response.Reset()
	ctx.Response.Header.DisableNormalizing()
	ctx.Response.Header.SetNoDefaultContentType(true)
	if closing {
		ctx.SetConnectionClose()
	}
}

// skipped is the answer to a delivery that was dropped because the lock is held: a success, so that it does not come again.
func skipped(ctx *fasthttp.RequestCtx, status int, a *idem.Admission, workflow string) {
	own(ctx)
	body, err := json.Marshal(struct {
		Status      string    `json:"status"`
		Execution   string    `json:"executionId"`
		Workflow    string    `json:"workflow"`
		ClosedUntil time.Time `json:"closedUntil,omitzero"`
	}{"already_running", string(a.Holder), workflow, a.ClosedUntil.UTC()})
	if err != nil {
		panic(err) // strings alone
	}
	ctx.Response.SetStatusCode(status)
	ctx.Response.Header.SetContentType("application/json")
	ctx.Response.SetBodyRaw(body)
}

// retryable statuses carry Retry-After.
func retryable(status int) bool { return status == 409 || status == 429 || status == 503 }

// seconds is d for Retry-After: whole seconds, 1 to 60; 1 where nothing is known.
func seconds(d time.Duration) int {
	return int(min(max((d+time.Second-1)/time.Second, 1), 60))
}

// inUnit is a number of seconds as a sender reads it.
func inUnit(seconds int, unit time.Duration) string {
	if unit == 0 {
		unit = time.Second
	}
	return strconv.FormatInt(int64(time.Duration(seconds)*time.Second/unit), 10)
}
