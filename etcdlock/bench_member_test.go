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

// benchMember is an etcd as users run it: in a process of its own, on a fresh directory, with its disk synced.
type benchMember struct {
	endpoint string
	pid      int
}

// startMember builds etcd from the module that is linked in anyway, and starts it for b.
func startMember(b *testing.B) *benchMember {
	b.Helper()
	program := b.TempDir() + "/etcd"
	if out, err := exec.Command("go", "build", "-o", program, "go.etcd.io/etcd/server/v3").CombinedOutput(); err != nil {
		b.Fatalf("build etcd: %v\n%s", err, out)
	}
	client, peer := freePort(b), freePort(b)
	cmd := exec.Command(program, "--data-dir", b.TempDir(), "--log-level", "error", "--listen-client-urls", "http://"+client,
		"--advertise-client-urls", "http://"+client, "--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "default=http://"+peer)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	m := &benchMember{endpoint: client, pid: cmd.Process.Pid}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{client}, DialTimeout: 20 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Get(b.Context(), "ready"); err != nil {
		b.Fatal(err)
	}
	return m
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

// cpu is what the member has used, to a hundredth of a second: utime and stime of proc_pid_stat(5), in USER_HZ.
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
