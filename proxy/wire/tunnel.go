package wire

import (
	"context"

	"github.com/valyala/fasthttp"
)

// Switched is an upstream connection that left HTTP with a 101 answer. Give it to Tunnels.Serve or Close it.
type Switched struct{}

// Close closes the connection.
func (s *Switched) Close() error { return nil }

// Tunnels owns the connections that left HTTP. The zero value is ready.
type Tunnels struct{}

// Serve takes over the sender's connection when the handler has returned, passes on the upstream's 101, and copies both ways until both ends are done.
func (t *Tunnels) Serve(ctx *fasthttp.RequestCtx, s *Switched) {}

// Len returns the number of open tunnels.
func (t *Tunnels) Len() int { return 0 }

// Close ends every tunnel and waits for all, or for the end of ctx. Serve refuses from then on.
func (t *Tunnels) Close(ctx context.Context) error { return nil }
