package e2e

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// deaf is an address that takes no more connections and refuses none: its queue is full.
func deaf(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	late := 0 // in a row: one may be late because the machine is busy
	for range 16 {
		c, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		if err == nil {
			late = 0
			t.Cleanup(func() { _ = c.Close() })
		} else if late++; late == 3 {
			return addr
		}
	}
	t.Skip("this kernel queues connections without end")
	return ""
}

func TestAConnectThatTimesOutProvesThatNothingWasSent(t *testing.T) {
	t.Parallel()
	config := strings.Replace(shared.config("deaf", ""), shared.up.URL, "http://"+deaf(t), 1)
	h := own(t, strings.Replace(config, "timeout: 30s", "timeout: 30s, connect_timeout: 300ms", 1))
	for range 2 { // the lock is free again at once, and the event is not burned
		a := testkit.Post(t, h.Addr, "/cooling/x", "{}", key("1"))
		if p := a.JSON(); a.Status/100 != 5 || p["executed"] != "no" {
			t.Errorf("%v", a)
		}
	}
}
