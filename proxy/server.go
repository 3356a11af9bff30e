package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/proxy/wire"
)

// ServerOptions are what a Server works with.
type ServerOptions struct {
	Handler        *Handler
	MaxHead        int           // the most bytes of a request head; a larger one gets 431
	IdleTimeout    time.Duration // how long a connection may be idle between two requests
	MaxConnections int           // a request on one more gets 503
	WritePace      wire.Pace     // how slowly a sender may take its answer
	Log            *slog.Logger
}

// Server takes connections from senders. NewServer makes one.
type Server struct {
	fast     *fasthttp.Server
	options  ServerOptions
	draining atomic.Bool
	// the connections that were set aside and have a request again, of which fasthttp may not know
	// yet
	resumed sync.WaitGroup
}

// restAfter is how long a kept connection may be without a request before its buffers are taken
// from it. A busy one keeps them: taking them costs some microseconds each time.
const restAfter = 100 * time.Millisecond

// NewServer makes a Server.
func NewServer(o ServerOptions) *Server {
	s := &Server{options: o}
	limits := o.Handler.currentLimits()
	s.fast = &fasthttp.Server{
		Handler:         s.serveRequest,
		ErrorHandler:    s.answerUnreadable,
		ReadTimeout:     limits.HeadTimeout,
		IdleTimeout:     min(o.IdleTimeout, restAfter),
		ReadBufferSize:  o.MaxHead,
		Concurrency:     math.MaxInt32, // the listener bounds connections, with an answer of its own
		CloseOnShutdown: true,
		Logger:          quietLogger{o.Log},
		ConnState:       wire.Between,
		HeaderReceived: func(h *fasthttp.RequestHeader) (body fasthttp.RequestConfig) {
			if n := h.ContentLength(); n > 0 || n == -1 {
				body.ReadTimeout = o.Handler.currentLimits().BodyTimeout // the head had its own time
			}
			return body
		},
		// Hooklock reads bodies itself: fasthttp would allocate a declared length ahead, and would
		// take a body that is cut off for a whole one.
		StreamRequestBody: true,
		// Nothing is added and nothing is parsed that is not needed: a multipart body would be
		// written anew, its signature broken.
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultDate:                true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true, // no header in a log
	}
	return s
}

// serveRequest answers one request. A deadline, even of none, is what makes fasthttp (v1.78.0) send
// the answer before it serves a request that has come meanwhile: an early answer to that would
// overtake it.
func (s *Server) serveRequest(ctx *fasthttp.RequestCtx) {
	s.options.Handler.ServeHTTP(ctx)
	_ = ctx.SetWriteDeadline(time.Time{}) // a connection that is closed needs none
	if s.draining.Load() && ctx.Response.StatusCode() != fasthttp.StatusSwitchingProtocols {
		ctx.SetConnectionClose()
	}
}

// Drain sends senders to other replicas: it still answers requests, and closes each connection
// after its answer. It cannot be undone.
func (s *Server) Drain() { s.draining.Store(true) }

// Listener returns ln, which may be one of TLS, with the bound on its connections.
func (s *Server) Listener(ln net.Listener) *wire.Listener {
	o := wire.ListenerOptions{MaxConns: s.options.MaxConnections, Strict: true, WritePace: s.options.WritePace,
		Refusal: tooManyConnections()}
	if s.options.IdleTimeout > restAfter {
		o.IdleTime = s.options.IdleTimeout - restAfter
		o.Resume = func(c net.Conn) { s.resumed.Go(func() { _ = s.fast.ServeConn(c) }) }
	}
	return wire.NewListener(ln, o)
}

// Serve takes connections from a listener that Listener has returned, until Shutdown.
func (s *Server) Serve(ln *wire.Listener) error {
	if err := s.fast.Serve(ln); err != nil {
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	return nil
}

// Shutdown stops taking connections, cuts tunnels, and waits for the deliveries under way until ctx
// ends. A second call waits again.
func (s *Server) Shutdown(ctx context.Context) error {
	tunnels := s.options.Handler.tunnels.Close(ctx)
	return errors.Join(s.fast.ShutdownWithContext(ctx), awaitAll(ctx, &s.resumed),
		s.options.Handler.pool.awaitEmpty(ctx),
		awaitAll(ctx, &s.options.Handler.leaving), tunnels)
}

// awaitAll waits for all of g, at most until ctx ends.
func awaitAll(ctx context.Context, g *sync.WaitGroup) error {
	over := make(chan struct{})
	go func() {
		defer close(over)
		g.Wait()
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answerUnreadable answers a request that fasthttp could not read.
func (s *Server) answerUnreadable(ctx *fasthttp.RequestCtx, err error) {
	d := s.options.Handler.pool.get(s.options.Handler)
	defer func() { d.endServing(ctx, recover()) }()
	ctx.Response.Header.DisableNormalizing()
	bad := unreadRejection(err)
	if bad.Status == fasthttp.StatusRequestEntityTooLarge || bad.Status == fasthttp.StatusRequestHeaderFieldsTooLarge {
		wire.LingerOnClose(ctx.Conn())
	}
	d.answerWith(ctx, d.rejectWith(bad))
	ctx.SetConnectionClose()
}

// unreadRejection returns what is wrong with a request that fasthttp could not read.
func unreadRejection(err error) *Rejection {
	var small *fasthttp.ErrSmallBuffer
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &small):
		return newRejection(codeHeaderTooLarge, "request line and header are larger than limits.request_header")
	case errors.As(err, &timeout) && timeout.Timeout():
		return newRejection(codeRequestTimeout, "the request did not arrive within limits.header_timeout, or its body "+
			"within limits.body_timeout")
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return bodyTooLarge()
	}
	return newRejection(codeBadRequest, "the request is not well-formed HTTP/1.1, or broke off")
}

// tooManyConnections returns the whole answer for a connection that is one too many.
func tooManyConnections() []byte {
	var ctx fasthttp.RequestCtx
	r := newRejection(codeTooManyConns, "limits.max_connections are open; send the event again").asRefusal()
	r.writeTo(&ctx)
	ctx.Response.Header.SetConnectionClose()
	return []byte(ctx.Response.String())
}

// quoted matches a text in quotes, as %q writes it.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// withoutQuotes returns an error of fasthttp without the lines and values of a head that it quotes:
// they may be secrets.
func withoutQuotes(err error) string { return quoted.ReplaceAllString(err.Error(), `"…"`) }

// quietLogger receives fasthttp's messages about broken connections, which are the senders' affair.
type quietLogger struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (l quietLogger) Printf(format string, args ...any) {
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			args[i] = withoutQuotes(err)
		}
	}
	l.log.Debug("connection", "error", fmt.Sprintf(format, args...))
}
