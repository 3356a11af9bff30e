package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hooklock/test/testkit"
)

// embeddedAlone is a Hooklock with a small embedded etcd in dir, where an event that comes with
// another payload runs again.
func embeddedAlone(upstream, dir string) string {
	return fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
data_dir: %s
upstream: %s
etcd: {embedded: {quota: 16MiB}, request_timeout: 10s}
routes:
  - {name: hooks, path: "/hooks/{w}", workflow: "{path.w}", idempotency: {in_flight: attach, replay_body: 512KiB, attempts: 0}}
  - {name: held, path: "/held/{w}", workflow: "held/{path.w}", hold: {on_status: [202]}}
`, dir, upstream)
}

func readyz(t *testing.T, h *testkit.Hooklock) string {
	t.Helper()
	return string(testkit.Exchange(t, h.Admin,
		"GET /readyz?verbose HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").Body)
}

// A record that is replaced is history. So much of it is written here that the quota is used up
// several times over.
func TestAnEmbeddedEtcdThatHistoryFillsGoesOnTakingDeliveries(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string {
		return testkit.Reply(404, strings.Repeat("x", 500<<10))
	})
	h := own(t, embeddedAlone(up.URL, t.TempDir()))
	if said := readyz(t, h); !strings.HasPrefix(said, "ok\nembedded etcd: the database has ") ||
		strings.Contains(said, "it is full") {
		t.Errorf("readyz says %q", said)
	}
	for n := range 100 {
		testkit.Until(t, fmt.Sprintf("attempt %d runs and is recorded", n+1), func() bool {
			// the record of an answer that is not kept is replaced by the next
			a := testkit.Post(t, h.Addr, "/hooks/w", "{}", key("1"))
			return a.Status == 404 && a.Decision() == "executed" && a.Header.Get("Hooklock-Recorded") == ""
		})
	}
	h.Stderr.AwaitRecord(t, "etcd.defragmented", nil) // it has made room
}

// passage is one Hooklock with its upstream, and what the upstream was told.
type passage struct {
	t      *testing.T
	up     *testkit.Upstream
	config string // path of the configuration with the embedded etcd
	last   int64  // the largest fencing token
}

// run posts an event that must run, with a larger fencing token than all before.
func (p *passage) run(h *testkit.Hooklock, event string) *testkit.Answer {
	p.t.Helper()
	a := testkit.Post(p.t, h.Addr, "/hooks/w", "{}", key(event))
	passed(p.t, a, 200, "done", "executed")
	received := p.up.Received("/hooks/w")
	token, err := strconv.ParseInt(received[len(received)-1].Header.Get("Hooklock-Fencing-Token"), 10, 64)
	if err != nil || token <= p.last {
		p.t.Errorf("event %s got token %d after %d: %v", event, token, p.last, err)
	}
	p.last = token
	return a
}

// replayed posts a copy of an event that ran as first.
func (p *passage) replayed(h *testkit.Hooklock, event string, first *testkit.Answer) {
	p.t.Helper()
	again := testkit.Post(p.t, h.Addr, "/hooks/w", "{}", key(event))
	passed(p.t, again, 200, "done", "replayed")
	if again.Execution() != first.Execution() {
		p.t.Errorf("event %s: %v, at first %v", event, again, first)
	}
}

func (p *passage) end(h *testkit.Hooklock) {
	p.t.Helper()
	h.Signal(p.t, syscall.SIGTERM)
	if code := h.ExitCode(p.t); code != 0 {
		p.t.Errorf("exit code %d", code)
	}
}

// command runs `hooklock embedded` with args and the configuration, and returns what it says.
func (p *passage) command(code int, args ...string) string {
	p.t.Helper()
	args = append(append([]string{"embedded"}, args...), "--config", p.config)
	c := testkit.Start(p.t, testkit.Command{Program: hooklockProgram, Args: args, Dir: p.t.TempDir()})
	if got := c.ExitCode(p.t); got != code {
		p.t.Fatalf("%v: exit code %d, want %d: %s%s", args, got, code, c.Stdout, c.Stderr)
	}
	return c.Stdout.String() + c.Stderr.String()
}

// newPassage starts a Hooklock with an embedded etcd.
func newPassage(t *testing.T) (*passage, *testkit.Hooklock) {
	t.Helper()
	p := &passage{t: t, up: testkit.NewUpstream(t, func(r *testkit.Received) string {
		if strings.HasPrefix(r.Target, "/held/") {
			return testkit.Reply(202, "taken")
		}
		return testkit.OK("done")
	})}
	config := strings.Replace(embeddedAlone(p.up.URL, t.TempDir()), `admin: {listen: "127.0.0.1:0"}`,
		fmt.Sprintf("admin: {listen: %q}", testkit.FreePort(t)), 1)
	h := own(t, config)
	p.config = h.Config
	passed(t, testkit.Post(t, h.Addr, "/held/w", "{}", key("held")), 202, "taken", "executed")
	p.held(h)
	return p, h
}

// The token that is generated goes with data_dir; one of admin.tokens is taken over by a reload all
// the same.
func TestWhatAnEmbeddedEtcdHasIsSavedAfterItsDataDirWasDeleted(t *testing.T) {
	t.Parallel()
	p, h := newPassage(t)
	first := p.run(h, "1")
	text, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "data_dir: ")
	dir, _, _ := strings.Cut(rest, "\n")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	h.Stderr.AwaitRecord(t, "etcd.deleted", func(r testkit.Record) bool {
		return strings.Contains(r.Text("advice"), "admin.tokens")
	})
	file, token := filepath.Join(t.TempDir(), "backup.db"), filepath.Join(t.TempDir(), "token")
	if said := p.command(1, "backup", file); !strings.Contains(said, "unauthorized") {
		t.Errorf("it said %s", said)
	}
	if err := os.WriteFile(token, []byte(strings.Repeat("secret", 8)), 0o600); err != nil {
		t.Fatal(err)
	}
	added := strings.Replace(string(text), "admin: {",
		fmt.Sprintf("admin: {tokens: [{name: ops, token_file: %s, scopes: [read, write]}], ", token), 1)
	if err := os.WriteFile(p.config, []byte(added), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	p.command(0, "backup", file, "--token-file", token)
	p.end(h)
	if err := os.WriteFile(p.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p.command(0, "restore", file)
	p.replayed(p.again(), "1", first)
}

// A parked event is nowhere but in etcd, and its sender never sends it again: what ends with the
// process must not be taken for received.
func TestNothingIsParkedInAnEmbeddedEtcdWhoseFilesWereDeleted(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	dir := filepath.Join(t.TempDir(), "data")
	h := own(t, embeddedAlone(up.URL, dir)+`
  - {name: parks, path: "/parks/{w}", workflow: "parks/{path.w}", park: {enabled: true, after: 0s}}
park_store: {single_member: true}
`)
	acceptedAs(t, testkit.Post(t, h.Addr, "/parks/before", "{}", key("1")), 202)
	settles(t, h.Addr, "/parks/before", "{}", "1", 200, "done")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	h.Stderr.AwaitRecord(t, "etcd.deleted", func(r testkit.Record) bool {
		return strings.Contains(r.Text("advice"), "nothing is parked")
	})
	passed(t, testkit.Post(t, h.Addr, "/parks/after", "{}", key("2")), 200, "done", "executed")
	if said := readyz(t, h); !strings.HasPrefix(said, "ok\n") || !strings.Contains(said, "its files were deleted") {
		t.Errorf("/readyz says %q", said)
	}
}

func TestAStartWithoutRecordsSaysSo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	config := embeddedAlone(shared.up.URL, dir)
	says := func(level string) {
		t.Helper()
		h := own(t, config)
		if level == "" {
			if line := h.Stderr.String(); strings.Contains(line, "etcd.new") {
				t.Errorf("with its records there it said %s", line)
			}
		} else {
			h.Stderr.AwaitRecord(t, "etcd.new", func(r testkit.Record) bool {
				return r.Text("level") == level && r.Text("dir") == filepath.Join(dir, "etcd")
			})
		}
		h.Signal(t, syscall.SIGTERM)
		if code := h.ExitCode(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	says("INFO")
	says("")
	for _, gone := range []string{"etcd/member", "etcd"} {
		if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
		says("WARN")
		says("")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	says("INFO")
}

// held posts another event to the workflow that newPassage left held.
func (p *passage) held(h *testkit.Hooklock) {
	p.t.Helper()
	if a := testkit.Post(p.t, h.Addr, "/held/w", "{}", key("another")); a.Status != 409 || a.Decision() != "locked" {
		p.t.Errorf("the workflow is not held: %v", a)
	}
}

func (p *passage) again() *testkit.Hooklock {
	p.t.Helper()
	text, err := os.ReadFile(p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	return own(p.t, string(text))
}

func TestABackupOfTheRunningEmbeddedEtcdIsRestoredAndTokensGrow(t *testing.T) {
	t.Parallel()
	p, h := newPassage(t)
	first := p.run(h, "1")
	file := filepath.Join(t.TempDir(), "backup.db")
	if said := p.command(0, "backup", file); !strings.Contains(said, "whole") {
		t.Errorf("it said %s", said)
	}
	h.Stderr.AwaitRecord(t, "admin.audit", func(r testkit.Record) bool { return r.Text("what") == "embedded.backup" })
	p.run(h, "2")
	if said := p.command(1, "restore", file, "--replace"); !strings.Contains(said,
		"in use by another hooklock: stop it") {
		t.Errorf("while it runs: %s", said)
	}
	p.end(h)
	if said := p.command(1, "restore", file); !strings.Contains(said, "has data") ||
		!strings.Contains(said, "--replace") {
		t.Errorf("over data: %s", said)
	}
	for range 2 { // tokens grow also when one backup is restored twice
		if said := p.command(0, "restore", file, "--replace"); !strings.Contains(said, "the data before is in") {
			t.Errorf("it said %s", said)
		}
		h = p.again()
		p.replayed(h, "1", first)
		p.held(h)
		p.run(h, "2") // it is not in the backup
		p.run(h, "3")
		p.end(h)
	}
}

func TestTheEmbeddedEtcdMovesToAClusterThatKnowsEverythingAndTokensGrow(t *testing.T) {
	t.Parallel()
	p, h := newPassage(t)
	first, second := p.run(h, "1"), p.run(h, "2")
	at := testkit.MemberAddresses(t, 3)
	dir := filepath.Join(t.TempDir(), "cluster")
	args := []string{"export", dir}
	for _, a := range at {
		args = append(args, "--member", a.Name+"="+a.Peer)
	}
	if said := p.command(1, args...); !strings.Contains(said, "stop it first") {
		t.Errorf("while it runs: %s", said)
	}
	p.end(h)
	if said := p.command(0, args...); !strings.Contains(said, filepath.Join(dir, "m2")) {
		t.Errorf("it said %s", said)
	}
	endpoints := testkit.Endpoints(testkit.StartEtcdIn(t, etcdProgram, dir, at))
	text, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	h = own(t, strings.Replace(string(text), "embedded: {quota: 16MiB}", "endpoints: ["+strings.Join(endpoints, ", ")+
		"]", 1))
	p.replayed(h, "1", first)
	p.replayed(h, "2", second)
	p.held(h)
	p.run(h, "3")
	if said := p.command(3, "backup", filepath.Join(dir, "x")); !strings.Contains(said, "no_embedded_etcd") {
		t.Errorf("of a cluster: %s", said)
	}
}
