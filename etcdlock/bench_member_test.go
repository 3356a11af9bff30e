//go:build linux

package etcdlock

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// benchMember is an etcd as users run it: in a process of its own, on a fresh directory, with its
// disk synced.
type benchMember struct {
	endpoint string
	pid      int
	args     []string
	stop     func()
}

// startMember builds etcd from the module that is linked in anyway, and starts it for b, with more
// of its flags.
func startMember(b *testing.B, flags ...string) *benchMember {
	b.Helper()
	program := b.TempDir() + "/etcd"
	if out, err := exec.Command("go", "build", "-o", program,
		"go.etcd.io/etcd/server/v3").CombinedOutput(); err != nil {
		b.Fatalf("build etcd: %v\n%s", err, out)
	}
	client, peer := freePort(b), freePort(b)
	m := &benchMember{endpoint: client,
		args: append([]string{program, "--data-dir", b.TempDir(), "--log-level", "error", "--listen-client-urls",
			"http://" + client,
			"--advertise-client-urls", "http://" + client, "--listen-peer-urls", "http://" + peer,
			"--initial-advertise-peer-urls", "http://" + peer,
			"--initial-cluster", "default=http://" + peer}, flags...)}
	m.start(b)
	b.Cleanup(func() { m.stop() })
	return m
}

// start returns when the member answers.
func (m *benchMember) start(b *testing.B) {
	b.Helper()
	cmd := exec.Command(m.args[0], m.args[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	m.pid, m.stop = cmd.Process.Pid, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{m.endpoint}, DialTimeout: 5 * time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Get(b.Context(), "ready", clientv3.WithSerializable()); err != nil {
		b.Fatal(err)
	}
}

func freePort(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// cpu is what the member has used, to a hundredth of a second: utime and stime of proc_pid_stat(5),
// in USER_HZ.
func (m *benchMember) cpu(b *testing.B) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
