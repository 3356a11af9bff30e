package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/idem/naming"
	"hooklock/proxy/kept"
	"hooklock/proxy/sender"
	"hooklock/proxy/wire"
)

// request is what a sender sent, in memory of its own that the next one uses again. It knows no
// route.
type request struct {
	head  wire.Head
	body  []byte
	msg   naming.Message // head and body, for templates
	place question
	peer  []byte // the sender's address, for X-Forwarded-For; empty on the way through without a route
	tls   bool

	signed  sender.Delivery // see asSigned
	renewed string          // when the sender made the signature that was replaced; "": none was
	whole   bool            // body is all of it
}

func (q *request) reset() {
	q.msg.Reset()
	q.body, q.peer, q.signed, q.renewed, q.whole = q.body[:0], q.peer[:0], sender.Delivery{}, "", false
}

// readHead is the first stage.
func (d *delivery) readHead(ctx *fasthttp.RequestCtx) *ending {
	d.report.TLS = ctx.IsTLS()
	if bad := d.req.parseHead(&ctx.Request.Header); bad != nil {
		return d.rejectWith(bad)
	}
	if d.req.headerValue(headerReplay) != nil {
		return d.rejectWith(newRejection(codeBadRequest,
			"it is a replay (hooklock rerun --to), which goes to a service, and "+
				"never through Hooklock: name the service itself"))
	}
	d.report.noteHead(&d.req)
	return nil
}

// parseHead copies and checks the head. A head that two HTTP parsers could read differently is
// refused here, on unmatched paths too.
func (q *request) parseHead(h *fasthttp.RequestHeader) *Rejection {
	if err := wire.ParseHead(h, &q.head); err != nil {
		return newRejection(codeBadRequest, err.Error())
	}
	m, p := &q.msg, &q.place
	m.Method, m.Target, m.Fields = q.head.Method(), q.head.Target(), m.Fields[:0]
	m.Path, m.Query, _ = bytes.Cut(m.Target, []byte{'?'})
	for _, f := range q.head.Fields() {
		m.Fields = append(m.Fields, naming.Field(f))
	}
	m.Host = q.headerValue("host")
	p.method, p.host, p.path, p.bare, p.msg = m.Method, m.Host, m.Path, !q.head.HasBody() && q.head.Upgrade() == nil, m
	return nil
}

// parseRaw is parse for a head in its wire form, of at most so many bytes.
func (q *request) parseRaw(raw []byte, limit int) *Rejection {
	var head fasthttp.RequestHeader
	if err := head.Read(bufio.NewReaderSize(bytes.NewReader(raw), limit)); err != nil {
		return unreadRejection(err)
	}
	return q.parseHead(&head)
}

// headerValue returns the value of the first header line of that name, which is in lower case.
func (q *request) headerValue(name string) []byte {
	for _, f := range q.msg.Fields {
		if len(f.Name) == len(name) && bytes.EqualFold(f.Name, []byte(name)) {
			return f.Value
		}
	}
	return nil
}

// setPeer notes where the request comes from.
func (q *request) setPeer(ctx *fasthttp.RequestCtx) {
	q.tls = ctx.IsTLS()
	if ip := ctx.RemoteIP(); !ip.IsUnspecified() { // fasthttp's for the peer of a socket, which has no address
		q.peer = append(q.peer[:0], ip.String()...)
	}
}

// readBody reads the whole body of a delivery on a route, unless its head shows already that it is
// not signed: that would take memory.
func (d *delivery) readBody(ctx *fasthttp.RequestCtx) *ending {
	if !d.route.Observe {
		if broken := d.route.Verify.checkHead(&d.req); broken != nil {
			return d.endForged(broken).hangingUp()
		}
	}
	if bad := d.req.readBody(ctx, d.handler.currentLimits().RequestBody, &d.memory); bad != nil {
		return d.rejectWith(bad).hangingUp()
	}
	return nil
}

// readBody copies the whole body, whose memory is counted in m.
func (q *request) readBody(ctx *fasthttp.RequestCtx, limit int, m *wire.Account) *Rejection {
	var err error
	q.body, err = wire.ReadBody(ctx, q.body[:0], limit, m)
	q.msg.Body = q.body
	if q.whole = err == nil; q.whole {
		return nil
	}
	if bad := badBody(err); bad != nil {
		return bad
	}
	return newRejection(codeBadRequest, err.Error())
}

// badBody refuses a delivery whose body was malformed or cut off; nil if err is another error. What
// follows such a body on its connection is the rest of it, and no request: hang up.
func badBody(err error) *Rejection {
	switch {
	case errors.Is(err, wire.ErrMemory):
		return newRejection(codeMemoryExhausted,
			"the bodies and answers of other deliveries fill limits.memory; nothing "+
				"was executed, send the event again")
	case errors.Is(err, wire.ErrBodyTooLarge):
		return bodyTooLarge()
	case errors.Is(err, wire.ErrBodySlow):
		return newRejection(codeRequestTimeout, "the body did not arrive within limits.body_timeout")
	case errors.Is(err, wire.ErrBodyTruncated), errors.Is(err, wire.ErrBodyBroken):
		return newRejection(codeBadRequest, err.Error())
	}
	return nil
}

// asSigned returns the request as a verifier reads it, as far as it was read. It is valid until the
// next call.
func (q *request) asSigned() *sender.Delivery {
	q.signed = sender.DeliveryOf(&q.msg)
	return &q.signed
}

// byteSize returns the bytes of head and body.
func (q *request) byteSize() int { return len(q.head.Target()) + q.head.Size() + len(q.body) }

// storedRequest returns the request for the time in which its execution is parked.
func (q *request) storedRequest() *kept.Request {
	return &kept.Request{Head: q.head.AppendRaw(nil), Body: q.body, Peer: string(q.peer), TLS: q.tls,
		TraceState: string(q.headerValue("tracestate"))}
}

// restoreFrom makes the request again as it came.
func (q *request) restoreFrom(r *kept.Request) *Rejection {
	if bad := q.parseRaw(r.Head, max(len(r.Head), 4096)); bad != nil {
		return bad
	}
	q.body, q.peer, q.tls = append(q.body[:0], r.Body...), append(q.peer[:0], r.Peer...), r.TLS
	q.msg.Body = q.body
	return nil
}

// renewSignature gives the request a new signature; r nil: it keeps the one that it has. Everything
// else stays as it came.
func (q *request) renewSignature(r *sender.Renewer, now time.Time) error {
	if r == nil {
		return nil
	}
	renewed, err := r.Renew(q.asSigned(), now)
	if err != nil {
		return fmt.Errorf("renew the signature: %w", err)
	}
	for _, c := range renewed.Changes {
		q.head.SetValue(c.At, c.Value)
	}
	q.renewed = renewed.Original
	return nil
}
