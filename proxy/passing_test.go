package proxy

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/proxy/wire"
	"hooklock/proxy/wiretest"
)

type silent struct{}

func (silent) Delivered(*Report)        {}
func (silent) Passed(*Report)           {}
func (silent) Event(EventName, *Report) {}

// TestWhatPassesThroughEndsWithTheProcess: what is under way then may have run, and what comes later reaches nobody.
func TestWhatPassesThroughEndsWithTheProcess(t *testing.T) {
	base, end := context.WithCancelCause(t.Context())
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		_, _ = c.ReadRequest()
		end(idem.ErrShutdown)
		_, _ = io.Copy(io.Discard, c)
	})
	pool := wire.NewUpstream(wire.Options{Addr: up.Addr})
	defer pool.Close()
	_, door := passes(t, HandlerOptions{Upstream: pool, Unmatched: pool, Base: base})
	for _, executed := range []string{"unknown", "no"} {
		status, body := get(t, door)
		if status != http.StatusBadGateway || !strings.Contains(body, `"executed":"`+executed+`"`) {
			t.Errorf("%d %s, want executed %s", status, body, executed)
		}
	}
	if up.Conns() != 1 {
		t.Errorf("%d connections to the upstream, want 1", up.Conns())
	}
}

// TestABugLeavesNothingOfACallBehind: the memory of a delivery is used again, and its call and its exchange with it.
func TestABugLeavesNothingOfACallBehind(t *testing.T) {
	var begun atomic.Bool
	closed := make(chan struct{})
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		_, _ = c.ReadRequest()
		begun.Store(true)
		_ = c.Say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
		close(closed)
	})
	pool := wire.NewUpstream(wire.Options{Addr: up.Addr})
	defer pool.Close()
	now := func() time.Time {
		if begun.CompareAndSwap(true, false) {
			panic("a bug")
		}
		return time.Now()
	}
	h, door := passes(t, HandlerOptions{Upstream: pool, Unmatched: pool, Base: t.Context(), Now: now})
	if status, body := get(t, door); status != http.StatusInternalServerError {
		t.Errorf("%d %s", status, body)
	}
	await(t, closed) // the connection to the upstream
	h.passing.mu.Lock()
	defer h.passing.mu.Unlock()
	if n := len(h.passing.calls); n != 0 {
		t.Errorf("%d calls are under way", n)
	}
}

// passes serves what passes through.
func passes(t *testing.T, o HandlerOptions) (*Handler, net.Addr) {
	t.Helper()
	o.Timeout, o.Observer, o.Log = patience, silent{}, slog.New(slog.DiscardHandler)
	h := NewHandler(o, &Rules{Limits: Limits{HeadTimeout: patience, BodyTimeout: patience}})
	s := NewServer(ServerOptions{Handler: h, MaxHead: 16 << 10, IdleTimeout: patience, MaxConnections: 10, Log: o.Log})
	s.fast.MaxIdleWorkerDuration = 1
	door, served := local(t), make(chan error, 1)
	go func() { served <- s.Serve(s.Listener(door)) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		<-served
	})
	return h, door.Addr()
}

func get(t *testing.T, addr net.Addr) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get("http://" + addr.String() + "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(all)
}
