package proxy

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/proxy/wire"
)

// runExecution calls the upstream for an admitted delivery, and settles. It returns nil if its
// sender was answered meanwhile.
func (d *delivery) runExecution(ctx *fasthttp.RequestCtx) *ending {
	if d.parksSlow() {
		d.early = &earlyAnswer{delivery: d, ctx: ctx}
	}
	end := d.callAndSettle()
	if !d.accepted {
		return end
	}
	end.readAlone()
	return nil
}

// parksSlow reports whether the route parks what is slow, and this delivery can be.
func (d *delivery) parksSlow() bool {
	p := d.route.Policy.Park
	return p != nil && p.Slow && d.asked.Parking != nil && !d.route.Observe &&
		(p.MaxBytes == 0 || d.asked.Parking.Size <= p.MaxBytes)
}

// readAlone reads an answer that is too long to be read whole, if no stream does: its end is the
// outcome.
func (e *ending) readAlone() {
	if e.stream != nil {
		_ = e.stream.Close()
	}
}

// earlyAnswer tells a sender whose patience ends during the call of the upstream that its event is
// accepted. The call goes on in the goroutine of the delivery, which touches neither its report nor
// fasthttp's request between startTimer and stopTimer. A timer writes the answer, because fasthttp
// does so only when its handler returns; it is the last one of its connection.
type earlyAnswer struct {
	delivery *delivery
	ctx      *fasthttp.RequestCtx
	began    time.Time
	timer    *time.Timer

	mu     sync.Mutex
	over   bool
	cancel context.CancelFunc // of what stores the request
	trying chan struct{}      // closed when that is over and the sender answered; nil: nothing is stored now
}

// parkAgain is how often parking is tried again for a delivery whose sender has stopped waiting:
// there may be room, or a store, again.
const parkAgain = time.Second

// startTimer waits for the end of the sender's patience. e may be nil.
func (e *earlyAnswer) startTimer() {
	if e != nil {
		e.began = e.delivery.handler.options.Now()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.timer = time.AfterFunc(e.delivery.patienceLeft(), e.tryAccept)
	}
}

// stopTimer ends the wait, when the call has ended. Afterwards d.accepted says whether the sender
// was answered. It may be called again, or without a start. e may be nil.
func (e *earlyAnswer) stopTimer() {
	if e == nil || e.timer == nil {
		return
	}
	e.timer.Stop()
	e.mu.Lock()
	e.over = true
	trying := e.trying
	if trying != nil {
		e.cancel()
	}
	e.mu.Unlock()
	if trying != nil {
		<-trying
	}
	if e.delivery.accepted {
		e.delivery.report.Trace = nil // it was reported with the answer
	}
}

// tryAccept accepts the event, if that is possible.
func (e *earlyAnswer) tryAccept() {
	e.mu.Lock()
	if e.over {
		e.mu.Unlock()
		return
	}
	trying := make(chan struct{})
	var ctx context.Context
	ctx, e.cancel = context.WithCancel(context.Background())
	e.trying = trying
	e.mu.Unlock()
	defer close(trying)
	accepted := e.parkAndAnswer(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cancel()
	if e.trying = nil; !e.over && !accepted {
		e.timer.Reset(parkAgain) // it is about to end, or its sender waits as on any route
	}
}

// parkAndAnswer parks the execution and answers its sender. ctx ends with the call of the upstream.
// A panic is that of front: d is in use by its call.
func (e *earlyAnswer) parkAndAnswer(ctx context.Context) (accepted bool) {
	d := e.delivery
	front := d.handler.pool.get(d.handler)
	var answer bytes.Buffer
	defer func() {
		if p := recover(); p != nil {
			front.logPanic(p)
		}
		if accepted = d.accepted; !accepted {
			d.handler.pool.put(front)
			return
		}
		front.reportAndFree()
		e.sendAndClose(answer.Bytes())
	}()
	if d.execution.Park(ctx) != nil {
		return false
	}
	d.accepted = true
	front.route, front.trace, front.report, front.names = d.route, d.trace, d.report, d.names
	front.req.peer = append(front.req.peer, d.req.peer...)
	front.report.Upstream = d.handler.options.Now().Sub(e.began) // so far
	front.answerWith(e.ctx, front.endParked(d.execution.Lock().Execution, idem.ParkSlow))
	e.ctx.Response.SkipBody = e.ctx.IsHead()
	e.ctx.Response.Header.SetConnectionClose()
	_, _ = e.ctx.Response.WriteTo(&answer)
	return true
}

// sendAndClose writes the answer and closes the connection. The call and what follows it do not
// wait for the sender.
func (e *earlyAnswer) sendAndClose(answer []byte) {
	conn, sent := e.ctx.Conn(), make(chan struct{})
	wire.SuppressResponse(e.ctx, sent)
	wire.LingerOnClose(conn) // a sender may have sent its next request
	e.delivery.handler.leaving.Go(func() {
		defer close(sent)
		_, _ = conn.Write(answer)
		_ = conn.Close()
	})
}
