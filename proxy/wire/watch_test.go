package wire

import (
	"net"
	"runtime"
	"testing"
	"time"
)

// tcpPair returns the two ends of a TCP connection: the one that is watched, and its peer.
func tcpPair(t *testing.T) (watched, peer *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = dialled.Close(), accepted.Close() })
	return accepted.(*net.TCPConn), dialled.(*net.TCPConn)
}

func mustWrite(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := c.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
}

func watchFor(c net.Conn) (gone chan struct{}, stop func()) {
	gone = make(chan struct{})
	return gone, WatchPeer(c, func() { close(gone) })
}

func awaitGone(t *testing.T, gone chan struct{}) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("the end of the peer was not noticed")
	}
}

func TestAPeerThatCloses(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn) error{
		"closes":      (*net.TCPConn).Close,
		"half-closes": (*net.TCPConn).CloseWrite,
		"resets": func(c *net.TCPConn) error {
			_ = c.SetLinger(0)
			return c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watched, peer := tcpPair(t)
			gone, stop := watchFor(watched)
			defer stop()
			if err := end(peer); err != nil {
				t.Fatal(err)
			}
			awaitGone(t, gone)
		})
	}
}

// The bytes of a pipelined request hide a FIN behind them from a read, so the state of the
// connection must tell.
func TestAPeerThatClosesBehindAPipelinedRequestIsGoneAndOneThatStaysIsNot(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the state of a connection")
	}
	t.Parallel()
	staying, stays := tcpPair(t)
	leaving, leaves := tcpPair(t)
	mustWrite(t, stays, "GET / HTTP/1.1\r\n")
	mustWrite(t, leaves, "GET / HTTP/1.1\r\n")
	stayingGone, stopStaying := watchFor(staying)
	leavingGone, stopLeaving := watchFor(leaving)
	defer stopLeaving()
	if err := leaves.Close(); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, leavingGone) // by then the other connection has been looked at as well
	stopStaying()
	select {
	case <-stayingGone:
		t.Error("a peer that only sent more was taken for gone")
	default:
	}
	b := make([]byte, 3)
	if _, err := staying.Read(b); err != nil || string(b) != "GET" {
		t.Errorf("the watch took bytes of the next request, or left a deadline: %q %v", b, err)
	}
}
