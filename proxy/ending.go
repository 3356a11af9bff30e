package proxy

import (
	"cmp"
	"strings"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy/sender"
	"hooklock/proxy/wire"
)

// ending is how a delivery ends: the decision, and the answer. A stage returns one in place of the input of the next stage; policy applies the
// route's rules, and write makes it the answer. It lives in its delivery, so that none is allocated.
type ending struct {
	decision idem.Decision // "": no route took the delivery
	source   source
	forward  forward

	refusal  refusal                 // of fromHooklock
	rejected *Rejection              // of the decision rejected; nil otherwise
	first    *idem.Answer            // of fromFirst
	bare     bool                    // of the first answer, the status alone
	greeting *sender.HandshakeAnswer // of fromRule
	body     []byte                  // of the answer; nil: it has none, or it is pooled, or a stream
	pooled   bool                    // the body is in the delivery's memory
	stream   *answerStream

	err        error // for the report; nil: nothing to add
	hangUp     bool
	unrecorded bool // the answer is right, but the ledger does not have it yet
	left       bool // of the first answer only the status is in the ledger, because the rest has expired
}

// source is where an answer comes from. The zero value is Hooklock itself.
type source uint8

const (
	fromHooklock source = iota
	fromUpstream
	fromFirst // the upstream too, when the event ran
	fromTunnel
	fromRule // the route's answer to a handshake
)

// forward says whether a delivery goes to the upstream although it is not to run. The zero value: it does not.
type forward uint8

const (
	forwardNever  forward = iota
	forwardByRule         // if the route says so: nothing was sent, and the delivery is whole
	forwardAlways         // it needs neither a lock nor memory
)

// refuse returns the ending of a delivery that is refused with that decision.
func (d *delivery) refuse(decision idem.Decision) *ending {
	d.end = ending{decision: decision, refusal: refusalOf(decision)}
	return &d.end
}

// reject returns the ending of a delivery that is refused for its form. What follows on its connection may be the rest of it.
func (d *delivery) reject(bad *Rejection) *ending {
	d.report.Code = bad.Code
	d.end = ending{decision: idem.DecisionRejected, refusal: bad.refusal(), rejected: bad, err: bad}
	d.end.hangUp = bad.Status == 408 || bad.Status == 413 || d.route == nil && (bad.Status == 400 || d.req.head.HasBody())
	return &d.end
}

// policy applies the route's rules to an ending: mode observe and on_store_down forward the delivery all the same, and respond gives a refusal
// another status.
func (d *delivery) policy(end *ending) *ending {
	r := d.route
	if r == nil {
		return end
	}
	rule := r.Observe || r.Forward && end.decision == idem.DecisionStoreUnavailable
	switch {
	case end.forward == forwardAlways || end.forward == forwardByRule && rule:
		d.report.Would = end.decision
		end = d.bypass()
	case r.Observe && end.decision == idem.DecisionExecuted: // also one that was decided as under enforce is marked as observed
		if d.report.Would == "" {
			d.report.Would = end.decision
		}
		if p := r.Policy.Park; p != nil && p.Slow && d.patience() < 0 {
			d.report.Would = idem.DecisionParked
		}
		end.decision = idem.DecisionBypassed
	}
	if end.rejected == nil || end.rejected.Status < 500 { // a 503 says that this process has no capacity now, and nothing about the delivery
		end.refusal.status = cmp.Or(r.Respond[end.decision], end.refusal.status)
	}
	if end.decision == idem.DecisionParked {
		end.refusal.status = r.parkedStatus()
	}
	return end
}

// reply is the stage that answers: it has the delivery, and fasthttp's request, whose response it fills in.
type reply struct {
	*delivery
	ctx *fasthttp.RequestCtx
}

// answerWith makes end the answer.
func (d *delivery) answerWith(ctx *fasthttp.RequestCtx, end *ending) { (&reply{d, ctx}).write(end) }

// write makes end the answer. It is the only place that does, and the last stage but the report; of a streamed answer it makes the head, and
// the stream goes on with the rest, the settling and the report.
func (d *reply) write(end *ending) {
	if end.source == fromFirst && !d.memory.Take(len(end.first.Body)) {
		end = d.reject(badBody(wire.ErrMemory)) // it may come again
	}
	switch end.source {
	case fromHooklock:
		d.writeRefusal(end)
	case fromUpstream:
		d.writeAnswer()
	case fromFirst:
		writeFirst(d.ctx, end)
	case fromRule:
		writeGreeting(d.ctx, end.greeting)
	case fromTunnel: // it has been one, and is over
		return
	}
	if end.hangUp {
		hangUp(d.ctx)
	}
	d.mark(end)
	switch {
	case end.stream != nil:
		d.stream(end.stream)
	case end.pooled:
		d.lendAnswer()
	case end.body != nil:
		d.lend(end.body)
	}
}

