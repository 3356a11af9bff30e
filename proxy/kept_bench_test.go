package proxy

import (
	"net"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkKeptConnection prints the memory of a connection that is kept after one delivery of 1
// KiB: KiB/conn. The sender's side is sockets alone, so nothing of it is in the figure; what the
// kernel keeps is not in it, either.
func BenchmarkKeptConnection(b *testing.B) {
	const connections = 500
	s := benchServer(b, "127.0.0.1:1")
	ln := s.Listener(loopback(b))
	go s.Serve(ln)
	at := &unix.SockaddrInet4{Port: ln.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	answer := make([]byte, 4096)
	request := []byte(
		"POST /hooks/a HTTP/1.1\r\nHost: hooks.example.com\r\nIdempotency-Key: k\r\nContent-Length: 1024\r\n\r\n" +
			string(make([]byte, 1024)))
	var sum float64
	for b.Loop() {
		before := inUse()
		var senders [connections]int // descriptors
		for i := range senders {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				b.Fatal(err)
			}
			senders[i] = fd
			if err := unix.Connect(fd, at); err != nil {
				b.Fatal(err)
			}
			if _, err := unix.Write(fd, request); err != nil {
				b.Fatal(err)
			}
			if _, err := unix.Read(fd, answer); err != nil {
				b.Fatal(err)
			}
		}
		for ln.Counts().Idle < connections {
			runtime.Gosched()
		}
		sum += float64(inUse()-before) / connections / 1024
		for _, sender := range senders {
			_ = unix.Close(sender)
		}
		for ln.Counts().Open > 0 {
			runtime.Gosched()
		}
	}
	b.ReportMetric(sum/float64(b.N), "KiB/conn")
	b.ReportMetric(0, "ns/op")
}

// inUse is the memory of objects and stacks that are in use.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // what the first one has found in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
