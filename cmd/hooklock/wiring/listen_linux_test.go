package wiring

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// The address is free: the message for one that is in use would send the operator after a process
// that does not exist.
func TestAListenerThatThisUserMayNotOpenSaysWhatTheUserLacks(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	said := make(chan error)
	go func() {
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // never unlocked: this thread alone is another user, and ends with the goroutine
			if _, _, code := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); code != 0 {
				said <- code
				return
			}
		}
		ln, err := Listen(t.Context(), "listen", "unix://"+filepath.Join(dir, "socket"))
		if err == nil {
			_ = ln.Close()
		}
		said <- err
	}()
	err := <-said
	if err == nil || strings.Contains(err.Error(), "stop the program that uses it") ||
		!strings.Contains(err.Error(), "CAP_NET_BIND_SERVICE") ||
		!strings.Contains(err.Error(), "a folder that this user may write") {
		t.Fatalf("got %v", err)
	}
}
