package testkit

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Member is one etcd member in a process of its own. It can be killed, started again on its data,
// and held still.
type Member struct {
	*Process
	// Endpoint is its client URL.
	Endpoint string

	command Command
}

// MemberAddress is where a member of a cluster will be.
type MemberAddress struct{ Name, Client, Peer string } // URLs

// MemberAddresses are those of a cluster of n members that is still to be started.
func MemberAddresses(tb testing.TB, n int) []MemberAddress {
	tb.Helper()
	ports := freePorts(tb, 2*n)
	all := make([]MemberAddress, n)
	for i := range all {
		all[i] = MemberAddress{fmt.Sprintf("m%d", i), "http://" + ports[2*i], "http://" + ports[2*i+1]}
	}
	return all
}

// StartEtcd starts a cluster of n members for tb, with their data under a temporary folder, and
// waits until each of them answers. It does not sync to disk: do not use it to test a power cut.
// program is what Build made of EtcdPackage; flags are more of its flags.
func StartEtcd(tb testing.TB, program string, n int, flags ...string) []*Member {
	tb.Helper()
	return StartEtcdIn(tb, program, tb.TempDir(), MemberAddresses(tb, n), flags...)
}

// StartEtcdIn is StartEtcd with members at given addresses. The data of each is in a folder with
// its name below dir; what is there is used.
func StartEtcdIn(tb testing.TB, program, dir string, at []MemberAddress, flags ...string) []*Member {
	tb.Helper()
	var peers []string
	for _, a := range at {
		peers = append(peers, a.Name+"="+a.Peer)
	}
	members := make([]*Member, len(at))
	for i, a := range at {
		m := &Member{Endpoint: a.Client, command: Command{Program: program, Args: []string{
			"--name", a.Name, "--data-dir", filepath.Join(dir, a.Name),
			"--listen-client-urls", a.Client, "--advertise-client-urls", a.Client,
			"--listen-peer-urls", a.Peer, "--initial-advertise-peer-urls", a.Peer,
			"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-state", "new",
			"--heartbeat-interval", "50", "--election-timeout", "500",
			"--unsafe-no-fsync", "--log-level", "error",
		}}}
		m.command.Args = append(m.command.Args, flags...)
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

// Restart starts a killed member again, on the data that it left. It does not wait until it is
// healthy.
func (m *Member) Restart(tb testing.TB) {
	tb.Helper()
	m.Kill()
	m.Process = Start(tb, m.command)
}
