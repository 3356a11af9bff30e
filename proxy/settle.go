package proxy

import (
	"context"
	"errors"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
)

// settleExecution writes down how the execution ended, before its sender is answered.
func (a *attempt) settleExecution() *ending {
	answer := &a.call.answer
	if a.err == nil {
		a.report.UpstreamStatus = answer.Status
	}
	switch {
	case a.err != nil:
		return a.settleUnanswered()
	case !answer.Whole: // the end of the stream settles
		a.end = ending{decision: a.noteAnswer(), source: fromUpstream, stream: streamOf(a.delivery, a.execution)}
		return &a.end
	}
	body := a.takeAnswer()
	end := a.finishCall(&idem.Answer{Status: answer.Status, Bytes: int64(len(body)), Whole: true,
		Header: a.call.replayHeader(), Body: body}, false)
	a.reportEnd(end)
	if end.On != "" {
		return a.endParked(a.report.Execution, end.On)
	}
	a.end = ending{decision: a.noteAnswer(), source: fromUpstream, body: body, unrecorded: !end.Recorded}
	return &a.end
}

// noteAnswer returns the decision about a delivery whose sender gets the upstream's answer.
func (a *attempt) noteAnswer() idem.Decision {
	if a.report.Challenged = isChallenge(&a.req, &a.call.answer); a.report.Challenged {
		return idem.DecisionChallenged
	}
	return idem.DecisionExecuted
}

// finishCall ends the execution with what its call brought. answer is nil if none came.
// responseBegun: the sender has a part of it.
func (a *attempt) finishCall(answer *idem.Answer, responseBegun bool) guard.Ending {
	t := guard.Tried{Answer: answer, Sent: a.sent, ResponseBegun: responseBegun}
	if answer == nil {
		t.Failure = a.why.asRecorded()
	} else {
		t.Hold, t.Challenge = a.heldFor(), isChallenge(&a.req, &a.call.answer)
	}
	t.Counted = idem.Counted{Route: a.route.Name, Took: a.report.Upstream}
	if !a.accepted {
		t.Counted.Kinds, t.Counted.Last = idem.CountSetOf(idem.CountDeliveries), a.handler.options.Now()
	}
	end := a.execution.End(t)
	if a.report.Counted = end.Counted; end.WouldPark {
		a.report.Would = idem.DecisionParked
	}
	return end
}

// heldFor returns for how long the upstream goes on after its answer.
func (a *attempt) heldFor() time.Duration {
	p := &a.route.Policy
	ttl, err := holdFor(p, &a.call.answer)
	if err != nil {
		a.handler.options.Log.Warn("hold.unreadable", "error", err, "held_for", p.HoldTTL.String(),
			"route", a.route.Name, "execution", string(a.report.Execution), "trace_id", a.trace.TraceID())
	}
	return ttl
}

// settleUnanswered ends an execution whose call brought no whole answer. The evidence alone says
// what is known of the effect.
func (a *attempt) settleUnanswered() *ending {
	end := a.finishCall(nil, false)
	mayForward := false
	switch {
	case end.On != "":
		return a.endParked(a.report.Execution, end.On)
	case end.Cancelled: // cancelled in the last moment: the sender gets what the ledger says
		a.why = stopOf(idem.ErrCancelled, a.sent)
	case a.why.decision == idem.DecisionStoreUnavailable && end.Lost: // by force: it is not meant to run
		a.why = stopOf(idem.ErrLockLost, true)
	case a.why.decision == idem.DecisionStoreUnavailable:
		mayForward = true
	}
	a.reportEnd(end)
	told := a.failureEnding(a.why, a.sent)
	told.refusal.execution, told.unrecorded = a.report.Execution, !end.Recorded
	switch {
	case end.Unsure:
		told.refusal.effect = idem.EffectUnknown
	case mayForward:
		told.forward = forwardByRule
	}
	return told
}

// failureEnding returns the ending of a delivery whose call brought no answer.
func (d *delivery) failureEnding(why failure, sent bool) *ending {
	end := d.refuseWith(why.decision)
	end.refusal.detail = why.detail
	if !sent { // that is known whatever the decision
		end.refusal.effect = idem.EffectNo
	}
	return end
}

