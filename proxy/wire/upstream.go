package wire

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"hooklock/proxy/connect"
)

// Options describe one upstream.
type Options struct {
	Network        string        // "tcp" or "unix"; empty means tcp
	Addr           string        // host:port, or the path of the socket
	TLS            *tls.Config   // nil: plain. ServerName must be set; the Host header plays no part
	ConnectTimeout time.Duration // dial and TLS handshake together; 0 means 1 s
	MaxIdle        int           // idle connections kept; 0 means none, so each request gets its own
	// how old a connection may become that takes another request; 0: 0.1 s to 1 s, see retireIfOld
	MaxAge          time.Duration
	MaxResponseBody int   // bytes that Send buffers before it hands over a Rest; 0 means 8 MiB
	RequestBuffer   int   // bytes of a body that Stream reads before it takes a connection; 0 means 16 KiB
	MaxResponseHead int   // bytes of status line and header; 0 means 64 KiB
	ReuseAfterBody  Reuse // whether a connection is used again after it carried a body
	// called once, if the service ends the reuse; why is what it did: "answered 400 to a request
	// and ..."
	OnReuseEnded func(why string)
	Now          func() time.Time // ages connections; nil means time.Now
}

// Upstream is a pool of HTTP/1.1 connections to one address. It is safe for concurrent use. Names
// are resolved at each dial. The connection that was used last comes first. It sends no byte that
// is not part of a request. Requests that may not write the answer of others need a pool of their
// own: see Reuse.
type Upstream struct {
	options Options
	dialer  connect.Dialer
	buffers sync.Pool // of *[pumpBuffer]byte
	readers sync.Pool // of *bufio.Reader

	mu      sync.Mutex
	idle    []*conn
	closed  bool
	sweeper *time.Timer // runs sweep; nil before the first use
	sweeps  bool        // it is about to
	retired time.Time   // see retireIfOld
	parting []*conn     // their service is to close them
	parter  *time.Timer // runs partNow; nil before the first use
	parts   bool        // it is about to
	server  string      // what the service says of itself
	known   *knownServer
	slow    bool // the latest exchange was
	reused  uint64
	ended   string // why no connection is used again behind a body; "": they are
	endedAt time.Time

	rests    time.Time     // until then neither
	lastRest time.Duration // how long the last one was

	beforeWrite func(reused bool) // test hook: between the look at a connection and the first byte
}

var errConnectTimeout = errors.New("no connection to the upstream within connect_timeout")

// NewUpstream returns a pool that has no connections yet. Close it.
func NewUpstream(o Options) *Upstream {
	o.Network = cmp.Or(o.Network, "tcp")
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, time.Second)
	o.MaxResponseBody = cmp.Or(o.MaxResponseBody, 8<<20)
	o.RequestBuffer = cmp.Or(o.RequestBuffer, 16<<10)
	o.MaxResponseHead = cmp.Or(o.MaxResponseHead, 64<<10)
	if o.Now == nil {
		o.Now = time.Now
	}
	u := &Upstream{options: o}
	u.buffers.New = func() any { return new([pumpBuffer]byte) }
	return u
}

// getConn returns an idle connection that looks alive, or with fresh a new one.
func (u *Upstream) getConn(x *Call, fresh bool) (c *conn, reused bool, err error) {
	for !fresh {
		c := u.popIdle()
		if c == nil {
			break
		}
		if c.isQuiet() {
			return c, true, nil
		}
		u.hearUnasked(c)
		c.close()
	}
	c, err = u.dial(x)
	return c, false, err
}

func (u *Upstream) popIdle() *conn {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := len(u.idle) - 1
	if last < 0 {
		return nil
	}
	c := u.idle[last]
	u.idle[last] = nil
	u.idle = u.idle[:last]
	return c
}

// putIdle keeps c for another exchange, from now on, unless it is old. body: the one that is over
// had one.
func (u *Upstream) putIdle(c *conn, body bool) (now time.Time) {
	now = u.options.Now()
	u.mu.Lock()
	if body && c.carried {
		u.reused++
	}
	c.carried = c.carried || body
	kept := !u.closed && len(u.idle) < u.options.MaxIdle && !u.retireIfOld(c, now) && !(c.carried && u.ended != "")
	if kept {
		u.idle = append(u.idle, c)
		u.sweepLater()
	}
	u.mu.Unlock()
	if !kept {
		u.closeConn(c)
	}
	return now
}

// newReader returns a buffer that no connection has. A connection that carried a body is used once,
// and its buffer was a seventh of all garbage.
func (u *Upstream) newReader() *bufio.Reader {
	if br, ok := u.readers.Get().(*bufio.Reader); ok {
		return br
	}
	return bufio.NewReaderSize(nil, readBuffer)
}

// closeConn closes a connection that putIdle could have kept: it has no reader any more, so its
// buffer may serve the next one.
func (u *Upstream) closeConn(c *conn) {
	c.close()
	u.freeReader(c)
}

func (u *Upstream) freeReader(c *conn) {
	c.br.Reset(nil)
	u.readers.Put(c.br)
	c.br = nil
}

// dial connects. Its error is the cause of x where that was cancelled.
func (u *Upstream) dial(x *Call) (*conn, error) {
	ctx, over := x.dialContext()
	defer over()
	bounded, cancel := context.WithTimeoutCause(ctx, u.options.ConnectTimeout, errConnectTimeout)
	defer cancel()
	began := time.Now()
	raw, err := u.dialer.DialContext(bounded, u.options.Network, u.options.Addr)
	if err != nil {
		return nil, dialError(bounded, err)
	}
	c := newConn(raw, u.newReader())
	if u.options.TLS != nil {
		c.startTLS(u.options.TLS)
		if err := c.tls.HandshakeContext(bounded); err != nil {
			c.hangUp()
			return nil, dialError(bounded, fmt.Errorf("TLS handshake: %w", err))
		}
	}
	c.setup, c.made = time.Since(began), u.options.Now()
	return c, nil
}

// dialError returns an error that says what took so long, too: the name, the address or the
// handshake.
func dialError(ctx context.Context, err error) error {
	var nerr net.Error
	switch cause := context.Cause(ctx); {
	case cause != nil && !errors.Is(cause, errConnectTimeout):
		return cause
	case cause != nil, errors.As(err, &nerr) && nerr.Timeout():
		// the dialer's own timer may fire a moment before the context's
		return fmt.Errorf("%w: %w", errConnectTimeout, err)
	}
	return err
}

// Close closes the idle connections now, and each other one when its exchange ends. Exchanges go on
// working.
func (u *Upstream) Close() error {
	u.mu.Lock()
	u.closed = true
	unused := append(u.idle, u.parting...)
	u.idle, u.parting = nil, nil
	for _, timer := range []*time.Timer{u.sweeper, u.parter} {
		if timer != nil {
			timer.Stop()
		}
	}
	u.mu.Unlock()
	closeAll(unused)
	return nil
}
