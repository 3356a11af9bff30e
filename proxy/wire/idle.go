package wire

import (
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// Between is the ConnState of a server: it notes whether a connection of a Listener is between two
// requests. A Read that reaches its deadline there ends with io.EOF, and the Close that follows
// sets the connection aside, where the Listener has Resume: a goroutine with a small stack waits
// for the next byte, without the buffers of a server. Other connections are left alone.
//
// StateClosed says nothing here: fasthttp tells of it after its Close, when the connection may be
// served again.
func Between(c net.Conn, state fasthttp.ConnState) {
	s := servedOf(c)
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

// removeIdle takes c from the connections without a request.
func (l *Listener) removeIdle(c *served) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.place != nil {
		l.idle.Remove(c.place)
		c.place = nil
	}
}

// Serving tells a Listener with Told that a request of c is being answered, so c makes no room for
// others. It returns false if c has made room already: its answer would reach no client.
func (l *Listener) Serving(c net.Conn) bool {
	s := servedOf(c)
	if s == nil {
		return true
	}
	l.removeIdle(s)
	return !s.evicted.Load()
}

// Resting tells a Listener with Told that c has no request.
func (l *Listener) Resting(c net.Conn) {
	s := servedOf(c)
	if s == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.place == nil && !s.left.Load() && !l.ended {
		s.place = l.idle.PushBack(s)
	}
}

// setAside waits for the next byte of c in the background. It is false where that cannot be.
func (l *Listener) setAside(c *served) bool {
	raw := rawConn(c.Conn)
	var until time.Time
	if l.options.IdleTime > 0 {
		until = time.Now().Add(l.options.IdleTime)
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
		if l.takeBack(c) && err == nil && state == peerPending {
			l.options.Resume(c.asConn())
			return
		}
		_ = c.Close()
	})
	return true
}

// takeBack ends that c is set aside. It returns false if c was closed meanwhile.
func (l *Listener) takeBack(c *served) bool {
	l.removeIdle(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	c.aside = false
	return !l.ended && !c.evicted.Load()
}

// makeRoom closes the connection that has been without a request for longest. One whose next
// request is already there stays; with Told only if another can go, because many that begin at once
// must not keep the next one out. It returns false if each has a request.
func (l *Listener) makeRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.idle.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*served); !c.hasPendingInput() { //nolint:forcetypeassert // nothing else is in it
			l.evictConn(c)
			return true
		}
	}
	if first := l.idle.Front(); l.options.Told && first != nil {
		l.evictConn(first.Value.(*served)) //nolint:forcetypeassert // nothing else is in it
		return true
	}
	return false
}

// evictConn closes a connection that has no request. l.mu is held.
func (l *Listener) evictConn(c *served) {
	l.idle.Remove(c.place)
	c.place = nil
	c.evicted.Store(true)
	_ = c.rawSocket().Close()
	c.uncountOpen()
	l.closedIdle.Add(1)
	l.signalTrouble()
}

// hasPendingInput reports whether there is something to read.
func (c *served) hasPendingInput() bool {
	raw := rawConn(c.Conn)
	if raw == nil {
		return false
	}
	state := peerQuiet
	err := raw.Control(func(fd uintptr) { state = peek(int(fd)) })
	return err == nil && state == peerPending
}
