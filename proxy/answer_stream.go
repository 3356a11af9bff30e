package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/proxy/wire"
)

// streamRest gives the rest of the answer to fasthttp, which reads it after the handler has
// returned.
func (d *reply) streamRest(s *answerStream) {
	s.delivery.call.Pause()
	toItsEnd := d.call.answer.Length < 0 && d.req.head.HTTP10() // it knows no chunks
	if toItsEnd && !s.plain {
		d.gatherRest(s)
		return
	}
	d.detached = true
	stop := d.handler.options.Base
	if !s.plain {
		stop = s.execution.Context()
	}
	s.endWith(stop, d.ctx.Conn())
	// a sender that has got nothing of an answer which breaks off may send again
	d.ctx.Response.ImmediateHeaderFlush = true
	if toItsEnd {
		d.ctx.Response.SetBodyStream(s, 0) // and WriteTo says so: fasthttp would send chunks
		d.ctx.Response.Header.Del("Content-Length")
		d.ctx.SetConnectionClose()
		return
	}
	d.ctx.Response.SetBodyStream(s, int(d.call.answer.Length)) // -1: chunked
}

// gatherRest reads an execution's answer whole, for a sender that could not tell it from one that
// was cut off.
func (d *reply) gatherRest(s *answerStream) {
	body, err := wire.Gather(s, longestOldAnswer, &d.memory)
	if err = errors.Join(err, s.Close()); err != nil {
		d.ctx.SetConnectionClose()
		d.ctx.Response.SetStatusCode(fasthttp.StatusBadGateway)
		d.markDecision(&ending{decision: d.report.Decision}) // again: its end may have changed that, too
		return
	}
	d.lendBody(body)
}

// longestOldAnswer bounds an execution's answer without a length for a sender that speaks HTTP/1.0.
const longestOldAnswer = 8 << 20

// answerStream reads an answer from the upstream while it is written to the sender. Of an
// execution's answer, the last piece is held back until the outcome is in the ledger: no sender
// sees a whole answer that is not recorded. If the sender hangs up, the rest is read all the same,
// because its end is the outcome.
type answerStream struct {
	delivery  *delivery
	execution *guard.Execution // nil if nothing is recorded, and once it is
	rest      *wire.Rest

	sender  net.Conn
	release func() bool // unregisters the sender's connection; nil if it is not registered

	ready []byte // to be handed out now
	held  []byte // the piece after it
	bufs  [2][]byte
	turn  int // which of bufs is free when ready is empty
	total int64
	err   error // io.EOF after a whole answer
	plain bool  // nothing is recorded
	over  bool
}

// streamOf returns the stream of an answer of d that was not read whole; x is nil if nothing is
// recorded.
func streamOf(d *delivery, x *guard.Execution) *answerStream {
	a := &d.call.answer
	return &answerStream{
		delivery: d, execution: x, rest: a.Rest, held: a.Body, total: int64(len(a.Body)), plain: x == nil}
}

const (
	streamPiece = 32 << 10
	passedPiece = 4 << 10 // what is written at once
)

