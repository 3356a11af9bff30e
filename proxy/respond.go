package proxy

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
)

// problem is RFC 9457, with Hooklock's members, and with the fields of the older in-application
// locks if they apply.
type problem struct {
	Type       string      `json:"type"`
	Title      string      `json:"title"`
	Status     int         `json:"status"`
	Detail     string      `json:"detail"`
	Code       string      `json:"code"`
	Executed   idem.Effect `json:"executed"`
	Execution  string      `json:"executionId,omitempty"`
	Workflow   string      `json:"workflow,omitempty"`
	Differs    []string    `json:"differs,omitempty"` // the parts of the request that differ from the first delivery
	RetryAfter int         `json:"retryAfter,omitempty"`
	// ClosedUntil is when a lock becomes free whose execution has ended; absent if it has not.
	ClosedUntil time.Time `json:"closedUntil,omitzero"`

	*conflict
}

type conflict struct {
	Success  bool   `json:"success"`
	Error    string `json:"error"`
	Details  string `json:"details"`
	Existing string `json:"existingExecutionId"`
}

// refusal is the content of one answer made by Hooklock itself.
type refusal struct {
	code, title, detail string
	status              int
	effect              idem.Effect
	conflict            bool // see idem.DecisionRow
	execution           idem.ExecutionID
	workflow            string
	full                string   // as many events run as may; "" = another reason
	differs             []string // of a mismatch, if it is known
	// closedUntil: execution has ended, and its lock stays closed; zero: it has not.
	closedUntil time.Time
	// the newer one of its scope, because of which this one did not run; "" = another reason
	successor  idem.ExecutionID
	retryAfter time.Duration
	retryUnit  time.Duration // of the header, if the sender does not take seconds; 0 means a second
}

// refusalOf returns the refusal of d if nothing more is known.
func refusalOf(d idem.Decision) refusal {
	row := d.Row()
	return refusal{code: row.Code, title: row.Title, detail: row.Detail, status: row.Status, effect: row.Effect,
		conflict: row.Conflict}
}

// asRefusal returns the refusal of r.
func (r *Rejection) asRefusal() refusal {
	effect := idem.EffectNo
	if r.Sent {
		effect = idem.EffectUnknown
	}
	return refusal{code: r.Code, title: r.Title, detail: r.Detail, status: r.Status, effect: effect}
}

// writeTo makes r the answer.
func (r *refusal) writeTo(ctx *fasthttp.RequestCtx) {
	beginOwnAnswer(ctx)
	p := problem{
		Type: "urn:hooklock:problem:" + r.code, Title: r.title, Status: r.status, Detail: r.detail, Code: r.code,
		Executed: r.effect, Execution: string(r.execution), Workflow: r.workflow, Differs: r.differs,
	}
	if isRetryable(r.status) {
		p.RetryAfter = retrySeconds(r.retryAfter)
		ctx.Response.Header.Set("Retry-After", inUnit(p.RetryAfter, r.retryUnit))
	}
	p.ClosedUntil = r.closedUntil.UTC()
	if r.conflict {
		p.conflict = &conflict{Error: "Workflow currently executing", Details: r.inTheWay(),
			Existing: string(r.execution)}
	}
	writeJSON(ctx, r.status, "application/problem+json", p)
}

// inTheWay says what runs instead, as older in-application locks do.
func (r *refusal) inTheWay() string {
	rule, what := "Only one execution can run at a time", "Currently executing: "
	if r.full != "" {
		rule, what = r.full, "The oldest: "
	}
	switch {
	case !r.closedUntil.IsZero():
		return rule + ". " + idem.ClosedLockText(r.execution, r.closedUntil)
	case r.execution == "": // others wait, or a limit of several workflows has no slot
		return rule
	}
	return rule + ". " + what + string(r.execution)
}

// writeJSON makes v, which has strings, numbers and times alone, the answer.
func writeJSON(ctx *fasthttp.RequestCtx, status int, kind string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	ctx.Response.SetStatusCode(status)
	ctx.Response.Header.SetContentType(kind)
	ctx.Response.SetBodyRaw(body)
}

// beginOwnAnswer begins an answer that Hooklock makes itself: it has nothing but the Date.
func beginOwnAnswer(ctx *fasthttp.RequestCtx) {
	closing := ctx.Response.ConnectionClose()
	ctx.Response.Reset()
	ctx.Response.Header.DisableNormalizing()
	ctx.Response.Header.SetNoDefaultContentType(true)
	if closing {
		ctx.SetConnectionClose()
	}
}

// writeDropped answers a delivery that was dropped, because the lock is held or because it is too
// old: a success, so that it does not come again.
func (r *refusal) writeDropped(ctx *fasthttp.RequestCtx) {
	beginOwnAnswer(ctx)
	writeJSON(ctx, r.status, "application/json", struct {
		Status      string    `json:"status"`
		Execution   string    `json:"executionId"`
		Workflow    string    `json:"workflow"`
		Detail      string    `json:"detail,omitempty"`
		Successor   string    `json:"supersededBy,omitempty"`
		ClosedUntil time.Time `json:"closedUntil,omitzero"`
	}{r.code, string(r.execution), r.workflow, r.full, string(r.successor), r.closedUntil.UTC()})
}

// writeParked answers a delivery that is accepted, with the status that its sender expects.
func (r *refusal) writeParked(ctx *fasthttp.RequestCtx) {
	if r.status != fasthttp.StatusNoContent {
		r.writeDropped(ctx)
		return
	}
	beginOwnAnswer(ctx)
	ctx.Response.SetStatusCode(r.status)
}

// parkedStatus returns the status for the sender of a parked delivery.
func (r *Route) parkedStatus() int {
	if p := r.Policy.Park; p != nil {
		return cmp.Or(p.Answer, fasthttp.StatusAccepted)
	}
	return fasthttp.StatusAccepted // it was parked when the route had park
}

// isRetryable reports whether an answer with that status carries Retry-After.
func isRetryable(status int) bool { return status == 409 || status == 429 || status == 503 }

// retrySeconds returns d for Retry-After: whole seconds, 1 to 60; 1 if d is not known.
func retrySeconds(d time.Duration) int {
	return int(min(max((d+time.Second-1)/time.Second, 1), 60))
}

// inUnit converts seconds to the sender's unit.
func inUnit(seconds int, unit time.Duration) string {
	return strconv.FormatInt(int64(time.Duration(seconds)*time.Second/cmp.Or(unit, time.Second)), 10)
}
