package wire

import (
	"context"
	"crypto/tls"
	"io"
	"time"
)

// Options describe one upstream.
type Options struct {
	Network         string        // "tcp" or "unix"; empty means tcp
	Addr            string        // host:port, or the path of the socket
	TLS             *tls.Config   // nil: plain
	ConnectTimeout  time.Duration // dial and TLS handshake; 0 means 1 s
	MaxIdle         int           // idle connections kept; 0 means none: a connection for each request
	IdleTimeout     time.Duration // keep it below the upstream's own; 0 means 4 s
	MaxResponseBody int           // bytes that Send buffers; 0 means 8 MiB
	MaxResponseHead int           // bytes of status line and header; 0 means 64 KiB
	Now             func() time.Time
}

// Upstream is a pool of HTTP/1.1 connections to one address. Safe for concurrent use.
type Upstream struct{ o Options }

// NewUpstream returns a pool without connections.
func NewUpstream(o Options) *Upstream { return &Upstream{o: o} }

// Send makes one exchange: it writes head and body, reads the answer into ans, and is over when ctx ends. The error is a *SendError.
func (u *Upstream) Send(ctx context.Context, head, body []byte, ans *Answer) error { return nil }

// RequestBody is a body that is passed through.
type RequestBody struct {
	// Reader delivers it; fasthttp's request stream.
	Reader io.Reader
	// Length is the declared length, -1 for chunks.
	Length int64
	// Interrupt makes a blocked Read of Reader return soon; it is called at most once.
	Interrupt func()
}

// Stream makes one exchange without buffering: it returns with the answer's head; ans.Rest delivers the body.
// A nil body means a request without one.
func (u *Upstream) Stream(ctx context.Context, head []byte, body *RequestBody, ans *Answer) error {
	return nil
}

// Upgrade sends a head that asks for another protocol. With 101 it returns the connection, else nil and the answer as Stream does.
func (u *Upstream) Upgrade(ctx context.Context, head []byte, ans *Answer) (*Switched, error) {
	return nil, nil
}

// CloseIdle closes the idle connections that were not used for at least age; 0 closes all of them.
func (u *Upstream) CloseIdle(age time.Duration) {}

// Close closes the pool: connections that are in use are closed when their exchange ends.
func (u *Upstream) Close() error { return nil }

// Stats counts what the pool did since it was made.
type Stats struct{ Dialled, Reused, Stale, Resent, Idle int64 }

// Stats returns the counters.
func (u *Upstream) Stats() Stats { return Stats{} }
