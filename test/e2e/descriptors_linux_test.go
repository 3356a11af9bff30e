package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hooklock/test/testkit"
)

// withFiles is a program that runs hooklock with a limit on open files.
func withFiles(t *testing.T, files int) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "hooklock")
	script := fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec '%s' \"$@\"\n", files, hooklockProgram)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil { //nolint:gosec // it has to run
		t.Fatal(err)
	}
	return program
}

func TestAStartWithTooFewOpenFilesIsRefused(t *testing.T) {
	t.Parallel()
	p := testkit.StartServe(t, withFiles(t, 63), embedded(t.TempDir(), ""))
	if code, said := p.ExitCode(t), p.Stderr.String(); code != 1 ||
		!strings.Contains(said, "may have 63 open files and needs 64") {
		t.Errorf("exit code %d: %s", code, said)
	}
	h := testkit.Serve(t, withFiles(t, 64), embedded(t.TempDir(), ""))
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
	leave(t, h.Process)
}

func TestMoreConnectionsThanOpenFilesEndNothing(t *testing.T) {
	t.Parallel()
	h := testkit.Serve(t, withFiles(t, 256), embedded(t.TempDir(), "limits: {header_timeout: 60s}"))
	h.Stderr.AwaitRecord(t, "config.warning", func(r testkit.Record) bool {
		problem := r.Text("problem")
		return strings.HasPrefix(problem, "limits.max_connections: 10000 ") &&
			strings.Contains(problem, "the limit is 256, so 60 are taken")
	})
	for range 300 { // each has begun a request, so none makes room
		testkit.Dial(t, h.Addr).Say("POST / HTTP/1.1\r\nHost: a\r\n")
	}
	h.Stderr.AwaitRecord(t, "connections.full", nil)
	page := h.Metrics(t) // the admin listener has its own
	if !strings.Contains(page, `hooklock_connections_open{listener="listen"} 60`) ||
		!strings.Contains(page, `hooklock_accept_failures_total{listener="listen"} 0`) {
		t.Error(pageLines(page, "hooklock_connections"), pageLines(page, "hooklock_accept"))
	}
	leave(t, h.Process)
}

func TestAListenerOutlivesAWantOfDescriptors(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("files", ""))
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
	var before unix.Rlimit
	if err := unix.Prlimit(h.Pid(), unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(h.Pid(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: before.Max}, nil); err != nil {
		t.Fatal(err)
	}
	waiting := map[string]*testkit.Conn{}
	for name, addr := range map[string]string{"listen": h.Addr, "admin.listen": h.Admin} {
		waiting[name] = testkit.Dial(t, addr) // the kernel takes it
		failed := h.Stderr.AwaitRecord(t, "accept.failed", func(r testkit.Record) bool {
			return r.Text("listener") == name
		})
		if failed.Number("failures") == 0 || !strings.Contains(failed.Text("error"), "too many open files") {
			t.Errorf("%v", failed)
		}
	}
	if err := unix.Prlimit(h.Pid(), unix.RLIMIT_NOFILE, &before, nil); err != nil {
		t.Fatal(err)
	}
	c := waiting["listen"]
	c.Say(testkit.Request(at(t, "plain"), "{}", key("2")))
	passed(t, c.Answer("POST"), 200, "done", "executed")
	c = waiting["admin.listen"]
	c.Say("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if page := string(c.Answer("GET").Body); strings.Contains(page,
		`hooklock_accept_failures_total{listener="listen"} 0`) ||
		strings.Contains(page, `hooklock_accept_failures_total{listener="admin.listen"} 0`) {
		t.Error(pageLines(page, "hooklock_accept"))
	}
}