// Read implements io.Reader.
func (s *answerStream) Read(p []byte) (n int, err error) {
	defer s.recoverPanic(&err)
	for len(s.ready) == 0 {
		switch {
		case len(s.held) > 0 && (s.err != nil || s.execution == nil):
			s.ready, s.held = s.held, nil
		case s.err != nil:
			return 0, s.err
		case s.execution == nil: // nothing to hold back
			s.delivery.call.Give(s.delivery.handler.options.StreamTimeout)
			n, s.err = s.rest.Read(p)
			s.delivery.call.Pause() // waits for the sender, which has a time limit of its own
			return n, s.err
		default:
			s.readPiece()
		}
	}
	n = copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// SupportsBodyWriteTo implements fasthttp.BodyWriterTo: fasthttp itself sends each chunk of a
// chunked answer as it comes.
func (s *answerStream) SupportsBodyWriteTo() bool {
	return s.delivery.call.answer.Length >= 0 || s.delivery.req.head.HTTP10()
}

// WriteTo implements io.WriterTo. It writes to the sender's connection itself, as the head was
// written: fasthttp's writer would keep pieces back until its buffer is full, and from v1.78 on it
// cannot be flushed.
func (s *answerStream) WriteTo(io.Writer) (total int64, err error) {
	piece := make([]byte, passedPiece)
	for err == nil {
		var n int
		n, err = s.Read(piece)
		if n == 0 {
			continue
		}
		if _, werr := s.sender.Write(piece[:n]); werr != nil {
			return total, werr
		}
		total += int64(n)
	}
	if err == io.EOF {
		err = nil
	}
	if s.delivery.call.answer.Length < 0 {
		total = 0 // as streamRest has told fasthttp
	}
	return total, err
}

// readPiece reads the next piece, and releases the one before it.
func (s *answerStream) readPiece() {
	if s.bufs[s.turn] == nil {
		s.delivery.memory.Hold(streamPiece)
		s.bufs[s.turn] = make([]byte, streamPiece)
	}
	s.delivery.call.extendTimeout()
	n, err := s.rest.Read(s.bufs[s.turn])
	s.delivery.call.Pause()
	s.total += int64(n)
	s.ready, s.held = s.held, s.bufs[s.turn][:n]
	s.turn = 1 - s.turn
	switch {
	case err == io.EOF:
		s.recordEnd(nil)
		s.err = io.EOF
	case err != nil:
		s.recordEnd(err)
		s.ready, s.held, s.err = nil, nil, err
	}
}

// endWith closes the sender's connection when stop ends: when the execution is told to stop, or
// without one the process. fasthttp may be writing to a sender that does not read, and would notice
// nothing else.
func (s *answerStream) endWith(stop context.Context, sender net.Conn) {
	s.sender, s.release = sender, context.AfterFunc(stop, func() { _ = sender.Close() })
}

// recordEnd records how the answer ended.
func (s *answerStream) recordEnd(cut error) {
	if s.execution == nil {
		return
	}
	if s.release != nil { // the end of the execution does not end the connection; that of the process does
		s.release()
		s.endWith(s.delivery.handler.options.Base, s.sender)
	}
	s.delivery.noteCall()
	a := attempt{delivery: s.delivery, err: cut, sent: true}
	var end guard.Ending
	if cut == nil {
		end = a.finishCall(&idem.Answer{Status: s.delivery.call.answer.Status, Bytes: s.total}, true)
	} else {
		a.why = failureOf(idem.DecisionUpstreamFailed, "the answer was cut off: "+cut.Error())
		if cause := context.Cause(s.execution.Context()); cause != nil {
			a.why = stopOf(cause, true)
		}
		s.delivery.report.Err, s.delivery.report.Decision = cut, a.why.decision // the sender sees a cut connection
		if end = a.finishCall(nil, true); end.Cancelled {
			s.delivery.report.Decision = idem.DecisionAborted
		}
	}
	s.delivery.reportEnd(end)
	s.execution = nil
}

// Close implements io.Closer; fasthttp calls it when the answer was written, or could not be.
func (s *answerStream) Close() (err error) {
	if s.over {
		return nil
	}
	s.over = true
	if s.delivery.detached {
		defer s.delivery.reportAndFree()
	}
	if s.plain {
		s.delivery.noteCall()
	}
	defer s.delivery.call.endCall()
	defer s.rest.Close()
	defer s.recoverPanic(&err)
	defer func() {
		if s.release != nil {
			s.release()
		}
	}()
	for s.execution != nil && s.err == nil {
		s.readPiece()
	}
	return nil
}

// recoverPanic recovers from a panic, which would end the process: fasthttp calls a stream outside
// of the handler.
func (s *answerStream) recoverPanic(err *error) {
	p := recover()
	if p == nil {
		return
	}
	s.delivery.logPanic(p)
	*err = fmt.Errorf("panic: %v", p)
	s.delivery.endUnsettled()
	s.execution = nil
	s.err = *err
}
