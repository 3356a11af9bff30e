package proxy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/idem/naming"
	"hooklock/proxy/kept"
	"hooklock/proxy/sender"
	"hooklock/proxy/wire"
)

// delivery is one HTTP request on its way through the stages. It owns copies of everything: nothing
// in it points into fasthttp's memory, so it may outlive the handler, as it does while a long
// answer is streamed.
type delivery struct {
	deliveryBuffers
	deliveryState
}

// deliveryBuffers is the memory that a delivery leaves to the next one.
type deliveryBuffers struct {
	req    request
	call   call // of the upstream
	parser headParser
}

// deliveryState is the state of this delivery alone.
type deliveryState struct {
	handler *Handler
	route   *Route

	names  naming.Names
	memory wire.Account // for body and answer

	trace     idem.TraceContext
	report    Report
	signature *sender.SignatureError // nil: it is right, or none is needed
	execution *guard.Execution       // nil until it was admitted
	asked     *idem.Request          // the request for the gate; nil before
	end       ending
	early     *earlyAnswer  // nil: its sender waits for the end of the call (slow.go)
	tap       *bodyTap      // of a body that passes through; nil: it has none, or nothing learns from it
	original  *kept.Request // of a parked try; nil: the delivery is the original
	left      bool          // its sender had gone before the answer came
	detached  bool          // an answer is still being streamed, and its end ends the delivery
	accepted  bool          // its sender was answered before
	broken    bool          // a panic cut it short
}

// deliveryPool pools deliveries with their buffers; large ones are left to the collector.
type deliveryPool struct {
	pool sync.Pool
	out  atomic.Int64  // those that have not ended
	back chan struct{} // has room for one token, which is there after the last of them has ended
}

func newDeliveryPool() *deliveryPool { return &deliveryPool{back: make(chan struct{}, 1)} }

// awaitEmpty waits until every delivery has ended, at most until ctx does. It is not safe for
// concurrent use.
func (p *deliveryPool) awaitEmpty(ctx context.Context) error {
	for p.out.Load() > 0 {
		select {
		case <-p.back:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

const keepBuffer = 64 << 10

func (p *deliveryPool) get(h *Handler) *delivery {
	p.out.Add(1)
	d, _ := p.pool.Get().(*delivery)
	if d == nil {
		d = new(delivery)
		d.call.Call = &wire.Call{Late: errUpstreamTimeout}
	}
	d.handler = h
	d.memory = h.options.Budget.Open()
	d.call.answer.Memory = &d.memory
	d.report.Started = h.options.Now()
	return d
}

func (p *deliveryPool) put(d *delivery) {
	defer p.countEnd()
	if d.broken {
		d.call.cutOff()
	}
	d.memory.Close()
	if d.broken || cap(d.req.body) > keepBuffer || d.call.answer.Room() > keepBuffer {
		return
	}
	d.req.reset()
	d.call.began, d.call.over = time.Time{}, time.Time{}
	d.deliveryState = deliveryState{}
	p.pool.Put(d)
}

func (p *deliveryPool) countEnd() {
	if p.out.Add(-1) > 0 {
		return
	}
	select {
	case p.back <- struct{}{}:
	default:
	}
}
