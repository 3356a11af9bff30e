package testkit

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Member is one etcd member in a process of its own. It can be killed, started again on its data, and held still.
type Member struct {
	*Process
	// Endpoint is its client URL.
	Endpoint string

	command Command
}

// StartEtcd starts a cluster of n members for tb, with their data under a temporary folder, and waits until each of them answers.
// It does not sync to disk: do not use it to test a power cut. program is what Build made of EtcdPackage.
func StartEtcd(tb testing.TB, program string, n int) []*Member {
	tb.Helper()
	ports := freePorts(tb, 2*n)
	peers := make([]string, n)
	for i := range peers {
		peers[i] = fmt.Sprintf("m%d=http://%s", i, ports[2*i+1])
	}
	dir := tb.TempDir()
	members := make([]*Member, n)
	for i := range members {
		client, peer := "http://"+ports[2*i], "http://"+ports[2*i+1]
		m := &Member{Endpoint: client, command: Command{Program: program, Args: []string{
			"--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(dir, fmt.Sprintf("m%d", i)),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-state", "new",
			"--heartbeat-interval", "50", "--election-timeout", "500",
			"--unsafe-no-fsync", "--log-level", "error",
		}}}
		m.Process = Start(tb, m.command)
		members[i] = m
	}
	for _, m := range members {
		m.AwaitHealthy(tb)
	}
	return members
}

// Endpoints are the client URLs of all members.
func Endpoints(members []*Member) []string {
	urls := make([]string, len(members))
	for i, m := range members {
		urls[i] = m.Endpoint
	}
	return urls
}

// AwaitHealthy waits until the member answers, with a leader.
func (m *Member) AwaitHealthy(tb testing.TB) {
	tb.Helper()
	client := &http.Client{Timeout: Patience}
	defer client.CloseIdleConnections()
	Until(tb, "etcd member at "+m.Endpoint+" is healthy", func() bool {
		select {
		case <-m.Done():
			tb.Fatalf("etcd ended:\n%s", m.Stderr)
		default:
		}
		res, err := client.Get(m.Endpoint + "/health")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// Restart starts a killed member again, on the data that it left. It does not wait until it is healthy.
func (m *Member) Restart(tb testing.TB) {
	tb.Helper()
	m.Kill()
	m.Process = Start(tb, m.command)
}

// Freeze holds the member still, as a machine that hangs: its connections stay open and nothing is answered. It returns when the member
// stands still, which on a busy machine is not at once.
func (m *Member) Freeze(tb testing.TB) {
	tb.Helper()
	m.Signal(tb, syscall.SIGSTOP)
	Until(tb, "the etcd member stands still", func() bool { return standsStill(m.Pid()) })
}

// Thaw lets it go on.
func (m *Member) Thaw(tb testing.TB) { tb.Helper(); m.Signal(tb, syscall.SIGCONT) }
