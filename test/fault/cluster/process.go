package cluster

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// Patience is how long anything may take that must happen. It is generous: the machine may be busy.
const Patience = 40 * time.Second

// Binaries are the programs that the suite starts, built once from this tree.
type Binaries struct{ Hooklock, Etcd string }

// Build builds them into dir.
func Build(dir string) (b Binaries, err error) {
	if b.Hooklock, err = testkit.Build(dir, "hooklock", testkit.HooklockPackage, false); err != nil {
		return b, err
	}
	b.Etcd, err = testkit.Build(dir, "etcd", testkit.EtcdPackage, false)
	return b, err
}

// Freeze holds a process where it is (SIGSTOP), and returns when it stands still.
func Freeze(tb testing.TB, p *testkit.Process) {
	tb.Helper()
	p.Signal(tb, syscall.SIGSTOP)
	testkit.Until(tb, "a process stands still", func() bool { return strings.HasPrefix(status(p.Pid(), "State:"), "T") })
}

// Thaw lets it go on (SIGCONT).
func Thaw(tb testing.TB, p *testkit.Process) {
	tb.Helper()
	p.Signal(tb, syscall.SIGCONT)
}

// Threads is the number of threads of a process.
func Threads(pid int) (n int) {
	_, _ = fmt.Sscan(status(pid, "Threads:"), &n)
	return n
}

// FDs is the number of open files and connections of a process.
func FDs(tb testing.TB, pid int) int {
	tb.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		tb.Fatalf("look at the files of a process: %v", err)
	}
	return len(entries)
}

// OpenFiles shows what they are, connections with their addresses and states.
func OpenFiles(pid int) string {
	var b strings.Builder
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	table, _ := os.ReadFile("/proc/net/tcp")
	for _, e := range entries {
		to, _ := os.Readlink(dir + "/" + e.Name())
		b.WriteString(to)
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			for line := range strings.Lines(string(table)) {
				if f := strings.Fields(line); len(f) > 9 && f[9] == strings.TrimSuffix(inode, "]") {
					b.WriteString(" " + f[1] + " " + f[2] + " state " + f[3])
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// status is a field of /proc/PID/status; "?" when the process has ended.
func status(pid int, field string) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "?"
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "?"
}

// Count is the number of lines of a log that contain text.
func Count(log *testkit.Output, text string) (n int) {
	for _, line := range log.Lines() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// AwaitMore waits until a log has more than n lines that contain text.
func AwaitMore(tb testing.TB, log *testkit.Output, n int, text string) {
	tb.Helper()
	log.Await(tb, fmt.Sprintf("%q more than %d times", text, n), func(line string) bool {
		if strings.Contains(line, text) {
			n--
		}
		return n < 0
	})
}

// Goroutines ends a process (SIGQUIT) and counts the goroutines that it had, by what started them.
func Goroutines(tb testing.TB, r *Replica) (all int, by map[string]int) {
	tb.Helper()
	r.Signal(tb, syscall.SIGQUIT)
	_ = r.ExitCode(tb)
	by = map[string]int{}
	for _, line := range r.Stderr.Lines() {
		if rest, ok := strings.CutPrefix(line, "created by "); ok {
			what, _, _ := strings.Cut(rest, " in goroutine")
			by[what]++
			all++
		}
	}
	return all, by
}
