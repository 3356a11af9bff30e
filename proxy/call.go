package proxy

import (
	"context"
	"errors"
	"time"

	"hooklock/idem"
	"hooklock/proxy/wire"
)

// errUpstreamTimeout is the cause of a call that took longer than the upstream's timeout.
var errUpstreamTimeout = errors.New("upstream.timeout passed")

// call is the life of one call of the upstream: it ends with its parent, or when the upstream is silent for too long.
type call struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	timeout time.Duration
}

func newCall(parent context.Context, timeout time.Duration) *call {
	c := &call{timeout: timeout}
	c.ctx, c.cancel = context.WithCancelCause(parent)
	c.timer = time.AfterFunc(timeout, func() { c.cancel(errUpstreamTimeout) })
	return c
}

// give gives the upstream d from now on.
func (c *call) give(d time.Duration) { c.timer.Reset(d) }

// progress gives the upstream its whole time again: something moved.
func (c *call) progress() { c.give(c.timeout) }

// pause stops the clock: it is not the upstream that is waited for, but a sender who has a pace to keep.
func (c *call) pause() { c.timer.Stop() }

func (c *call) end() {
	c.timer.Stop()
	c.cancel(nil)
}

// called is the evidence of a call of the upstream.
type called struct {
	call *call // of an answer that is still coming; otherwise it is over
	err  error // nil: an answer came
	sent bool  // the upstream may have a byte of the request
	why  failure
}

// call runs an admitted delivery: it is sent to the upstream once.
func (d *delivery) call() called {
	x := d.execution
	d.report.Gate = idem.DecisionExecuted
	d.report.Execution, d.report.Attempt = x.Lock().Execution, x.Lock().Attempt
	d.h.o.Observer.Event(EventAcquired, &d.report)
	if err := x.Begin(); err != nil {
		return called{err: err, why: stopOf(err, false)}
	}
	c := newCall(x.Context(), d.h.o.Timeout)
	err := d.send(c, x)
	if err == nil && !d.answer.Whole {
		return called{call: c}
	}
	defer c.end()
	if err == nil {
		return called{}
	}
	d.report.Err = err
	got := called{err: err, sent: wasSent(err), why: callFailure(c, err)}
	if cause := context.Cause(x.Context()); cause != nil {
		got.why = stopOf(cause, got.sent)
	}
	return got
}

// send sends a delivery of a route to the upstream; x is nil where it is forwarded without a lock.
func (d *delivery) send(c *call, x *idem.Execution) error {
	d.upstream = d.h.o.Now()
	err := d.h.o.Upstream.Send(c.ctx, d.upstreamHead(x), d.body, &d.answer)
	d.noteCall()
	return err
}

// noteCall notes how long the upstream was called.
func (d *delivery) noteCall() { d.report.Upstream = d.h.o.Now().Sub(d.upstream) }

// callFailure is what a sender hears of a call that failed of itself.
func callFailure(c *call, err error) failure {
	var send *wire.SendError
	timedOut := errors.Is(context.Cause(c.ctx), errUpstreamTimeout) || errors.As(err, &send) && send.Sent() && send.Timeout
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
	return failure{decision, detail, err.Error()}
}

// wasSent reports whether the upstream may have a byte of a request that failed with err.
func wasSent(err error) bool {
	var send *wire.SendError
	return !errors.As(err, &send) || send.Sent()
}
