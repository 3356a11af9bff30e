package wire

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/proxy/wiretest"
)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

const postHead = "POST /hook HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"

// pool makes a pool for up that ends with the test.
func pool(t testing.TB, up *wiretest.Upstream, change ...func(*Options)) *Upstream {
	t.Helper()
	o := Options{Network: up.Network, Addr: up.Addr, TLS: up.TLS, MaxIdle: 8, MaxAge: time.Minute,
		ReuseAfterBody: ReuseAlways}
	for _, f := range change {
		f(&o)
	}
	u := NewUpstream(o)
	t.Cleanup(func() { _ = u.Close() })
	return u
}

// soon is a call that ends a test that hangs.
func soon(t testing.TB) *Call {
	t.Helper()
	x := &Call{Late: errors.New("the test hangs")}
	x.Begin(time.Now(), time.Minute)
	t.Cleanup(x.End)
	return x
}

// following is a call that ends with ctx.
func following(ctx context.Context, t testing.TB) *Call {
	t.Helper()
	x := soon(t)
	x.Follow(ctx)
	return x
}

func post(t testing.TB, u *Upstream, ans *Answer) error {
	t.Helper()
	return u.Send(soon(t), []byte(postHead), []byte("body"), true, ans)
}

func wantSent(t *testing.T, err error, evidence Evidence) *SendError {
	t.Helper()
	var serr *SendError
	if !errors.As(err, &serr) {
		t.Fatalf("error is %v, want a *SendError", err)
	}
	if serr.Evidence != evidence {
		t.Errorf("evidence is %q, want %q (%v)", serr.Evidence, evidence, err)
	}
	return serr
}

func TestSendsTheRequestByteForByteAndReturnsTheWholeAnswer(t *testing.T) {
	for _, network := range []string{"tcp", "unix", "tls"} {
		t.Run(network, func(t *testing.T) {
			serve := func(c *wiretest.Conn) {
				for {
					if _, err := c.ReadRequest(); err != nil {
						return
					}
					_ = c.Say("HTTP/1.1 201 \r\nx-b:  2 \r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 2\r\n\r\nok")
				}
			}
			var up *wiretest.Upstream
			switch network {
			case "tcp":
				up = wiretest.Serve(t, serve)
			case "unix":
				up = wiretest.ServeUnix(t, serve)
			case "tls":
				up = wiretest.ServeTLS(t, serve)
			}
			u := pool(t, up)
			var ans Answer
			for range 3 {
				if err := post(t, u, &ans); err != nil {
					t.Fatal(err)
				}
				if ans.Status != 201 || len(ans.Reason) != 0 || string(ans.Body) != "ok" || !ans.Whole ||
					ans.Rest != nil ||
					ans.Evidence != AnswerWhole || ans.Length != 2 {
					t.Fatalf("answer is %+v", ans)
				}
				if got := fieldsText(ans.EndToEnd(nil)); got != "x-b=2|X-A=1|X-A=2" {
					t.Fatalf("fields are %s", got)
				}
			}
			for _, r := range up.Requests() {
				if r != postHead+"body" {
					t.Errorf("upstream got %q", r)
				}
			}
			if up.Conns() != 1 || u.idleNow() != 1 {
				t.Errorf("%d connections, %d idle", up.Conns(), u.idleNow())
			}
		})
	}
}

func fieldsText(fields []Field) string {
	var parts []string
	for _, f := range fields {
		parts = append(parts, string(f.Name)+"="+string(f.Value))
	}
	return strings.Join(parts, "|")
}

// TestDropsAnIdleConnectionThatWasClosed: the FIN came before the connection is used again.
func TestDropsAnIdleConnectionThatWasClosed(t *testing.T) {
	closed := make(chan struct{}, 2)
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		_, _ = c.ReadRequest()
		_ = c.Say(okAnswer)
		_ = c.Close()
		closed <- struct{}{}
	})
	u := pool(t, up)
	var ans Answer
	for range 2 {
		if err := post(t, u, &ans); err != nil {
			t.Fatal(err)
		}
		<-closed
		awaitFIN(t, u)
	}
	if up.Conns() != 2 || ans.Resent {
		t.Errorf("%d connections, sent again: %v", up.Conns(), ans.Resent)
	}
}

// awaitFIN waits until the newest idle connection has something to say.
func awaitFIN(t testing.TB, u *Upstream) {
	t.Helper()
	u.mu.Lock()
	c := u.idle[len(u.idle)-1]
	u.mu.Unlock()
	for end := time.Now().Add(time.Minute); c.isQuiet(); {
		if time.Now().After(end) {
			t.Fatal("the connection never became readable")
		}
	}
}

// race closes the connection between the look at it and the first byte: the upstream's handler for
// the second request runs as soon as the hook says so.
type raceStep struct {
	now  chan struct{}
	done chan struct{}
}

func newRaceStep() *raceStep { return &raceStep{make(chan struct{}), make(chan struct{})} }

