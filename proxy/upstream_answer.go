package proxy

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/proxy/sender"
	"hooklock/proxy/wire"
)

// reply is the stage that answers: it has the delivery, and fasthttp's request, whose response it
// fills in.
type reply struct {
	*delivery
	ctx *fasthttp.RequestCtx
}

// answerWith makes end the answer, by the route's rules.
func (d *delivery) answerWith(ctx *fasthttp.RequestCtx, end *ending) {
	(&reply{d, ctx}).writeEnding(d.applyPolicy(end))
}

// writeEnding makes end the answer. It is the only place that does, and the last stage but the
// report; of a streamed answer it makes the head, and the stream goes on with the rest, the
// settling and the report.
func (d *reply) writeEnding(end *ending) {
	if end.source == fromFirst && !d.memory.Take(len(end.first.Body)) {
		end = d.rejectWith(badBody(wire.ErrMemory)) // it may come again
	}
	d.noteLeft(d.ctx.Conn())
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
		wire.LingerOnClose(d.ctx.Conn())
		d.ctx.SetConnectionClose()
	}
	d.markDecision(end)
	switch {
	case end.stream != nil:
		d.streamRest(end.stream)
	case end.pooled:
		d.lendAnswer()
	case end.body != nil:
		d.lendBody(end.body)
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
		d.handler.options.Observer.Event(EventRefused, &d.report)
	}
	switch end.decision {
	case idem.DecisionSkipped, idem.DecisionSuperseded:
		r.writeDropped(d.ctx)
	case idem.DecisionParked:
		r.writeParked(d.ctx)
	default:
		r.writeTo(d.ctx)
	}
}

// writeFirst writes the answer of the first delivery of the event, without its body.
func writeFirst(ctx *fasthttp.RequestCtx, end *ending) {
	beginOwnAnswer(ctx)
	ctx.Response.SetStatusCode(end.first.Status)
	if end.bare {
		return
	}
	for _, f := range end.first.Header {
		value := f.Value
		if codings := ctx.Response.Header.ContentEncoding(); len(codings) > 0 &&
			strings.EqualFold(f.Name, fasthttp.HeaderContentEncoding) {
			value = string(codings) + ", " + value // as in the first answer: see appendFields
		}
		ctx.Response.Header.Add(f.Name, value)
	}
}

// writeGreeting writes the answer to a handshake. It repeats data that any client may have sent, so
// browsers must not take it for a page.
func writeGreeting(ctx *fasthttp.RequestCtx, a *sender.HandshakeAnswer) {
	beginOwnAnswer(ctx)
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

// markDecision writes the decision into the answer and the report.
func (d *reply) markDecision(end *ending) {
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
		if d.report.FirstEventID != "" && !end.bare {
			h.Set(headerTwinOf, d.report.FirstEventID)
		}
	case end.rejected != nil && end.rejected.About != nil:
		h.Set(headerDecision, string(end.decision))
		if end.rejected.Status == fasthttp.StatusMethodNotAllowed {
			// RFC 9110 section 15.5.6 wants it
			h.Set(fasthttp.HeaderAllow, strings.Join(end.rejected.About.Methods, ", "))
		}
	}
	if end.unrecorded || end.left {
		h.Set(headerRecorded, "false")
	}
	if end.decision == idem.DecisionReplayed {
		h.Set(headerReplayed, "true")
	}
}

