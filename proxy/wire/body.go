package wire

import (
	"errors"

	"github.com/valyala/fasthttp"
)

// Reasons why a request body could not be read.
var (
	ErrBodyTooLarge  = errors.New("request body is larger than the limit")
	ErrBodyTruncated = errors.New("sender hung up in the middle of the request body")
	ErrBodySlow      = errors.New("request body did not arrive in time")
	ErrBodyBroken    = errors.New("request body is not correctly chunked")
)

// ReadBody reads the whole request body of a server with StreamRequestBody into dst[:0].
func ReadBody(ctx *fasthttp.RequestCtx, dst []byte, max int) ([]byte, error) { return dst, nil }
