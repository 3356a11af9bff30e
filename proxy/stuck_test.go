package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/proxy/wire"
	"hooklock/proxy/wiretest"
)

// endless is a service whose answers to /hooks/w are longer than all buffers on the way together.
// It tells when nothing of one moves any more, and when its connection has ended; other requests it
// answers at once.
type endless struct {
	*service
	stuck chan struct{}
	ended chan error
}

func newEndless(t *testing.T) *endless {
	ln := local(t)
	e := &endless{&service{url: ln.Addr().String()}, make(chan struct{}, 1), make(chan error, 1)}
	server := &http.Server{ReadHeaderTimeout: patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.URL.Path != "/hooks/w" {
				return
			}
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
			e.ended <- e.fill(c)
		})}
	go server.Serve(ln)
	t.Cleanup(func() { server.Close() })
	return e
}

// fill writes until nothing moves or the connection has ended, and waits for its end.
func (e *endless) fill(c net.Conn) error {
	piece := make([]byte, 64<<10)
	for {
		_ = c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		if _, err := c.Write(piece); err != nil {
			e.stuck <- struct{}{}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				_, err = io.Copy(io.Discard, c)
			}
			return err
		}
	}
}

// TestASenderThatStopsReadingHoldsNoLock: what ends an execution ends its answer, also where that
// is stuck on its way to the sender.
func TestASenderThatStopsReadingHoldsNoLock(t *testing.T) {
	etcd := etcdtest.Start(t)
	for _, tt := range []struct {
		name    string
		end     func(t *testing.T, r *replica, id idem.ExecutionID)
		longest time.Duration
		status  idem.Status
	}{
		{"max_duration", func(*testing.T, *replica, idem.ExecutionID) {}, 4 * time.Second, idem.Aborted},
		{"a cancel", func(t *testing.T, r *replica, id idem.ExecutionID) {
			if _, _, err := r.store.Cancel(t.Context(), id, byOps, nil); err != nil {
				t.Fatal(err)
			}
		}, 0, idem.Aborted},
		{"a release by force", func(t *testing.T, r *replica, id idem.ExecutionID) {
			if _, err := r.store.ForceRelease(t.Context(), "w/w", id, byOps, nil); err != nil {
				t.Fatal(err)
			}
		}, 0, idem.Aborted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := newEndless(t)
			a := newReplica(t, etcd, up.service, func(p *idem.Policy) { p.MaxDuration = tt.longest })
			b := newReplica(t, etcd, up.service, func(*idem.Policy) {})
			c, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			event := strings.ReplaceAll(tt.name, " ", "-")
			_, _ = io.WriteString(c, "POST /hooks/w HTTP/1.1\r\nHost: hooks.example\r\nIdempotency-Key: "+event+
				"\r\nContent-Length: 0\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			id := idem.ExecutionID(resp.Header.Get("Hooklock-Execution"))
			await(t, up.stuck)
			tt.end(t, b, id)
			await(t, up.ended)
			found := awaitRecord(t, b, id)
			if found.Status != tt.status || found.Outcome != idem.Unknown {
				t.Errorf("%+v", found)
			}
			_ = c.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) &&
				!errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the sender's answer ends with %v", err)
			}
		})
	}
}

// tight are connections of which the kernel takes little that nobody reads.
type tight struct{ net.Listener }

func (l tight) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(1)
	}
	return c, err
}

// TestTheEndOfARecordedAnswerHoldsNoEndUp: its execution is over, so that of the process is all
// that ends it.
func TestTheEndOfARecordedAnswerHoldsNoEndUp(t *testing.T) {
	const length = 8 * streamPiece
	ln := local(t)
	up := &http.Server{ReadHeaderTimeout: patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Length", strconv.Itoa(length))
			_, _ = w.Write(make([]byte, length))
		})}
	go up.Serve(ln)
	t.Cleanup(func() { up.Close() })
	r := newReplica(t, etcdtest.Start(t), &service{url: ln.Addr().String()}, func(*idem.Policy) {})
	base, end := context.WithCancelCause(t.Context())
	pool := wire.NewUpstream(wire.Options{Addr: ln.Addr().String(), MaxResponseBody: streamPiece})
	defer pool.Close()
	r.handler.options.Base, r.handler.options.Upstream = base, pool //nolint:fatcontext // the process that ends is this one
	door, served := local(t), make(chan error, 1)
	server := NewServer(ServerOptions{Handler: r.handler, MaxHead: 16 << 10, IdleTimeout: patience, MaxConnections: 10,
		Log: slog.New(slog.DiscardHandler)})
	go func() { served <- server.Serve(server.Listener(tight{door})) }()

	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1)
		})
	}}
	c, err := dialer.DialContext(t.Context(), "tcp", door.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "POST /hooks/w HTTP/1.1\r\nHost: h\r\nIdempotency-Key: 1\r\nContent-Length: 0\r\n\r\n")
	for !r.events.heard(EventReleased) { // its end is recorded, and the last piece is on its way
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := io.CopyN(io.Discard, c, 1<<10); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	end(guard.ErrShutdown)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.handler.pool.awaitEmpty(ctx); err != nil {
		t.Errorf("the delivery goes on: %v", err)
	}
	if err := server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	<-served
}

// awaitRecord waits until an execution has ended.
func awaitRecord(t *testing.T, r *replica, id idem.ExecutionID) *idem.Record {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		found, err := r.store.Execution(t.Context(), id)
		if err == nil && found.Record != nil {
			return found.Record
		}
		if time.Now().After(end) {
			t.Fatalf("the execution does not end: %+v, %v", found, err)
		}
	}
}

// TestAnOldSenderIsToldOfAnAnswerThatItCannotHave: and so is whoever reads of it in the log and the
// metrics.
func TestAnOldSenderIsToldOfAnAnswerThatItCannotHave(t *testing.T) {
	etcd, long := etcdtest.Start(t), strings.Repeat("x", longestOldAnswer+1<<20)
	for _, tt := range []struct {
		answer   string
		decision idem.Decision
		outcome  idem.Outcome
	}{
		{"HTTP/1.1 200 OK\r\n\r\n" + long, idem.DecisionExecuted, idem.Executed},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n" + long, idem.DecisionUpstreamFailed,
			idem.Unknown},
	} {
		up := wiretest.Serve(t, func(c *wiretest.Conn) {
			_, _ = c.ReadRequest()
			_ = c.Say(tt.answer)
		})
		r := newReplica(t, etcd, &service{url: up.Addr}, func(*idem.Policy) {})
		sender, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer sender.Close()
		if _, err := fmt.Fprintf(sender, "POST /hooks/%s HTTP/1.0\r\nContent-Length: 4\r\n\r\nbody",
			tt.decision); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(sender)
		if text := string(got); err != nil || !strings.Contains(text, " 502 ") ||
			!strings.HasSuffix(text, "\r\n\r\n") ||
			!strings.Contains(text, "Hooklock-Decision: "+string(tt.decision)+"\r\n") {
			t.Errorf("the sender gets %.500q, %v", text, err)
		}
		r.events.mu.Lock()
		if reports := r.events.reports; len(reports) != 1 || reports[0].Status != 502 ||
			reports[0].Decision != tt.decision || reports[0].Outcome != tt.outcome {
			t.Errorf("reported as %+v", reports)
		}
		r.events.mu.Unlock()
	}
}
