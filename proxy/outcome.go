package proxy

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/proxy/wire"
)

// complete records a whole answer, and then answers.
func (d *delivery) complete(ctx *fasthttp.RequestCtx, x *idem.Execution) {
	body := d.takeAnswer()
	end := d.conclude(x, idem.Answer{
		Status: d.answer.Status, Bytes: int64(len(body)), Whole: true, Header: d.replayHeader(), Body: body,
	})
	d.writeAnswer(ctx)
	d.lend(ctx, body)
	d.decided(ctx, idem.DecisionExecuted)
	d.ended(ctx, x, end)
}

// leave is the net under every way out: an execution that was not ended by then is abandoned. One whose answer is still being streamed is ended
// by the stream.
func (d *delivery) leave(x *idem.Execution) {
	if !d.detached && !x.Ended() {
		d.reportEnd(x, x.Abandon(notEnded()))
	}
}

func notEnded() idem.Failure {
	return idem.Failure{Code: string(idem.DecisionInternalError), Detail: "the proxy did not end this execution"}
}

// failed ends an execution whose call brought no whole answer. The evidence alone says what is known of the effect.
func (d *delivery) failed(ctx *fasthttp.RequestCtx, x *idem.Execution, call *call, err error) {
	d.report.Err = err
	var send *wire.SendError
	sent := !errors.As(err, &send) || send.Sent()
	if cause := context.Cause(x.Context()); cause != nil {
		d.stopped(ctx, x, cause, sent)
		return
	}
	decision := failureDecision(call, send)
	detail := failureDetail(decision, sent)
	end := d.giveUp(x, sent, idem.Failure{Code: string(decision), Detail: err.Error()})
	if end.Cancelled { // asked in the last moment, and what the ledger says is what the sender hears
		decision, detail = idem.DecisionAborted, cancelledDetail(sent)
	}
	d.refuse(ctx, decision, refusal{detail: detail, execution: d.report.Execution, effect: effectIf(sent)})
	d.ended(ctx, x, end)
}

func failureDecision(call *call, send *wire.SendError) idem.Decision {
	switch {
	case errors.Is(context.Cause(call.ctx), errUpstreamTimeout):
		return idem.DecisionUpstreamTimeout
	case send != nil && !send.Sent():
		return idem.DecisionUpstreamUnreachable
	case send != nil && send.Timeout:
		return idem.DecisionUpstreamTimeout
	}
	return idem.DecisionUpstreamFailed
}

func failureDetail(d idem.Decision, sent bool) string {
	switch {
	case d == idem.DecisionUpstreamUnreachable:
		return "no byte was sent to the upstream; the event may be delivered again"
	case d == idem.DecisionUpstreamTimeout && !sent:
		return "the upstream could not be reached in time, no byte was sent; the event may be delivered again"
	case d == idem.DecisionUpstreamTimeout:
		return "the upstream took the request and did not answer in time; it may have executed the event"
	}
	return "the upstream took the request and its answer broke off; it may have executed the event"
}

// ended tells the sender and the log what the ledger has now.
func (d *delivery) ended(ctx *fasthttp.RequestCtx, x *idem.Execution, end idem.Ending) {
	if !end.Recorded {
		ctx.Response.Header.Set(headerRecorded, "false")
	}
	d.reportEnd(x, end)
}

// reportEnd is ended for the log alone.
func (d *delivery) reportEnd(x *idem.Execution, end idem.Ending) {
	d.report.Held = d.h.o.Now().Sub(x.Lock().StartedAt)
	d.report.Recorded = end.Recorded
	if end.Err != nil {
		d.report.Err = errors.Join(d.report.Err, end.Err)
	}
	switch {
	case end.Lost && end.Record != nil: // as whoever ended it wrote
		d.report.Outcome = end.Record.Outcome
	case end.Lost:
	case end.Record != nil:
		d.report.Outcome, d.report.RecordSize = end.Record.Outcome, end.Record.Size
	case end.Cancelled:
		d.report.Outcome = idem.NotExecuted
	}
	d.report.Loss = lossOf(context.Cause(x.Context()), end)
	if end.Took > 0 {
		d.report.Rooms.Settle = Stretch{d.h.o.Now().Add(-end.Took), end.Took}
	}
	if end.Hold > 0 && !end.Lost {
		d.report.Hold = end.Hold
		d.h.o.Observer.Event(EventHeld, &d.report)
	} else {
		d.h.o.Observer.Event(EventReleased, &d.report)
	}
	if end.Cancelled {
		d.cancelled(x.Lock().Cancel)
	}
	if d.report.Loss != "" {
		d.h.o.Observer.Event(EventLost, &d.report)
	}
	if end.Recorded && d.report.Outcome == idem.Unknown { // otherwise whoever writes it down says so
		d.h.o.Observer.Event(EventUnknown, &d.report)
	}
}

