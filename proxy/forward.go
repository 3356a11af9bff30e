package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/proxy/wire"
)

// passage is a delivery that is forwarded without lock and idempotency.
type passage struct{ *delivery }

// beginPassage begins a passage, and its call at that time.
func (d *delivery) beginPassage(at time.Time) passage {
	d.call.beginAt(at, d.handler.options.Timeout)
	d.call.among = &d.handler.passing
	d.call.among.addCall(d.call.Call)
	return passage{d}
}

// passThrough forwards a delivery that no route takes: both bodies are streamed, nothing is added,
// nothing is remembered.
func (d *delivery) passThrough(ctx *fasthttp.RequestCtx) *ending {
	p := d.beginPassage(d.report.Started) // only its head was read since
	// with one it is an ordinary request: its body would be the next request's beginning
	if d.req.head.Upgrade() != nil && !d.req.head.HasBody() {
		return p.forwardUpgrade(ctx)
	}
	keeps := d.handler.options.Unmatched.ReusesBehind(d.req.head.HasBody()) // its connection may be used again
	err := d.handler.options.Unmatched.Stream(d.call.Call, p.headOf(false, keeps), p.bodyOf(ctx), keeps, &d.call.answer)
	d.noteCall()
	return p.endingOf(err)
}

// forwardUnlocked forwards a delivery of a route.
func (d *delivery) forwardUnlocked() *ending {
	p := d.beginPassage(d.handler.options.Now())
	err := d.sendUpstream(nil)
	d.noteCall()
	if err == nil {
		d.noteFailedAnswer()
	}
	return p.endingOf(err)
}

// forwardUpgrade forwards a request for another protocol, and then that.
func (p passage) forwardUpgrade(ctx *fasthttp.RequestCtx) *ending {
	switched, err := p.handler.options.Unmatched.Upgrade(p.call.Call, p.headOf(true, true), &p.call.answer)
	p.noteCall()
	if switched == nil {
		return p.endingOf(err)
	}
	p.call.endCall()
	p.report.Status, p.report.UpstreamStatus = p.call.answer.Status, p.call.answer.Status
	if p.handler.tunnels.Serve(ctx, switched) != nil { // this process is about to end
		ctx.SetConnectionClose()
		// the upstream has switched
		return p.failureEnding(failureOf(idem.DecisionUpstreamFailed, "Hooklock is shutting down"), true)
	}
	p.end = ending{source: fromTunnel}
	return &p.end
}

// endingOf returns the ending of a passage: the upstream's answer, or why there is none.
func (p passage) endingOf(err error) *ending {
	if err != nil {
		defer p.call.endCall()
		return p.failedEnding(err)
	}
	p.end = ending{source: fromUpstream, hangUp: p.call.answer.RequestPending}
	if p.route != nil {
		p.end.decision = idem.DecisionBypassed
		p.noteChallenge()
	}
	if p.call.answer.Rest != nil {
		p.end.stream = streamOf(p.delivery, nil)
		return &p.end
	}
	p.end.pooled = p.route != nil || len(p.call.answer.Body) > 0
	p.call.endCall()
	return &p.end
}

func (p passage) failedEnding(err error) *ending {
	end := p.failureEnding(callFailure(&p.call, err), wasSent(err))
	if send, ok := errors.AsType[*wire.SendError](err); ok {
		if bad := badBody(send.Err); bad != nil {
			bad.Sent = send.Sent()
			end = p.rejectWith(bad)
		}
	}
	end.hangUp = end.hangUp || p.req.head.HasBody()
	return end
}

func (p passage) headOf(upgrade, keeps bool) []byte {
	p.call.head = p.req.head.AppendTo(p.call.head[:0], wire.HeadOptions{Streamed: true, Upgrade: upgrade, Close: !keeps,
		Host: []byte(p.handler.options.UpstreamHost)})
	return p.call.head
}

// bodyOf returns the request's body as it comes in, nil without one.
func (p passage) bodyOf(ctx *fasthttp.RequestCtx) *wire.RequestBody {
	body := wire.BodyOf(ctx)
	if body == nil {
		return nil
	}
	paced := &pacedReader{
		Reader: body.Reader, conn: ctx.Conn(), call: &p.call,
		pacer: p.handler.currentLimits().bodyPace().Begin(), tap: p.tapBody(body.Length)}
	body.Reader, body.Interrupt = paced, paced.interruptRead
	return body
}

// passing are the calls without an execution. All of them end with the process, for which a context
// each would be expensive.
type passing struct {
	mu    sync.Mutex
	calls map[*wire.Call]struct{}
	over  error // why the process ends; nil: it does not
}

func (p *passing) addCall(c *wire.Call) {
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

func (p *passing) removeCall(c *wire.Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, c)
}

// cancelAll cancels the calls under way, and those that follow.
func (p *passing) cancelAll(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = cause
	for c := range p.calls {
		c.Cancel(cause)
	}
}

// pacedReader reads a body as long as its sender keeps the pace. Meanwhile the upstream's clock
// stands still.
type pacedReader struct {
	io.Reader
	conn  net.Conn
	call  *call
	pacer wire.Pacer
	tap   *bodyTap // nil: nothing learns from the body

	mu          sync.Mutex
	interrupted bool // for good: the deadline of another piece must not undo it
}

// Read implements io.Reader.
func (r *pacedReader) Read(p []byte) (int, error) {
	r.call.Pause()
	began := time.Now()
	if err := r.allowUntil(r.pacer.Deadline(began)); err != nil {
		return 0, err
	}
	n, err := r.Reader.Read(p)
	r.pacer.Count(n, time.Since(began))
	r.tap.noteRead(p[:n], err)
	r.call.extendTimeout()
	return n, err
}

func (r *pacedReader) allowUntil(until time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.interrupted {
		return os.ErrDeadlineExceeded
	}
	return r.conn.SetReadDeadline(until)
}

func (r *pacedReader) interruptRead() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupted = true
	_ = r.conn.SetReadDeadline(time.Unix(1, 0)) // a closed connection needs no deadline
}
