package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hooklock/test/testkit"
)

// stick lets each call of the system that has this name hang from now on. stuck waits until one
// does.
func stick(t *testing.T, h *testkit.Hooklock, call string) (stuck, free func()) {
	t.Helper()
	strace := testkit.Program(t, "strace")
	seen := filepath.Join(t.TempDir(), "seen")
	write(t, seen, "")
	p := testkit.Start(t, testkit.Command{Program: strace, Args: []string{"-f", "-p", fmt.Sprint(h.Pid()), "-o", seen,
		"-e", "trace=" + call, "-e", "inject=" + call + ":delay_enter=3600s"}})
	attached := func() bool { return strings.Contains(p.Stderr.String(), "attached") }
	testkit.Until(t, "strace has attached, or ended", func() bool {
		select {
		case <-p.Done():
			return true
		default:
			return attached()
		}
	})
	if !attached() {
		t.Skip("no process may be traced here: ", p.Stderr)
	}
	return func() {
		testkit.Until(t, call+" hangs", func() bool {
			text, err := os.ReadFile(seen)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(text), call)
		})
	}, p.Kill
}

// endsNaming checks an end that what hangs could not hold up. While it does, the kernel holds the
// process, too.
func endsNaming(t *testing.T, h *testkit.Hooklock, free func(), what string) {
	t.Helper()
	h.Signal(t, syscall.SIGTERM)
	h.Stderr.AwaitRecord(t, "stopped", nil)
	h.Stderr.Await(t, what, func(line string) bool { return strings.Contains(line, what) })
	free()
	if code := h.ExitCode(t); code != 1 {
		t.Errorf("exit code %d: %s", code, h.Stderr)
	}
}

func TestADiskThatHangsUnderTheEmbeddedEtcdDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	config := strings.NewReplacer("request_timeout: 10s", "request_timeout: 2s", "shutdown_timeout: 5s",
		"shutdown_timeout: 1s").Replace(embedded(t.TempDir(), ""))
	h := testkit.Serve(t, hooklockProgram, config)
	stuck, free := stick(t, h, "fdatasync")
	answer := testkit.GoPost(t, h.Addr, at(t, "plain"), "{}", key("1"))
	stuck()
	endsNaming(t, h, free, "stop embedded etcd: it hangs")
	<-answer
}
