package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Options describe one upstream.
type Options struct {
	Network         string           // "tcp" or "unix"; empty means tcp
	Addr            string           // host:port, or the path of the socket
	TLS             *tls.Config      // nil: plain. ServerName must be set; the Host header plays no part
	ConnectTimeout  time.Duration    // dial and TLS handshake together; 0 means 1 s
	MaxIdle         int              // idle connections kept; 0 means none, so each request gets its own
	IdleTimeout     time.Duration    // how long one may be idle; keep it below the upstream's keep-alive; 0 means 4 s
	MaxResponseBody int              // bytes that Send buffers before it hands over a Rest; 0 means 8 MiB
	RequestBuffer   int              // bytes of a body that Stream reads before it takes a connection; 0 means 16 KiB
	MaxResponseHead int              // bytes of status line and header; 0 means 64 KiB
	ReuseAfterBody  Reuse            // whether a connection is used again after Send had a body
	OnReuseEnded    func(why string) // called once, if ReuseProven ends the reuse; why is what a connection did, as "closed the connection"
	Now             func() time.Time // ages idle connections; nil means time.Now

	silence time.Duration // test hook: what prove waits for instead
}

// Upstream is a pool of HTTP/1.1 connections to one address. It is safe for concurrent use. Names are resolved at each dial. The connection that was
// used last comes first, with ReuseProven the one that has been silent for longest. Requests that may not write the answer of others need a pool of
// their own: see Reuse.
type Upstream struct {
	o       Options
	dialer  net.Dialer
	buffers sync.Pool // of *[pumpBuffer]byte
	readers sync.Pool // of *bufio.Reader

	mu      sync.Mutex
	idle    []*conn
	closed  bool
	maxAge  time.Duration // an older idle connection is not used
	proving []*conn       // see prove
	inProof int           // connections that have room in idle reserved
	looks   *time.Timer   // runs look; nil before the first use
	proven  uint64
	reused  uint64
	ended   string // why no connection is used again behind a body; "": they are
	endedAt time.Time
	struck  time.Time // see strike

	beforeWrite func(reused bool) // test hook: between the look at a connection and the first byte
}

var errConnectTimeout = errors.New("no connection to the upstream within connect_timeout")

// NewUpstream returns a pool that has no connections yet. Close it.
func NewUpstream(o Options) *Upstream {
	if o.Network == "" {
		o.Network = "tcp"
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = time.Second
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 4 * time.Second
	}
	if o.MaxResponseBody == 0 {
		o.MaxResponseBody = 8 << 20
	}
	if o.RequestBuffer == 0 {
		o.RequestBuffer = 16 << 10
	}
	if o.MaxResponseHead == 0 {
		o.MaxResponseHead = 64 << 10
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	u := &Upstream{o: o, maxAge: o.IdleTimeout}
	u.buffers.New = func() any { return new([pumpBuffer]byte) }
	return u
}

// get returns an idle connection that looks alive, or with fresh a new one.
func (u *Upstream) get(x *Call, fresh bool) (c *conn, reused bool, err error) {
	for !fresh {
		c, maxAge := u.pop()
		if c == nil {
			break
		}
		if age := u.o.Now().Sub(c.idleSince); age < maxAge && (c.maxAge == 0 || age < c.maxAge) {
			if c.quiet() {
				return c, true, nil
			}
			u.stale(c, age)
		}
		c.close()
	}
	c, err = u.dial(x)
	return c, false, err
}

func (u *Upstream) pop() (c *conn, maxAge time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := len(u.idle) - 1
	switch {
	case last < 0:
	case u.o.ReuseAfterBody == ReuseProven:
		c, u.idle[0] = u.idle[0], nil
		u.idle = u.idle[1:]
	default:
		c, u.idle[last] = u.idle[last], nil
		u.idle = u.idle[:last]
	}
	return c, u.maxAge
}

// put keeps c for another exchange, from now on.
func (u *Upstream) put(c *conn) (now time.Time) {
	now = u.o.Now()
	c.idleSince, c.answered = now, c.wrote.n
	c.count()
	u.mu.Lock()
	kept := !u.closed && len(u.idle)+u.inProof < u.o.MaxIdle
	if kept {
		u.idle = append(u.idle, c)
	}
	u.mu.Unlock()
	if !kept {
		c.close()
	}
	return now
}

// reader returns a buffer that no connection has. A connection that carried a body is used once, and its buffer was a seventh of all garbage.
func (u *Upstream) reader() *bufio.Reader {
	if br, ok := u.readers.Get().(*bufio.Reader); ok {
		return br
	}
	return bufio.NewReaderSize(nil, readBuffer)
}

// end closes a connection that put could have kept: it has no reader any more, so its buffer may serve the next one.
func (u *Upstream) end(c *conn) {
	c.close()
	c.br.Reset(nil)
	u.readers.Put(c.br)
	c.br = nil
}

// dial connects. Its error is the cause of x where that was cancelled.
func (u *Upstream) dial(x *Call) (*conn, error) {
	ctx, over := x.dialling()
	defer over()
	bounded, cancel := context.WithTimeoutCause(ctx, u.o.ConnectTimeout, errConnectTimeout)
	defer cancel()
	began := time.Now()
	raw, err := u.dialer.DialContext(bounded, u.o.Network, u.o.Addr)
	if err != nil {
		return nil, dialError(bounded, err)
	}
	c := newConn(raw, u.reader())
	c.connected = time.Since(began)
	if u.o.TLS != nil {
		c.wrap(u.o.TLS)
		if err := c.tls.HandshakeContext(bounded); err != nil {
			c.hangUp()
			return nil, dialError(bounded, fmt.Errorf("TLS handshake: %w", err))
		}
	}
	return c, nil
}

// dialError returns an error that says what took so long, too: the name, the address or the handshake.
func dialError(ctx context.Context, err error) error {
	var nerr net.Error
	switch cause := context.Cause(ctx); {
	case cause != nil && !errors.Is(cause, errConnectTimeout):
		return cause
	case cause != nil, errors.As(err, &nerr) && nerr.Timeout(): // the dialer's own timer may fire a moment before the context's
		return fmt.Errorf("%w: %w", errConnectTimeout, err)
	}
	return err
}

// CloseIdle closes the connections that were not used for at least age. Call it now and then; 0 closes all idle ones.
func (u *Upstream) CloseIdle(age time.Duration) {
	now := u.o.Now()
	u.mu.Lock()
	var old []*conn
	kept := u.idle[:0]
	for _, c := range u.idle {
		if now.Sub(c.idleSince) >= age {
			old = append(old, c)
		} else {
			kept = append(kept, c)
		}
	}
	clear(u.idle[len(kept):])
	u.idle = kept
	u.mu.Unlock()
	for _, c := range old {
		c.close()
	}
}

// Close closes the idle connections now, and each other one when its exchange ends. Exchanges go on working.
func (u *Upstream) Close() error {
	u.mu.Lock()
	u.closed = true
	proving := u.proving
	u.proving = nil
	u.inProof -= len(proving)
	u.mu.Unlock()
	for _, c := range proving {
		c.close()
	}
	u.CloseIdle(0)
	return nil
}
