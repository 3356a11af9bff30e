package proxy

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/idem/guard"
	"hooklock/proxy/wire"
	"hooklock/proxy/wiretest"
)

type silent struct{}

func (silent) OnDelivered(*Report)      {}
func (silent) OnPassed(*Report)         {}
func (silent) Event(EventName, *Report) {}

// TestWhatPassesThroughEndsWithTheProcess: what is under way then may have run, and what comes
// later reaches nobody.
func TestWhatPassesThroughEndsWithTheProcess(t *testing.T) {
	base, end := context.WithCancelCause(t.Context())
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		_, _ = c.ReadRequest()
		end(guard.ErrShutdown)
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

// TestAnUpgradeThatComesTooLateMayHaveRun: the upstream has switched by then, whatever it has done
// for that.
func TestAnUpgradeThatComesTooLateMayHaveRun(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		_, _ = c.ReadRequest()
		close(asked)
		<-ended
		_ = c.Say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	pool := wire.NewUpstream(wire.Options{Addr: up.Addr})
	defer pool.Close()
	h, door := passes(t, HandlerOptions{Upstream: pool, Unmatched: pool, Base: t.Context()})
	sender, err := net.Dial("tcp", door.String())
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	if _, err := io.WriteString(sender,
		"GET /x HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	await(t, asked)
	if err := h.tunnels.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(ended)
	got, err := io.ReadAll(sender)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 502 ") ||
		!strings.Contains(string(got), `"executed":"unknown"`) {
		t.Errorf("%s, %v", got, err)
	}
}

// TestASenderThatStopsReadingHoldsNoEndUp: the end of the process ends an answer that is stuck on
// its way to the sender, too.
func TestASenderThatStopsReadingHoldsNoEndUp(t *testing.T) {
	base, end := context.WithCancelCause(t.Context())
	up := newEndless(t)
	pool := wire.NewUpstream(wire.Options{Addr: up.url})
	defer pool.Close()
	h, door := passes(t, HandlerOptions{Upstream: pool, Unmatched: pool, Base: base, StreamTimeout: patience})
	sender, err := net.Dial("tcp", door.String())
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	if _, err := io.WriteString(sender, "GET /hooks/w HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	await(t, up.stuck)
	end(guard.ErrShutdown)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := h.pool.awaitEmpty(ctx); err != nil {
		t.Errorf("the delivery goes on: %v", err)
	}
}

// TestABugLeavesNothingOfACallBehind: the memory of a delivery is used again, and its call and its
// exchange with it.
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

// TestWhatPassesThroughReachesItsSenderAsItComes: the head before there is a body, and each piece
// of that, however short.
func TestWhatPassesThroughReachesItsSenderAsItComes(t *testing.T) {
	for name, say := range map[string][]string{
		"with a length": {"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n", "some", "more"},
		"in chunks": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "4\r\nsome\r\n",
			"4\r\nmore\r\n0\r\n\r\n"},
		"to its end":                      {"HTTP/1.1 200 OK\r\n\r\n", "some", "more"},
		"with a length, to an old sender": {"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n", "some", "more"},
		"in chunks, to an old sender": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "4\r\nsome\r\n",
			"4\r\nmore\r\n0\r\n\r\n"},
		"to its end, to an old sender": {"HTTP/1.0 200 OK\r\n\r\n", "some", "more"},
	} {
		old := strings.HasSuffix(name, "to an old sender")
		t.Run(name, func(t *testing.T) {
			had := make(chan struct{})
			defer close(had)
			sender := asks(t, old, func(c *wiretest.Conn) {
				for _, piece := range say {
					_ = c.Say(piece)
					<-had
				}
			})
			resp, err := http.ReadResponse(bufio.NewReader(sender), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			had <- struct{}{}
			for _, want := range []string{"some", "more"} {
				piece := make([]byte, len(want))
				if _, err := io.ReadFull(resp.Body, piece); err != nil || string(piece) != want {
					t.Fatalf("%q, %v; want %q", piece, err, want)
				}
				had <- struct{}{}
			}
			if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
				t.Errorf("%q, %v", rest, err)
			}
			if old && resp.TransferEncoding != nil {
				t.Errorf("chunks, which HTTP/1.0 does not know")
			}
		})
	}
}

// TestAnAnswerThatBreaksOffIsNoEmptyOne: many clients send a request again, a POST too, whose kept
// connection ends without a byte of an answer.
func TestAnAnswerThatBreaksOffIsNoEmptyOne(t *testing.T) {
	const cut = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
	for _, say := range []string{cut, cut + "partial"} {
		sender := asks(t, false, func(c *wiretest.Conn) { _ = c.Say(say) })
		if got, err := io.ReadAll(sender); string(got) != say || err != nil {
			t.Errorf("%q, %v; want %q", got, err, say)
		}
	}
}

// asks passes a POST through to an upstream that reads it and does that, and returns the sender's
// connection. An old sender speaks HTTP/1.0, and would keep its connection.
func asks(t *testing.T, old bool, answer func(c *wiretest.Conn)) net.Conn {
	t.Helper()
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		_, _ = c.ReadRequest()
		answer(c)
	})
	pool := wire.NewUpstream(wire.Options{Addr: up.Addr})
	t.Cleanup(func() { _ = pool.Close() })
	_, door := passes(t, HandlerOptions{Upstream: pool, Unmatched: pool, Base: t.Context(), StreamTimeout: patience})
	sender, err := net.Dial("tcp", door.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sender.Close() })
	if err := sender.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	head := "POST /x HTTP/1.1\r\nHost: h\r\n"
	if old {
		head = "POST /x HTTP/1.0\r\nConnection: keep-alive\r\n"
	}
	if _, err := io.WriteString(sender, head+"Content-Length: 2\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	return sender
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
