package wire

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// pumpBuffer is what a streamed body needs in memory.
	pumpBuffer = 32 << 10
	// keepGathered is how much room for gathered bodies an Answer keeps for its next use.
	keepGathered = 16 << 10
	// settleTime is how long the last bytes of a request may take after its answer was whole.
	settleTime = 50 * time.Millisecond
)

// Stream makes one exchange without holding it in memory whole. It reads the body up to
// RequestBuffer before it takes a connection, so that a slow sender holds none; then it writes the
// head and passes what follows on as it comes. It returns as soon as the answer's head is there,
// and leaves the answer's body to ans.Rest, which is nil if there is none, or if it came with the
// head: then it is in ans.Body. body is BodyOf the request, nil for one without; the head must keep
// its framing (HeadOptions.Streamed). An answer may begin, and end, before the body was sent whole:
// see ans.RequestPending, which is right after errors, too.
//
// A sender that hangs up in the middle of its body ends the exchange: the upstream's connection is
// closed, so it never sees a request that looks whole, and the error is ErrBodyTruncated (or
// another of those of ReadBody).
//
// keep is what ReusesBehind returned; without it a request with a body gets a new connection, which
// ends behind the answer.
//
// x governs ans.Rest, too, so it ends behind that, and outlives the handler that hands Rest to
// fasthttp. When Rest is closed, or if there is none, the body is not read any more. The error is a
// *SendError.
func (u *Upstream) Stream(x *Call, head []byte, body *RequestBody, keep bool, ans *Answer) error {
	e := u.newExchange(x, head, ans)
	if err := e.readRequestBody(body, keep); err != nil {
		ans.RequestPending = true
		return e.failWith(err)
	}
	if err := e.sendAndReadHead(); err != nil {
		ans.RequestPending = e.source != nil && (e.pump == nil || e.hasPendingBody())
		return err
	}
	return e.passBody()
}

// passBody leaves the body to the caller, if there is one. What came whole with its head is no
// stream.
func (e *exchange) passBody() error {
	switch n := e.answer.Length; {
	case e.rest.isEmpty():
		return e.wholeAnswer()
	case e.pump == nil && n >= 0 && n <= int64(e.conn.br.Buffered()):
		return e.readBody()
	}
	e.dropGathered()
	e.handOver()
	return nil
}

// readRequestBody reads the request's body, up to the bound. What fits travels in one write, needs
// no goroutine, and can be sent again if the connection turns out to be dead. What follows is left
// to a pump.
func (e *exchange) readRequestBody(body *RequestBody, keep bool) error {
	if body == nil || body.Length == 0 {
		return nil
	}
	if !e.answer.Memory.Take(cap(e.answer.gathered)) {
		return ErrMemory
	}
	if err := e.guardReader(body.Interrupt); err != nil {
		return err
	}
	got, whole, err := body.readInto(append(e.answer.gathered, make([]byte, chunkRoom)...),
		e.upstream.options.RequestBuffer,
		e.answer.Memory)
	e.answer.gathered = got
	if cause := e.guardReader(nil); cause != nil {
		return cause
	}
	if err != nil {
		return err
	}
	// The size of a chunk begins no request.
	e.last = !keep || body.Length >= 0 && e.upstream.needsOwnConn(got[chunkRoom:])
	e.fresh = e.last
	switch {
	case !whole:
		e.source = &RequestBody{Reader: io.MultiReader(bytes.NewReader(got[chunkRoom:]), body.Reader),
			Length: body.Length, Interrupt: body.Interrupt}
	case body.Length < 0:
		e.body = frameAll(got)
	default:
		e.body = got[chunkRoom:]
	}
	return nil
}

// dropGathered lets go of a gathered body that was written, while its answer may still be long on
// its way.
func (e *exchange) dropGathered() {
	if e.pump == nil && cap(e.answer.gathered) > keepGathered {
		e.answer.Memory.Give(cap(e.answer.gathered))
		e.body, e.answer.gathered = nil, nil
	}
}

