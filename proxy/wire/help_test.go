package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/proxy/wiretest"
)

func itoa(n int) string { return strconv.Itoa(n) }

// door is a small proxy: what a handler does with this package, and nothing else.
type door struct {
	Addr   string
	listen *Listener
	server *fasthttp.Server
	done   chan struct{}
	states atomic.Pointer[func(fasthttp.ConnState)] // called before the listener is told
}

func (d *door) tell(c net.Conn, state fasthttp.ConnState) {
	if f := d.states.Load(); f != nil {
		(*f)(state)
	}
	Between(c, state)
}

// openDoor serves h with the settings that the package asks for.
func openDoor(t testing.TB, o ListenerOptions, h fasthttp.RequestHandler) *door {
	t.Helper()
	return openDoorTLS(t, o, nil, h)
}

// openDoorTLS is openDoor over TLS, where secure is not nil.
func openDoorTLS(t testing.TB, o ListenerOptions, secure *tls.Config, h fasthttp.RequestHandler) *door {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Strict = true
	if secure != nil {
		inner = tls.NewListener(inner, secure)
	}
	d := &door{Addr: inner.Addr().String(), done: make(chan struct{})}
	var resumed sync.WaitGroup
	if o.IdleTime > 0 {
		o.Resume = func(c net.Conn) { resumed.Go(func() { _ = d.server.ServeConn(c) }) }
	}
	d.listen = NewListener(inner, o)
	d.server = &fasthttp.Server{
		Handler:                      h,
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		NoDefaultContentType:         true,
		NoDefaultDate:                true,
		NoDefaultServerHeader:        true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
		Logger:                       silent{},
		ReadBufferSize:               16 << 10,
		ReadTimeout:                  60 * time.Second,
		ConnState:                    d.tell,
		MaxRequestBodySize:           1 << 20,
		MaxIdleWorkerDuration:        20 * time.Millisecond, // its cleaner sleeps this long after the end
	}
	if o.IdleTime > 0 {
		d.server.IdleTimeout = 20 * time.Millisecond // then the connection is set aside
	}
	go func() {
		defer close(d.done)
		_ = d.server.Serve(d.listen)
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = d.server.ShutdownWithContext(ctx)
		<-d.done
		resumed.Wait()
	})
	return d
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// buffered is the handler of a route: it reads the body whole and declares its length.
func buffered(u *Upstream, max int, o HeadOptions) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		var head Head
		if err := ParseHead(&ctx.Request.Header, &head); err != nil {
			refuse(ctx, 400)
			return
		}
		body, err := ReadBody(ctx, nil, max, nil)
		if err != nil {
			if errors.Is(err, ErrBodyTooLarge) {
				refuse(ctx, 413)
			} else {
				refuse(ctx, 400)
			}
			return
		}
		o := o
		o.Length = int64(len(body))
		var ans Answer
		if err := u.Send(new(Call), head.AppendTo(nil, o), body, true, &ans); err != nil {
			refuse(ctx, 502)
			return
		}
		respond(ctx, &ans)
	}
}

func refuse(ctx *fasthttp.RequestCtx, status int) {
	ctx.SetStatusCode(status)
	ctx.SetConnectionClose()
	LingerOnClose(ctx.Conn())
}

func respond(ctx *fasthttp.RequestCtx, ans *Answer) {
	ctx.SetStatusCode(ans.Status)
	for _, f := range ans.EndToEnd(nil) {
		ctx.Response.Header.AddBytesKV(f.Name, f.Value)
	}
	if ans.RequestPending {
		ctx.SetConnectionClose()
		LingerOnClose(ctx.Conn())
	}
	if ans.Rest != nil {
		ctx.Response.ImmediateHeaderFlush = true
		ctx.SetBodyStream(ans.Rest, int(ans.Length))
		return
	}
	ctx.SetBody(ans.Body)
}

// passing is the handler of an unmatched path.
func passing(u *Upstream, tunnels *Tunnels, failed func(error)) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		var head Head
		if err := ParseHead(&ctx.Request.Header, &head); err != nil {
			refuse(ctx, 400)
			return
		}
		var ans Answer
		if tunnels != nil && head.Upgrade() != nil && !head.HasBody() {
			s, err := u.Upgrade(new(Call), head.AppendTo(nil, HeadOptions{Upgrade: true}), &ans)
			switch {
			case err != nil:
				failed(err)
				refuse(ctx, 502)
			case s == nil:
				respond(ctx, &ans)
			default:
				if err := tunnels.Serve(ctx, s); err != nil {
					failed(err)
					refuse(ctx, 503)
				}
			}
			return
		}
		if err := u.Stream(new(Call), head.AppendTo(nil, HeadOptions{Streamed: true}), BodyOf(ctx), false,
			&ans); err != nil {
			failed(err)
			refuse(ctx, 502)
			return
		}
		respond(ctx, &ans)
	}
}

// knock sends raw bytes and returns the status of the first answer, 0 where the connection was just
// closed.
func knock(t testing.TB, addr, raw string) (status int, closed bool) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	// The end of what is sent ends also what waits for more of it.
	_ = c.(*net.TCPConn).CloseWrite()
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, nil)
	for err == nil && resp.StatusCode == 100 {
		resp, err = http.ReadResponse(br, nil)
	}
	if err != nil {
		return 0, true
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Close
}

// received sends raw to a door before a recording upstream and returns the status and what the
// upstream got.
func received(t *testing.T, raw string, o HeadOptions) (int, []string) {
	t.Helper()
	up := wiretest.Script(t, okAnswer)
	u := pool(t, up)
	d := openDoor(t, ListenerOptions{}, buffered(u, 1<<20, o))
	status, _ := knock(t, d.Addr, raw)
	return status, up.Requests()
}