// failure is the answer for a call that brought none.
type failure struct {
	decision idem.Decision
	detail   string
	cause    string // as the ledger has it
}

func failureOf(decision idem.Decision, detail string) failure {
	return failure{decision, detail, detail}
}

func (f *failure) asRecorded() idem.Failure {
	return idem.Failure{Code: string(f.decision), Detail: f.cause}
}

// stopOf returns the failure of an execution that was told to stop.
func stopOf(cause error, sent bool) failure {
	switch {
	case errors.Is(cause, guard.ErrMaxDuration):
		return failureOf(idem.DecisionAborted, "the execution reached the route's max_duration")
	case errors.Is(cause, idem.ErrCancelled):
		return failureOf(idem.DecisionAborted, cancelledDetail(sent))
	case errors.Is(cause, guard.ErrShutdown):
		return failureOf(idem.DecisionUpstreamFailed, "Hooklock was shut down before the upstream answered")
	case !sent:
		return failureOf(idem.DecisionStoreUnavailable,
			"the lock was lost before anything was sent; the event may be delivered again")
	}
	return failureOf(idem.DecisionLockLost, idem.DecisionLockLost.Row().Detail)
}

// reportEnd records for the report, and logs, how the execution ended.
func (d *delivery) reportEnd(end guard.Ending) {
	x, r := d.execution, &d.report
	if end.Parked { // nothing has ended
		if end.On == "" {
			r.Outcome = end.Outcome
		}
		return
	}
	r.Held = d.handler.options.Now().Sub(x.Lock().StartedAt)
	r.Recorded = end.Recorded
	if end.Err != nil {
		r.Err = errors.Join(r.Err, end.Err)
	}
	switch {
	case end.Lost && end.Record != nil: // as its end was written
		r.Outcome = end.Record.Outcome
	case end.Lost:
	case end.Record != nil:
		r.Outcome, r.RecordSize = end.Record.Outcome, end.Record.Size
	case end.Cancelled:
		r.Outcome = idem.NotExecuted
	}
	r.Loss = lossOf(context.Cause(x.Context()), end)
	if end.Took > 0 {
		r.Stages.Settle = Stretch{d.handler.options.Now().Add(-end.Took), end.Took}
	}
	if end.Hold > 0 && !end.Lost {
		r.Hold = end.Hold
		d.handler.options.Observer.Event(EventHeld, r)
	} else {
		d.handler.options.Observer.Event(EventReleased, r)
	}
	if end.Cancelled {
		d.logCancel(x.Lock().Cancel)
	}
	if r.Loss != "" {
		d.handler.options.Observer.Event(EventLost, r)
	}
	if end.Recorded && r.Outcome == idem.Unknown { // otherwise the goroutine that records it logs this
		d.handler.options.Observer.Event(EventUnknown, r)
	}
	if p := &d.route.Policy; end.Record != nil && p.Idempotency && !p.Observe && p.Exhausted(end.Record) {
		d.handler.options.Observer.Event(EventExhausted, r)
	}
}

// logCancel logs that an execution ended because of a cancel; by is nil if the ledger does not say
// by whom.
func (d *delivery) logCancel(by *idem.Cancel) {
	if by != nil {
		d.report.By = by.By
	}
	d.handler.options.Observer.Event(EventCancelled, &d.report)
}

// lossOf returns whether, and why, the lock was lost while its execution ran. cause is why the
// execution was told to stop.
func lossOf(cause error, end guard.Ending) Loss {
	switch {
	case end.Lost && end.Record != nil && end.Record.Abort != nil:
		return LossReleased
	case errors.Is(cause, idem.ErrNotRenewed):
		return LossUnheard
	case end.Lost || errors.Is(cause, idem.ErrLockLost):
		return LossSession
	}
	return ""
}

// endUnsettled ends an execution that was not settled, on whatever way the delivery ended.
func (d *delivery) endUnsettled() {
	if x := d.execution; x != nil && !x.Ended() {
		d.reportEnd(x.End(guard.Tried{Sent: true, ResponseBegun: true,
			Failure: idem.Failure{Code: string(idem.DecisionInternalError), Detail: "the proxy did not end this " +
				"execution"}}))
	}
}
