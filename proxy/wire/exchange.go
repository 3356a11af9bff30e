package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// longBody is what fits into the kernel's buffers although the peer does not read. A longer body is
// written beside the reading, because an upstream may answer, and wait, before it has read all.
const longBody = 64 << 10

// lateAnswer bounds the wait for an answer after the request could not be written whole.
const lateAnswer = time.Second

// exchange is one request on its way, over one connection, or two if the first was dead.
type exchange struct {
	*Call
	upstream *Upstream
	answer   *Answer
	head     []byte
	body     []byte       // where it is in memory
	source   *RequestBody // where it is passed through
	upgrade  bool
	fresh    bool // it needs a new connection
	last     bool // nothing goes over this connection after it
	event    bool // its answer is an outcome

	conn     *conn
	reused   bool  // c has carried a request before
	pump     *pump // nil where everything was written at once
	evidence Evidence
	close    bool
	rest     bodyReader
}

func (u *Upstream) newExchange(x *Call, head []byte, ans *Answer) *exchange {
	ans.reset()
	if ans.exchange == nil {
		ans.exchange = new(exchange)
	}
	e := ans.exchange
	*e = exchange{Call: x, upstream: u, answer: ans, head: head}
	return e
}

// sendAndReadHead brings the exchange to the point where the answer's head was read. After an error
// everything is closed.
func (e *exchange) sendAndReadHead() error {
	// What is streamed or switched cannot be sent twice, so it does not begin on a connection that
	// may be dead.
	fresh := e.fresh || e.source != nil || e.upgrade
	for {
		c, reused, err := e.upstream.getConn(e.Call, fresh)
		if err != nil {
			e.evidence = NotDialled
			return e.failWith(err)
		}
		e.conn = c
		if e.upstream.beforeWrite != nil {
			e.upstream.beforeWrite(reused)
		}
		again, err := e.tryOnce(reused)
		if err == nil {
			return nil
		}
		if !again {
			return e.failWith(err)
		}
		e.answer.Resent, fresh = true, true
	}
}

// failWith returns the error of the exchange.
func (e *exchange) failWith(err error) error {
	e.answer.Evidence = e.evidence
	return e.sendError(err)
}

// sendError makes the error of the exchange. The cause of a cancel goes before what that broke.
func (e *exchange) sendError(err error) *SendError {
	var nerr net.Error
	timeout := errors.Is(err, errConnectTimeout)
	if e.evidence == NotDialled && errors.As(err, &nerr) && nerr.Timeout() {
		timeout = true
	}
	if late, cause := e.endCause(); cause != nil && !errors.Is(err, errClosed) {
		err, timeout = cause, late
	}
	return &SendError{Evidence: e.evidence, Timeout: timeout, Err: err}
}

// tryOnce sends the request over e.c and reads the answer's head. Again is true only where a reused
// connection failed and the peer provably had no byte of the request; after any error the
// connection is closed.
func (e *exchange) tryOnce(reused bool) (again bool, err error) {
	c := e.conn
	e.reused = reused
	before := mark{sent: c.wrote.written}
	if reused {
		before.acked, before.counted = c.expectedAcked(before.sent)
	}
	e.evidence = Dialled
	if err := e.attachConn(c.raw); err != nil {
		c.hangUp()
		return false, err
	}
	werr := e.writeRequest()
	if werr != nil && reused && c.wrote.written == before.sent { // an answer could not be to this request
		err = werr
	} else {
		err = e.readHead(werr)
	}
	if err == nil {
		return false, nil
	}
	cause := e.Cause()
	e.awaitPump(false)
	_ = e.detachConn()
	if e.evidence < AnswerBegun {
		e.judgeEvidence(before, reused, werr, err)
	}
	c.hangUp()
	if cause != nil {
		return false, cause
	}
	if reused && e.evidence > Dialled && e.evidence < AnswerBegun {
		e.upstream.suspendReuse()
	}
	// A streamed body may have been read in part; its bytes are gone.
	return reused && e.evidence == Dialled && e.source == nil, err
}

