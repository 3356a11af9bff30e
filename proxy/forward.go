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

// passage is one call of the upstream for a delivery that is forwarded without lock and idempotency.
type passage struct {
	*delivery
	c *call
}

// pass begins a passage at that time.
func (d *delivery) pass(at time.Time) passage {
	c := d.begin(at)
	c.among = &d.h.passing
	c.among.enter(&c.Call)
	return passage{d, c}
}

// passThrough forwards a delivery that no route takes: both bodies are streamed, nothing is added, nothing is remembered.
func (d *delivery) passThrough(ctx *fasthttp.RequestCtx) *ending {
	p := d.pass(d.report.Started)                             // only its head was read since
	if d.req.head.Upgrade() != nil && !d.req.head.HasBody() { // with one it is an ordinary request: its body would be the next request's beginning
		return p.upgrade(ctx)
	}
	err := d.h.o.Unmatched.Stream(&p.c.Call, p.headOf(false), p.bodyOf(ctx), &d.answer)
	d.noteCall()
	return p.ended(err)
}

// bypass forwards a delivery of a route.
func (d *delivery) bypass() *ending {
	p := d.pass(d.h.o.Now())
	return p.ended(d.send(p.c, nil))
}

// upgrade forwards a request for another protocol, and then that.
func (p passage) upgrade(ctx *fasthttp.RequestCtx) *ending {
	d := p.delivery
	switched, err := d.h.o.Unmatched.Upgrade(&p.c.Call, p.headOf(true), &d.answer)
	d.noteCall()
	if switched == nil {
		return p.ended(err)
	}
	p.c.end()
	d.report.Status, d.report.UpstreamStatus = d.answer.Status, d.answer.Status
	if d.h.tunnels.Serve(ctx, switched) != nil { // this process is about to end
		ctx.SetConnectionClose()
		return d.tell(failureOf(idem.DecisionUpstreamFailed, "Hooklock is shutting down"), true) // the upstream has switched
	}
	d.end = ending{source: fromTunnel}
	return &d.end
}

// ended returns the ending of a passage: the upstream's answer, or why there is none.
func (p passage) ended(err error) *ending {
	d := p.delivery
	if err != nil {
		defer p.c.end()
		return p.failed(err)
	}
	d.end = ending{source: fromUpstream, hangUp: d.answer.RequestPending}
	if d.route != nil {
		d.end.decision = idem.DecisionBypassed
	}
	if d.answer.Rest != nil {
		d.end.stream = &answerStream{d: d, call: p.c, rest: d.answer.Rest, held: d.answer.Body}
		return &d.end
	}
	d.end.pooled = d.route != nil || len(d.answer.Body) > 0
	p.c.end()
	return &d.end
}

func (p passage) failed(err error) *ending {
	d := p.delivery
	end := d.tell(callFailure(p.c, err), wasSent(err))
	var send *wire.SendError
	if errors.As(err, &send) {
		if bad := badBody(send.Err); bad != nil {
			bad.Sent = send.Sent()
			end = d.reject(bad)
		}
	}
	end.hangUp = end.hangUp || d.req.head.HasBody()
	return end
}

func (p passage) headOf(upgrade bool) []byte {
	d := p.delivery
	d.out = d.req.head.AppendTo(d.out[:0], wire.HeadOptions{Streamed: true, Upgrade: upgrade, Close: d.req.head.HasBody(), Host: []byte(d.h.o.UpstreamHost)})
	return d.out
}

// bodyOf returns the request's body as it comes in, nil without one.
func (p passage) bodyOf(ctx *fasthttp.RequestCtx) *wire.RequestBody {
	body := wire.BodyOf(ctx)
	if body == nil {
		return nil
	}
	paced := &pacedReader{Reader: body.Reader, conn: ctx.Conn(), call: p.c, pacer: p.h.limits().bodyPace().Begin()}
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
	r.call.Pause()
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
