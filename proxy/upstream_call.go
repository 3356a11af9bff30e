package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/proxy/sender"
	"hooklock/proxy/wire"
)

// errUpstreamTimeout is the cause of a call that took longer than the upstream's timeout.
var errUpstreamTimeout = errors.New("upstream.timeout passed")

// call is one call of the upstream, and what came of it. It ends when the upstream is silent for
// too long, and with the execution; one without an execution ends with the process. A delivery
// makes one at a time, in the same memory.
type call struct {
	*wire.Call // apart: its timer may run for long after a delivery that the collector is to have
	timeout    time.Duration
	among      *passing  // nil if the call follows an execution
	began      time.Time // zero: there was none
	over       time.Time // zero: it was not

	answer wire.Answer
	fields []wire.Field // those of answer that are for the sender
	head   []byte       // for the upstream; then that of answer, for the sender
	extra  []byte       // Hooklock's lines in head
}

// beginAt begins a call at that time.
func (c *call) beginAt(at time.Time, timeout time.Duration) {
	c.timeout, c.among, c.began = timeout, nil, at
	c.Begin(at, timeout)
}

// extendTimeout gives the upstream its whole time again, because data has moved.
func (c *call) extendTimeout() { c.Give(c.timeout) }

// endCall ends the call.
func (c *call) endCall() {
	if c.among != nil {
		c.among.removeCall(c.Call)
	}
	c.End()
}

// cutOff ends a call that a panic may have left under way.
func (c *call) cutOff() {
	if c.answer.Rest != nil {
		_ = c.answer.Rest.Close()
	}
	c.Cancel(errors.New("a panic cut the delivery short"))
	c.endCall()
}

// attempt is the call of the upstream for an admitted delivery, with the evidence of how far it
// came. Its execution ends with that.
type attempt struct {
	*delivery
	err  error // nil: an answer came
	sent bool  // the upstream may have a byte of the request
	why  failure
}

// callAndSettle sends an admitted delivery to the upstream once, and settles.
func (d *delivery) callAndSettle() *ending {
	a := attempt{delivery: d}
	a.callUpstream()
	return a.settleExecution()
}

// callUpstream makes the attempt. The call goes on if its answer is too long to be read whole.
func (a *attempt) callUpstream() {
	x, c := a.execution, &a.call
	a.report.Gate = idem.DecisionExecuted
	a.report.Execution, a.report.Attempt = x.Lock().Execution, x.Lock().Attempt
	a.handler.options.Observer.Event(EventAcquired, &a.report)
	if a.err = x.Begin(); a.err != nil {
		a.why = stopOf(a.err, false)
		return
	}
	a.archiveRequest(x.Lock())
	c.beginAt(a.handler.options.Now(), a.handler.options.Timeout)
	c.Follow(x.Context())
	a.early.startTimer()
	defer a.early.stopTimer() // also after a panic
	a.err = a.sendUpstream(x)
	a.early.stopTimer() // until then the report is read by the early answer
	a.noteCall()
	if a.err == nil {
		a.noteFailedAnswer()
		if c.answer.Whole {
			c.endCall()
		}
		return
	}
	defer c.endCall()
	a.report.Err = a.err
	a.sent, a.why = wasSent(a.err), callFailure(c, a.err)
	if cause := context.Cause(x.Context()); cause != nil {
		a.why = stopOf(cause, a.sent)
	}
}

// sendUpstream sends a delivery of a route to the upstream; x is nil if it is forwarded without a
// lock.
func (d *delivery) sendUpstream(x *guard.Execution) error {
	keeps := d.handler.options.Upstream.Reuses(d.req.body) // its connection may be used again
	d.call.head = d.req.head.AppendTo(d.call.head[:0], d.headOptions(x, keeps))
	return d.handler.options.Upstream.Send(d.call.Call, d.call.head, d.req.body, keeps, &d.call.answer)
}

// headOptions returns what the head for the upstream says about the origin of a delivery of a
// route, and about its execution.
func (d *delivery) headOptions(x *guard.Execution, keeps bool) wire.HeadOptions {
	o := wire.HeadOptions{
		Length: int64(len(d.req.body)), Close: !keeps, ForwardedFor: d.req.peer, ForwardedProto: httpProto,
		ForwardedHost: d.req.msg.Host,
		Host:          []byte(d.handler.options.UpstreamHost),
	}
	if d.req.tls {
		o.ForwardedProto = httpsProto
	}
	if t := d.report.Trace; t != nil {
		o.Traceparent, o.OwnTrace = []byte(t.Call()), true
	} else {
		o.Traceparent = []byte(d.trace.String())
	}
	if x != nil {
		o.Extra = appendExecution(d.call.extra[:0], x)
		if d.req.renewed != "" {
			o.Extra = wire.AppendField(o.Extra, sender.RenewedHeader, []byte(d.req.renewed))
		}
		d.call.extra = o.Extra
	}
	return o
}

var (
	httpProto  = []byte("http")
	httpsProto = []byte("https")
)

// noteCall notes how long the upstream was called.
func (d *delivery) noteCall() {
	c := &d.call
	if c.over = c.answer.Over; c.over.IsZero() {
		c.over = d.handler.options.Now()
	}
	d.report.Upstream = c.over.Sub(c.began)
}

// noteFailedAnswer notes what the upstream said with an answer that is no success.
func (d *delivery) noteFailedAnswer() {
	if park := d.route.Policy.Park; !idem.Is2xx(d.call.answer.Status) && (park == nil || park.FailedAnswers) {
		d.report.Said = readableBeginning(d.call.answer.Body)
	}
}

// callFailure returns the failure of a call that was not cancelled.
func callFailure(c *call, err error) failure {
	send, ok := errors.AsType[*wire.SendError](err)
	timedOut := errors.Is(c.Cause(), errUpstreamTimeout) || ok && send.Sent() && send.Timeout
	sent, decision := wasSent(err), idem.DecisionUpstreamFailed
	switch {
	case timedOut:
		decision = idem.DecisionUpstreamTimeout
	case !sent:
		decision = idem.DecisionUpstreamUnreachable
	}
	detail := decision.Row().Detail
	if timedOut && !sent {
		detail = "the upstream could not be reached in time, no byte was sent; the event may be delivered again"
	}
	if doubt, ok := errors.AsType[*wire.ParserError](err); ok {
		detail = fmt.Sprintf("the upstream answered %d as a parser does that refuses something else than the "+
			"request; it may have executed the event", doubt.Status)
	}
	return failure{decision, detail, err.Error()}
}

// wasSent reports whether the upstream may have a byte of a request that failed with err.
func wasSent(err error) bool {
	send, ok := errors.AsType[*wire.SendError](err)
	return !ok || send.Sent()
}
