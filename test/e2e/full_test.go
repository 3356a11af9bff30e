package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

// An operator who looks, and one who changes something, learn that etcd takes nothing more, and
// what ends that.
func TestAnEtcdThatIsFullIsNamedByReadyzAndByCommandsThatItRefuses(t *testing.T) {
	t.Parallel()
	e := etcdtest.StartWithQuota(t, 2<<20)
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	h := own(t, fmt.Sprintf(`
listen: 127.0.0.1:0
data_dir: %q
upstream: %s
etcd: {endpoints: ["http://%s"]}
routes:
  - {name: r, path: "/r/{w}", workflow: "r/{path.w}"}
`, t.TempDir(), up.URL, e.Endpoint))
	id := testkit.Post(t, h.Addr, "/r/w", "{}", key("1")).Header.Get("Hooklock-Execution")
	if said := readyz(t, h); !strings.HasPrefix(said, "ok\netcd: http://"+e.Endpoint+" has ") ||
		strings.Contains(said, "full") {
		t.Errorf("readyz says %q", said)
	}
	e.Fill(t)
	testkit.Until(t, "readyz says that etcd is full", func() bool {
		return strings.Contains(readyz(t, h), "it is full, and nothing new is taken")
	})
	for range 3 {
		cmd := exec.CommandContext(t.Context(), hooklockProgram, "executions", "forget", id, "--reason", "run it again",
			"--admin", "http://"+h.Admin)
		cmd.Dir = filepath.Dir(h.Config)
		if said, err := cmd.CombinedOutput(); err == nil ||
			!strings.Contains(string(said), "disarm the NOSPACE alarm") {
			t.Errorf("%v: %s", err, said)
		}
	}
	e.MakeRoom(t)
	testkit.Until(t, "readyz says no more that etcd is full", func() bool {
		return !strings.Contains(readyz(t, h), "full")
	})
}
