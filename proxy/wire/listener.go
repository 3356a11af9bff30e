package wire

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// ListenerOptions bound the connections of a Listener.
type ListenerOptions struct {
	MaxConns    int           // open connections; 0 means no bound
	Strict      bool          // let no request through that is not strictly formed: for fasthttp, on top of TLS
	Refusal     []byte        // the whole HTTP answer to a connection over MaxConns; empty, or over TLS: closed without one
	LingerTime  time.Duration // how long the Close of a lingering connection reads on; 0 means 2 s
	LingerBytes int64         // how much it reads on; 0 means 64 MiB
	WritePace   Pace          // how slowly a sender may take an answer; the connection of a slower one is cut
}

const (
	// refusing bounds the refused connections that are kept a moment so that the sender can read the answer.
	refusing = 64
	// refusalTime is that moment.
	refusalTime = time.Second
)

// Listener counts and bounds the connections of another listener, which it closes. It goes on top, over TLS too
// (NewListener(tls.NewListener(...))), because it also notes what fasthttp v1.74 does not report, that the connection ended
// or failed in the middle of a chunked body, and with Strict refuses what fasthttp forgives.
type Listener struct {
	inner net.Listener
	o     ListenerOptions
	live  atomic.Int64

	mu      sync.Mutex
	refused map[net.Conn]struct{}
	closed  bool
	workers sync.WaitGroup
}

// NewListener wraps l.
func NewListener(l net.Listener, o ListenerOptions) *Listener {
	if o.LingerTime == 0 {
		o.LingerTime = 2 * time.Second
	}
	if o.LingerBytes == 0 {
		o.LingerBytes = 64 << 20
	}
	return &Listener{inner: l, o: o, refused: make(map[net.Conn]struct{})}
}

// Accept returns the next connection inside the bound. Those over it get the refusal and are closed.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.inner.Accept()
		if err != nil {
			return nil, err
		}
		if n := l.live.Add(1); l.o.MaxConns <= 0 || n <= int64(l.o.MaxConns) {
			s := &served{Conn: c, l: l, strict: strict{free: !l.o.Strict}, writing: l.o.WritePace.Begin()}
			if secure, ok := c.(*tls.Conn); ok {
				return &servedTLS{s, secure}, nil
			}
			return s, nil
		}
		l.live.Add(-1)
		l.refuse(c)
	}
}

// refuse answers and closes. Closing at once would reset the connection under the sender's request, and the answer would
// be lost; under a flood it is.
func (l *Listener) refuse(c net.Conn) {
	_, secure := c.(*tls.Conn) // it would have to shake hands first
	answer := len(l.o.Refusal) > 0 && !secure
	if answer {
		_ = c.SetDeadline(time.Now().Add(refusalTime))
		_, _ = c.Write(l.o.Refusal) // fits into the empty buffer of a new connection
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || !answer || len(l.refused) >= refusing {
		_ = c.Close()
		return
	}
	l.refused[c] = struct{}{}
	l.workers.Go(func() {
		closeWrite(c)
		_, _ = io.CopyN(io.Discard, c, l.o.LingerBytes)
		_ = c.Close()
		l.mu.Lock()
		delete(l.refused, c)
		l.mu.Unlock()
	})
}

// Live returns the number of open connections, those included that linger.
func (l *Listener) Live() int { return int(l.live.Load()) }

// Addr returns the address of the listener underneath.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close closes the listener underneath and the connections that were being refused. It does not wait for the accepted ones.
func (l *Listener) Close() error {
	err := l.inner.Close()
	l.mu.Lock()
	l.closed = true
	for c := range l.refused {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.workers.Wait()
	return err
}

// served is an accepted connection.
type served struct {
	net.Conn
	l       *Listener
	writing Pacer
	linger  atomic.Bool
	fault   atomic.Pointer[error] // why a Read failed; the first one stays
	strict  strict
	once    sync.Once
}

// servedTLS has the methods by which fasthttp recognizes TLS.
type servedTLS struct {
	*served
	tls *tls.Conn
}

func (c *servedTLS) Handshake() error                     { return c.tls.Handshake() }
func (c *servedTLS) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// base finds the connection of a Listener, nil if c is none.
func base(c net.Conn) *served {
	switch s := c.(type) {
	case *served:
		return s
	case *servedTLS:
		return s.served
	}
	return nil
}

func (c *served) Read(p []byte) (int, error) {
	n, err := c.strict.read(c.Conn, p)
	if err != nil {
		first := err
		c.fault.CompareAndSwap(nil, &first)
	}
	return n, err
}

// failure returns why a Read failed, nil if none did. Once the connection is broken it stays so.
func (c *served) failure() error {
	if err := c.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// NetConn returns the connection underneath.
func (c *served) NetConn() net.Conn { return c.Conn }

// CloseWrite ends the sending side.
func (c *served) CloseWrite() error {
	if !closeWrite(c.Conn) {
		return errors.ErrUnsupported
	}
	return nil
}

// Close closes the connection; one that lingers reads on before.
func (c *served) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		if c.linger.Load() {
			c.drain()
		}
		err = c.Conn.Close()
		c.l.live.Add(-1)
	})
	return err
}

// drain ends the sending side and reads what the sender is still busy to send. Closing with unread bytes would reset the
// connection, and the reset may overtake the answer.
func (c *served) drain() {
	socket := c.Conn
	if secure, ok := socket.(*tls.Conn); ok {
		_ = secure.CloseWrite() // close_notify; what is drained need not be decrypted
		socket = secure.NetConn()
	}
	if !closeWrite(socket) || socket.SetDeadline(time.Now().Add(c.l.o.LingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, socket, c.l.o.LingerBytes)
}

// closeWrite ends the sending side of c, where it can be ended alone.
func closeWrite(c net.Conn) bool {
	half, ok := c.(interface{ CloseWrite() error })
	return ok && half.CloseWrite() == nil
}

// LingerOnClose marks a connection of a Listener: its Close ends the sending side first and reads on for a while, so that
// a sender that is still busy with a refused body can read the answer. Close then takes up to LingerTime. Other
// connections are left alone.
func LingerOnClose(c net.Conn) {
	if s := base(c); s != nil {
		s.linger.Store(true)
	}
}
