package cluster

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hooklock/test/testkit"
)

// NewStuck is the address of a service whose queue of new connections is full: connecting to it
// hangs.
func NewStuck(tb testing.TB) string {
	tb.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatalf("make a socket: %v", err)
	}
	tb.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		tb.Fatalf("bind: %v", err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		tb.Fatalf("listen: %v", err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		tb.Fatalf("look at a socket: %v", err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
	filler, err := net.Dial("tcp", addr) // the one that a queue of length 0 has room for
	if err != nil {
		tb.Fatalf("fill the queue: %v", err)
	}
	tb.Cleanup(func() { _ = filler.Close() })
	return addr
}

// AwaitConnecting waits until somebody hangs at the address of NewStuck.
func AwaitConnecting(tb testing.TB, addr string) {
	tb.Helper()
	_, text, _ := strings.Cut(addr, ":")
	port, _ := strconv.Atoi(text)
	remote := fmt.Sprintf("0100007F:%04X 02", port) // 127.0.0.1:port SYN_SENT
	testkit.Until(tb, "somebody connects to the stuck service", func() bool {
		table, err := os.ReadFile("/proc/net/tcp")
		return err == nil && strings.Contains(string(table), remote)
	})
}
