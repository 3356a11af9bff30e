package wire

import (
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pendingPoll is how often a connection is looked at that has bytes waiting (a pipelined request,
// or the close_notify of TLS): a FIN behind them wakes no reader.
const pendingPoll = 100 * time.Millisecond

// WatchPeer calls gone, at most once and on another goroutine, when the peer of c has closed or
// reset the connection. A half-close counts, as it does for nginx and net/http. Not one byte is
// read: the kernel is asked with MSG_PEEK, and the goroutine sleeps in the runtime's poller. It
// costs some 10 µs, so it is for requests that really have to wait.
//
// c may be a connection of a Listener, also under TLS. Where the socket cannot be reached nothing
// is watched. stop waits for the goroutine and leaves c without a read deadline; it must be called
// before the next read from c.
func WatchPeer(c net.Conn, gone func()) (stop func()) {
	raw := rawConn(c)
	if raw == nil || c.SetReadDeadline(time.Time{}) != nil { // the server's own deadline is still set
		return func() {}
	}
	w := &peerWatch{raw: raw, gone: gone, quit: make(chan struct{})}
	w.running.Go(w.run)
	return func() {
		close(w.quit)
		_ = c.SetReadDeadline(longAgo) // wakes the goroutine; a closed connection has woken it already
		w.running.Wait()
		_ = c.SetReadDeadline(time.Time{})
	}
}

var longAgo = time.Unix(1, 0)

type peerWatch struct {
	raw     syscall.RawConn
	gone    func()
	quit    chan struct{}
	running sync.WaitGroup
}

func (w *peerWatch) run() {
	state := peerQuiet
	err := w.raw.Read(func(fd uintptr) (done bool) {
		state = peek(int(fd))
		return state != peerQuiet
	})
	if err != nil {
		return // the deadline of stop, or a connection that was closed on this side
	}
	for state == peerPending && !w.waitForPoll() {
		if !isEstablished(w.raw) {
			state = peerGone
		}
	}
	select {
	case <-w.quit:
	default:
		if state == peerGone {
			w.gone()
		}
	}
}

// waitForPoll waits for the next look and reports whether there is none.
func (w *peerWatch) waitForPoll() bool {
	timer := time.NewTimer(pendingPoll)
	defer timer.Stop()
	select {
	case <-w.quit:
		return true
	case <-timer.C:
		return false
	}
}

// PeerLeft reports whether the peer of c has closed or reset the connection, as WatchPeer tells it.
func PeerLeft(c net.Conn) bool {
	raw := rawConn(c)
	if raw == nil {
		return false
	}
	state := peerQuiet
	err := raw.Control(func(fd uintptr) { state = peek(int(fd)) })
	return err == nil && (state == peerGone || state == peerPending && !isEstablished(raw))
}

type peerState int

const (
	peerQuiet   peerState = iota // nothing to read
	peerPending                  // bytes to read; what comes behind them cannot be seen
	peerGone
)

func peek(fd int) peerState {
	var b [1]byte
	for {
		n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return peerQuiet
		case err != nil || n == 0:
			return peerGone
		default:
			return peerPending
		}
	}
}

// isEstablished reports whether both directions of a TCP connection are open. A unix socket is
// taken for open, as is every connection where the kernel does not tell.
func isEstablished(raw syscall.RawConn) bool {
	open := true
	err := raw.Control(func(fd uintptr) {
		if _, state, ok := tcpInfo(int(fd)); ok {
			open = state == tcpEstablished
		}
	})
	return err == nil && open
}

// tcpEstablished is TCP_ESTABLISHED of Linux's tcp_states.h.
const tcpEstablished = 1

// rawConn returns the socket under c, through TLS and our own wrapper; nil where it cannot be
// reached.
func rawConn(c net.Conn) syscall.RawConn {
	for {
		if s, ok := c.(syscall.Conn); ok {
			if raw, err := s.SyscallConn(); err == nil {
				return raw
			}
			return nil
		}
		inner, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = inner.NetConn()
	}
}
