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

// ReadBody reads the whole request body into dst[:0] and returns it, at most max bytes. The server must have
// StreamRequestBody set: without it fasthttp allocates the declared length before a byte of it came.
//
// The error is one of those above, with the cause behind it. After any error the connection is in the middle of a
// message: close it behind the answer (LingerOnClose lets the sender read that). fasthttp v1.74 itself neither enforces
// its limit on a stream nor notices that a declared length was cut short.
func ReadBody(ctx *fasthttp.RequestCtx, dst []byte, max int) ([]byte, error) {
	dst = dst[:0]
	declared := ctx.Request.Header.ContentLength() // -1 chunked
	if declared > max {
		return dst, ErrBodyTooLarge
	}
	r := ctx.RequestBodyStream()
	if r == nil || declared == 0 || declared < -1 {
		return dst, nil
	}
	for {
		if len(dst) == cap(dst) {
			dst = grow(dst, int64(declared), int64(max)+1)
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst) > max:
			return dst, ErrBodyTooLarge
		case err == io.EOF && declared > len(dst):
			return dst, ErrBodyTruncated
		case err == io.EOF, declared == len(dst):
			return dst, nil
		case err != nil:
			return dst, bodyError(err)
		}
	}
}

// grow makes room in b for at least one byte. Memory follows what arrived: it doubles, and the declared size (where not
// negative) or the bound only ever makes the step smaller.
func grow(b []byte, declared, bound int64) []byte {
	size := max(2*int64(cap(b)), firstGrowth)
	if declared > int64(len(b)) {
		size = min(size, declared)
	}
	if bound > int64(len(b)) {
		size = min(size, bound)
	}
	grown := make([]byte, len(b), size)
	copy(grown, b)
	return grown
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
