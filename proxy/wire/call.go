package wire

import (
	"context"
	"net"
	"sync"
	"time"
)

// past is a deadline that wakes every blocked Read and Write.
var past = time.Unix(1, 0)

// Call is the life of one exchange, owned by its caller: a cancel ends it, and so does the end of
// its time. Nothing else does, so an exchange needs no context. The zero value is ready for Begin;
// one that is used again keeps its timer.
//
// It owns a connection between attachConn and detachConn, and only then can a cancel reach it: it
// sets a deadline in the past, which wakes the goroutine that reads or writes and never closes a
// descriptor that another connection may own by now. A connection that was detached uncancelled is
// clean and may be pooled.
type Call struct {
	// Late is the cause of a call whose time was over.
	Late error

	mu        sync.Mutex
	conn      net.Conn
	dial      context.CancelCauseFunc // ends what makes the connection; nil without
	interrupt func()                  // wakes the reader of the sender's body; nil without one, and after it was used
	cause     error
	late      bool // the cause is that time was over
	began     time.Time

	// The timer looks at until when it fires, and is not stopped by what ends before: most calls
	// end long before their time, and the one timer serves all that follow.
	timer *time.Timer
	until time.Time // zero: the call has no time limit
	rings time.Time // when the timer fires; zero: it does not

	stop func() bool    // lets go of the context that is followed; nil without
	ran  sync.WaitGroup // a callback of Follow that was too late to stop
}

// Begin begins a call now, by time.Now, which has so much time. End must be called.
func (x *Call) Begin(now time.Time, d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cause, x.late, x.began = nil, false, now
	x.setTimeout(now, d)
}

// Follow ends the call when ctx ends, with its cause. It is called once between Begin and End.
func (x *Call) Follow(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	if ctx.Err() != nil { // at once: AfterFunc would run later, when something was sent
		x.endWith(context.Cause(ctx), ctx.Err() == context.DeadlineExceeded)
		return
	}
	x.ran.Add(1)
	x.stop = context.AfterFunc(ctx, func() {
		defer x.ran.Done()
		x.endWith(context.Cause(ctx), ctx.Err() == context.DeadlineExceeded)
	})
}

// Give gives the call so much time from now on.
func (x *Call) Give(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.setTimeout(time.Now(), d)
}

// setTimeout sets the timer where it would fire too late. One that fires too early looks again.
func (x *Call) setTimeout(now time.Time, d time.Duration) {
	x.until = now.Add(d)
	switch {
	case x.timer == nil:
		x.timer = time.AfterFunc(d, x.checkTimeout)
	case x.rings.IsZero() || x.until.Before(x.rings):
		x.timer.Reset(d)
	default:
		return
	}
	x.rings = x.until
}

// Pause stops the clock during a wait for a peer that has a time limit of its own.
func (x *Call) Pause() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.until = time.Time{}
}

func (x *Call) checkTimeout() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rings = time.Time{}
	if x.until.IsZero() {
		return
	}
	if left := time.Until(x.until); left > 0 {
		x.timer.Reset(left)
		x.rings = x.until
		return
	}
	x.endLocked(x.Late, true)
}

// Cancel ends the call. The first cause stays.
func (x *Call) Cancel(cause error) { x.endWith(cause, false) }

func (x *Call) endWith(cause error, late bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.endLocked(cause, late)
}

func (x *Call) endLocked(cause error, late bool) {
	if x.cause != nil {
		return
	}
	x.cause, x.late = cause, late
	x.wakeLocked()
}

// Cause returns why the call was ended before its exchange was over; nil if it was not.
func (x *Call) Cause() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cause
}

// End lets go of what the call follows. Its exchange is over; nothing reaches it any more when End
// has returned, and it may begin again.
func (x *Call) End() {
	if x.stop != nil && x.stop() {
		x.ran.Done()
	}
	x.ran.Wait()
	x.stop = nil
	x.Pause()
}

// interruptIO wakes the goroutines that read or write for the call, without a cause. The connection
// cannot be used any more.
func (x *Call) interruptIO() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.wakeLocked()
}

func (x *Call) wakeLocked() {
	if x.conn != nil {
		_ = x.conn.SetDeadline(past)
	}
	if x.dial != nil {
		x.dial(x.cause)
		x.dial = nil
	}
	if x.interrupt != nil {
		x.interrupt()
		x.interrupt = nil
	}
}

// dialContext returns a context for making the connection, which ends with the call.
func (x *Call) dialContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause != nil {
		cancel(x.cause)
	} else {
		x.dial = cancel
	}
	return ctx, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.dial = nil
		cancel(nil)
	}
}

// attachConn gives the connection to the call; the error is the cause of a call that was cancelled
// before.
func (x *Call) attachConn(c net.Conn) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause == nil {
		x.conn = c
	}
	return x.cause
}

// detachConn takes the connection back: no cancel reaches it any more. The error is the cause if
// one reached it before.
func (x *Call) detachConn() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.conn = nil
	return x.cause
}

// guardReader lets a cancel interrupt the reader of the sender's body, until guardReader(nil). The
// error is the cause of a call that was cancelled before.
func (x *Call) guardReader(interrupt func()) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause == nil {
		x.interrupt = interrupt
	}
	return x.cause
}

// limitRead bounds the time for what is left to read, unless the call was cancelled.
func (x *Call) limitRead(t time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause == nil && x.conn != nil {
		_ = x.conn.SetReadDeadline(t)
	}
}

// endCause returns Cause, and whether that is the time limit.
func (x *Call) endCause() (late bool, cause error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.late, x.cause
}
