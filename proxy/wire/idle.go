package wire

import (
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// Between is the ConnState of a server: it notes whether a connection of a Listener is between two requests. A Read that reaches its
// deadline there ends with io.EOF, and the Close that follows sets the connection aside, where the Listener has Resume: a goroutine with
// a small stack waits for the next byte, without the buffers of a server. Other connections are left alone.
//
// StateClosed says nothing here: fasthttp tells of it after its Close, when the connection may be served again.
func Between(c net.Conn, state fasthttp.ConnState) {
	s := base(c)
	if s == nil {
		return
	}
	switch state { //nolint:exhaustive // the others change nothing
	case fasthttp.StateIdle:
		s.between.Store(true)
	case fasthttp.StateActive:
		s.between.Store(false)
	}
}

// occupied takes c from the connections without a request.
func (l *Listener) occupied(c *served) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.place != nil {
		l.idle.Remove(c.place)
		c.place = nil
	}
}

// setAside waits for the next byte of c in the background. It is false where that cannot be.
func (l *Listener) setAside(c *served) bool {
	raw := rawConn(c.Conn)
	var until time.Time
	if l.o.IdleTime > 0 {
		until = time.Now().Add(l.o.IdleTime)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || raw == nil || c.SetReadDeadline(until) != nil {
		return false
	}
	c.place, c.aside = l.idle.PushBack(c), true
	l.workers.Go(func() {
		state := peerQuiet
		err := raw.Read(func(fd uintptr) (done bool) {
			state = peek(int(fd))
			return state != peerQuiet
		})
		if l.recall(c) && err == nil && state == peerPending {
			l.o.Resume(c.conn())
			return
		}
		_ = c.Close()
	})
	return true
}

// recall ends that c is set aside. It returns false if c was closed meanwhile.
func (l *Listener) recall(c *served) bool {
	l.occupied(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	c.aside = false
	return !l.ended && !c.evicted.Load()
}

// makeRoom closes the connection that has been without a request for longest. One whose next request is already there stays. It returns false
// if each has a request.
func (l *Listener) makeRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.idle.Front(); e != nil; e = e.Next() {
		c := e.Value.(*served) //nolint:forcetypeassert // nothing else is in it
		if c.asks() {
			continue
		}
		l.idle.Remove(e)
		c.place = nil
		c.evicted.Store(true)
		_ = c.socket().Close()
		c.leave()
		l.closedIdle.Add(1)
		l.notice()
		return true
	}
	return false
}

// asks reports whether there is something to read.
func (c *served) asks() bool {
	raw := rawConn(c.Conn)
	if raw == nil {
		return false
	}
	state := peerQuiet
	err := raw.Control(func(fd uintptr) { state = peek(int(fd)) })
	return err == nil && state == peerPending
}
