package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"hooklock/idem"
	"hooklock/proxy/sender"
	"hooklock/proxy/wire"
)

// errUpstreamTimeout is the cause of a call that took longer than the upstream's timeout.
var errUpstreamTimeout = errors.New("upstream.timeout passed")

// call is the life of one call of the upstream: it ends when the upstream is silent for too long, and with the execution; one without an execution
// ends with the process.
type call struct {
	wire.Call
	timeout time.Duration
	among   *passing // nil if the call follows an execution
}

// begin begins a call of the upstream at that time. A delivery makes one at a time, and they use the same memory.
func (d *delivery) begin(at time.Time) *call {
	if d.life == nil {
		d.life = &call{Call: wire.Call{Late: errUpstreamTimeout}}
	}
	c := d.life
	c.timeout, c.among, d.upstream = d.h.o.Timeout, nil, at
	c.Begin(at, c.timeout)
	return c
}

// follow begins a call for an execution.
func (d *delivery) follow(x *idem.Execution) *call {
	c := d.begin(d.h.o.Now())
	c.Follow(x.Context())
	return c
}

// progress gives the upstream its whole time again, because data has moved.
func (c *call) progress() { c.Give(c.timeout) }

// end ends the call.
func (c *call) end() {
	if c.among != nil {
		c.among.leave(&c.Call)
	}
	c.End()
}

// passing are the calls without an execution. All of them end with the process, for which a context each would be expensive.
type passing struct {
	mu    sync.Mutex
	calls map[*wire.Call]struct{}
	over  error // why the process ends; nil: it does not
}

func (p *passing) enter(c *wire.Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over != nil {
		c.Cancel(p.over)
		return
	}
	if p.calls == nil {
		p.calls = make(map[*wire.Call]struct{})
	}
	p.calls[c] = struct{}{}
}

func (p *passing) leave(c *wire.Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, c)
}

// end cancels the calls under way, and those that follow.
func (p *passing) end(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = cause
	for c := range p.calls {
		c.Cancel(cause)
	}
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
	c := d.follow(x)
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

// trusted reports whether the body is its sender's: a signature proves it, of a parked execution since it was accepted.
func (d *delivery) trusted() bool {
	return d.route.Verify.Verifier != nil && (d.accepted || d.report.Verified && d.report.Signature == SignatureValid)
}

// upstreamHead builds the head for the upstream. A delivery on a route gets header lines about its origin; one that passes through gets none.
func (d *delivery) upstreamHead(x *idem.Execution) []byte {
	trace, own := d.traceForUpstream()
	d.keeps = d.h.o.Upstream.Reuses(d.req.body, d.trusted())
	o := wire.HeadOptions{
		Length: int64(len(d.req.body)), Close: !d.keeps, ForwardedFor: d.req.peer, ForwardedProto: httpProto, ForwardedHost: d.req.msg.Host,
		Host: []byte(d.h.o.UpstreamHost), Traceparent: []byte(trace), OwnTrace: own,
	}
	if d.req.tls {
		o.ForwardedProto = httpsProto
	}
	if x != nil {
		d.extra = appendExecution(d.extra[:0], x)
		if d.req.renewed != "" {
			d.extra = wire.AppendField(d.extra, sender.RenewedHeader, []byte(d.req.renewed))
		}
		o.Extra = d.extra
	}
	d.out = d.req.head.AppendTo(d.out[:0], o)
	return d.out
}

var (
	httpProto  = []byte("http")
	httpsProto = []byte("https")
)

// send sends a delivery of a route to the upstream; x is nil if it is forwarded without a lock.
func (d *delivery) send(c *call, x *idem.Execution) error {
	head := d.upstreamHead(x)
	err := d.h.o.Upstream.Send(&c.Call, head, d.req.body, d.keeps, &d.answer)
	d.noteCall()
	return err
}

// noteCall notes how long the upstream was called.
func (d *delivery) noteCall() {
	d.over = d.answer.Over
	if d.over.IsZero() {
		d.over = d.h.o.Now()
	}
	d.report.Upstream = d.over.Sub(d.upstream)
}

// callFailure returns the failure of a call that was not cancelled.
func callFailure(c *call, err error) failure {
	var send *wire.SendError
	timedOut := errors.Is(c.Cause(), errUpstreamTimeout) || errors.As(err, &send) && send.Sent() && send.Timeout
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
