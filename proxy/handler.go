package proxy

import (
	"cmp"
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

// Gate decides which deliveries run. In production it is *guard.Guard.
type Gate interface {
	Admit(sender context.Context, r *idem.Request) guard.Admission
}

// HandlerOptions are what a Handler works with. A field may have its zero value only if its comment
// says what that means.
type HandlerOptions struct {
	Gate     Gate
	Upstream *wire.Upstream // Upstream is the pool of connections for deliveries on routes.
	// Unmatched is the pool of connections for requests that no route takes, so that nothing from a
	// stranger is on a connection of deliveries.
	Unmatched *wire.Upstream
	// UpstreamHost is the Host of a request without one, which only HTTP/1.0 may have.
	UpstreamHost string
	Timeout      time.Duration // Timeout bounds one call of the service.
	// StreamTimeout bounds the silence of the service in the middle of an answer of which nothing
	// is recorded. 0 is Timeout.
	StreamTimeout time.Duration
	// Budget bounds the memory of all bodies and answers. nil is no bound.
	Budget *wire.Budget
	// Requests store the requests of parked executions. nil parks none.
	Requests Requests
	// Archive stores the request of an execution for a while, whatever becomes of that. It copies
	// r, and does not block. nil stores none.
	Archive func(e *idem.ExecutionFacts, keep time.Duration, r *kept.Request)
	// Paused returns the pause of a route and workflow, for deliveries that do not go through the
	// gate. nil means that there are no pauses.
	Paused func(route, workflow string) *idem.Pause
	// NearLimit reports whether the sender of a route is half way to switching its endpoint off.
	// nil means that none ever is.
	NearLimit func(route string) bool
	// Recorder learns from deliveries which keys to suggest. nil learns nothing.
	Recorder *suggest.Recorder
	// Arrivals store deliveries that were not executed. nil stores none.
	Arrivals Arrivals
	// Base is the context of deliveries that pass through. The Guard has that of executions.
	Base     context.Context
	Observer Observer
	Tracer   Tracer           // Tracer records traces. nil records none.
	Now      func() time.Time // Now is the clock. nil is time.Now.
	Log      *slog.Logger
}

// Handler takes deliveries to the service and answers back. NewHandler makes one.
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

// Rules are what a reload replaces, all at once. A delivery keeps the rules that it began with.
type Rules struct {
	Table  Table
	Limits Limits
}

// Limits bound what one delivery may cost.
type Limits struct {
	RequestBody int           // the most bytes of a body
	HeadTimeout time.Duration // from the first byte to the end of the head
	// BodyTimeout bounds the time for a whole body on a route, and for each Progress bytes of a
	// body that passes through.
	BodyTimeout time.Duration
	Progress    int // in bytes; 0: one byte
}

func (l *Limits) bodyPace() wire.Pace { return wire.Pace{Bytes: l.Progress, Time: l.BodyTimeout} }

// NewHandler makes a Handler that follows these rules, until SetRules.
func NewHandler(o HandlerOptions, rules *Rules) *Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.StreamTimeout = cmp.Or(o.StreamTimeout, o.Timeout)
	h := &Handler{
		options: o, pool: newDeliveryPool(), twins: newTwins(), parsers: make(chan struct{}, runtime.GOMAXPROCS(0))}
	h.rules.Store(rules)
	context.AfterFunc(o.Base, func() { h.passing.cancelAll(context.Cause(o.Base)) })
	return h
}

// SetRules replaces the rules for the deliveries that come from now on.
func (h *Handler) SetRules(r *Rules) { h.rules.Store(r) }

func (h *Handler) currentLimits() *Limits { return &h.rules.Load().Limits }

// ServeHTTP takes one delivery through its stages. Whatever happens, it writes one answer and makes
// one report, and abandons an execution whose end was not recorded. If the answer is streamed, the
// end of the stream does both.
func (h *Handler) ServeHTTP(ctx *fasthttp.RequestCtx) {
	d := h.pool.get(h)
	defer func() { d.endServing(ctx, recover()) }()
	defer func() {
		if !d.detached {
			d.endUnsettled()
		}
	}()
	ctx.Response.Header.DisableNormalizing()
	end := d.serveStages(ctx)
	if end == nil {
		end = d.runExecution(ctx)
	}
	if end != nil {
		d.answerWith(ctx, end)
	}
}

// endServing ends a delivery; p is the panic that cut it short, nil without one.
func (d *delivery) endServing(ctx *fasthttp.RequestCtx, p any) {
	if p != nil {
		d.logPanic(p)
	}
	if p != nil && !d.accepted {
		ctx.SetConnectionClose() // how much of the request was read is unknown
		d.answerWith(ctx, d.refuseWith(idem.DecisionInternalError))
	}
	if !d.detached {
		d.reportAndFree()
	}
}

// runRecovered runs a stage outside of the handler, and recovers from its panics.
func (d *delivery) runRecovered(stage func() *ending) (end *ending) {
	defer func() {
		if p := recover(); p != nil {
			d.logPanic(p)
			d.endUnsettled()
			end = d.refuseWith(idem.DecisionInternalError)
		}
	}()
	return stage()
}

func (d *delivery) logPanic(p any) {
	d.broken = true // its memory may still be in use
	d.handler.options.Log.Error("panic", "error", fmt.Sprint(p), "trace_id", d.trace.TraceID(),
		"stack", string(debug.Stack()))
}

// serveStages runs the stages of one delivery (docs/architecture.md). Each stage takes the
// delivery, and returns nil if it leaves in it what the next one needs, or the ending of the
// delivery. None runs twice or goes back. The last is runExecution, if an execution was admitted.
func (d *delivery) serveStages(ctx *fasthttp.RequestCtx) *ending {
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
	if end := d.runBodyStages(); end != nil {
		return end
	}
	return d.admitByGate(ctx)
}

// runBodyStages runs the stages that take the body apart.
func (d *delivery) runBodyStages() *ending {
	defer d.awaitParser()()
	if end := d.verifySignature(); end != nil {
		return end
	}
	if end := d.letAskForChallenge(); end != nil {
		return end
	}
	return d.readNames()
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
