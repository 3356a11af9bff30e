package cluster

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hooklock/test/testkit"
)

// Upstream is the legacy service. It reads and writes bytes as a script says, and it checks fencing
// tokens: what it was asked to do takes effect only if no newer holder of the workflow has been
// seen.
type Upstream struct {
	// Addr is where it listens, host:port.
	Addr     string
	tb       testing.TB
	listener net.Listener
	wg       sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	conns    map[net.Conn]struct{}
	scripts  []Script // of the next requests
	always   Script
	seen     []*Exchange
	byEvent  map[string][]*Exchange
	effects  []Effect
	newest   map[string]int64 // workflow -> the largest token that took effect or was refused a stale one
	stale    int
	active   map[string]*Exchange
	arrived  map[string]int64 // workflow -> the largest token that has come
	late     int
	overlaps []string
}

// Script answers one request. The connection is closed after a script that returns false.
type Script func(*Exchange) bool

// Exchange is one request as the upstream saw it, and the means to answer it.
type Exchange struct {
	Event, Workflow, Execution string
	Token                      int64
	Attempt                    int
	Length                     int // of the body as declared
	Read                       int // bytes of the body that have come
	HeadRead                   bool
	Arrived                    time.Time // when its head had been read
	Ended                      time.Time

	up   *Upstream
	conn net.Conn
	r    *bufio.Reader
}

// Whole reports whether the request came to its end.
func (x *Exchange) Whole() bool { return x.HeadRead && x.Read == x.Length }

// Effect is something that the upstream did.
type Effect struct {
	Event, Workflow, Execution string
	Token                      int64
	Attempt                    int
	At                         time.Time
}

// NewUpstream listens. Requests without a script of their own are read, take effect and are
// answered.
func NewUpstream(tb testing.TB) *Upstream {
	tb.Helper()
	// A small buffer: what the upstream has not read of a large request, the kernel must not have
	// taken in its place.
	small := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 64<<10) })
	}}
	listener, err := small.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	u := &Upstream{
		Addr: listener.Addr().String(), tb: tb, listener: listener, conns: map[net.Conn]struct{}{},
		byEvent: map[string][]*Exchange{}, always: Run, newest: map[string]int64{}, arrived: map[string]int64{},
		active: map[string]*Exchange{},
	}
	u.wg.Go(func() { u.accept(listener) })
	tb.Cleanup(u.close)
	return u
}

// Run is the usual script.
func Run(x *Exchange) bool {
	return x.ReadBody() == nil && x.Effect() && x.Answer(200, x.Receipt()) == nil
}

// Next gives the next connection's first request a script.
func (u *Upstream) Next(s Script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.scripts = append(u.scripts, s)
}

// Always replaces the script of the requests without one of their own.
func (u *Upstream) Always(s Script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.always = s
}

// Of is what the upstream has seen of an event so far, in the order of arrival.
func (u *Upstream) Of(event string) (seen []Exchange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, x := range u.byEvent[event] {
		seen = append(seen, *x)
	}
	return seen
}

// Effects is what it did, in order.
func (u *Upstream) Effects() []Effect {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]Effect(nil), u.effects...)
}

// Overlaps tells of the moments at which two calls of one workflow were open. Stale counts the
// effects that the token prevented.
func (u *Upstream) Overlaps() (overlaps []string, stale int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]string(nil), u.overlaps...), u.stale
}

// Late counts the calls that came after one of a newer holder.
func (u *Upstream) Late() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.late
}

// Leave closes the door and all calls: nobody reaches the service until Return.
func (u *Upstream) Leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	_ = u.listener.Close()
	for c := range u.conns {
		_ = c.Close()
	}
}

// Return opens the door again.
func (u *Upstream) Return() {
	u.tb.Helper()
	var lc net.ListenConfig
	var listener net.Listener
	testkit.Until(u.tb, "the upstream's port is free", func() (ok bool) {
		var err error
		listener, err = lc.Listen(context.Background(), "tcp", u.Addr)
		return err == nil
	})
	u.mu.Lock()
	u.listener = listener
	u.mu.Unlock()
	u.wg.Go(func() { u.accept(listener) })
}