func TestSendsAgainOnlyWithProofThatThePeerHadNoByte(t *testing.T) {
	small, large := "body", strings.Repeat("x", 6<<20)
	tests := []struct {
		name    string
		body    string
		before  bool // the step happens before the write, else after it
		step    func(c *wiretest.Conn)
		resent  bool
		network string
	}{
		{"FIN before the write", small, true, func(c *wiretest.Conn) { _ = c.Close() }, true, "tcp"},
		{"FIN before the write of a large body", large, true, func(c *wiretest.Conn) { _ = c.Close() }, true, "tcp"},
		{"FIN before the write, unix", small, true, func(c *wiretest.Conn) { _ = c.Close() }, true, "unix"},
		{"FIN before the write, TLS", small, true, func(c *wiretest.Conn) { _ = c.Close() }, true, "tls"},
		{"close_notify and FIN before the write, TLS", small, true, func(c *wiretest.Conn) {
			_ = c.Finish()
			_ = c.Close()
		}, true, "tls"},
		{"close_notify alone before the write, TLS", small, true, func(c *wiretest.Conn) {
			_ = c.Finish()
		}, false, "tls"},
		{"read, then FIN", small, false, func(c *wiretest.Conn) { _, _ = c.ReadHead(); _ = c.Finish() }, false, "tcp"},
		{"read, then FIN, unix", small, false, func(c *wiretest.Conn) {
			_, _ = c.ReadHead()
			_ = c.Finish()
		}, false, "unix"},
		{"read, then FIN, TLS", small, false, func(c *wiretest.Conn) {
			_, _ = c.ReadHead()
			_ = c.Finish()
		}, false, "tls"},
		{"read, then reset", small, false, func(c *wiretest.Conn) { _, _ = c.ReadHead(); _ = c.Reset() }, false, "tcp"},
		{"one byte read, then reset", small, false, func(c *wiretest.Conn) {
			_, _ = c.Read(make([]byte, 1))
			_ = c.Reset()
		}, false, "tcp"},
		{"one byte of many read, then reset", large, false, func(c *wiretest.Conn) {
			_, _ = c.Read(make([]byte, 1))
			_ = c.Reset()
		}, false, "tcp"},
		{"one byte of many read, then closed", large, false, func(c *wiretest.Conn) {
			_, _ = c.Read(make([]byte, 1))
			_ = c.Close()
		}, false, "tcp"},
		{"half of the answer, then FIN", small, false, func(c *wiretest.Conn) {
			_, _ = c.ReadRequest()
			_ = c.Say("HTTP/1.1 2")
			_ = c.Close()
		}, false, "tcp"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 10 {
				sendAgain(t, tt.network, tt.body, tt.before, tt.step, tt.resent)
			}
		})
	}
}

func sendAgain(t *testing.T, network, body string, before bool, step func(*wiretest.Conn), resent bool) {
	t.Helper()
	s := newRaceStep()
	var later sync.Mutex
	whole := 0
	serve := func(c *wiretest.Conn) {
		if _, err := c.ReadRequest(); err != nil {
			return
		}
		_ = c.Say(okAnswer)
		if c.Number == 1 {
			<-s.now
			step(c)
			close(s.done)
			if !before || !resent {
				_, _ = io.Copy(io.Discard, c)
			}
			return
		}
		later.Lock()
		whole++
		later.Unlock()
	}
	var up *wiretest.Upstream
	switch network {
	case "tcp":
		up = wiretest.Serve(t, serve)
	case "unix":
		up = wiretest.ServeUnix(t, serve)
	case "tls":
		up = wiretest.ServeTLS(t, serve)
	}
	u := pool(t, up)
	defer u.Close()
	defer up.Close()
	var ans Answer
	if err := post(t, u, &ans); err != nil {
		t.Fatal(err)
	}
	used := false
	u.beforeWrite = func(reused bool) {
		if reused && !used {
			used = true
			close(s.now)
			if before {
				<-s.done
			}
		}
	}
	head := "POST /second HTTP/1.1\r\nHost: a\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n"
	err := u.Send(soon(t), []byte(head), []byte(body), true, &ans)
	if !used {
		t.Fatal("the second request did not reuse the connection")
	}
	if resent {
		if err != nil || !ans.Resent || ans.Status != 200 {
			t.Fatalf("not sent again: %v, %+v", err, ans)
		}
		return
	}
	var serr *SendError
	if !errors.As(err, &serr) || !serr.Sent() || ans.Resent {
		t.Fatalf("error is %v, want one that says sent", err)
	}
	up.Close()
	later.Lock()
	defer later.Unlock()
	if whole != 0 || up.Conns() != 1 {
		t.Fatalf("sent again without proof")
	}
}

func TestWhatFoundNoSecondConnectionWasNotSent(t *testing.T) {
	over := make(chan struct{})
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		_, _ = c.ReadRequest()
		_ = c.Say(okAnswer)
		<-over
	})
	u := pool(t, up)
	var ans Answer
	if err := post(t, u, &ans); err != nil {
		t.Fatal(err)
	}
	u.beforeWrite = func(reused bool) {
		if reused {
			close(over)
			up.Close() // with its listener
		}
	}
	var serr *SendError
	if err := post(t, u, &ans); !errors.As(err, &serr) || serr.Sent() || serr.Evidence != NotDialled ||
		ans.Evidence != NotDialled || !ans.Resent {
		t.Errorf("%v, %v, sent again: %v", err, ans.Evidence, ans.Resent)
	}
}
