package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strconv"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/proxy/wire"
)

// writeAnswer makes the upstream's answer the answer, but for its body. Hop-by-hop fields stay behind, and on routes so do those that
// only Hooklock may set. fasthttp takes a Date from nobody but its own parser, so the head goes through that: it is written out and
// read again. What that costs is in docs/limits.md: the order of some lines, and repeated Content-Type or Server lines.
func (d *delivery) writeAnswer(ctx *fasthttp.RequestCtx) {
	d.report.UpstreamStatus, d.report.Status = d.answer.Status, d.answer.Status
	d.fields = d.answer.EndToEnd(d.fields[:0])
	head := append(d.out[:0], "HTTP/1.1 "...)
	head = strconv.AppendInt(head, int64(d.answer.Status), 10)
	head = append(append(append(head, ' '), d.answer.Reason...), "\r\n"...)
	head = d.appendFields(head)
	head = append(append(head, d.framing(ctx)...), "\r\n"...)
	d.out = head
	d.headBytes.Reset(head)
	if d.headReader == nil || d.headReader.Size() < len(head) {
		d.headReader = bufio.NewReaderSize(nil, max(len(head), 4096))
	}
	d.headReader.Reset(&d.headBytes)
	if err := ctx.Response.Header.Read(d.headReader); err != nil {
		// Our own parser let it through and fasthttp's does not: the answer matters more than its head.
		d.h.o.Log.Warn("answer.head", "error", unquoted(err), "trace_id", d.trace.TraceID())
		ctx.Response.Header.Reset()
		ctx.Response.SetStatusCode(d.answer.Status)
	}
	ctx.Response.Header.ResetConnectionClose() // of an answer to HEAD without a length fasthttp believes that it ends with the connection
}

