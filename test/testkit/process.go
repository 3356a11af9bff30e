package testkit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Process is a running program. It is killed when the test ends, and by the kernel when the test
// process dies.
type Process struct {
	// Stdout and Stderr keep what it says.
	Stdout, Stderr *Output

	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// Command says what to start.
type Command struct {
	Program string
	Args    []string
	Dir     string   // working directory; empty: that of the test
	Env     []string // added to a minimal environment, in which nothing configures Hooklock
	Stderr  *os.File // is its standard error, in place of Process.Stderr; nil: there is no other one
	// Socket is given to it as systemd gives one (LISTEN_FDS); nil: none is. It takes a shell.
	Socket *os.File
}

// gorace: a race ends the process at once. At its end the race detector waits for a second, by
// default, in case goroutines that are left report something
// (https://go.dev/doc/articles/race_detector); ours has none left by then, and the tests end
// hundreds of processes.
const gorace = "GORACE=halt_on_error=1 atexit_sleep_ms=0"

// Start starts a process for tb. The end of tb kills it, if nobody stopped it before.
func Start(tb testing.TB, c Command) *Process {
	tb.Helper()
	p := &Process{Stdout: newOutput(), Stderr: newOutput(), name: filepath.Base(c.Program), done: make(chan struct{})}
	p.cmd = exec.Command(c.Program, c.Args...)
	if c.Socket != nil { // only the process itself knows its ID before it begins
		p.cmd = exec.Command("/bin/sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, c.Program}, c.Args...)...)
		p.cmd.ExtraFiles = []*os.File{c.Socket}
		c.Env = append([]string{"LISTEN_FDS=1"}, c.Env...)
	}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = c.Dir, p.Stdout, p.Stderr
	if c.Stderr != nil {
		p.cmd.Stderr = c.Stderr
	}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(), gorace}, c.Env...)
	p.cmd.SysProcAttr = dieWithParent()
	if err := p.cmd.Start(); err != nil {
		tb.Fatalf("start %s: %v", c.Program, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // ExitCode says it
		p.wake()
	}()
	tb.Cleanup(p.Kill)
	return p
}

// wake lets those look again who wait for a line.
func (p *Process) wake() {
	for _, o := range []*Output{p.Stdout, p.Stderr} {
		o.mu.Lock()
		o.changed.Broadcast()
		o.mu.Unlock()
	}
}

// Pid is its process ID.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(tb testing.TB, s os.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		tb.Fatalf("send %v to %s: %v", s, p.name, err)
	}
}

// Freeze holds it still (SIGSTOP), as a machine that hangs: its connections stay open and nothing
// is answered. It returns when the process stands still, which on a busy machine is not at once.
func (p *Process) Freeze(tb testing.TB) {
	tb.Helper()
	p.Signal(tb, syscall.SIGSTOP)
	Until(tb, p.name+" stands still", func() bool { return standsStill(p.Pid()) })
}

// Thaw lets it continue (SIGCONT).
func (p *Process) Thaw(tb testing.TB) { tb.Helper(); p.Signal(tb, syscall.SIGCONT) }

// Kill ends it with SIGKILL and waits; it may have ended before.
func (p *Process) Kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return
	}
	<-p.done
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode waits for the end and returns the exit code, -1 after a signal.
func (p *Process) ExitCode(tb testing.TB) int {
	tb.Helper()
	late := time.NewTimer(Patience)
	defer late.Stop()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-late.C:
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // a Go program says where it hangs
		<-p.done
		tb.Fatalf("%s did not end within %v:\n%s", p.name, Patience, p.Stderr)
	}
	return -1
}

// AwaitLine waits for a line on o that contains text; it fails at once when the process ends
// without it.
func (p *Process) AwaitLine(tb testing.TB, o *Output, text string) string {
	tb.Helper()
	line, ok := o.find(func(line string) bool { return strings.Contains(line, text) }, func() bool {
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	})
	if !ok {
		tb.Fatalf("%s never said %q:\n%s%s", p.name, text, p.Stdout, p.Stderr)
	}
	return line
}
