package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/proxy/kept"
	"hooklock/proxy/suggest"
	"hooklock/proxy/wire"
)

// Gate decides whether a delivery may run. In production it is *guard.Guard.
type Gate interface {
	Admit(sender context.Context, r *idem.Request) guard.Admission
}

// HandlerOptions are what a Handler works with.
type HandlerOptions struct {
	Gate     Gate
	Upstream *wire.Upstream // of deliveries on routes
	// Unmatched is the pool of requests that no route takes: nothing that a stranger sends travels
	// on a connection of deliveries.
	Unmatched *wire.Upstream
	// UpstreamHost is the Host of a request without one, which only HTTP/1.0 may have.
	UpstreamHost string
	// Timeout bounds one call of the upstream.
	Timeout time.Duration
	// StreamTimeout bounds the silence of the upstream in the middle of an answer of which nothing
	// is recorded; 0 means Timeout.
	StreamTimeout time.Duration
	// Budget bounds the memory of all bodies and answers; nil: no bound.
	Budget *wire.Budget
	// Requests store the requests of parked executions; nil: none are parked.
	Requests Requests
	// Archive keeps the request of an execution for a while, whatever becomes of it. It copies r,
	// and does not block. nil: none is kept.
	Archive func(e *idem.ExecutionFacts, keep time.Duration, r *kept.Request)
	// Paused returns the pause of a route and workflow, for deliveries that do not go through the
	// gate; nil: there are none.
	Paused func(route, workflow string) *idem.Pause
	// NearLimit reports whether the sender of a route is half way to switching its endpoint off;
	// nil: none ever is.
	NearLimit func(route string) bool
	// Recorder learns from deliveries which keys to suggest; nil: nothing does.
	Recorder *suggest.Recorder
	// Arrivals store deliveries that were not executed; nil: none are stored.
	Arrivals Arrivals
	// Base is the context of deliveries that pass through. That of executions is the Guard's.
	Base     context.Context
	Observer Observer
	Tracer   Tracer           // nil: nothing is recorded as a trace
	Now      func() time.Time // nil means time.Now
	Log      *slog.Logger
}

// Handler takes deliveries to the upstream and answers back.
type Handler struct {
	options HandlerOptions
	rules   atomic.Pointer[Rules]
	pool    *deliveryPool
	twins   *twins
	tunnels wire.Tunnels
	passing passing
	leaving sync.WaitGroup // the ends of connections whose senders were answered during the call
	parsers chan struct{}  // has room for as many long bodies as are parsed at a time
}

// Rules are what a reload replaces, all at once. A delivery keeps those that it began with.
type Rules struct {
	Table  Table
	Limits Limits
}

// Limits bound the cost of one delivery.
type Limits struct {
	RequestBody int           // bytes
	HeadTimeout time.Duration // from the first byte to the end of the head
	BodyTimeout time.Duration // for the whole body on a route, and for each Progress of it where it passes through
	Progress    int           // bytes; 0: each byte has BodyTimeout
}

func (l *Limits) bodyPace() wire.Pace { return wire.Pace{Bytes: l.Progress, Time: l.BodyTimeout} }

// NewHandler makes a Handler.
func NewHandler(o HandlerOptions, rules *Rules) *Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.StreamTimeout == 0 {
		o.StreamTimeout = o.Timeout
	}
	h := &Handler{
		options: o, pool: newDeliveryPool(), twins: newTwins(), parsers: make(chan struct{}, runtime.GOMAXPROCS(0))}
	h.rules.Store(rules)
	context.AfterFunc(o.Base, func() { h.passing.end(context.Cause(o.Base)) })
	return h
}

// SetRules replaces routes and limits for the deliveries that come from now on.
func (h *Handler) SetRules(r *Rules) { h.rules.Store(r) }

func (h *Handler) limits() *Limits { return &h.rules.Load().Limits }

// ServeHTTP takes one delivery through its stages. Whatever happens, one answer is written and one
// report is made, and an execution that was not settled is abandoned. If the answer is streamed,
// the end of the stream settles and reports.
func (h *Handler) ServeHTTP(ctx *fasthttp.RequestCtx) {
	d := h.pool.get(h)
	defer func() { d.contain(ctx, recover()) }()
	defer func() {
		if !d.detached {
			d.abandon()
		}
	}()
	ctx.Response.Header.DisableNormalizing()
	end := d.serve(ctx)
	if end == nil {
		end = d.run(ctx)
	}
	if end != nil {
		d.answer(ctx, end)
	}
}

// contain ends a delivery; p is the panic that cut it short, nil without one.
func (d *delivery) contain(ctx *fasthttp.RequestCtx, p any) {
	if p != nil {
		d.logPanic(p)
	}
	if p != nil && !d.accepted {
		ctx.SetConnectionClose() // how much of the request was read is unknown
		d.answer(ctx, d.refuse(idem.DecisionInternalError))
	}
	if !d.detached {
		d.finish()
	}
}

// contained runs a stage outside of the handler, and recovers from its panics.
func (d *delivery) contained(stage func() *ending) (end *ending) {
	defer func() {
		if p := recover(); p != nil {
			d.logPanic(p)
			d.abandon()
			end = d.refuse(idem.DecisionInternalError)
		}
	}()
	return stage()
}

func (d *delivery) logPanic(p any) {
	d.broken = true // its memory may still be in use
	d.handler.options.Log.Error("panic", "error", fmt.Sprint(p), "trace_id", d.trace.TraceID(),
		"stack", string(debug.Stack()))
}

// serve runs the stages of one delivery (docs/architecture.md). Each stage takes the delivery, and
// returns nil if it leaves in it what the next one needs, or the ending of the delivery. None runs
// twice, and none goes back. The last one is run: an execution was admitted.
func (d *delivery) serve(ctx *fasthttp.RequestCtx) *ending {
	if end := d.readHead(ctx); end != nil {
		return end
	}
	if end := d.findRoute(ctx); end != nil {
		return end
	}
	if d.route == nil {
		return d.passThrough(ctx)
	}
	if end := d.readBody(ctx); end != nil {
		return end
	}
	if end := d.parse(); end != nil {
		return end
	}
	return d.admit(ctx)
}

// parse runs the stages that take the body apart.
func (d *delivery) parse() *ending {
	defer d.awaitParser()()
	if end := d.verify(); end != nil {
		return end
	}
	if end := d.letAskForChallenge(); end != nil {
		return end
	}
	return d.name()
}

// awaitParser waits until the body may be parsed, and returns the function that ends the parsing.
// Parsed, a body takes several times its length beside limits.memory (docs/threat-model.md). So no
// more long ones are parsed at a time than there are processors, which takes no longer in all, and
// nothing parsed is left while the delivery waits for a lock or its answer.
func (d *delivery) awaitParser() (end func()) {
	if len(d.req.body) <= keepBuffer {
		return func() {}
	}
	d.handler.parsers <- struct{}{}
	return func() {
		d.req.msg.DropScratch()
		<-d.handler.parsers
	}
}