// lossOf says whether, and why, the lock was lost while its execution ran. cause is why that was told to stop.
func lossOf(cause error, end idem.Ending) Loss {
	switch {
	case end.Lost && end.Record != nil && end.Record.Abort != nil:
		return LossReleased
	case errors.Is(cause, idem.ErrUnheard):
		return LossUnheard
	case end.Lost || errors.Is(cause, idem.ErrLockLost):
		return LossSession
	}
	return ""
}

// turnAway answers a delivery that may not run: with the first answer, or with a refusal.
func (d *delivery) turnAway(ctx *fasthttp.RequestCtx, a idem.Admission) {
	d.report.Gate, d.report.Execution, d.report.Err, d.report.ClosedUntil = a.Decision, a.Holder, a.Err, a.ClosedUntil
	if a.WhileWaiting {
		d.report.Outcome = a.Record.Outcome
		d.cancelled(a.Record.Abort)
	}
	switch {
	case a.Decision == idem.DecisionStoreUnavailable && d.route.Forward:
		d.bypass(ctx, a.Decision)
	case d.route.Observe:
		d.bypass(ctx, a.Decision)
	case a.Decision == idem.DecisionReplayed || a.Decision == idem.DecisionAttached:
		d.replay(ctx, a)
	case a.Decision == idem.DecisionSkipped:
		d.skip(ctx, a)
	default:
		switch a.Decision {
		case idem.DecisionLocked, idem.DecisionInFlight, idem.DecisionWaitTimeout, idem.DecisionQueueFull:
			d.h.o.Observer.Event(EventRefused, &d.report)
		}
		d.refuse(ctx, a.Decision, refusal{detail: refusalDetail(a), execution: a.Holder, closedUntil: a.ClosedUntil, retryAfter: a.RetryAfter, effect: effectOf(&a)})
	}
}

// effectOf is what the end of an earlier execution says of the effect; empty where that is no more than the decision says.
func effectOf(a *idem.Admission) idem.Effect {
	switch {
	case a.Record == nil:
		return ""
	case a.Record.Outcome == idem.NotExecuted:
		return idem.EffectNo
	case a.Record.Outcome == idem.Executed:
		return idem.EffectYes
	}
	return ""
}

// effectIf is what is known where nothing was sent, whatever the decision.
func effectIf(sent bool) idem.Effect {
	if sent {
		return ""
	}
	return idem.EffectNo
}

func refusalDetail(a idem.Admission) string {
	switch a.Decision {
	case idem.DecisionLocked, idem.DecisionWaitTimeout:
		if !a.ClosedUntil.IsZero() {
			return idem.Closed(a.Holder, a.ClosedUntil) + " (lock.release_delay); nothing was executed, send this event again then"
		}
	}
	row := a.Decision.Row()
	switch {
	case a.Decision == idem.DecisionAborted:
		return abortedDetail(a.Record)
	case row.Class == idem.ClassFailed || row.Class == idem.ClassBug:
		return "that is how the execution ended which this copy was attached to; the copy ran nothing"
	}
	return strings.Replace(row.Detail, "EXECUTION", string(a.Holder), 1)
}

// skip drops a delivery.
func (d *delivery) skip(ctx *fasthttp.RequestCtx, a idem.Admission) {
	d.h.o.Observer.Event(EventRefused, &d.report)
	status := fasthttp.StatusOK
	if s, ok := d.route.Respond[idem.DecisionSkipped]; ok {
		status = s
	}
	skipped(ctx, status, &a, d.names.Workflow)
	d.mark(ctx, idem.DecisionSkipped)
}

// replay answers a duplicate with the first answer.
func (d *delivery) replay(ctx *fasthttp.RequestCtx, a idem.Admission) {
	first := a.Record.Answer
	if !d.memory.Take(len(first.Body)) {
		d.reject(ctx, badBody(wire.ErrMemory)) // it may come again
		return
	}
	own(ctx)
	ctx.Response.SetStatusCode(first.Status)
	if first.Whole && !a.StatusOnly {
		for _, f := range first.Header {
			value := f.Value
			if codings := ctx.Response.Header.ContentEncoding(); len(codings) > 0 && strings.EqualFold(f.Name, fasthttp.HeaderContentEncoding) {
				value = string(codings) + ", " + value // as in the first answer: see appendFields
			}
			ctx.Response.Header.Add(f.Name, value)
		}
		d.lend(ctx, first.Body)
	}
	d.decided(ctx, a.Decision)
	if a.Decision == idem.DecisionReplayed {
		ctx.Response.Header.Set(headerReplayed, "true")
	}
}