// pump writes a request's body while the answer is awaited. Its starter waits for done.
type pump struct {
	done    chan struct{}
	err     error       // after done: why the body was not written whole
	drained atomic.Bool // the sender's body was read to its end
}

func newPump() *pump { return &pump{done: make(chan struct{})} }

func (p *pump) stop(err error) {
	p.err = err
	close(p.done)
}

// sendBody sends a body that is in memory.
func (p *pump) sendBody(c *conn, body []byte) {
	err := c.writeHeadAndBody(body, nil)
	p.stop(err)
}

// copyBody sends a body as it comes. Where the sender fails, the whole exchange fails, so that the
// connection is closed in the middle of the request. Where the upstream fails, there may still be
// an answer to read.
func (p *pump) copyBody(e *exchange) {
	buf := e.upstream.buffers.Get().(*[pumpBuffer]byte)
	defer e.upstream.buffers.Put(buf)
	var err error
	if e.source.Length < 0 {
		err = p.copyChunks(e, buf[:])
	} else {
		err = p.copyLength(e, buf[:])
	}
	if broken, ok := errors.AsType[*senderError](err); ok {
		err = bodyError(broken.error)
		e.Cancel(err)
	}
	_ = e.guardReader(nil) // an upstream that takes no more leaves the body unread
	p.stop(err)
}

// senderError is an error of the sender's connection, not of the upstream's.
type senderError struct{ error }

// markDrained says that the sender's body was read to its end; from here on no cancel may touch the
// sender's connection.
func (p *pump) markDrained(e *exchange) {
	_ = e.guardReader(nil)
	p.drained.Store(true)
}

func (p *pump) copyLength(e *exchange, buf []byte) error {
	for left := e.source.Length; left > 0; {
		n, err := e.source.Reader.Read(buf[:min(left, int64(len(buf)))])
		if left -= int64(n); left == 0 {
			p.markDrained(e)
		} else if err != nil {
			return &senderError{asUnexpectedEOF(err)}
		}
		if err := e.conn.writeHeadAndBody(buf[:n], nil); err != nil {
			return err
		}
	}
	return nil
}

// sizeRoom is the space before a chunk's data for its size line.
const sizeRoom = len("7fff\r\n") + 2

func (p *pump) copyChunks(e *exchange, buf []byte) error {
	for {
		n, err := e.source.Reader.Read(buf[sizeRoom : len(buf)-len("\r\n")])
		if n > 0 {
			if werr := e.conn.writeHeadAndBody(frameChunk(buf, n), nil); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			p.markDrained(e)
			err = e.conn.writeHeadAndBody([]byte("0\r\n\r\n"), nil)
			return err
		}
		if err != nil {
			return &senderError{err}
		}
	}
}

// chunkRoom is the space before a gathered body for the size line of the one chunk that it may
// become.
const chunkRoom = 16

// frameAll makes a chunked body of what is behind the room.
func frameAll(gathered []byte) []byte {
	if len(gathered) == chunkRoom {
		return []byte("0\r\n\r\n")
	}
	size := append(strconv.AppendInt(nil, int64(len(gathered)-chunkRoom), 16), "\r\n"...)
	start := chunkRoom - len(size)
	copy(gathered[start:], size)
	return append(gathered, "\r\n0\r\n\r\n"...)[start:]
}

// frameChunk puts size line and CRLF around the n bytes at sizeRoom.
func frameChunk(buf []byte, n int) []byte {
	var digits [8]byte
	size := append(strconv.AppendInt(digits[:0], int64(n), 16), "\r\n"...)
	start := sizeRoom - len(size)
	copy(buf[start:], size)
	return append(buf[start:sizeRoom+n], "\r\n"...)
}

// awaitPump waits until nothing writes to the connection or reads the sender's body, and reports
// whether the request was written whole. If it would take long, it is cut off.
func (e *exchange) awaitPump(answered bool) bool {
	p := e.pump
	if p == nil {
		return true
	}
	if answered && p.drained.Load() {
		timer := time.NewTimer(settleTime)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
		}
	}
	select {
	case <-p.done:
	default:
		e.interruptIO()
		<-p.done
		return false // its deadline is past
	}
	return p.err == nil
}