// appendFields appends the end-to-end fields. Of Content-Encoding fasthttp keeps one line alone, so several become the one list that says
// the same (RFC 9110 section 5.3).
func (d *delivery) appendFields(head []byte) []byte {
	var codings []byte
	for _, f := range d.fields {
		switch {
		case d.route != nil && ours(f.Name):
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

// framing keeps fasthttp from guessing. It writes the real framing when it writes the body; only where there is none does the upstream's
// Content-Length stand, if there is one, because it says what a GET would have brought. A 204 has none (RFC 9110 section 8.6).
func (d *delivery) framing(ctx *fasthttp.RequestCtx) string {
	length := d.answer.Get("content-length")
	switch {
	case d.answer.Status == fasthttp.StatusNoContent:
		return ""
	case !ctx.IsHead() && d.answer.Status != fasthttp.StatusNotModified:
		return "Content-Length: 0\r\n"
	case length == nil:
		return ""
	}
	return "Content-Length: " + string(length) + "\r\n"
}

var contentEncoding = []byte(fasthttp.HeaderContentEncoding)

// ours reports whether a field of an answer is one that only Hooklock may set.
func ours(name []byte) bool {
	const prefix = "hooklock-"
	return len(name) > len(prefix) && bytes.EqualFold(name[:len(prefix)], []byte(prefix)) || bytes.EqualFold(name, []byte(headerReplayed))
}

// replayHeader is what duplicates get of the answer's header: all but what belongs to this connection, this moment, or this sender.
func (d *delivery) replayHeader() []idem.HeaderField {
	d.fields = d.answer.EndToEnd(d.fields[:0])
	kept := make([]idem.HeaderField, 0, len(d.fields))
	for _, f := range d.fields {
		if !ours(f.Name) && !personal(f.Name) {
			kept = append(kept, idem.HeaderField{Name: string(f.Name), Value: string(f.Value)})
		}
	}
	return kept
}

func personal(name []byte) bool {
	switch string(bytes.ToLower(name)) {
	case "date", "set-cookie", "www-authenticate":
		return true
	}
	return false
}

// streamAnswer passes on an answer that is too long to be read whole before it is committed. It is committed at its end.
func (d *delivery) streamAnswer(ctx *fasthttp.RequestCtx, x *idem.Execution, c *call) {
	d.writeAnswer(ctx)
	d.decided(ctx, idem.DecisionExecuted)
	d.stream(ctx, &answerStream{d: d, x: x, call: c, rest: d.answer.Rest, held: d.answer.Body, total: int64(len(d.answer.Body))})
}

// stream hands the rest of the answer to fasthttp, which reads it after the handler has returned.
func (d *delivery) stream(ctx *fasthttp.RequestCtx, s *answerStream) {
	s.plain = s.x == nil
	s.call.pause()
	if d.answer.Length >= 0 || !d.head.HTTP10() {
		d.detached = true
		s.endWith(ctx.Conn())
		ctx.Response.SetBodyStream(s, int(d.answer.Length)) // -1: chunked
		return
	}
	// HTTP/1.0 knows no chunks, and fasthttp sends nothing else where the length is not known: the answer is read whole.
	body, err := wire.Gather(s, longestOldAnswer, &d.memory)
	if err = errors.Join(err, s.Close()); err != nil {
		ctx.SetConnectionClose()
		ctx.Response.SetStatusCode(fasthttp.StatusBadGateway)
		return
	}
	d.lend(ctx, body)
}

// longestOldAnswer bounds an answer without a length for a sender that speaks HTTP/1.0.
const longestOldAnswer = 8 << 20

// answerStream reads an answer from the upstream while it is written to the sender. Of an execution's answer, the last piece is
// held back until the outcome is in the ledger: nobody sees a whole answer that is not recorded. When the sender hangs up, the rest is
// read all the same, because its end is the outcome.
type answerStream struct {
	d    *delivery
	x    *idem.Execution // nil where nothing is recorded, and once it is
	call *call
	rest *wire.Rest

	release func() bool // lets go of the sender's connection; nil where nothing holds it

	ready []byte // to be handed out now
	held  []byte // the piece after it
	bufs  [2][]byte
	turn  int // which of bufs is free when ready is empty
	total int64
	err   error // io.EOF after a whole answer
	plain bool  // nothing is recorded
	over  bool
}

const streamPiece = 32 << 10

// Read implements io.Reader.
func (s *answerStream) Read(p []byte) (n int, err error) {
	defer s.contain(&err)
	for len(s.ready) == 0 {
		switch {
		case len(s.held) > 0 && (s.err != nil || s.x == nil):
			s.ready, s.held = s.held, nil
		case s.err != nil:
			return 0, s.err
		case s.x == nil: // nothing to hold back
			s.call.give(s.d.h.o.StreamTimeout)
			n, s.err = s.rest.Read(p)
			s.call.pause() // the sender is waited for, who has a pace to keep
			return n, s.err
		default:
			s.advance()
		}
	}
	n = copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// advance reads the next piece, and lets go of the one before it.
func (s *answerStream) advance() {
	if s.bufs[s.turn] == nil {
		s.d.memory.Hold(streamPiece)
		s.bufs[s.turn] = make([]byte, streamPiece)
	}
	s.call.progress()
	n, err := s.rest.Read(s.bufs[s.turn])
	s.call.pause()
	s.total += int64(n)
	s.ready, s.held = s.held, s.bufs[s.turn][:n]
	s.turn = 1 - s.turn
	switch {
	case err == io.EOF:
		s.settle(nil)
		s.err = io.EOF
	case err != nil:
		s.settle(err)
		s.ready, s.held, s.err = nil, nil, err
	}
}

// endWith closes the sender's connection when the execution is told to stop: fasthttp may be writing to a sender that does not read, and
// would hear of nothing else.
func (s *answerStream) endWith(sender net.Conn) {
	if s.x != nil {
		s.release = context.AfterFunc(s.x.Context(), func() { _ = sender.Close() })
	}
}

// settle records how the answer ended.
func (s *answerStream) settle(cut error) {
	if s.x == nil {
		return
	}
	if s.release != nil {
		s.release() // the end of the execution is not that of the connection
	}
	var end idem.Ending
	if cut == nil {
		end = s.d.conclude(s.x, idem.Answer{Status: s.d.answer.Status, Bytes: s.total})
	} else {
		why := idem.Failure{Code: string(idem.DecisionUpstreamFailed), Detail: "the answer was cut off: " + cut.Error()}
		if cause := context.Cause(s.x.Context()); cause != nil {
			stop := stopOf(cause, true)
			why = idem.Failure{Code: string(stop.decision), Detail: stop.detail}
		}
		end = s.x.Abandon(why)
		s.d.report.Err, s.d.report.Decision = cut, idem.Decision(why.Code) // the sender sees a cut connection
		if end.Cancelled {
			s.d.report.Decision = idem.DecisionAborted
		}
	}
	s.d.called()
	s.d.reportEnd(s.x, end)
	s.x = nil
}

// Close implements io.Closer; fasthttp calls it when the answer was written, or could not be.
func (s *answerStream) Close() (err error) {
	if s.over {
		return nil
	}
	s.over = true
	if s.d.detached {
		defer s.d.finish()
	}
	if s.plain {
		s.d.called()
	}
	defer s.call.end()
	defer s.rest.Close()
	defer s.contain(&err)
	for s.x != nil && s.err == nil {
		s.advance()
	}
	return nil
}

// contain keeps a panic from ending the process: fasthttp calls a stream outside of the handler.
func (s *answerStream) contain(err *error) {
	p := recover()
	if p == nil {
		return
	}
	s.d.h.o.Log.Error("panic", "error", fmt.Sprint(p), "trace_id", s.d.trace.TraceID(), "stack", string(debug.Stack()))
	*err = fmt.Errorf("panic: %v", p)
	if x := s.x; x != nil && !x.Ended() {
		s.d.reportEnd(x, x.Abandon(notEnded()))
	}
	s.x = nil
	s.err = *err
}