// mark is where a connection stood before a request was written to it.
type mark struct {
	sent    int64  // bytes handed to the kernel
	acked   uint64 // tcpi_bytes_acked, where the peer has acknowledged all that was sent
	counted bool   // acked means something
}

// judgeEvidence says how far a request came that got not one byte of an answer. That the peer had
// none of it is proven in two ways only:
//
//   - nothing was handed to the kernel; or
//   - over TCP, on a connection that has worked before, the peer's FIN came first and its kernel has acknowledged nothing
//     of the request. A FIN acknowledges all that the peer's kernel held when it was sent. A reset does not (Linux ignores
//     its acknowledgement), and may follow a request that was read, so ECONNRESET proves nothing.
func (e *exchange) judgeEvidence(before mark, reused bool, werr, err error) {
	e.evidence = HeadWritten
	sent := e.conn.wrote.written - before.sent
	if sent == 0 {
		e.evidence = Dialled
		return
	}
	if e.pump != nil && werr == nil {
		werr = e.pump.err
	}
	if werr == nil {
		e.evidence = BodyWritten
	}
	// The first reader of a reset consumes it; the others then see an EOF.
	clean := werr == nil || finFirst(werr) || errors.Is(werr, os.ErrDeadlineExceeded)
	if !reused || !before.counted || !clean || !finFirst(err) {
		return
	}
	acked, ok := e.conn.readAckedBytes(before.sent)
	if e.conn.tls != nil && errors.Is(err, io.EOF) && !e.conn.finBehind() {
		return // a close_notify without the FIN (which would be io.ErrUnexpectedEOF)
	}
	if ok && acked == before.acked {
		e.evidence = Dialled
	}
}

// writeRequest writes what is in memory and starts a pump for the rest.
func (e *exchange) writeRequest() error {
	switch {
	case e.source != nil:
		if err := e.conn.writeHeadAndBody(e.head, nil); err != nil {
			return err
		}
		e.pump = newPump()
		if err := e.guardReader(e.source.Interrupt); err != nil {
			e.pump.stop(err)
			return err
		}
		go e.pump.copyBody(e)
	case len(e.body) > longBody:
		if err := e.conn.writeHeadAndBody(e.head, nil); err != nil {
			return err
		}
		e.pump = newPump()
		e.pump.drained.Store(true)
		go e.pump.sendBody(e.conn, e.body)
	default:
		err := e.conn.writeHeadAndBody(e.head, e.body)
		return err
	}
	return nil
}

// readHead reads the answer's head. An upstream that refuses a body may answer and close before it
// was written whole, so a failed write is not the end.
func (e *exchange) readHead(werr error) error {
	if werr != nil {
		e.limitRead(time.Now().Add(lateAnswer))
	}
	if _, err := e.conn.br.Peek(1); err != nil {
		if werr != nil {
			return werr
		}
		return err
	}
	e.evidence = AnswerBegun
	if err := readAnswerHead(e.conn.br, e.upstream.options.MaxResponseHead, e.answer); err != nil {
		return err
	}
	if e.answer.Status == 101 {
		return e.checkSwitch()
	}
	f, err := parseFraming(e.answer, bytes.HasPrefix(e.head, []byte("HEAD ")))
	if err != nil {
		return err
	}
	e.close = f.close || werr != nil
	e.answer.Length = f.declared
	e.rest = newBodyReader(e.conn.br, f, e.upstream.options.MaxResponseHead)
	return nil
}

// checkSwitch refuses an unrequested 101, and one to a protocol that is never tunnelled.
func (e *exchange) checkSwitch() error {
	if !e.upgrade || !mayTunnel(e.answer.Get("upgrade")) {
		return ErrSwitched
	}
	return nil
}

