package wire

import (
	"cmp"
	"container/list"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ListenerOptions bound the connections of a Listener.
type ListenerOptions struct {
	MaxConns int  // open connections; 0 means no bound
	Strict   bool // let no request through that is not strictly formed: for fasthttp, on top of TLS
	// the whole HTTP answer to a connection over MaxConns; empty, or over TLS: closed without one
	Refusal     []byte
	LingerTime  time.Duration // how long the Close of a lingering connection reads on; 0 means 2 s
	LingerBytes int64         // how much it reads on; 0 means 64 MiB
	WritePace   Pace          // how slowly a sender may take an answer; the connection of a slower one is cut

	// Told: the server says by Serving and Resting when a connection has a request. False: it has
	// one from its first byte on, until it is set aside.
	Told bool

	// Resume serves a connection that was set aside (see Between) and has a byte to read again. It
	// returns at once; the server it closes it. It is not called after Close. nil: no connection is
	// set aside.
	Resume func(net.Conn)
	// IdleTime is how long a connection may be set aside; then it is closed. 0 means without end.
	IdleTime time.Duration
}

const (
	// refusing bounds the refused connections that are kept a moment so that the sender can read
	// the answer.
	refusing = 64
	// refusalTime is that moment.
	refusalTime = time.Second

	// An accept that failed for want of something is tried again after acceptPause, which doubles
	// up to acceptPauseMost.
	acceptPause     = 5 * time.Millisecond
	acceptPauseMost = time.Second
)

// Counts are what a Listener has and has seen since it was made.
type Counts struct {
	Open       int   // connections, those included that linger
	Idle       int   // those of them without a request, as far as it is known: nothing came yet, or they are set aside
	Refused    int64 // over MaxConns
	ClosedIdle int64 // had no request, and made room for a new one
	Failed     int64 // accepts, because the system lacked descriptors or memory, or the network was away
	Failure    error // why the last of them did; nil: none
}

// Listener counts and bounds the connections of another listener, which it closes. It goes on top,
// over TLS too (NewListener(tls.NewListener(...))), because it also notes what fasthttp does not
// always tell, that the connection ended or failed in the middle of a chunked body, and with Strict
// refuses what fasthttp forgives.
//
// Where all MaxConns are open, the connection that has been without a request for longest makes
// room for a new one; only where each has a request the new one is refused. Without Resume that is
// one on which nothing came yet.
type Listener struct {
	inner   net.Listener
	options ListenerOptions

	live, over, closedIdle, failed atomic.Int64
	failure                        atomic.Pointer[error]
	trouble                        chan struct{}

	mu      sync.Mutex
	refused map[net.Conn]struct{}
	idle    *list.List // of *served: those without a request, the longest one first
	closed  chan struct{}
	ended   bool
	workers sync.WaitGroup
}

// NewListener wraps l.
func NewListener(l net.Listener, o ListenerOptions) *Listener {
	o.LingerTime = cmp.Or(o.LingerTime, 2*time.Second)
	o.LingerBytes = cmp.Or(o.LingerBytes, 64<<20)
	return &Listener{
		inner: l, options: o, refused: make(map[net.Conn]struct{}), idle: list.New(), closed: make(chan struct{}),
		trouble: make(chan struct{}, 1),
	}
}

// Accept returns the next connection inside the bound. Those over it get the refusal and are
// closed. Where the system cannot give a connection now, it is asked again; an error says that
// there will never be one.
func (l *Listener) Accept() (net.Conn, error) {
	pause := acceptPause
	for {
		c, err := l.inner.Accept()
		if err != nil {
			if !mayPass(err) {
				return nil, err
			}
			if err := l.waitAfterFailure(pause, err); err != nil {
				return nil, err
			}
			pause = min(2*pause, acceptPauseMost)
			continue
		}
		pause = acceptPause
		if l.options.MaxConns <= 0 || l.live.Load() < int64(l.options.MaxConns) || l.makeRoom() {
			return l.addConn(c), nil
		}
		l.refuseConn(c)
	}
}

// mayPass reports whether an accept failed for something that may get better: descriptors or memory
// that the system lacks, or the errors of a network that accept(2) returns. Any other error means
// that the listener is closed.
func mayPass(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	return errno != syscall.EBADF && errno != syscall.EINVAL && errno != syscall.ENOTSOCK && errno != syscall.EFAULT
}

// waitAfterFailure counts a failed accept, and waits. A connection without a request is closed
// meanwhile: its descriptor may be what lacks.
func (l *Listener) waitAfterFailure(pause time.Duration, cause error) error {
	l.failed.Add(1)
	l.failure.Store(&cause)
	l.makeRoom()
	l.signalTrouble()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-l.closed:
		return net.ErrClosed
	}
}

// addConn makes c a connection of l.
func (l *Listener) addConn(c net.Conn) net.Conn {
	l.live.Add(1)
	s := &served{Conn: c, listener: l, strict: strict{free: !l.options.Strict}, writing: l.options.WritePace.Begin()}
	s.fresh.Store(true)
	if sc, ok := c.(syscall.Conn); ok {
		s.raw, _ = sc.SyscallConn()
		s.doOffer = s.writeOffered
	}
	l.mu.Lock()
	s.place = l.idle.PushBack(s)
	l.mu.Unlock()
	return s.asConn()
}

// refuseConn answers and closes. Closing at once would reset the connection under the sender's
// request, and the answer would be lost; under a flood it is.
func (l *Listener) refuseConn(c net.Conn) {
	l.over.Add(1)
	l.signalTrouble()
	_, secure := c.(*tls.Conn) // it would have to shake hands first
	answer := len(l.options.Refusal) > 0 && !secure
	if answer {
		_ = c.SetDeadline(time.Now().Add(refusalTime))
		_, _ = c.Write(l.options.Refusal) // fits into the empty buffer of a new connection
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || !answer || len(l.refused) >= refusing {
		_ = c.Close()
		return
	}
	l.refused[c] = struct{}{}
	l.workers.Go(func() {
		closeWrite(c)
		_, _ = io.CopyN(io.Discard, c, l.options.LingerBytes)
		_ = c.Close()
		l.mu.Lock()
		delete(l.refused, c)
		l.mu.Unlock()
	})
}

// signalTrouble wakes what waits for Trouble.
func (l *Listener) signalTrouble() {
	select {
	case l.trouble <- struct{}{}:
	default: // it has not looked yet
	}
}

// Trouble gets a value when a connection was refused or closed for another, or an accept failed,
// since the last value was taken.
func (l *Listener) Trouble() <-chan struct{} { return l.trouble }

// Counts returns what there is now. Its numbers never go back, but for Open and Idle.
func (l *Listener) Counts() Counts {
	c := Counts{Open: int(l.live.Load()), Refused: l.over.Load(), ClosedIdle: l.closedIdle.Load(),
		Failed: l.failed.Load()}
	if cause := l.failure.Load(); cause != nil {
		c.Failure = *cause
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Idle = l.idle.Len()
	return c
}

// Addr returns the address of the listener underneath.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close closes the listener underneath, the connections that were being refused, and those that are
// set aside. It does not wait for the others.
func (l *Listener) Close() error {
	err := l.inner.Close()
	l.mu.Lock()
	if !l.ended {
		l.ended = true
		close(l.closed)
	}
	for c := range l.refused {
		_ = c.Close()
	}
	for e := l.idle.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*served); c.aside { //nolint:forcetypeassert // nothing else is in it
			_ = c.rawSocket().Close()
		}
	}
	l.mu.Unlock()
	l.workers.Wait()
	return err
}
