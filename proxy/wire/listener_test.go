package wire

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/proxy/wiretest"
)

func newCtx() *fasthttp.RequestCtx {
	ctx := new(fasthttp.RequestCtx)
	ctx.Init2(nil, silent{}, false)
	return ctx
}

const refusal = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type: application/problem+json\r\nContent-Length: 2\r\n\r\n{}"

func TestRefusesConnectionsOverTheBoundWithAnAnswer(t *testing.T) {
	d := openDoor(t, ListenerOptions{MaxConns: 2, Refusal: []byte(refusal)}, func(ctx *fasthttp.RequestCtx) {})
	var open []net.Conn
	for range 2 {
		c := dial(t, d.Addr)
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	for range 3 {
		c := dial(t, d.Addr)
		_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"+
			strings.Repeat("x", 100000))
		if got, err := io.ReadAll(c); err != nil || string(got) != refusal {
			t.Errorf("got %q, %v", got, err)
		}
		_ = c.Close()
	}
	if d.listen.Counts().Open != 2 {
		t.Errorf("%d live", d.listen.Counts().Open)
	}
	_ = open[0].Close()
	for end := time.Now().Add(time.Minute); d.listen.Counts().Open != 1; {
		if time.Now().After(end) {
			t.Fatalf("%d live", d.listen.Counts().Open)
		}
	}
	if status, _ := knock(t, d.Addr, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); status != 200 {
		t.Errorf("status %d after one has left", status)
	}
}

// TestASenderOfARefusedBodyReadsTheAnswer: without lingering the close resets the connection and
// the answer is lost.
func TestASenderOfARefusedBodyReadsTheAnswer(t *testing.T) {
	server, client := wiretest.Certify(t)
	for _, secure := range []bool{false, true} {
		inner, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := inner.Addr().String()
		if secure {
			inner = tls.NewListener(inner, server)
		}
		l := NewListener(inner, ListenerOptions{})
		s := &fasthttp.Server{StreamRequestBody: true, MaxIdleWorkerDuration: 20 * time.Millisecond, Logger: silent{},
			Handler: func(ctx *fasthttp.RequestCtx) {
				if ctx.IsTLS() != secure {
					t.Errorf("IsTLS is %v", ctx.IsTLS())
				}
				if _, err := ReadBody(ctx, nil, 10, nil); err != ErrBodyTooLarge {
					t.Errorf("error is %v", err)
				}
				refuse(ctx, 413)
			}}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = s.Serve(l)
		}()
		c := dial(t, addr)
		if secure {
			c = tls.Client(c, client)
		}
		body := strings.Repeat("x", 8<<20)
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+
			body); err != nil {
			t.Errorf("the body was not taken: %v", err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 413 {
			t.Errorf("%v, %v", resp, err)
		}
		_ = c.Close()
		_ = s.Shutdown()
		<-served
	}
}

func TestLingeringHasAnEnd(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(inner, ListenerOptions{LingerTime: 20 * time.Millisecond, LingerBytes: 1000})
	defer l.Close()
	for _, floods := range []bool{false, true} {
		c := dial(t, l.Addr().String())
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		LingerOnClose(s)
		if floods {
			_, _ = c.Write(make([]byte, 10000))
		}
		if err := s.Close(); err != nil || l.Counts().Open != 0 {
			t.Errorf("%v, %d live", err, l.Counts().Open)
		}
		if err := s.Close(); err == nil || l.Counts().Open != 0 {
			t.Errorf("a second Close counts again: %d live", l.Counts().Open)
		}
	}
}

func TestClosingTheListenerEndsRefusals(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(inner, ListenerOptions{MaxConns: 1, Refusal: []byte(refusal)})
	first, over := dial(t, inner.Addr().String()), dial(t, inner.Addr().String())
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	begin(t, first, accepted)
	ended := make(chan error)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	if _, err := io.ReadFull(over, make([]byte, len(refusal))); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := <-ended; err == nil {
		t.Error("Accept goes on after Close")
	}
	_ = accepted.Close()
	_ = first.Close()
}

// begin sends the first byte of a request, which makes a connection one that is not closed for
// another.
func begin(t *testing.T, sender, accepted net.Conn) {
	t.Helper()
	if _, err := io.WriteString(sender, "G"); err != nil {
		t.Fatal(err)
	}
	if _, err := accepted.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}