// releaseConn ends the exchange. A connection is used again only if the answer was whole, the
// request too, nothing came behind it or may still come, and no cancel reached it.
func (e *exchange) releaseConn(whole bool) {
	clean := e.awaitPump(whole)
	if e.detachConn() != nil || !whole || !clean {
		e.conn.hangUp()
		return
	}
	e.upstream.learnServer(e.answer, e.conn.isSlow(time.Since(e.began)))
	body := e.source != nil || len(e.body) > 0
	switch {
	case e.close || e.last:
		e.upstream.closeAfterPeer(e.conn)
		return
	case e.conn.br.Buffered() > 0:
		e.conn.carried = e.conn.carried || body
		e.upstream.hearUnasked(e.conn)
		e.upstream.closeConn(e.conn)
		return
	}
	if e.conn.compareCounts(); body && !e.upstream.keepsBehind(e.conn, e.answer) {
		e.upstream.closeConn(e.conn)
		return
	}
	e.answer.Over = e.upstream.putIdle(e.conn, body)
}

// readBody reads the answer's body into memory, or up to the limit.
func (e *exchange) readBody() error {
	a, limit := e.answer, int64(e.upstream.options.MaxResponseBody)
	if e.rest.isEmpty() {
		return e.wholeAnswer()
	}
	if a.Length > limit {
		e.handOver()
		return nil
	}
	a.Memory.Hold(cap(a.Body))
	for {
		if len(a.Body) == cap(a.Body) {
			grown, err := a.Memory.growBuffer(a.Body, a.Length, limit+1)
			if err != nil { // an answer without room is not kept, and passed on as it comes
				e.handOver()
				return nil //nolint:nilerr // a budget that is used up is no failure of the exchange
			}
			a.Body = grown
		}
		n, err := e.rest.Read(a.Body[len(a.Body):cap(a.Body)])
		a.Body = a.Body[:len(a.Body)+n]
		switch {
		case e.rest.hasEnded():
			return e.wholeAnswer()
		case int64(len(a.Body)) > limit:
			e.handOver()
			return nil
		case err != nil:
			cause := e.Cause()
			e.releaseConn(false)
			if cause != nil {
				err = cause
			}
			a.Evidence = e.evidence
			return e.sendError(asUnexpectedEOF(err))
		}
	}
}

// wholeAnswer ends the exchange behind its answer. Its error is that of an answer which says
// nothing of the request.
func (e *exchange) wholeAnswer() error {
	e.evidence = AnswerWhole
	e.answer.RequestPending = e.hasPendingBody()
	doubt := e.checkParserAnswer()
	e.releaseConn(true)
	e.answer.Evidence, e.answer.Whole = AnswerWhole, doubt == nil
	if doubt != nil {
		return e.sendError(doubt)
	}
	return nil
}

// handOver leaves the rest of the answer, and the exchange, to the caller.
func (e *exchange) handOver() {
	e.answer.Evidence = e.evidence
	e.answer.RequestPending = e.hasPendingBody()
	e.answer.Rest = &Rest{exchange: e}
}

// hasPendingBody reports whether the sender's body was not yet read to its end.
func (e *exchange) hasPendingBody() bool { return e.pump != nil && !e.pump.drained.Load() }

// Send makes one exchange: it writes head and body, and reads the answer into ans, at most
// MaxResponseBody bytes of its body; for what is longer, or finds no room in ans.Memory, there is
// ans.Rest. Both slices are only read, and not after Send has returned and ans.Rest was closed.
//
// keep is what Reuses returned for the body; without it the connection is a new one, and ends
// behind the answer. A whole answer that a parser may have given to something else than the request
// is an error, too: a *ParserError.
//
// It is one attempt. The request goes out a second time only if it met an idle connection that was
// dead, and the peer provably had no byte of it. When x ends, the exchange ends at once and its
// connection is closed; x governs ans.Rest, too. The error is a *SendError, which says how far the
// exchange came; the content of ans is then of no use, but for Evidence.
func (u *Upstream) Send(x *Call, head, body []byte, keep bool, ans *Answer) error {
	e := u.newExchange(x, head, ans)
	e.body, e.fresh, e.last, e.event = body, !keep, !keep, true
	if err := e.sendAndReadHead(); err != nil {
		return err
	}
	return e.readBody()
}

var _ io.ReadCloser = (*Rest)(nil)
