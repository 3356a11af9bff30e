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
func (d *delivery) passThrough(ctx *fasthttp.RequestCtx) *ending {
	if d.head.Upgrade() != nil && !d.head.HasBody() { // with one it is an ordinary request: its body would be the next request's beginning
		return d.passUpgrade(ctx)
	}
	c := d.pass(d.report.Started) // its head alone was read since
	err := d.h.o.Unmatched.Stream(&c.Call, d.passHead(false), d.passBody(ctx, c), &d.answer)
	d.noteCall()
	return d.passed(c, err)
}

// passUpgrade carries a request for another protocol, and then that.
func (d *delivery) passUpgrade(ctx *fasthttp.RequestCtx) *ending {
	c := d.pass(d.report.Started)
	switched, err := d.h.o.Unmatched.Upgrade(&c.Call, d.passHead(true), &d.answer)
	d.noteCall()
	if switched == nil {
		return d.passed(c, err)
	}
	c.end()
	d.report.Status, d.report.UpstreamStatus = d.answer.Status, d.answer.Status
	if d.h.tunnels.Serve(ctx, switched) != nil { // this process is about to end
		ctx.SetConnectionClose()
		return d.tell(failureOf(idem.DecisionUpstreamFailed, "Hooklock is shutting down"), true) // the upstream has switched
	}
	d.end = ending{source: fromTunnel}
	return &d.end
}

// passed is the ending of a delivery that was forwarded without lock and without memory: the upstream's answer, or why there is none.
func (d *delivery) passed(c *call, err error) *ending {
	if err != nil {
		defer c.end()
		return d.notPassed(c, err)
	}
	d.end = ending{source: fromUpstream, hangUp: d.answer.RequestPending}
	if d.route != nil {
		d.end.decision = idem.DecisionBypassed
	}
	if d.answer.Rest != nil {
		d.end.stream = &answerStream{d: d, call: c, rest: d.answer.Rest, held: d.answer.Body}
		return &d.end
	}
	d.end.pooled = d.route != nil || len(d.answer.Body) > 0
	c.end()
	return &d.end
}

func (d *delivery) notPassed(c *call, err error) *ending {
	end := d.tell(callFailure(c, err), wasSent(err))
	var send *wire.SendError
	if errors.As(err, &send) {
		if bad := badBody(send.Err); bad != nil {
			bad.Sent = send.Sent()
			end = d.reject(bad)
		}
	}
	end.hangUp = end.hangUp || d.head.HasBody()
	return end
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

// bypass forwards a delivery of a route without lock and without memory.
func (d *delivery) bypass() *ending {
	c := d.pass(d.h.o.Now())
	return d.passed(c, d.send(c, nil))
}
