package wire

import (
	"context"
	"net"
	"sync"
	"time"
)

// past is a deadline that wakes every blocked Read and Write.
var past = time.Unix(1, 0)

// call makes one exchange cancellable. It owns a connection between attach and detach, and only then can a cancel reach
// it: it sets a deadline in the past, which wakes whoever reads or writes and never closes a descriptor that somebody
// else may own by now. A connection that was detached uncancelled is clean and may be pooled.
type call struct {
	ctx  context.Context
	stop func() bool
	ran  sync.WaitGroup // the AfterFunc, where it was too late to stop

	mu        sync.Mutex
	conn      net.Conn
	interrupt func() // wakes the reader of the sender's body; nil without one, and after it was used
	cause     error
}

// start binds the call to ctx. end must be called.
func (x *call) start(ctx context.Context) {
	x.ctx = ctx
	if ctx.Done() != nil {
		x.ran.Add(1)
		x.stop = context.AfterFunc(ctx, x.expire)
	}
}

func (x *call) expire() {
	defer x.ran.Done()
	x.cancel(context.Cause(x.ctx))
}

// cancel ends the call. The first cause stays.
func (x *call) cancel(cause error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause != nil {
		return
	}
	x.cause = cause
	x.wake()
}

// halt wakes whoever reads or writes for the call, without a cause. The connection is of no more use.
func (x *call) halt() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.wake()
}

func (x *call) wake() {
	if x.conn != nil {
		_ = x.conn.SetDeadline(past)
	}
	if x.interrupt != nil {
		x.interrupt()
		x.interrupt = nil
	}
}

// attach gives the connection to the call; the error is the cause of a call that was cancelled before.
func (x *call) attach(c net.Conn) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause == nil {
		x.conn = c
	}
	return x.cause
}

// detach takes the connection back: no cancel reaches it any more. The error is the cause if one reached it before.
func (x *call) detach() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.conn = nil
	return x.cause
}

// guard lets a cancel interrupt the reader of the sender's body.
func (x *call) guard(interrupt func()) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.interrupt = interrupt
	return x.cause
}

// limitRead bounds the time for what is left to read, unless the call was cancelled.
func (x *call) limitRead(t time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause == nil && x.conn != nil {
		_ = x.conn.SetReadDeadline(t)
	}
}

// reason returns the cause of a call that was cancelled, else nil.
func (x *call) reason() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cause
}

// end lets go of the context. Nothing of the call runs when it has returned. It is called once.
func (x *call) end() {
	if x.stop != nil && !x.stop() {
		x.ran.Wait()
	}
}
