package cluster

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// Replica is a hooklock process.
type Replica struct {
	*testkit.Hooklock
	// Door is where senders come in, host:port.
	Door string
}

// Config is what a replica is started with, as far as the suite cares.
type Config struct {
	Endpoints  []string // empty: the embedded etcd
	DataDir    string   // empty: a fresh one; "-": none
	Prefix     string
	Upstream   string        // host:port
	SessionTTL time.Duration // 0 = 3 s
	// Timeout of the upstream and of connecting to it; 0 = 30 s.
	Timeout      time.Duration
	ResponseBody string // limits.response_body; empty = 8MiB
	ParkStore    string // park_store in YAML's flow style; empty = {single_member: true}
	Routes       string // the routes' YAML; empty = Route("hook", "")
}

// Route is a route for /<name>/{workflow}: the workflow is what the path says, the event ID is the
// Idempotency-Key. more is further settings in YAML's flow style, such as "idempotency:
// {on_unknown: block}".
func Route(name, more string) string {
	line := fmt.Sprintf("  - {name: %s, path: \"/%s/{workflow}\", workflow: \"{path.workflow}\"", name, name)
	if more != "" {
		line += ", " + more
	}
	return line + "}\n"
}

// StartReplica starts a hooklock process and returns when it takes deliveries and has a session.
func StartReplica(tb testing.TB, b Binaries, c Config) *Replica {
	tb.Helper()
	r := BeginReplica(tb, b, c)
	AwaitMore(tb, r.Stderr, 0, `"session.opened"`)
	return r
}

// BeginReplica does not wait for the session.
func BeginReplica(tb testing.TB, b Binaries, c Config) *Replica {
	tb.Helper()
	if c.DataDir == "" {
		c.DataDir = filepath.Join(tb.TempDir(), "data")
	}
	r := &Replica{Hooklock: testkit.StartServe(tb, b.Hooklock, c.yaml())}
	var started struct{ Listen, Admin string }
	if err := json.Unmarshal([]byte(r.AwaitLine(tb, r.Stderr, `"msg":"started"`)), &started); err != nil {
		tb.Fatalf("read the line of the start: %v", err)
	}
	r.Door, r.Addr, r.Admin = started.Listen, started.Listen, started.Admin
	tb.Cleanup(func() {
		if lines := r.Stderr.Lines(); tb.Failed() {
			tb.Logf("the last lines of hooklock %d:\n%s", r.Pid(), strings.Join(lines[max(0, len(lines)-8):], "\n"))
		}
	})
	return r
}

// BeginFailing starts a process that is expected to end by itself.
func BeginFailing(tb testing.TB, b Binaries, c Config) *testkit.Hooklock {
	tb.Helper()
	return testkit.StartServe(tb, b.Hooklock, c.yaml())
}

func (c *Config) yaml() string {
	if c.SessionTTL == 0 {
		c.SessionTTL = 3 * time.Second
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.ResponseBody == "" {
		c.ResponseBody = "8MiB"
	}
	if c.Routes == "" {
		c.Routes = Route("hook", "lock: {release_delay: 0s}")
	}
	if c.ParkStore == "" {
		c.ParkStore = "{single_member: true}"
	}
	single := ""
	if len(c.Endpoints) == 0 {
		single = ", embedded: {single_replica: true}"
	}
	endpoints := make([]string, len(c.Endpoints))
	for i, e := range c.Endpoints {
		endpoints[i] = "http://" + e
	}
	return fmt.Sprintf(`listen: 127.0.0.1:0
data_dir: %q
upstream: {url: "http://%s", timeout: %s, connect_timeout: %s}
limits: {response_body: %s}
etcd: {endpoints: [%s], prefix: %q, session_ttl: %s%s}
admin: {listen: "127.0.0.1:0"}
park_store: %s
routes:
%s`, strings.TrimPrefix(c.DataDir, "-"), c.Upstream, c.Timeout, c.Timeout, c.ResponseBody, quoted(endpoints), prefixOr(c.Prefix), c.SessionTTL, single, c.ParkStore, c.Routes)
}

func quoted(list []string) string {
	for i := range list {
		list[i] = fmt.Sprintf("%q", list[i])
	}
	return strings.Join(list, ", ")
}

func prefixOr(prefix string) string {
	if prefix == "" {
		return "/hooklock"
	}
	return prefix
}
