package wire

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/proxy/wiretest"
)

const plainGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// ask sends a request on c and wants a 200.
func ask(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.WriteString(c, plainGet); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
}

// until waits for what no event tells.
func until(t *testing.T, what string, check func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !check(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("in vain: " + what)
		}
	}
}

// aside is how many connections wait for a request without a server.
func (l *Listener) asides() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.idle.Front(); e != nil; e = e.Next() {
		if e.Value.(*served).aside {
			n++
		}
	}
	return n
}

func TestASilentConnectionMakesRoomForANewOne(t *testing.T) {
	d := openDoor(t, ListenerOptions{MaxConns: 3, Refusal: []byte(refusal)}, func(*fasthttp.RequestCtx) {})
	for range 9 {
		dial(t, d.Addr)
	}
	until(t, "all were accepted", func() bool { got := d.listen.Counts(); return got.Open == 3 && got.ClosedIdle == 6 })
	if status, _ := knock(t, d.Addr, plainGet); status != 200 {
		t.Errorf("status %d", status)
	}
	if got := d.listen.Counts(); got.Refused != 0 || got.ClosedIdle != 7 {
		t.Errorf("%+v", got)
	}
}

func TestTheOneWithoutARequestForLongestMakesRoom(t *testing.T) {
	d := openDoor(t, ListenerOptions{MaxConns: 2, Refusal: []byte(refusal), IdleTime: time.Minute},
		func(*fasthttp.RequestCtx) {})
	first, second := dial(t, d.Addr), dial(t, d.Addr)
	ask(t, first)
	ask(t, second)
	until(t, "both are set aside", func() bool { return d.listen.asides() == 2 })
	ask(t, first) // now second is the older one
	until(t, "both are set aside again", func() bool { return d.listen.asides() == 2 })
	ask(t, dial(t, d.Addr))
	if n, err := second.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
	ask(t, first)
}

func TestAConnectionWithARequestIsNeverClosedForAnother(t *testing.T) {
	release := make(chan struct{})
	arrived := make(chan struct{})
	d := openDoor(t, ListenerOptions{MaxConns: 1, Refusal: []byte(refusal), IdleTime: time.Minute},
		func(*fasthttp.RequestCtx) {
			arrived <- struct{}{}
			<-release
		})
	c := dial(t, d.Addr)
	_, _ = io.WriteString(c, plainGet)
	<-arrived
	if status, _ := knock(t, d.Addr, plainGet); status != 503 {
		t.Errorf("status %d", status)
	}
	close(release)
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
		t.Error(err)
	}
}

func TestAKeptConnectionServesAfterItWasSetAside(t *testing.T) {
	server, client := wiretest.Certify(t)
	for _, secure := range []bool{false, true} {
		o := ListenerOptions{IdleTime: time.Minute}
		var d *door
		var c net.Conn
		if secure {
			d = openDoorTLS(t, o, server, func(*fasthttp.RequestCtx) {})
			c = tls.Client(dial(t, d.Addr), client)
		} else {
			d = openDoor(t, o, func(*fasthttp.RequestCtx) {})
			c = dial(t, d.Addr)
		}
		for range 3 {
			ask(t, c)
			until(t, "it is set aside", func() bool { return d.listen.asides() == 1 })
		}
		if got := d.listen.Counts(); got.Open != 1 {
			t.Errorf("%+v", got)
		}
		_ = c.Close()
		until(t, "its end is noticed", func() bool { return d.listen.Counts().Open == 0 && d.listen.asides() == 0 })
	}
}

// fasthttp says that it has closed a connection when somebody may serve that again.
func TestAConnectionIsSetAsideAgainWhoseFirstServerEndsLate(t *testing.T) {
	d := openDoor(t, ListenerOptions{IdleTime: time.Minute}, func(*fasthttp.RequestCtx) {})
	idle := make(chan struct{})
	var told sync.WaitGroup
	told.Add(1)
	var before, late atomic.Bool
	states := func(state fasthttp.ConnState) {
		switch {
		case state == fasthttp.StateClosed && late.CompareAndSwap(false, true):
			defer told.Done()
			<-idle
		case state == fasthttp.StateIdle && !before.CompareAndSwap(false, true):
			defer close(idle)
		}
	}
	d.states.Store(&states)
	c := dial(t, d.Addr)
	ask(t, c)
	until(t, "it is set aside", func() bool { return d.listen.asides() == 1 })
	ask(t, c)
	told.Wait()
	until(t, "it is set aside again", func() bool { return d.listen.asides() == 1 })
}

func TestAConnectionIsSetAsideForAWhileOnly(t *testing.T) {
	d := openDoor(t, ListenerOptions{IdleTime: 50 * time.Millisecond}, func(*fasthttp.RequestCtx) {})
	c := dial(t, d.Addr)
	ask(t, c)
	if n, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
	until(t, "it does not count", func() bool { return d.listen.Counts().Open == 0 })
}

func TestClosingTheListenerClosesWhatIsSetAside(t *testing.T) {
	d := openDoor(t, ListenerOptions{IdleTime: time.Minute}, func(*fasthttp.RequestCtx) {})
	c := dial(t, d.Addr)
	ask(t, c)
	until(t, "it is set aside", func() bool { return d.listen.asides() == 1 })
	_ = d.listen.Close()
	if n, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
	if got := d.listen.Counts(); got.Open != 0 {
		t.Errorf("%+v", got)
	}
}

// A request that comes while its connection makes room is not begun: its sender cannot hear the
// answer.
func TestARequestOnAConnectionThatWasClosedForAnotherIsNotBegun(t *testing.T) {
	l := NewListener(listening(t), ListenerOptions{MaxConns: 1})
	defer l.Close()
	sender := dial(t, l.Addr().String())
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	servedOf(accepted).evicted.Store(true) // as makeRoom does, when it has seen nothing to read
	if _, err := io.WriteString(sender, plainGet); err != nil {
		t.Fatal(err)
	}
	if n, err := accepted.Read(make([]byte, 100)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
	_ = accepted.Close()
}
