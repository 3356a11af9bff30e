package wiretest

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// patience is how long the package waits for anything before it fails the test.
const patience = time.Minute

// Upstream is a listening server. It ends with the test, which waits for all of its connections.
type Upstream struct {
	Network string
	Addr    string
	// TLS is what a client needs to trust the server; nil for plain ones.
	TLS *tls.Config

	listener net.Listener
	serve    func(*Conn)
	workers  sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond
	conns    []*Conn
	requests []string
	closed   bool
}

// Serve starts an upstream on TCP; serve runs for each connection, which is closed behind it.
func Serve(t testing.TB, serve func(*Conn)) *Upstream {
	t.Helper()
	return start(t, "tcp", "127.0.0.1:0", nil, serve)
}

// ServeUnix is Serve on a unix socket.
func ServeUnix(t testing.TB, serve func(*Conn)) *Upstream {
	t.Helper()
	return start(t, "unix", SocketPath(t), nil, serve)
}

// SocketPath returns a path for a unix socket. The kernel takes some hundred bytes (108 on Linux,
// 104 on macOS, unix(7)), and t.TempDir spends most of them on the test's name: with a long TMPDIR,
// as macOS has it, they do not suffice.
func SocketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") //nolint:usetesting // see above: t.TempDir is what is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// ServeTLS is Serve behind TLS, with a certificate for 127.0.0.1.
func ServeTLS(t testing.TB, serve func(*Conn)) *Upstream {
	t.Helper()
	server, client := Certify(t)
	u := start(t, "tcp", "127.0.0.1:0", server, serve)
	u.TLS = client
	return u
}

// Script starts an upstream on TCP that reads whole requests and gives the answers in turn, over
// all connections; the last one is given again and again.
func Script(t testing.TB, answers ...string) *Upstream {
	t.Helper()
	var mu sync.Mutex
	return Serve(t, func(c *Conn) {
		for {
			if _, err := c.ReadRequest(); err != nil {
				return
			}
			mu.Lock()
			answer := answers[0]
			if len(answers) > 1 {
				answers = answers[1:]
			}
			mu.Unlock()
			if c.Say(answer) != nil {
				return
			}
		}
	})
}

func start(t testing.TB, network, addr string, config *tls.Config, serve func(*Conn)) *Upstream {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	u := &Upstream{Network: network, Addr: l.Addr().String(), listener: l, serve: serve}
	u.changed = sync.NewCond(&u.mu)
	u.workers.Go(func() { u.accept(config) })
	t.Cleanup(u.Close)
	return u
}

func (u *Upstream) accept(config *tls.Config) {
	for {
		raw, err := u.listener.Accept()
		if err != nil {
			return
		}
		c := newConn(u, raw, config)
		u.mu.Lock()
		if u.closed {
			u.mu.Unlock()
			_ = raw.Close()
			return
		}
		u.conns = append(u.conns, c)
		c.Number = len(u.conns)
		u.changed.Broadcast()
		u.mu.Unlock()
		u.workers.Go(func() {
			defer raw.Close()
			u.serve(c)
		})
	}
}

// Close ends the listener and every connection, and waits for what serves them. The end of the test
// calls it, too.
func (u *Upstream) Close() {
	_ = u.listener.Close()
	u.mu.Lock()
	u.closed = true
	for _, c := range u.conns {
		_ = c.raw.Close()
	}
	u.mu.Unlock()
	u.workers.Wait()
}

func (u *Upstream) record(request string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests = append(u.requests, request)
	u.changed.Broadcast()
}

// Requests returns every request that ReadRequest read, byte for byte, in the order of their ends.
func (u *Upstream) Requests() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.requests)
}

// Conns returns the number of connections that were accepted.
func (u *Upstream) Conns() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.conns)
}

// Await waits until n requests were read and returns the last of them.
func (u *Upstream) Await(t testing.TB, n int) string {
	t.Helper()
	gone := false
	stop := time.AfterFunc(patience, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		gone = true
		u.changed.Broadcast()
	})
	defer stop.Stop()
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.requests) < n && !gone {
		u.changed.Wait()
	}
	if len(u.requests) < n {
		t.Fatalf("upstream got %d requests in %v, want %d", len(u.requests), patience, n)
	}
	return u.requests[n-1]
}
