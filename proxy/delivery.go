package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy/sender"
	"hooklock/proxy/wire"
)

// delivery is one HTTP request on its way through the stages. It owns copies of everything: nothing in it points into fasthttp's memory,
// so it may outlive the handler, as it does while a long answer is streamed.
type delivery struct {
	room
	course
}

// room is the memory that a delivery leaves to the next one.
type room struct {
	head   wire.Head
	body   []byte
	msg    naming.Message
	place  question
	extra  []byte // scratch for Hooklock's header lines
	out    []byte // the head for the upstream
	answer wire.Answer
	fields []wire.Field
	sender []byte // the peer's address, for X-Forwarded-For

	headReader *bufio.Reader
	life       *call // of the upstream
}

// course is the state of this delivery alone.
type course struct {
	h     *Handler
	route *Route
	base  context.Context

	signed sender.Delivery // msg as a verifier reads it
	names  naming.Names
	vars   []naming.PathVar
	memory wire.Account // for body and answer

	headBytes bytes.Reader // the answer's head on its way through fasthttp's parser

	trace     idem.TraceContext
	proto     []byte
	report    Report
	execution *idem.Execution // nil until it was admitted
	asked     *idem.Request   // the request for the gate; nil before
	end       ending
	upstream  time.Time     // when the call began
	over      time.Time     // when it was over
	detached  bool          // an answer is still being streamed, or the call continues: that goroutine ends the delivery
	left      chan struct{} // closed when the handler has left a detached delivery whose call goes on
	unsure    bool          // it is unknown whether it was parked: it may run
	renewed   string        // when the sender made the signature that was replaced; "": none was
	accepted  bool          // its sender was answered before
	broken    bool          // a panic cut it short
	keeps     bool          // its connection to the upstream may be used again
}

// deliveryPool pools deliveries with their buffers; large ones are left to the collector.
type deliveryPool struct {
	pool sync.Pool
	out  atomic.Int64  // those that have not ended
	back chan struct{} // has room for one token, which is there after the last of them has ended
}

func newDeliveryPool() *deliveryPool { return &deliveryPool{back: make(chan struct{}, 1)} }

// await waits until every delivery has ended, at most until ctx does. It is not safe for concurrent use.
func (p *deliveryPool) await(ctx context.Context) error {
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
	}
	d.h, d.base = h, h.o.Base
	d.memory = h.o.Budget.Open()
	d.answer.Memory = &d.memory
	d.report.Started = h.o.Now()
	return d
}

func (p *deliveryPool) put(d *delivery) {
	defer p.ended()
	if d.broken {
		d.cut()
	}
	d.memory.Close()
	if d.broken || cap(d.body) > keepBuffer || d.answer.Room() > keepBuffer {
		return
	}
	d.msg.Reset()
	d.body, d.extra, d.out, d.fields, d.sender = d.body[:0], d.extra[:0], d.out[:0], d.fields[:0], d.sender[:0]
	d.course = course{}
	p.pool.Put(d)
}

// cut ends the call that a panic may have left under way.
func (d *delivery) cut() {
	if d.answer.Rest != nil {
		_ = d.answer.Rest.Close()
	}
	if d.life != nil {
		d.life.Cancel(errBroken)
		d.life.end()
	}
}

var errBroken = errors.New("a panic cut the delivery short")

func (p *deliveryPool) ended() {
	if p.out.Add(-1) > 0 {
		return
	}
	select {
	case p.back <- struct{}{}:
	default:
	}
}

// readHead is the first stage.
func (d *delivery) readHead(ctx *fasthttp.RequestCtx) *ending {
	d.report.TLS = ctx.IsTLS()
	return d.rejectedBy(d.parse(&ctx.Request.Header))
}

// parse copies and checks the head. A head that two HTTP parsers could read differently is refused here, on unmatched paths too.
func (d *delivery) parse(h *fasthttp.RequestHeader) *Rejection {
	if err := wire.ParseHead(h, &d.head); err != nil {
		return reject(codeBadRequest, err.Error())
	}
	path, query, _ := bytes.Cut(d.head.Target(), []byte{'?'})
	d.msg.Method, d.msg.Target, d.msg.Path, d.msg.Query = d.head.Method(), d.head.Target(), path, query
	d.msg.Fields = d.msg.Fields[:0]
	for _, f := range d.head.Fields() {
		d.msg.Fields = append(d.msg.Fields, naming.Field(f))
	}
	d.msg.Host = d.header("host")
	q := &d.place
	q.method, q.host, q.path, q.bare = d.msg.Method, d.msg.Host, d.msg.Path, !d.head.HasBody() && d.head.Upgrade() == nil
	q.msg = &d.msg
	d.report.Method, d.report.HTTP10 = knownMethod(d.msg.Method), d.head.HTTP10()
	return nil
}

// findRoute finds the route that takes the delivery, and the data that a delivery on a route needs. The route stays nil if none takes it.
func (d *delivery) findRoute(ctx *fasthttp.RequestCtx) *ending {
	rules := d.h.rules.Load()
	route, vars, bad := rules.Table.find(&d.place)
	if bad != nil || route == nil {
		return d.rejectedBy(bad)
	}
	d.route, d.vars = route, vars
	d.report.Route, d.report.Keyed, d.report.Locks = route.Name, route.Policy.Idempotency, route.Policy.Strategy != idem.NoLock
	d.report.Verified = route.Verify.Verifier == nil
	d.sender = d.sender[:0]
	if ip := ctx.RemoteIP(); !ip.IsUnspecified() { // fasthttp's for the peer of a socket, which has no address
		d.sender = append(d.sender, ip.String()...)
	}
	d.proto = httpProto
	if ctx.IsTLS() {
		d.proto = httpsProto
	}
	d.beginTrace()
	if d.head.Upgrade() != nil {
		end := d.reject(upgradeRefused())
		end.hangUp = true // what follows may be an unread body, or the other protocol already
		return end
	}
	return nil
}

