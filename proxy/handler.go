package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/proxy/wire"
)

// Gate decides whether a delivery may run. In production it is *idem.Guard.
type Gate interface {
	Admit(sender context.Context, r *idem.Request) idem.Admission
}

// HandlerOptions are what a Handler works with.
type HandlerOptions struct {
	Gate     Gate
	Upstream *wire.Upstream // of deliveries on routes
	// Unmatched is the pool of requests that no route takes: nothing that a stranger sends travels on a connection of deliveries.
	Unmatched *wire.Upstream
	// UpstreamHost is the Host of a request whose sender gave none, which only HTTP/1.0 may.
	UpstreamHost string
	// Timeout bounds one call of the upstream.
	Timeout time.Duration
	// StreamTimeout bounds the silence of the upstream in the middle of an answer of which nothing is recorded; 0 means Timeout.
	StreamTimeout time.Duration
	// Budget bounds what all bodies and answers take in memory; nil: nothing does.
	Budget *wire.Budget
	// Base is the life of deliveries that pass through. The life of executions is the Guard's.
	Base     context.Context
	Observer Observer
	Tracer   Tracer           // nil: nothing is recorded as a trace
	Now      func() time.Time // nil means time.Now
	Log      *slog.Logger
}

// Handler takes deliveries to the upstream and answers back.
type Handler struct {
	o       HandlerOptions
	rules   atomic.Pointer[Rules]
	pool    deliveryPool
	tunnels wire.Tunnels
}

// Rules are what a reload replaces, all at once. A delivery keeps those that it began with.
type Rules struct {
	Table  Table
	Limits Limits
}

// Limits bound what one delivery may cost.
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
	h := &Handler{o: o}
	h.rules.Store(rules)
	return h
}

// SetRules replaces routes and limits for the deliveries that come from now on.
func (h *Handler) SetRules(r *Rules) { h.rules.Store(r) }

func (h *Handler) limits() *Limits { return &h.rules.Load().Limits }

// ServeHTTP is the door: a clock is started, and whatever goes wrong inside stays inside.
func (h *Handler) ServeHTTP(ctx *fasthttp.RequestCtx) {
	d := h.pool.get(h)
	defer func() {
		if p := recover(); p != nil {
			h.o.Log.Error("panic", "error", fmt.Sprint(p), "trace_id", d.trace.TraceID(), "stack", string(debug.Stack()))
			ctx.SetConnectionClose() // nobody knows how much of the request was read
			d.refuse(ctx, idem.DecisionInternalError, refusal{detail: "this is a bug in Hooklock; its log has the details"})
		}
		if !d.detached {
			d.finish()
		}
	}()
	ctx.Response.Header.DisableNormalizing()
	d.serve(ctx)
	if d.head.Closes() && !ctx.Hijacked() {
		ctx.SetConnectionClose()
	}
}

// serve is the life of one delivery, room by room (docs/architecture.md). Each room is entered once, and hands on what the next one
// needs.
func (d *delivery) serve(ctx *fasthttp.RequestCtx) {
	d.report.TLS = ctx.IsTLS()
	if bad := d.readHead(&ctx.Request.Header); bad != nil {
		d.reject(ctx, bad)
		return
	}
	rules := d.h.rules.Load()
	route, vars, bad := rules.Table.find(&d.place)
	if bad != nil {
		d.reject(ctx, bad)
		return
	}
	if route == nil {
		d.passThrough(ctx)
		return
	}
	d.enter(ctx, route, vars)
	if d.head.Upgrade() != nil {
		ctx.SetConnectionClose() // what follows may be the other protocol already
		d.reject(ctx, upgradeRefused())
		return
	}
	if d.refuseUnsigned(ctx) {
		return
	}
	if bad := d.readBody(ctx); bad != nil {
		d.reject(ctx, bad)
		return
	}
	if d.unseal(ctx) {
		return
	}
	if bad := d.name(); bad != nil {
		d.rejectOrBypass(ctx, bad)
		return
	}
	if d.names.Missing { // on_missing_event_id: pass
		d.bypass(ctx, idem.DecisionRejected)
		return
	}
	admission := d.admit(ctx)
	if admission.Execution == nil {
		d.turnAway(ctx, admission)
		return
	}
	defer d.leave(admission.Execution)
	d.execute(ctx, admission.Execution)
}

// execute runs an admitted delivery: one attempt upstream, one end in the ledger, one answer.
func (d *delivery) execute(ctx *fasthttp.RequestCtx, x *idem.Execution) {
	d.report.Gate = idem.DecisionExecuted
	d.report.Execution, d.report.Attempt = x.Lock().Execution, x.Lock().Attempt
	d.h.o.Observer.Event(EventAcquired, &d.report)
	if err := x.Begin(); err != nil {
		d.stopped(ctx, x, err, false)
		return
	}
	call := newCall(x.Context(), d.h.o.Timeout)
	d.upstream = d.h.o.Now()
	err := d.h.o.Upstream.Send(call.ctx, d.upstreamHead(x), d.body, &d.answer)
	d.called()
	switch {
	case err != nil:
		d.failed(ctx, x, call, err)
	case !d.answer.Whole:
		d.streamAnswer(ctx, x, call)
		return // the stream ends the call and the execution
	default:
		d.complete(ctx, x)
	}
	call.end()
}
