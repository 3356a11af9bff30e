package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Switched is an upstream connection that left HTTP with a 101 answer. It belongs to its holder:
// give it to Tunnels.Serve, or close it.
type Switched struct {
	conn *conn
	head []byte // the 101 answer as received
}

// Close closes the connection.
func (s *Switched) Close() error {
	s.conn.hangUp()
	return nil
}

// Upgrade sends a head that asks for another protocol (HeadOptions.Upgrade), on a connection of its
// own. After 101 it returns the connection, which x no longer governs; after any other answer nil,
// and ans is as after Stream. A request with a body cannot be upgraded: send it with Stream,
// without its Upgrade lines. The error is a *SendError; a 101 to h2c, HTTP or TLS is one, because
// it would carry requests past Hooklock.
func (u *Upstream) Upgrade(x *Call, head []byte, ans *Answer) (*Switched, error) {
	e := u.newExchange(x, head, ans)
	e.upgrade = true
	if err := e.sendAndReadHead(); err != nil {
		return nil, err
	}
	if ans.Status != 101 {
		return nil, e.passBody()
	}
	if cause := e.detachConn(); cause != nil {
		e.conn.hangUp()
		return nil, e.failWith(cause)
	}
	ans.Evidence = e.evidence
	return &Switched{conn: e.conn, head: append([]byte(nil), ans.head...)}, nil
}

// takeOverTime is how long fasthttp may take to hand over a sender's connection after the handler
// returned. It never does if that connection broke meanwhile.
const takeOverTime = 10 * time.Second

var errTunnelsClosed = errors.New("tunnels are closed")

// Tunnels owns the connections that left HTTP. The zero value is ready; Close it at shutdown,
// because fasthttp does not wait for them.
type Tunnels struct {
	mu     sync.Mutex
	open   map[*tunnel]struct{}
	closed bool
	empty  chan struct{} // closed when the last tunnel ended after Close
}

// tunnel is one pair of connections. Its sender side is nil until fasthttp has handed it over.
type tunnel struct {
	up     *Switched
	sender net.Conn
	ended  bool
	late   *time.Timer
}

// Serve takes over the sender's connection as soon as the handler has returned, sends the
// upstream's 101 on as it came, and copies both ways; an end of one direction is passed on and the
// other one goes on. The handler must leave the response alone. After Close it returns an error and
// closes s; the handler then answers.
func (t *Tunnels) Serve(ctx *fasthttp.RequestCtx, s *Switched) error {
	tn := &tunnel{up: s}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		s.conn.hangUp()
		return errTunnelsClosed
	}
	if t.open == nil {
		t.open = make(map[*tunnel]struct{})
	}
	t.open[tn] = struct{}{}
	tn.late = time.AfterFunc(takeOverTime, func() { t.closeAndForget(tn) })
	if c := servedOf(ctx.Conn()); c != nil {
		c.strict.free = true
	}
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) { t.run(tn, c) })
	return nil
}

// run copies until both directions have ended. fasthttp closes the sender's connection behind it.
func (t *Tunnels) run(tn *tunnel, sender net.Conn) {
	if !tn.late.Stop() {
		return
	}
	defer t.closeAndForget(tn)
	if !t.attachSender(tn, sender) {
		return
	}
	if _, err := sender.Write(tn.up.head); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { t.copyOneWay(tn, sender, tn.up.conn.br, hijackedConn(sender)) })
	t.copyOneWay(tn, tn.up.conn.nc, sender, tn.up.conn.nc)
	back.Wait()
}

// copyOneWay moves bytes one way and passes their end on. A broken direction ends both, because the
// other one would not be noticed.
func (t *Tunnels) copyOneWay(tn *tunnel, dst io.Writer, src io.Reader, end net.Conn) {
	_, err := io.CopyBuffer(onlyWriter{dst}, onlyReader{src}, make([]byte, pumpBuffer))
	if err == nil {
		if half, ok := end.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			return
		}
	}
	t.hangUp(tn)
}

// onlyWriter and onlyReader hide ReadFrom and WriteTo, which would bypass the buffered bytes of a
// hijacked connection.
type onlyWriter struct{ io.Writer }
type onlyReader struct{ io.Reader }

// hijackedConn returns the connection that fasthttp hijacked: the wrapper's own Close and
// CloseWrite do nothing.
func hijackedConn(c net.Conn) net.Conn {
	if h, ok := c.(interface{ UnsafeConn() net.Conn }); ok {
		return h.UnsafeConn()
	}
	return c
}

func (t *Tunnels) attachSender(tn *tunnel, sender net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tn.ended {
		return false
	}
	tn.sender = hijackedConn(sender)
	return true
}

// hangUp closes both sides, which wakes both copies.
func (t *Tunnels) hangUp(tn *tunnel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tn.close()
}

func (tn *tunnel) close() {
	tn.ended = true
	tn.up.conn.hangUp()
	if tn.sender != nil {
		_ = tn.sender.Close()
	}
}

// closeAndForget closes a tunnel whose copies have ended, and forgets it.
func (t *Tunnels) closeAndForget(tn *tunnel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tn.close()
	t.forgetTunnel(tn)
}

func (t *Tunnels) forgetTunnel(tn *tunnel) {
	delete(t.open, tn)
	if t.closed && len(t.open) == 0 && t.empty != nil {
		close(t.empty)
		t.empty = nil
	}
}

// Close ends all tunnels and waits for them, at most until ctx ends; its error is then that of ctx.
// No tunnel begins from then on.
func (t *Tunnels) Close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	for tn := range t.open {
		tn.close()
		if tn.late.Stop() { // not handed over yet: no copy is to be waited for
			delete(t.open, tn)
		}
	}
	empty := t.empty
	if empty == nil && len(t.open) > 0 {
		empty = make(chan struct{})
		t.empty = empty
	}
	t.mu.Unlock()
	if empty == nil {
		return nil
	}
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
