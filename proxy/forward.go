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

// passThrough carries a delivery that no route takes: both bodies are streamed, nothing is added, nothing is remembered.
func (d *delivery) passThrough(ctx *fasthttp.RequestCtx) {
	c := newCall(d.base, d.h.o.Timeout)
	d.upstream = d.h.o.Now()
	var err error
	if d.head.Upgrade() != nil && !d.head.HasBody() { // with one it is an ordinary request: its body would be the next request's beginning
		var switched *wire.Switched
		switched, err = d.h.o.Unmatched.Upgrade(c.ctx, d.passHead(true), &d.answer)
		if switched != nil {
			c.end()
			d.called()
			d.report.Status, d.report.UpstreamStatus = d.answer.Status, d.answer.Status
			if d.h.tunnels.Serve(ctx, switched) != nil { // this process is about to end
				ctx.SetConnectionClose()
				d.refuse(ctx, idem.DecisionUpstreamFailed, refusal{detail: "Hooklock is shutting down", effect: idem.EffectNo})
			}
			return
		}
	} else {
		err = d.h.o.Unmatched.Stream(c.ctx, d.passHead(false), d.passBody(ctx, c), &d.answer)
	}
	d.called()
	if err != nil {
		d.passFailed(ctx, c, err)
		c.end()
		return
	}
	d.writeAnswer(ctx)
	if d.answer.RequestPending {
		hangUp(ctx)
	}
	if d.answer.Rest == nil { // it has no body: what has one is streamed
		c.end()
		return
	}
	d.stream(ctx, &answerStream{d: d, call: c, rest: d.answer.Rest, held: d.answer.Body})
}

func (d *delivery) passHead(upgrade bool) []byte {
	d.out = d.head.AppendTo(d.out[:0], wire.HeadOptions{Streamed: true, Upgrade: upgrade, Close: d.head.HasBody(), Host: []byte(d.h.o.UpstreamHost)})
	return d.out
}

// passBody is the request's body as it comes in, nil without one.
func (d *delivery) passBody(ctx *fasthttp.RequestCtx, c *call) *wire.RequestBody {
	body := wire.BodyOf(ctx)
	if body == nil {
		return nil
	}
	paced := &pacedReader{Reader: body.Reader, conn: ctx.Conn(), call: c, pacer: d.h.limits().bodyPace().Begin()}
	body.Reader, body.Interrupt = paced, paced.interrupt
	return body
}

// pacedReader reads a body as long as its sender keeps the pace. Meanwhile the upstream's clock stands still.
type pacedReader struct {
	io.Reader
	conn  net.Conn
	call  *call
	pacer wire.Pacer

	mu          sync.Mutex
	interrupted bool // for good: the deadline of another piece must not undo it
}

// Read implements io.Reader.
func (r *pacedReader) Read(p []byte) (int, error) {
	r.call.pause()
	began := time.Now()
	if err := r.allow(r.pacer.Deadline(began)); err != nil {
		return 0, err
	}
	n, err := r.Reader.Read(p)
	r.pacer.Moved(n, time.Since(began))
	r.call.progress()
	return n, err
}

func (r *pacedReader) allow(until time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.interrupted {
		return os.ErrDeadlineExceeded
	}
	return r.conn.SetReadDeadline(until)
}

func (r *pacedReader) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupted = true
	_ = r.conn.SetReadDeadline(time.Unix(1, 0)) // a closed connection needs no deadline
}

func (d *delivery) passFailed(ctx *fasthttp.RequestCtx, c *call, err error) {
	if d.head.HasBody() {
		hangUp(ctx)
	}
	var send *wire.SendError
	sent := !errors.As(err, &send) || send.Sent()
	if send != nil {
		if bad := badBody(send.Err); bad != nil {
			bad.Sent = sent
			d.reject(ctx, bad)
			return
		}
	}
	decision := failureDecision(c, send)
	d.refuse(ctx, decision, refusal{detail: failureDetail(decision, sent), effect: effectIf(sent)})
}

// bypass forwards a delivery of a route without lock and without memory. would is the decision that was not carried out.
func (d *delivery) bypass(ctx *fasthttp.RequestCtx, would idem.Decision) {
	d.report.Would = would
	c := newCall(d.base, d.h.o.Timeout)
	d.upstream = d.h.o.Now()
	err := d.h.o.Upstream.Send(c.ctx, d.upstreamHead(nil), d.body, &d.answer)
	d.called()
	if err != nil {
		d.passFailed(ctx, c, err)
		c.end()
		return
	}
	d.writeAnswer(ctx)
	d.mark(ctx, idem.DecisionBypassed)
	if !d.answer.Whole {
		d.stream(ctx, &answerStream{d: d, call: c, rest: d.answer.Rest, held: d.answer.Body})
		return
	}
	d.lendAnswer(ctx)
	c.end()
}