func (u *Upstream) close() {
	u.mu.Lock()
	u.closed = true
	for c := range u.conns {
		_ = c.Close()
	}
	u.mu.Unlock()
	u.mu.Lock()
	_ = u.listener.Close()
	u.mu.Unlock()
	u.wg.Wait()
}

func (u *Upstream) accept(listener net.Listener) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		u.mu.Lock()
		if u.closed {
			_ = c.Close()
		}
		u.conns[c] = struct{}{}
		u.mu.Unlock()
		u.wg.Go(func() {
			u.serve(c)
			_ = c.Close()
			u.mu.Lock()
			delete(u.conns, c)
			u.mu.Unlock()
		})
	}
}

func (u *Upstream) serve(c net.Conn) {
	r := bufio.NewReader(c)
	u.mu.Lock()
	var script Script
	if len(u.scripts) > 0 {
		script, u.scripts = u.scripts[0], u.scripts[1:]
	}
	u.mu.Unlock()
	for {
		x := &Exchange{up: u, conn: c, r: r}
		if script == nil {
			if x.ReadHead() != nil {
				return
			}
			u.mu.Lock()
			script = u.always
			u.mu.Unlock()
		}
		again := script(x)
		u.ended(x)
		if !again {
			return
		}
		script = nil
	}
}

// ReadSome takes n bytes of the head from the connection and no more. It is for the first request
// on a connection.
func (x *Exchange) ReadSome(n int) error {
	some := make([]byte, n)
	_, err := io.ReadFull(x.conn, some)
	x.r = bufio.NewReader(io.MultiReader(bytes.NewReader(some), x.conn))
	return err
}

// ReadHead reads the head.
func (x *Exchange) ReadHead() error {
	if x.HeadRead {
		return nil
	}
	p := textproto.NewReader(x.r)
	if _, err := p.ReadLine(); err != nil {
		return err
	}
	h, err := p.ReadMIMEHeader()
	if err != nil {
		return err
	}
	x.up.mu.Lock()
	defer x.up.mu.Unlock()
	x.Event, x.Workflow, x.Execution = h.Get("Idempotency-Key"), h.Get("Hooklock-Workflow"), h.Get("Hooklock-Execution")
	x.Token, _ = strconv.ParseInt(h.Get("Hooklock-Fencing-Token"), 10, 64)
	x.Attempt, _ = strconv.Atoi(h.Get("Hooklock-Attempt"))
	x.Length, _ = strconv.Atoi(h.Get("Content-Length"))
	x.HeadRead, x.Arrived = true, time.Now()
	x.up.seen = append(x.up.seen, x)
	x.up.byEvent[x.Event] = append(x.up.byEvent[x.Event], x)
	if x.Workflow != "" {
		if x.Token < x.up.arrived[x.Workflow] {
			x.up.late++
		}
		x.up.arrived[x.Workflow] = max(x.Token, x.up.arrived[x.Workflow])
		if other := x.up.active[x.Workflow]; other != nil {
			x.up.overlaps = append(x.up.overlaps,
				fmt.Sprintf("%s: token %d (%s attempt %d) came while %d (%s attempt %d) was open for %v",
					x.Workflow, x.Token, x.Event, x.Attempt, other.Token, other.Event, other.Attempt,
					x.Arrived.Sub(other.Arrived)))
		}
		x.up.active[x.Workflow] = x
	}
	return nil
}

func (u *Upstream) ended(x *Exchange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	x.Ended = time.Now()
	u.rests(x)
}

// rests says that nothing is done for x any more. It wants the mutex held.
func (u *Upstream) rests(x *Exchange) {
	if u.active[x.Workflow] == x {
		delete(u.active, x.Workflow)
	}
}

// ReadPart reads n bytes of the body.
func (x *Exchange) ReadPart(n int64) error {
	read, err := io.CopyN(io.Discard, x.r, n)
	x.up.mu.Lock()
	x.Read += int(read)
	x.up.mu.Unlock()
	return err
}

