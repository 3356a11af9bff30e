package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// endless is a service whose answers to /hooks/w are longer than all buffers on the way together. It tells when nothing of one moves any
// more, and when its connection has ended; other requests it answers at once.
type endless struct {
	*service
	stuck chan struct{}
	ended chan error
}

func newEndless(t *testing.T) *endless {
	ln := local(t)
	e := &endless{&service{url: ln.Addr().String()}, make(chan struct{}, 1), make(chan error, 1)}
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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

// TestASenderThatStopsReadingHoldsNoLock: what ends an execution ends its answer, also where that is stuck on its way to the sender.
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
			if _, _, err := r.store.Cancel(t.Context(), id, byOps); err != nil {
				t.Fatal(err)
			}
		}, 0, idem.Aborted},
		{"a release by force", func(t *testing.T, r *replica, id idem.ExecutionID) {
			if _, err := r.store.ForceRelease(t.Context(), "w/w", id, byOps); err != nil {
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
			_, _ = io.WriteString(c, "POST /hooks/w HTTP/1.1\r\nHost: hooks.example\r\nIdempotency-Key: "+event+"\r\nContent-Length: 0\r\n\r\n")
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
			if _, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the sender's answer ends with %v", err)
			}
		})
	}
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
