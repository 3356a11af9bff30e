package etcdtest

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// What happens to the bytes of one direction.
type passage int

const (
	open passage = iota
	held         // they wait, and arrive later
	gone         // they are lost; the connection looks healthy
)

// Wire carries TCP connections to one address and disturbs them when a test asks for it. A
// connection that has lost bytes is of no more use: Cut it before opening the Wire again.
type Wire struct {
	// Endpoint is where it listens, host:port.
	Endpoint string
	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond
	closed   bool
	requests passage
	answers  passage
	delay    time.Duration
	answered int64
	traps    []*trap
	conns    map[net.Conn]struct{}
}

// trap springs when a request with marker in it comes by.
type trap struct {
	marker            []byte
	requests, answers passage
	sprung            chan struct{}
}

// NewWire listens in front of target, host:port.
func NewWire(tb testing.TB, target string) *Wire {
	tb.Helper()
	return NewWireAt(tb, "127.0.0.1:0", target)
}

// NewWireAt is NewWire with the address to listen on.
func NewWireAt(tb testing.TB, at, target string) *Wire {
	tb.Helper()
	listener, err := net.Listen("tcp", at)
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	w := &Wire{Endpoint: listener.Addr().String(), target: target, listener: listener, conns: map[net.Conn]struct{}{}}
	w.changed = sync.NewCond(&w.mu)
	w.wg.Go(w.acceptConns)
	tb.Cleanup(w.close)
	return w
}

// Blackhole holds all bytes back while on; new connections are taken and get no further. What was
// sent meanwhile arrives afterwards.
func (w *Wire) Blackhole(on bool) {
	p := open
	if on {
		p = held
	}
	w.setPassages(p, p)
}

// DropAnswers lets requests through and loses the answers while on.
func (w *Wire) DropAnswers(on bool) {
	p := open
	if on {
		p = gone
	}
	w.setPassages(open, p)
}

func (w *Wire) setPassages(requests, answers passage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests, w.answers = requests, answers
	w.changed.Broadcast()
}

// Delay makes every piece of data take that much longer.
func (w *Wire) Delay(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// Answered returns how many bytes of answers have come by.
func (w *Wire) Answered() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answered
}

// Reset ends all connections with a TCP reset.
func (w *Wire) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}

// SwallowRequest springs when a request with marker in it comes by: it and everything after it is
// lost. The channel is then closed.
func (w *Wire) SwallowRequest(marker string) <-chan struct{} { return w.addTrap(marker, gone, open) }

// SwallowAnswer springs when a request with marker in it comes by: it goes through, and every
// answer from then on is lost.
func (w *Wire) SwallowAnswer(marker string) <-chan struct{} { return w.addTrap(marker, open, gone) }

// HoldRequest is SwallowRequest, but what was held arrives after Blackhole(false).
func (w *Wire) HoldRequest(marker string) <-chan struct{} { return w.addTrap(marker, held, open) }

// HoldAnswer is SwallowAnswer, but what was held arrives after Blackhole(false).
func (w *Wire) HoldAnswer(marker string) <-chan struct{} { return w.addTrap(marker, open, held) }

func (w *Wire) addTrap(marker string, requests, answers passage) <-chan struct{} {
	t := &trap{[]byte(marker), requests, answers, make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traps = append(w.traps, t)
	return t.sprung
}

func (w *Wire) close() {
	w.mu.Lock()
	w.closed = true
	w.changed.Broadcast()
	w.mu.Unlock()
	_ = w.listener.Close()
	w.Reset()
	w.wg.Wait()
}

func (w *Wire) acceptConns() {
	for {
		c, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.wg.Go(func() { w.serveConn(c) })
	}
}

func (w *Wire) serveConn(near net.Conn) {
	defer near.Close()
	if !w.addConn(near) {
		return
	}
	defer w.removeConn(near)
	if w.mu.Lock(); w.requests == held {
		w.waitWhileHeld(&w.requests)
	}
	w.mu.Unlock()
	far, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer far.Close()
	if !w.addConn(far) {
		return
	}
	defer w.removeConn(far)
	w.wg.Go(func() {
		w.copyBytes(far, near, &w.requests)
		_ = far.Close()
		_ = near.Close()
	})
	w.copyBytes(near, far, &w.answers)
}

// copyBytes moves bytes until one side ends.
func (w *Wire) copyBytes(to, from net.Conn, way *passage) {
	buf := make([]byte, 64<<10)
	kept := 0 // bytes of the last piece that are looked at again: a marker may lie across two
	for {
		n, err := from.Read(buf[kept:])
		if n > 0 {
			pass, delay := w.mayPass(buf[:kept+n], kept, way)
			if delay > 0 {
				<-time.After(delay)
			}
			if pass {
				if _, err := to.Write(buf[kept : kept+n]); err != nil {
					return
				}
			}
			tail := min(longestMarker, kept+n)
			copy(buf, buf[kept+n-tail:kept+n])
			kept = tail
		}
		if err != nil {
			return
		}
	}
}

const longestMarker = 256

// mayPass springs the traps, waits while the bytes are held, and reports whether they may go.
// The first bytes of text, seen ones, have gone before.
func (w *Wire) mayPass(text []byte, seen int, way *passage) (bool, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if way == &w.requests {
		w.springTraps(text, seen)
	} else {
		w.answered += int64(len(text) - seen)
	}
	w.waitWhileHeld(way)
	return !w.closed && *way != gone, w.delay
}

func (w *Wire) springTraps(text []byte, seen int) {
	left := w.traps[:0]
	for _, t := range w.traps {
		if from := max(0, seen-len(t.marker)+1); !bytes.Contains(text[from:], t.marker) {
			left = append(left, t)
			continue
		}
		w.requests, w.answers = t.requests, t.answers
		close(t.sprung)
		w.changed.Broadcast()
	}
	w.traps = left
}

// waitWhileHeld wants the mutex held.
func (w *Wire) waitWhileHeld(way *passage) {
	for *way == held && !w.closed {
		w.changed.Wait()
	}
}

func (w *Wire) addConn(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.conns[c] = struct{}{}
	return true
}

func (w *Wire) removeConn(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}
