package wire

import (
	"net"
	"time"
)

// ListenerOptions bound the connections of a listener.
type ListenerOptions struct {
	MaxConns    int           // open connections; 0 means no bound
	Refusal     []byte        // the whole HTTP answer for a connection over MaxConns; empty: it is closed without one (as TLS needs)
	LingerTime  time.Duration // how long a lingering Close reads on; 0 means 2 s
	LingerBytes int64         // how much it reads; 0 means 64 MiB
}

// Listener bounds and counts the connections of another listener.
type Listener struct{ net.Listener }

// NewListener wraps l.
func NewListener(l net.Listener, o ListenerOptions) *Listener { return &Listener{l} }

// Live returns the number of open connections.
func (l *Listener) Live() int { return 0 }

// LingerOnClose marks c (the connection of a Listener, also under TLS): its Close first ends the sending side and reads
// on for a while, so that a sender that is still busy with a refused body can read the answer. Other connections are left alone.
func LingerOnClose(c net.Conn) {}