// writeRefusal writes an answer that Hooklock makes itself.
func (d *reply) writeRefusal(end *ending) {
	if end.err != nil {
		d.report.Err = end.err
	}
	r := &end.refusal
	if d.route != nil {
		r.retryUnit = d.route.RetryAfterUnit
		if end.rejected == nil {
			r.workflow = d.names.Workflow
		}
	}
	if end.decision.Row().Taken {
		d.h.o.Observer.Event(EventRefused, &d.report)
	}
	switch end.decision {
	case idem.DecisionSkipped, idem.DecisionSuperseded:
		r.writeDropped(d.ctx)
	case idem.DecisionParked:
		r.writeParked(d.ctx)
	default:
		r.write(d.ctx)
	}
}

// writeFirst writes the answer of the first delivery of the event, without its body.
func writeFirst(ctx *fasthttp.RequestCtx, end *ending) {
	own(ctx)
	ctx.Response.SetStatusCode(end.first.Status)
	if end.bare {
		return
	}
	for _, f := range end.first.Header {
		value := f.Value
		if codings := ctx.Response.Header.ContentEncoding(); len(codings) > 0 && strings.EqualFold(f.Name, fasthttp.HeaderContentEncoding) {
			value = string(codings) + ", " + value // as in the first answer: see appendFields
		}
		ctx.Response.Header.Add(f.Name, value)
	}
}

// writeGreeting writes the answer to a handshake. It repeats data that any client may have sent, so browsers must not take it for a page.
func writeGreeting(ctx *fasthttp.RequestCtx, a *sender.HandshakeAnswer) {
	own(ctx)
	h := &ctx.Response.Header
	if a.ContentType != "" {
		h.SetContentType(a.ContentType)
		h.Set("X-Content-Type-Options", "nosniff")
	}
	for _, f := range a.Header {
		h.AddBytesKV(f.Name, f.Value)
	}
	ctx.Response.SetBodyRaw(a.Body)
}

// mark writes the decision into the answer and the report.
func (d *reply) mark(end *ending) {
	d.report.Decision, d.report.Status = end.decision, d.ctx.Response.StatusCode()
	h := &d.ctx.Response.Header
	switch {
	case d.route != nil:
		text := string(end.decision)
		if d.report.Would != "" {
			text += "; would=" + string(d.report.Would)
		}
		h.Set(headerDecision, text)
		if d.report.Execution != "" {
			h.Set(headerExecution, string(d.report.Execution))
		}
	case end.rejected != nil && end.rejected.About != nil:
		h.Set(headerDecision, string(end.decision))
		if end.rejected.Status == fasthttp.StatusMethodNotAllowed {
			h.Set(fasthttp.HeaderAllow, strings.Join(end.rejected.About.Methods, ", ")) // RFC 9110 section 15.5.6 wants it
		}
	}
	if end.unrecorded || end.left {
		h.Set(headerRecorded, "false")
	}
	if end.decision == idem.DecisionReplayed {
		h.Set(headerReplayed, "true")
	}
}

// hangUp ends a connection with this answer, because what follows on it cannot be told from the rest of this request: fasthttp would take an
// unread body for the next request, and a sender could hide a whole request in it from a proxy in front that checks requests.
func hangUp(ctx *fasthttp.RequestCtx) {
	wire.LingerOnClose(ctx.Conn())
	ctx.SetConnectionClose()
}

// mayChange reports whether the report may show what differs between this attempt of an event and another: a failed one comes again, and one
// that is another request than the first counted as another event.
func (d *delivery) mayChange() bool {
	if d.report.Key == "" || d.names.EventID == "" || !d.report.Keyed {
		return false
	}
	return d.report.Decision == idem.DecisionMismatch || d.report.Would == idem.DecisionMismatch || d.report.Attempt > 0 && d.report.Status >= 400
}

// finish reports a delivery, and gives its memory back to the pool. It is not inside of contain: a bug of an observer would end the process
// with all other deliveries.
func (d *delivery) finish() {
	defer d.h.pool.put(d)
	defer func() {
		if p := recover(); p != nil {
			d.logPanic(p)
		}
	}()
	over := d.call.over
	if d.route != nil || over.IsZero() { // a delivery that passed through is over with its call
		over = d.h.o.Now()
	}
	d.report.Total, d.report.UpstreamFrom = over.Sub(d.report.Started), d.call.began
	if d.mayChange() {
		d.report.Members = naming.Members(&d.req.msg)
	}
	switch {
	case d.accepted && d.report.Attempt == 0: // the upstream was not called, and later events report the rest
	case d.accepted:
		d.h.o.Observer.Event(EventTried, &d.report)
	case d.route != nil || d.report.Decision == idem.DecisionRejected || d.report.Decision == idem.DecisionInternalError:
		d.h.o.Observer.Delivered(&d.report)
	default:
		d.h.o.Observer.Passed(&d.report)
	}
	d.noteArrival()
	if d.report.Trace != nil {
		d.report.Trace.End(&d.report)
	}
}