// writeAnswer makes the upstream's answer the answer, without its body. Hop-by-hop fields are
// dropped, and on routes so are those that only Hooklock may set. fasthttp takes a Date from its
// own parser alone, so the head goes through that: it is written out and read again. The costs are
// in docs/limits.md: the order of some lines, and repeated Content-Type or Server lines.
func (d *reply) writeAnswer() {
	d.report.UpstreamStatus, d.report.Status = d.call.answer.Status, d.call.answer.Status
	head := append(d.call.head[:0], "HTTP/1.1 "...)
	head = strconv.AppendInt(head, int64(d.call.answer.Status), 10)
	head = append(append(append(head, ' '), d.call.answer.Reason...), "\r\n"...)
	head = d.appendFields(head)
	head = append(append(head, d.framingHeader()...), "\r\n"...)
	d.call.head = head
	if err := d.parser.parse(head, &d.ctx.Response.Header); err != nil {
		// Our own parser let it through and fasthttp's does not: the answer matters more than its
		// head.
		d.handler.options.Log.Warn("answer.head", "error", withoutQuotes(err), "trace_id", d.trace.TraceID())
		d.ctx.Response.Header.Reset()
		d.ctx.Response.SetStatusCode(d.call.answer.Status)
	}
	// fasthttp takes an answer to HEAD without a length for one that ends with the connection
	d.ctx.Response.Header.ResetConnectionClose()
}

// headParser is fasthttp's parser of the head of an answer, in memory that is used again.
type headParser struct {
	bytes  bytes.Reader
	reader *bufio.Reader
}

func (p *headParser) parse(head []byte, into *fasthttp.ResponseHeader) error {
	p.bytes.Reset(head)
	if p.reader == nil || p.reader.Size() < len(head) {
		p.reader = bufio.NewReaderSize(nil, max(len(head), 4096))
	}
	p.reader.Reset(&p.bytes)
	return into.Read(p.reader)
}

// appendFields appends the end-to-end fields. fasthttp keeps only one Content-Encoding line, so
// several become the one list that means the same (RFC 9110 section 5.3).
func (d *reply) appendFields(head []byte) []byte {
	var codings []byte
	for _, f := range d.call.endToEnd() {
		switch {
		case d.route != nil && isReserved(f.Name):
			continue
		case bytes.EqualFold(f.Name, contentEncoding):
			if codings != nil {
				codings = append(codings, ", "...)
			}
			codings = append(codings, f.Value...)
			continue
		}
		head = append(append(append(append(head, f.Name...), ": "...), f.Value...), "\r\n"...)
	}
	if codings != nil {
		head = append(append(append(append(head, contentEncoding...), ": "...), codings...), "\r\n"...)
	}
	return head
}

// framingHeader keeps fasthttp from guessing. It writes the real framing when it writes the body;
// only without one does the upstream's Content-Length stand, if there is one, because it is that of
// a GET. A 204 has none (RFC 9110 section 8.6).
func (d *reply) framingHeader() string {
	length := d.call.answer.Get("content-length")
	switch {
	case d.call.answer.Status == fasthttp.StatusNoContent:
		return ""
	case !d.ctx.IsHead() && d.call.answer.Status != fasthttp.StatusNotModified:
		return "Content-Length: 0\r\n"
	case length == nil:
		return ""
	}
	return "Content-Length: " + string(length) + "\r\n"
}

var contentEncoding = []byte(fasthttp.HeaderContentEncoding)

// isReserved reports whether a field of an answer is one that only Hooklock may set.
func isReserved(name []byte) bool {
	const prefix = "hooklock-"
	return len(name) > len(prefix) && bytes.EqualFold(name[:len(prefix)], []byte(prefix)) ||
		bytes.EqualFold(name, []byte(headerReplayed))
}

// endToEnd returns the fields of the answer that are for the sender. They are valid until the next
// call.
func (c *call) endToEnd() []wire.Field {
	c.fields = c.answer.EndToEnd(c.fields[:0])
	return c.fields
}

// replayHeader returns the header of the answer for duplicates: all except what belongs to this
// connection, this moment, or this sender.
func (c *call) replayHeader() []idem.HeaderField {
	fields := c.endToEnd()
	kept := make([]idem.HeaderField, 0, len(fields))
	for _, f := range fields {
		if !isReserved(f.Name) && !isPersonal(f.Name) {
			kept = append(kept, idem.HeaderField{Name: string(f.Name), Value: string(f.Value)})
		}
	}
	return kept
}

func isPersonal(name []byte) bool {
	switch string(bytes.ToLower(name)) {
	case "date", "set-cookie", "www-authenticate":
		return true
	}
	return false
}