// header returns the value of the first header line of that name, which is in lower case.
func (d *delivery) header(name string) []byte {
	for _, f := range d.msg.Fields {
		if len(f.Name) == len(name) && bytes.EqualFold(f.Name, []byte(name)) {
			return f.Value
		}
	}
	return nil
}

var (
	httpProto  = []byte("http")
	httpsProto = []byte("https")
)

// readBody copies the whole body of a delivery on a route, unless its head shows already that it is not signed: that would take memory.
func (d *delivery) readBody(ctx *fasthttp.RequestCtx) *ending {
	if end := d.unsigned(); end != nil {
		return end
	}
	var err error
	d.body, err = wire.ReadBody(ctx, d.body[:0], d.h.limits().RequestBody, &d.memory)
	d.msg.Body = d.body
	if err == nil {
		return nil
	}
	bad := badBody(err)
	if bad == nil {
		bad = reject(codeBadRequest, err.Error())
	}
	end := d.reject(bad)
	end.hangUp = true
	return end
}

// badBody refuses a delivery whose body was malformed or cut off; nil if err is another error. What follows such a body on its connection is
// the rest of it, and no request: hang up.
func badBody(err error) *Rejection {
	switch {
	case errors.Is(err, wire.ErrMemory):
		return reject(codeMemoryExhausted, "the bodies and answers of other deliveries fill limits.memory; nothing was executed, send the event again")
	case errors.Is(err, wire.ErrBodyTooLarge):
		return bodyTooLarge()
	case errors.Is(err, wire.ErrBodySlow):
		return reject(codeRequestTimeout, "the body did not arrive within limits.body_timeout")
	case errors.Is(err, wire.ErrBodyTruncated), errors.Is(err, wire.ErrBodyBroken):
		return reject(codeBadRequest, err.Error())
	}
	return nil
}

// name builds workflow, key and fingerprint.
func (d *delivery) name() *ending {
	d.msg.Vars = d.vars
	since := d.h.o.Now()
	var err error
	d.names, err = d.route.Keys.Name(&d.msg)
	d.report.Stages.Key = d.since(since)
	var bad *naming.NameError
	_ = errors.As(err, &bad)
	d.report.WorkflowPart, d.report.EventIDPart = d.partResults(bad)
	d.report.Ordered = d.names.Ordered
	var end *ending
	switch {
	case bad != nil:
		end = d.reject(reject(bad.Code, bad.Detail))
	case err != nil:
		end = d.reject(reject(codeBadRequest, err.Error()))
	default:
		d.report.Workflow, d.report.Key, d.report.EventID = d.names.Workflow, d.names.Key.Short(), d.names.EventID
		d.report.Labels = d.names.Labels
		if !d.names.Missing {
			d.report.Keyed = d.report.Keyed && d.names.Key != ""
			return nil
		}
		if paused := d.h.o.Paused; paused != nil && paused(d.route.Name, d.names.Workflow) != nil {
			end = d.refuse(idem.DecisionPaused)
			break
		}
		end = d.refuse(idem.DecisionRejected)
		end.forward = forwardAlways // on_missing_event_id: pass
		return end
	}
	end.forward = forwardByRule
	return end
}

// partResults returns how the parts of the delivery's name were found.
func (d *delivery) partResults(bad *naming.NameError) (workflow, eventID PartResult) {
	workflow = PartOK
	switch {
	case bad != nil && bad.Part == naming.PartWorkflow:
		return partResult(bad.Code), ""
	case !d.route.Keys.ReadsEventID():
	case bad != nil:
		eventID = partResult(bad.Code)
	case d.names.EventID == "":
		eventID = PartMissing
	default:
		eventID = PartOK
	}
	return workflow, eventID
}

func partResult(code string) PartResult {
	switch code {
	case naming.CodeEventIDAmbiguous:
		return PartAmbiguous
	case naming.CodeKeyTooLong:
		return PartTooLong
	}
	return PartMissing
}

func (d *delivery) since(from time.Time) Stretch { return Stretch{from, d.h.o.Now().Sub(from)} }

// trusted reports whether the body is its sender's: a signature proves it, of a parked execution since it was accepted.
func (d *delivery) trusted() bool {
	return d.route.Verify.Verifier != nil && (d.accepted || d.report.Verified && d.report.Signature == SignatureValid)
}

// upstreamHead builds the head for the upstream. A delivery on a route gets header lines about its origin; one that passes through gets none.
func (d *delivery) upstreamHead(x *idem.Execution) []byte {
	trace, own := d.traceForUpstream()
	d.keeps = d.h.o.Upstream.Reuses(d.body, d.trusted())
	o := wire.HeadOptions{
		Length: int64(len(d.body)), Close: !d.keeps, ForwardedFor: d.sender, ForwardedProto: d.proto, ForwardedHost: d.msg.Host,
		Host: []byte(d.h.o.UpstreamHost), Traceparent: []byte(trace), OwnTrace: own,
	}
	if x != nil {
		d.extra = appendExecution(d.extra[:0], x)
		if d.renewed != "" {
			d.extra = wire.AppendField(d.extra, sender.RenewedHeader, []byte(d.renewed))
		}
		o.Extra = d.extra
	}
	d.out = d.head.AppendTo(d.out[:0], o)
	return d.out
}
