//go:build linux

package main

import (
	"context"
	"io"

	"github.com/valyala/fasthttp"
)

const roleFasthttp = "fasthttp"

// serveFasthttpProxy is the least that a proxy on this library can do: it reads a request, sends
// it, and answers. It keeps its connections behind a body, too, spells names of headers anew, and
// sends a request again whose connection broke.
func serveFasthttpProxy(ctx context.Context, target string, out io.Writer) error {
	client := &fasthttp.HostClient{Addr: target, MaxConns: 1024, NoDefaultUserAgentHeader: true}
	s := &fasthttp.Server{
		NoDefaultServerHeader: true,
		CloseOnShutdown:       true,
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.Request.Header.Add("X-Forwarded-For", ctx.RemoteIP().String())
			if err := client.Do(&ctx.Request, &ctx.Response); err != nil {
				ctx.Error("upstream", fasthttp.StatusBadGateway)
			}
		},
	}
	ln, err := announce(ctx, out)
	if err != nil {
		return err
	}
	return untilDone(ctx, ln, s.Serve)
}