// decided marks the answer with the decision.
func (d *delivery) decided(ctx *fasthttp.RequestCtx, decision idem.Decision) {
	if d.route.Observe { // what was done as it would have been is marked as observed, too
		d.report.Would, decision = decision, idem.DecisionBypassed
	}
	d.mark(ctx, decision)
}

func (d *delivery) mark(ctx *fasthttp.RequestCtx, decision idem.Decision) {
	d.report.Decision, d.report.Status = decision, ctx.Response.StatusCode()
	if d.route == nil {
		return
	}
	text := string(decision)
	if d.report.Would != "" {
		text += "; would=" + string(d.report.Would)
	}
	ctx.Response.Header.Set(headerDecision, text)
	if d.report.Execution != "" {
		ctx.Response.Header.Set(headerExecution, string(d.report.Execution))
	}
}

// refuse makes the answer that Hooklock gives itself.
func (d *delivery) refuse(ctx *fasthttp.RequestCtx, decision idem.Decision, r refusal) {
	base := refusalOf(decision)
	base.detail = cmp.Or(r.detail, base.detail)
	base.effect = cmp.Or(r.effect, base.effect)
	base.execution, base.closedUntil, base.retryAfter = r.execution, r.closedUntil, r.retryAfter
	r = base
	if d.route != nil {
		r.workflow, r.retryUnit = d.names.Workflow, d.route.RetryAfterUnit
		r.status = cmp.Or(d.route.Respond[decision], r.status)
	}
	r.write(ctx)
	d.mark(ctx, decision)
}

// reject refuses a delivery for what it is.
func (d *delivery) reject(ctx *fasthttp.RequestCtx, bad *Rejection) {
	d.report.Code, d.report.Err = bad.Code, bad
	r := bad.refusal()
	if d.route != nil {
		r.retryUnit = d.route.RetryAfterUnit
		// A 503 says that this process has no room now, and nothing about the delivery.
		if status, ok := d.route.Respond[idem.DecisionRejected]; ok && bad.Status < 500 {
			r.status = status
		}
	}
	if bad.Status == 408 || bad.Status == 413 || d.route == nil && (bad.Status == 400 || d.head.HasBody()) {
		hangUp(ctx)
	}
	r.write(ctx)
	d.mark(ctx, idem.DecisionRejected)
	if bad.About != nil {
		ctx.Response.Header.Set(headerDecision, string(idem.DecisionRejected))
		if bad.Status == fasthttp.StatusMethodNotAllowed {
			ctx.Response.Header.Set(fasthttp.HeaderAllow, strings.Join(bad.About.Methods, ", ")) // RFC 9110 section 15.5.6 wants it
		}
	}
}

// hangUp ends a connection with this answer, because what follows on it cannot be told from the rest of this request: fasthttp would take a
// body that nobody has read for the next request, and a sender could write a whole one into it, past whoever checks requests in front.
func hangUp(ctx *fasthttp.RequestCtx) {
	wire.LingerOnClose(ctx.Conn())
	ctx.SetConnectionClose()
}

func (d *delivery) rejectOrBypass(ctx *fasthttp.RequestCtx, bad *Rejection) {
	if d.route.Observe {
		d.report.Code = bad.Code
		d.bypass(ctx, idem.DecisionRejected)
		return
	}
	d.reject(ctx, bad)
}

// called notes how long the upstream was called.
func (d *delivery) called() { d.report.Upstream = d.h.o.Now().Sub(d.upstream) }

// finish ends a delivery: its line is logged, and its memory goes back to the pool.
func (d *delivery) finish() {
	d.report.Total, d.report.UpstreamFrom = d.h.o.Now().Sub(d.report.Started), d.upstream
	if d.route != nil || d.report.Decision == idem.DecisionRejected || d.report.Decision == idem.DecisionInternalError {
		d.h.o.Observer.Delivered(&d.report)
	} else {
		d.h.o.Observer.Passed(&d.report)
	}
	if d.report.Trace != nil {
		d.report.Trace.End(&d.report)
	}
	d.h.pool.put(d)
}
