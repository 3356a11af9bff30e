package proxy

import (
	"errors"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
)

// stopped ends an execution that was told to stop.
func (d *delivery) stopped(ctx *fasthttp.RequestCtx, x *idem.Execution, cause error, sent bool) {
	stop := stopOf(cause, sent)
	end := d.giveUp(x, sent, idem.Failure{Code: string(stop.decision), Detail: stop.detail})
	switch {
	case end.Cancelled:
		stop = stopOf(idem.ErrCancelled, sent)
	case stop.decision == idem.DecisionStoreUnavailable && end.Lost: // by force: whoever did that does not want it to run
		stop = stopOf(idem.ErrLockLost, true)
	case stop.decision == idem.DecisionStoreUnavailable && (d.route.Forward || d.route.Observe):
		d.reportEnd(x, end)
		d.bypass(ctx, stop.decision)
		return
	}
	d.refuse(ctx, stop.decision, refusal{detail: stop.detail, execution: d.report.Execution, effect: effectIf(sent)})
	d.ended(ctx, x, end)
}

// abortedDetail is for a delivery that did not run.
func abortedDetail(r *idem.Record) string {
	switch {
	case r != nil && r.Final:
		return "this event was cancelled for good and never runs"
	case r != nil && r.Outcome != idem.NotExecuted:
		return "the execution of this event was aborted after the upstream had it; it may have executed the event"
	}
	return "the execution was cancelled before anything was sent to the upstream"
}

// stop is what a sender hears of an execution that was told to stop.
type stop struct {
	decision idem.Decision
	detail   string
}

func stopOf(cause error, sent bool) stop {
	switch {
	case errors.Is(cause, idem.ErrMaxDuration):
		return stop{idem.DecisionAborted, "the execution reached the route's max_duration"}
	case errors.Is(cause, idem.ErrCancelled):
		return stop{idem.DecisionAborted, cancelledDetail(sent)}
	case errors.Is(cause, idem.ErrShutdown):
		return stop{idem.DecisionUpstreamFailed, "Hooklock was shut down before the upstream answered"}
	case !sent:
		return stop{idem.DecisionStoreUnavailable, "the lock was lost before anything was sent; the event may be delivered again"}
	}
	return stop{idem.DecisionLockLost, "the lock was lost; another execution may have it"}
}

func cancelledDetail(sent bool) string {
	if sent {
		return "the execution was cancelled after the upstream had the request; it may have executed the event"
	}
	return "the execution was cancelled before anything was sent to the upstream"
}

// giveUp ends an execution without an answer.
func (d *delivery) giveUp(x *idem.Execution, sent bool, why idem.Failure) idem.Ending {
	if sent {
		return x.Abandon(why)
	}
	return x.Release()
}

// cancelled logs that an execution ended because somebody asked for it; by is nil where the ledger did not say who.
func (d *delivery) cancelled(by *idem.Cancel) {
	if by != nil {
		d.report.By = by.By
	}
	d.h.o.Observer.Event(EventCancelled, &d.report)
}
