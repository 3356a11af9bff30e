package wire

import (
	"container/list"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// served is an accepted connection.
type served struct {
	net.Conn
	listener *Listener
	writing  Pacer
	raw      syscall.RawConn // of a connection without TLS; else nil
	offered  []byte          // what the kernel has not taken yet
	doOffer  func(fd uintptr)
	strict   strict
	linger   atomic.Bool
	fresh    atomic.Bool           // nothing came yet
	between  atomic.Bool           // two requests; see Between
	rested   atomic.Bool           // no request came for a while: the next Close sets it aside
	evicted  atomic.Bool           // it made room for another one
	apart    atomic.Bool           // its server has nothing to do with it any more
	left     atomic.Bool           // it counts no more
	fault    atomic.Pointer[error] // why a Read failed; the first one stays
	once     sync.Once

	// The fields below are guarded by l.mu.
	place *list.Element // in l.idle; nil: it has a request
	aside bool          // no server has it
}

// servedTLS has the methods by which fasthttp recognizes TLS.
type servedTLS struct {
	*served
	tls *tls.Conn
}

func (c *servedTLS) Handshake() error                     { return c.tls.Handshake() }
func (c *servedTLS) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// servedOf finds the connection of a Listener, also under TLS; nil if c is none.
func servedOf(c net.Conn) *served {
	switch s := c.(type) {
	case *served:
		return s
	case *servedTLS:
		return s.served
	case *tls.Conn:
		return servedOf(s.NetConn())
	}
	return nil
}

// asConn is c as its server sees it.
func (c *served) asConn() net.Conn {
	if secure, ok := c.Conn.(*tls.Conn); ok {
		return &servedTLS{c, secure}
	}
	return c
}

func (c *served) Read(p []byte) (int, error) {
	n, err := c.strict.read(c.Conn, p)
	if n > 0 && c.fresh.Load() {
		c.fresh.Store(false)
		if !c.listener.options.Told {
			c.listener.removeIdle(c)
		}
		if c.evicted.Load() { // just now: the answer would not be read
			return 0, io.EOF
		}
	}
	switch {
	case err == nil:
		return n, nil
	case c.evicted.Load():
		return n, io.EOF // for the server, the sender has left
	case c.between.Load() && c.listener.options.Resume != nil && errors.Is(err, os.ErrDeadlineExceeded):
		c.rested.Store(true)
		return n, io.EOF
	}
	first := err
	c.fault.CompareAndSwap(nil, &first)
	return n, err
}

// readFailure returns why a Read failed, nil if none did. Once the connection is broken it stays
// so.
func (c *served) readFailure() error {
	if err := c.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// NetConn returns the connection underneath.
func (c *served) NetConn() net.Conn { return c.Conn }

// rawSocket returns the connection under TLS, too.
func (c *served) rawSocket() net.Conn {
	if secure, ok := c.Conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return c.Conn
}

// CloseWrite ends the sending side.
func (c *served) CloseWrite() error {
	if !closeWrite(c.Conn) {
		return errors.ErrUnsupported
	}
	return nil
}

// Close closes the connection; one that lingers reads on before, and one that waits for its next
// request is set aside.
func (c *served) Close() error {
	if c.rested.Swap(false) && c.listener.setAside(c) {
		return nil
	}
	err := net.ErrClosed
	c.once.Do(func() {
		c.listener.removeIdle(c)
		if c.linger.Load() {
			c.drainInput()
		}
		err = c.Conn.Close()
		c.uncountOpen()
	})
	return err
}

// SetDeadline implements net.Conn. fasthttp sets one on whatever it hands on, also where another
// goroutine answers, with deadlines of its own.
func (c *served) SetDeadline(t time.Time) error {
	if c.apart.Load() {
		return nil
	}
	return c.Conn.SetDeadline(t)
}

// SetWriteDeadline is as SetDeadline.
func (c *served) SetWriteDeadline(t time.Time) error {
	if c.apart.Load() {
		return nil
	}
	return c.Conn.SetWriteDeadline(t)
}

// uncountOpen takes c out of the count of open connections, once.
func (c *served) uncountOpen() {
	if c.left.CompareAndSwap(false, true) {
		c.listener.live.Add(-1)
	}
}

// drainInput ends the sending side and reads what the sender is still busy to send. Closing with
// unread bytes would reset the connection, and the reset may overtake the answer.
func (c *served) drainInput() {
	if secure, ok := c.Conn.(*tls.Conn); ok {
		_ = secure.CloseWrite() // close_notify; what is drained need not be decrypted
	}
	socket := c.rawSocket()
	if !closeWrite(socket) || socket.SetDeadline(time.Now().Add(c.listener.options.LingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, socket, c.listener.options.LingerBytes)
}

// closeWrite ends the sending side of c, where it can be ended alone.
func closeWrite(c net.Conn) bool {
	half, ok := c.(interface{ CloseWrite() error })
	return ok && half.CloseWrite() == nil
}

// SuppressResponse lets fasthttp write no answer when its handler returns, because another
// goroutine writes it and closes the connection. sent is closed after that.
func SuppressResponse(ctx *fasthttp.RequestCtx, sent <-chan struct{}) {
	if c := servedOf(ctx.Conn()); c != nil {
		c.apart.Store(true)
	}
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(net.Conn) { <-sent })
}

// LingerOnClose marks a connection of a Listener: its Close ends the sending side first and reads
// on for a while, so that a sender that is still busy with a refused body can read the answer.
// Close then takes up to LingerTime. Other connections are left alone.
func LingerOnClose(c net.Conn) {
	if s := servedOf(c); s != nil {
		s.linger.Store(true)
	}
}
