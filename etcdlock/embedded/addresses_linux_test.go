package embedded

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A shell's ulimit -v, or LimitAS= of systemd, is below what etcd asks of the kernel for its
// database: etcd would panic on a goroutine of its own.
func TestSaysWhichLimitIsTooLowForTheDatabasesAddresses(t *testing.T) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var pages uint64
	if _, err := fmt.Sscan(string(statm), &pages); err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &before); err != nil || before.Cur < math.MaxInt64 {
		t.Skipf("the addresses are bounded here: %+v %v", before, err)
	}
	low := unix.Rlimit{Cur: pages*uint64(os.Getpagesize()) + 2<<30, Max: before.Max}
	if err := unix.Setrlimit(unix.RLIMIT_AS, &low); err != nil {
		t.Fatal(err)
	}
	s, err := Start(Options{Dir: filepath.Join(t.TempDir(), "data")})
	if restored := unix.Setrlimit(unix.RLIMIT_AS, &before); restored != nil {
		t.Fatal(restored)
	}
	if err == nil {
		_ = s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "ulimit -v") {
		t.Fatalf("got %v", err)
	}
}
