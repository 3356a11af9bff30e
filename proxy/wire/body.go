package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/valyala/fasthttp"
)

// Reasons why a request body is refused.
var (
	ErrBodyTooLarge  = errors.New("request body is larger than the limit")
	ErrBodyTruncated = errors.New("sender hung up in the middle of the request body")
	ErrBodySlow      = errors.New("request body did not arrive in time")
	ErrBodyBroken    = errors.New("request body is not correctly chunked")
)

// firstGrowth is what a body buffer starts with, whatever length was declared.
const firstGrowth = 4 << 10

// RequestBody is the body of a request on its way in.
type RequestBody struct {
	// Reader delivers it. io.EOF is its true end.
	Reader io.Reader
	// Length is the declared length, -1 for chunks.
	Length int64
	// Interrupt makes a blocked Read of Reader return soon, and spoils the sender's connection.
	// Stream calls it at most once, when the answer ended or failed before the body did. Nil:
	// Stream waits for Reader.
	Interrupt func()
}

// BodyOf returns the body of a request, nil if it has none. The server must have StreamRequestBody
// set and serve a Listener of this package. It is valid until the handler has returned and the
// response was written.
//
// fasthttp v1.78 itself takes the end of the connection for the end of the body in the middle of a
// declared length, and calls chunks that were cut malformed where that was inside of a chunk's size
// or behind the last one; the Reader gives io.ErrUnexpectedEOF, or why the connection failed.
func BodyOf(ctx *fasthttp.RequestCtx) *RequestBody {
	declared := ctx.Request.Header.ContentLength() // -1 chunked
	stream := ctx.RequestBodyStream()
	if stream == nil || declared == 0 || declared < -1 {
		return nil
	}
	conn := ctx.Conn()
	return &RequestBody{
		Reader:    &bodyStream{stream: stream, from: servedOf(conn), left: int64(declared), chunked: declared < 0},
		Length:    int64(declared),
		Interrupt: func() { _ = conn.SetReadDeadline(past) },
	}
}

// bodyStream is a request's body with a true end.
type bodyStream struct {
	stream  io.Reader
	from    *served
	left    int64
	chunked bool
}

func (b *bodyStream) Read(p []byte) (int, error) {
	if !b.chunked && b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.stream.Read(p)
	b.left -= int64(n)
	switch {
	case err == nil:
	case !b.chunked:
		if err == io.EOF && b.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	case b.from != nil:
		// fasthttp reads no further than the last chunk, so where a read of the connection failed
		// the body had no end.
		if failed := b.from.readFailure(); failed != nil {
			err = asUnexpectedEOF(failed)
		}
	}
	return n, err
}

// ReadBody reads the whole body of a request into dst[:0] and returns it, at most max bytes, which
// memory pays for. It has the needs of BodyOf; without StreamRequestBody fasthttp would allocate
// the declared length before a byte of it came.
//
// The error is one of those above or ErrMemory, with the cause behind it. After any error the
// connection is in the middle of a message: close it behind the answer (LingerOnClose lets the
// sender read that).
func ReadBody(ctx *fasthttp.RequestCtx, dst []byte, max int, memory *Account) ([]byte, error) {
	dst = dst[:0]
	body := BodyOf(ctx)
	if body == nil {
		return dst, nil
	}
	if body.Length > int64(max) {
		return dst, ErrBodyTooLarge
	}
	if !memory.Take(cap(dst)) {
		return nil, ErrMemory
	}
	dst, whole, err := body.readInto(dst, max, memory)
	if err == nil && !whole {
		err = ErrBodyTooLarge
	}
	return dst, err
}

// readInto reads the body behind what is in dst, until its end or until more than max bytes of it
// came. memory pays for what dst grows by.
func (b *RequestBody) readInto(dst []byte, max int, memory *Account) (got []byte, whole bool, err error) {
	start := len(dst)
	for {
		if len(dst) == cap(dst) {
			declared := b.Length
			if declared >= 0 {
				declared += int64(start)
			}
			if dst, err = memory.growBuffer(dst, declared, int64(start+max)+1); err != nil {
				return dst, false, err
			}
		}
		n, err := b.Reader.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch size := len(dst) - start; {
		case size > max:
			return dst, false, nil
		case err == io.EOF, int64(size) == b.Length:
			return dst, true, nil
		case err != nil:
			return dst, false, bodyError(err)
		}
	}
}

// Gather reads all of r, at most max bytes, which memory pays for. The error is that of ReadBody.
func Gather(r io.Reader, max int, memory *Account) ([]byte, error) {
	body, whole, err := (&RequestBody{Reader: r, Length: -1}).readInto(nil, max, memory)
	if err == nil && !whole {
		err = ErrBodyTooLarge
	}
	return body, err
}

// bodyError names the reason behind a failed read of a sender's body.
func bodyError(err error) error {
	var nerr net.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &nerr) && nerr.Timeout():
		return fmt.Errorf("%w: %w", ErrBodySlow, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &nerr):
		return fmt.Errorf("%w: %w", ErrBodyTruncated, err)
	}
	return fmt.Errorf("%w: %w", ErrBodyBroken, err)
}
