package cluster

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

// Island is a hooklock process in a network of its own, with two cables to this one: senders and
// the upstream are at the end of the first, etcd at the end of the second. The network ends with
// the process.
type Island struct {
	*testkit.Process
	Door string
	tb   testing.TB
}

// The addresses of the two cables, ours and the island's.
const (
	ourSide, islandSide   = "10.213.7.1", "10.213.7.2"
	etcdSide, islandsEtcd = "10.213.7.5", "10.213.7.6"
	senderCable           = "hlfault-s"
	etcdCable             = "hlfault-e"
)

// NewIsland starts the process; its configuration's endpoints and upstream are put at the ends of
// the cables. It skips the test where networks cannot be made.
func NewIsland(tb testing.TB, b Binaries, c Config) *Island {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("needs root, to make a network")
	}
	for _, tool := range []string{"ip", "unshare", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			tb.Skipf("needs %s, to make a network", tool)
		}
	}
	if out, err := exec.Command("unshare", "-n", "true").CombinedOutput(); err != nil {
		tb.Skipf("no network can be made here: %s", out)
	}
	etcd, upstream := c.Endpoints[0], c.Upstream
	etcdPort, upstreamPort := port(tb), port(tb)
	c.Endpoints, c.Upstream = []string{etcdSide + ":" + etcdPort}, ourSide+":"+upstreamPort
	c.DataDir = filepath.Join(tb.TempDir(), "data")
	door := port(tb)
	path := filepath.Join(tb.TempDir(), "sidecar.yaml")
	text := strings.Replace(c.yaml(), "listen: 127.0.0.1:0", "listen: 0.0.0.0:"+door, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	i := &Island{tb: tb, Door: islandSide + ":" + door}
	i.Process = testkit.Start(tb, testkit.Command{
		Program: "/bin/sh", Args: []string{"-c",
			fmt.Sprintf("exec unshare -n sh -c 'ip link set lo up && exec %s serve --config %s'", b.Hooklock, path)},
	})
	i.AwaitLine(tb, i.Stderr, `"msg":"started"`)
	i.cable(senderCable, ourSide, islandSide)
	i.cable(etcdCable, etcdSide, islandsEtcd)
	etcdtest.NewWireAt(tb, c.Endpoints[0], etcd)
	etcdtest.NewWireAt(tb, c.Upstream, upstream)
	return i
}

func port(tb testing.TB) string {
	tb.Helper()
	_, port, err := net.SplitHostPort(testkit.FreePort(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return port
}

// cable lays one from here to the island.
func (i *Island) cable(name, ours, theirs string) {
	i.tb.Helper()
	pid := strconv.Itoa(i.Pid())
	for _, line := range []string{
		"ip link add " + name + " type veth peer name " + name + " netns " + pid,
		"ip addr add " + ours + "/30 dev " + name,
		"ip link set " + name + " up",
		"nsenter -t " + pid + " -n ip addr add " + theirs + "/30 dev " + name,
		"nsenter -t " + pid + " -n ip link set " + name + " up",
	} {
		i.run(line)
	}
}

// Unplug takes the cable to etcd out: packets vanish, and no connection is closed. Plug puts it
// back.
func (i *Island) Unplug() { i.tb.Helper(); i.run("ip link set " + etcdCable + " down") }

// Plug ends Unplug.
func (i *Island) Plug() {
	i.tb.Helper()
	i.run("ip link set " + etcdCable + " up")
}

func (i *Island) run(line string) {
	i.tb.Helper()
	words := strings.Fields(line)
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		i.tb.Fatalf("%s: %v: %s", line, err, out)
	}
}
