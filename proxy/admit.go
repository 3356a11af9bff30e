package proxy

import (
	"context"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/idem/naming"
	"hooklock/proxy/wire"
)

// admitByGate asks the gate for an execution.
func (d *delivery) admitByGate(ctx *fasthttp.RequestCtx) *ending {
	since := d.handler.options.Now()
	a := d.askGate(ctx)
	claim, stages := d.handler.options.Now().Sub(since)-a.Waited, &d.report.Stages
	stages.Claim = Stretch{since, claim}
	if a.Waited > 0 {
		stages.Wait = Stretch{since.Add(claim), a.Waited}
	}
	d.report.Met = a.HolderTrace
	d.noteFirstTwin(&a.Twin)
	if d.execution = a.Execution; d.execution != nil {
		d.report.noteStale(d.execution.Lock().Stale, d.route)
		return nil
	}
	d.report.Gate, d.report.Execution, d.report.Err, d.report.ClosedUntil = a.Decision, a.Holder, a.Err, a.ClosedUntil
	if a.Stale != nil { // its own execution has ended
		d.report.Outcome, d.report.Recorded = idem.NotExecuted, !a.Unrecorded
		d.report.noteStale(a.Stale, d.route)
	}
	if a.WhileWaiting {
		if !d.route.Observe { // else it is forwarded
			d.report.Outcome = a.Record.Outcome
		}
		if a.Decision == idem.DecisionAborted {
			d.logCancel(a.Record.Abort)
		}
	}
	return d.endRefused(&a)
}

// askGate calls the gate. It watches the sender's connection only if the strategy waits: a delivery
// whose sender leaves gives up its queue entry. The short wait of an overtaken one goes on without
// its sender: should the event run then, its next delivery gets the answer.
func (d *delivery) askGate(ctx *fasthttp.RequestCtx) guard.Admission {
	p := &d.route.Policy
	d.asked = &idem.Request{
		Scope:   idem.Scope{Workflow: d.names.Workflow, Key: d.names.Key},
		EventID: d.names.EventID, Labels: d.names.Labels, Fingerprint: d.names.Fingerprint, Parts: d.names.Parts,
		ByPayload: d.names.ByPayload, Order: d.names.Order, Question: d.names.Question,
		Policy: p, Limits: d.names.Limits, TraceParent: d.trace.String(), Parking: d.newParking(),
		Twin: p.TwinWindow > 0 && d.route.Keys.HasTwins(&d.req.msg, &d.names),
		Credentials: func(id idem.ExecutionID) string {
			return naming.CredentialsDigest(id, &d.req.msg, &d.route.Policy)
		},
	}
	if !p.Strategy.Waits() && p.InFlight != idem.Attach {
		return d.handler.options.Gate.Admit(d.handler.options.Base, d.asked)
	}
	sender, gone := context.WithCancel(d.handler.options.Base)
	defer gone()
	defer wire.WatchPeer(ctx.Conn(), gone)()
	return d.handler.options.Gate.Admit(sender, d.asked)
}

// endRefused returns the ending of a delivery that may not run: the first answer, or a refusal.
func (d *delivery) endRefused(a *guard.Admission) *ending {
	d.report.Differs, d.report.Changed = a.Differs, a.Changed
	if a.Decision == idem.DecisionParked {
		end := d.endParked(a.Holder, a.On)
		if !a.Accepted || d.route.Observe {
			end.forward = forwardByRule
		}
		return end
	}
	end := d.refuseWith(a.Decision)
	if end.forward = forwardByRule; a.Unsure {
		end.forward, end.refusal.effect = forwardNever, idem.EffectUnknown
	}
	switch a.Decision {
	case idem.DecisionReplayed, idem.DecisionAttached:
		end.source, end.first = fromFirst, a.Record.Answer
		end.left = end.first.Left && !a.StatusOnly
		if end.bare = !end.first.Whole || a.StatusOnly; !end.bare {
			end.body = end.first.Body
		}
		return end
	}
	r := &end.refusal
	r.detail, r.execution, r.closedUntil, r.retryAfter = refusalDetail(a), a.Holder, a.ClosedUntil, a.RetryAfter
	if r.full = fullLimit(a, d.route.Policy.Concurrency); r.full != "" {
		r.detail = r.full + "; nothing was executed, send this one again"
	}
	if a.Decision == idem.DecisionMismatch {
		r.differs = a.Differs
	}
	if end.unrecorded = a.Unrecorded; a.Stale != nil {
		r.successor = a.Stale.Than
	}
	if a.Newer != "" {
		r.successor = a.Newer
	}
	switch { // what the end of an earlier execution says about the effect
	case a.Record == nil, a.Decision == idem.DecisionExhausted: // several have ended
	case a.Record.Outcome == idem.NotExecuted:
		r.effect, r.successor = idem.EffectNo, a.Record.Superseded()
	case a.Record.Outcome == idem.Executed:
		r.effect = idem.EffectYes
	}
	return end
}

// fullLimit says which limit has no slot; "" = another reason.
func fullLimit(a *guard.Admission, most int) string {
	switch {
	case a.Full:
		return fmt.Sprintf("%[1]d events of this workflow may run at a time, and %[1]d do", most)
	case a.FullLimit != "":
		return "as many events run as a limit of this route lets"
	}
	return ""
}

func refusalDetail(a *guard.Admission) string {
	row := a.Decision.Row()
	switch {
	case a.Decision == idem.DecisionAborted:
		return abortedDetail(a.Record)
	case a.Decision == idem.DecisionStale:
		return a.Stale.By + " older than " + string(a.Stale.Than) + ", which went through; nothing was executed"
	case a.Decision == idem.DecisionMismatch && len(a.Differs) > 0:
		return "this event ID came before with another " + strings.Join(a.Differs, ", ") + "; nothing was executed"
	case row.Class == idem.ClassFailed || row.Class == idem.ClassBug:
		return "that is how the execution ended which this copy was attached to; the copy ran nothing"
	case a.ClosedUntil.IsZero() || a.Decision != idem.DecisionLocked && a.Decision != idem.DecisionWaitTimeout:
		return strings.Replace(row.Detail, "EXECUTION", string(a.Holder), 1)
	}
	return idem.ClosedLockText(a.Holder, a.ClosedUntil) +
		" (lock.release_delay); nothing was executed, send this event again then"
}

// abortedDetail returns the detail for a delivery that did not run.
func abortedDetail(r *idem.Record) string {
	switch {
	case r != nil && r.Final:
		return "this event was cancelled for good and never runs"
	case r != nil && r.Outcome != idem.NotExecuted:
		return "the execution of this event was aborted after the upstream had it; it may have executed the event"
	}
	return cancelledDetail(false)
}

func cancelledDetail(sent bool) string {
	if sent {
		return "the execution was cancelled after the upstream had the request; it may have executed the event"
	}
	return idem.DecisionAborted.Row().Detail
}
