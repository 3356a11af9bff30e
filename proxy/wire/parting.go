package wire

import (
	"time"

	"golang.org/x/sys/unix"
)

// The side that closes a TCP connection first keeps its port for a minute, and one address of a
// service has some 28 000 for this machine: at 500 closes a second they run out. A service that was
// told `Connection: close`, or said it, closes by itself, but often some microseconds behind its
// answer. So its connection is left alone until its FIN is there.
const (
	// partEvery is how often the connections are looked at that their service is to close, while
	// there are any.
	partEvery = 2 * time.Millisecond
	// partWithin is for how long that is left to the service. One that waits for our FIN before it
	// serves others has sent its own.
	partWithin = 100 * time.Millisecond
	// partAtOnce is how many wait for that; others are closed at once.
	partAtOnce = 1024
)

// closeAfterPeer ends a connection that its service closes, too, with its FIN if that comes soon.
func (u *Upstream) closeAfterPeer(c *conn) {
	u.mu.Lock()
	waits := !u.closed && c.fd != nil && len(u.parting) < partAtOnce
	if waits {
		u.freeReader(c)
		c.until = time.Now().Add(partWithin)
		u.parting = append(u.parting, c)
		u.partLater()
	}
	u.mu.Unlock()
	if !waits {
		u.closeConn(c)
	}
}

// partLater has partNow run soon. u.mu is held.
func (u *Upstream) partLater() {
	switch {
	case u.parts:
		return
	case u.parter == nil:
		u.parter = time.AfterFunc(partEvery, u.partNow)
	default:
		u.parter.Reset(partEvery)
	}
	u.parts = true
}

// partNow closes the connections that the service has closed, or should have, and runs again while
// there are others.
func (u *Upstream) partNow() {
	u.mu.Lock()
	looked := u.parting
	u.parting = nil
	u.mu.Unlock()
	now, kept := time.Now(), looked[:0]
	for _, c := range looked {
		if now.Before(c.until) && !c.isEnded() {
			kept = append(kept, c)
			continue
		}
		c.close()
	}
	clear(looked[len(kept):])
	u.mu.Lock()
	u.parts = false
	if u.closed {
		u.mu.Unlock()
		closeAll(kept)
		return
	}
	if u.parting = append(kept, u.parting...); len(u.parting) > 0 {
		u.partLater()
	}
	u.mu.Unlock()
}

// isEnded reports whether the peer's FIN has come, or its reset.
func (c *conn) isEnded() bool {
	c.got = -1
	return c.fd.Control(c.look) != nil || c.got&(halfClosed|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
}

func closeAll(conns []*conn) {
	for _, c := range conns {
		c.close()
	}
}
