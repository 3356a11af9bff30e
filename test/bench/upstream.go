//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/valyala/fasthttp"
)

// Paths of the upstream with a meaning. Every other path is answered at once.
const (
	pathHeld      = "/hooks/held" // answered when pathRelease is asked, if the request has the header headerHold
	pathRelease   = "/bench/release"
	pathAwaitHeld = "/bench/await-held" // answered when a request is held
	headerHold    = "X-Bench-Hold"
)

const roleUpstream = "upstream"

// upstream answers as fast as it can, but for the one request that it is asked to hold.
type upstream struct {
	held    chan struct{}
	release chan struct{}
}

func serveUpstream(ctx context.Context, name string, out io.Writer) error {
	u := &upstream{held: make(chan struct{}), release: make(chan struct{})}
	// It reads bodies. Whether Hooklock knows that depends on the name.
	s := &fasthttp.Server{Handler: u.answer, Name: name, CloseOnShutdown: true}
	ln, err := announce(ctx, out)
	if err != nil {
		return err
	}
	return untilDone(ctx, ln, s.Serve)
}

// untilDone serves until the process is told to end.
func untilDone(ctx context.Context, ln net.Listener, serve func(net.Listener) error) error {
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	if err := serve(ln); ctx.Err() == nil {
		return err
	}
	return nil
}

// announce listens on a free port and says on which.
func announce(ctx context.Context, out io.Writer) (net.Listener, error) {
	var c net.ListenConfig
	ln, err := c.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintln(out, ln.Addr())
	return ln, err
}

func (u *upstream) answer(ctx *fasthttp.RequestCtx) {
	switch string(ctx.Path()) {
	case pathRelease:
		u.release <- struct{}{}
	case pathAwaitHeld:
		<-u.held
	case pathHeld:
		if len(ctx.Request.Header.Peek(headerHold)) > 0 {
			u.held <- struct{}{}
			<-u.release
		}
	}
	ctx.SetContentType("application/json")
	ctx.SetBodyString(`{"received":true}`)
}
