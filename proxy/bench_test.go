package proxy

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/idem/naming"
	"hooklock/proxy/wire"
)

// refuser is a gate that admits nothing: what is left is the cost of the proxy itself.
type refuser struct{}

func (refuser) Admit(context.Context, *idem.Request) guard.Admission {
	return guard.Admission{Verdict: idem.Verdict{Decision: idem.DecisionLocked}}
}

type deaf struct{}

func (deaf) OnDelivered(*Report)      {}
func (deaf) OnPassed(*Report)         {}
func (deaf) Event(EventName, *Report) {}

func loopback(b *testing.B) net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return ln
}

// benchServer is a Server that refuses each delivery, in front of upstream.
func benchServer(b *testing.B, upstream string) *Server {
	keys, err := naming.NewKeys(naming.KeySpec{Route: "r", Workflow: "w/{path.a}", EventID: "{header.Idempotency-Key}"})
	if err != nil {
		b.Fatal(err)
	}
	pattern, _ := ParsePattern("/hooks/{a}")
	pool := wire.NewUpstream(wire.Options{Addr: upstream, MaxIdle: 256})
	b.Cleanup(func() { _ = pool.Close() })
	h := NewHandler(HandlerOptions{
		Gate: refuser{}, Upstream: pool, Unmatched: pool, UpstreamHost: "u", Timeout: time.Minute,
		Base: context.Background(), Observer: deaf{}, Log: slog.New(slog.DiscardHandler),
	}, &Rules{
		Table: Table{Routes: []*Route{{Name: "r", Pattern: pattern, Methods: []string{"POST"}, Keys: keys,
			Policy: idem.Policy{Route: "r", Idempotency: true}}}},
		Limits: Limits{RequestBody: 8 << 20, HeadTimeout: time.Minute, BodyTimeout: time.Minute},
	})
	s := NewServer(ServerOptions{Handler: h, MaxHead: 16 << 10, IdleTimeout: time.Minute, MaxConnections: 1 << 20,
		Log: slog.New(slog.DiscardHandler)})
	b.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	return s
}

// BenchmarkProxy is the whole in-process path over loopback: sender, proxy and upstream in one
// process.
func BenchmarkProxy(b *testing.B) {
	up := loopback(b)
	upstream := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("ok") }}
	go upstream.Serve(up)
	defer upstream.Shutdown()
	s := benchServer(b, up.Addr().String())
	door := loopback(b)
	go s.Serve(s.Listener(door))
	for name, path := range map[string]string{"pass-through": "/x", "refused": "/hooks/a"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(8)
			body := bytes.Repeat([]byte("x"), 1024)
			b.RunParallel(func(pb *testing.PB) {
				c := &fasthttp.HostClient{Addr: door.Addr().String(), MaxConns: 1,
					Dial: func(addr string) (net.Conn, error) {
						return net.Dial("tcp", addr)
					}}
				var req fasthttp.Request
				var resp fasthttp.Response
				for pb.Next() {
					req.SetRequestURI("http://h" + path)
					req.Header.SetMethod("POST")
					req.Header.Set("Idempotency-Key", "k")
					req.SetBodyRaw(body)
					if err := c.Do(&req, &resp); err != nil {
						b.Error(err)
						return
					}
				}
				c.CloseIdleConnections()
			})
		})
	}
}