// ReadBody reads head and body, or what is left of them.
func (x *Exchange) ReadBody() error {
	if err := x.ReadHead(); err != nil {
		return err
	}
	return x.ReadPart(int64(x.Length - x.Read))
}

// Effect does what was asked, if the token is not stale; otherwise it answers 412 and reports
// false.
func (x *Exchange) Effect() bool {
	x.up.mu.Lock()
	if x.Token != 0 && x.Token < x.up.newest[x.Workflow] {
		x.up.stale++
		x.up.mu.Unlock()
		_ = x.Answer(412, "stale token")
		return false
	}
	defer x.up.mu.Unlock()
	x.up.newest[x.Workflow] = x.Token
	x.up.effects = append(x.up.effects, Effect{x.Event, x.Workflow, x.Execution, x.Token, x.Attempt, time.Now()})
	return true
}

// Receipt is the body of the usual answer: it tells executions apart.
func (x *Exchange) Receipt() string { return fmt.Sprintf("%s was done by %s", x.Event, x.Execution) }

// Answer writes a whole answer, with further header lines. The work is over before that: the next
// call may come before this one returns, and before the connection of one is closed that has been
// answered.
func (x *Exchange) Answer(status int, body string, lines ...string) error {
	x.up.mu.Lock()
	x.up.rests(x)
	x.up.mu.Unlock()
	var more strings.Builder
	for _, line := range lines {
		more.WriteString(line + "\r\n")
	}
	return x.Write(fmt.Sprintf("HTTP/1.1 %d Said\r\nContent-Type: text/plain\r\n%sContent-Length: %d\r\n\r\n%s", status,
		more.String(), len(body), body))
}

// Write writes raw bytes.
func (x *Exchange) Write(text string) error {
	_, err := io.WriteString(x.conn, text)
	return err
}

// Arrives waits until the kernel of the other side has confirmed all that was written.
func (x *Exchange) Arrives(tb testing.TB) {
	tb.Helper()
	raw, err := x.conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		tb.Errorf("look at a connection: %v", err)
		return
	}
	testkit.Until(tb, "what was written has arrived", func() bool {
		left := -1
		_ = raw.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
		return left == 0
	})
}

// Gone returns when the other side has closed the connection; what it still sends is read and
// counted.
func (x *Exchange) Gone() {
	if !x.HeadRead && x.ReadHead() != nil {
		return
	}
	var rest bytes.Buffer
	_, _ = io.Copy(&rest, x.r)
	x.up.mu.Lock()
	defer x.up.mu.Unlock()
	x.Read += rest.Len()
}

// CheckFence asserts what fencing tokens promise: what took effect in a workflow did so under
// tokens that never went back, two executions never had the same one, and no attempt of an event
// came twice.
func (u *Upstream) CheckFence() {
	u.tb.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	last := map[string]Effect{}
	for _, e := range u.effects {
		if before, ok := last[e.Workflow]; ok && e.Token <= before.Token {
			u.tb.Errorf("stale write accepted in %s: token %d (%s) after %d (%s)", e.Workflow, e.Token, e.Execution,
				before.Token, before.Execution)
		}
		last[e.Workflow] = e
	}
	owner, attempts := map[string]string{}, map[string]string{}
	for _, x := range u.seen {
		if x.Execution == "" {
			continue // bypassed
		}
		once(u.tb, owner, fmt.Sprintf("token %d of %s", x.Token, x.Workflow), x.Execution)
		if what := fmt.Sprintf("attempt %d of %s in %s", x.Attempt, x.Event,
			x.Workflow); attempts[what] != x.Execution { // a parked one is tried again, under a token of its own
			once(u.tb, attempts, what, x.Execution)
		}
	}
}

func once(tb testing.TB, seen map[string]string, what, execution string) {
	tb.Helper()
	if other, ok := seen[what]; ok {
		tb.Errorf("%s was seen twice: %s and %s", what, strings.TrimSpace(other), execution)
	}
	seen[what] = execution
}
