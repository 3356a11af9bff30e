package etcdtest

import (
	"net"
	"sync"
	"testing"
)

// Proxy carries TCP connections to one address, and disturbs them when it is told to.
type Proxy struct {
	// Endpoint is where it listens, host:port.
	Endpoint string
	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	closed  bool
	hole    bool // nothing goes through, in either direction; it arrives later
	deaf    bool // answers are swallowed
	conns   map[net.Conn]struct{}
}

// NewProxy listens for tb in front of target, host:port.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	p := &Proxy{Endpoint: listener.Addr().String(), target: target, listener: listener, conns: map[net.Conn]struct{}{}}
	p.changed = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Blackhole holds back all bytes while on. Connections stay open, and what was sent meanwhile arrives afterwards.
func (p *Proxy) Blackhole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hole = on
	p.changed.Broadcast()
}

// DropAnswers lets requests through and loses the answers while on. A connection that has lost one is of no more use: kill it
// before turning this off.
func (p *Proxy) DropAnswers(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = on
}

// KillConns closes all connections.
func (p *Proxy) KillConns() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.changed.Broadcast()
	p.mu.Unlock()
	_ = p.listener.Close()
	p.KillConns()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(c) })
	}
}

func (p *Proxy) serve(near net.Conn) {
	defer near.Close()
	if !p.add(near) {
		return
	}
	defer p.remove(near)
	if !p.pass(false) {
		return
	}
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer far.Close()
	if !p.add(far) {
		return
	}
	defer p.remove(far)
	p.wg.Go(func() {
		p.carry(far, near, false)
		_ = far.Close()
		_ = near.Close()
	})
	p.carry(near, far, true)
}

// carry moves bytes until one side ends.
func (p *Proxy) carry(to, from net.Conn, answers bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && p.pass(answers) {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits while nothing goes through, and reports whether the bytes may go.
func (p *Proxy) pass(answers bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.hole && !p.closed {
		p.changed.Wait()
	}
	return !p.closed && !(answers && p.deaf)
}

func (p *Proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) remove(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}
