package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hooklock/test/testkit"
)

func TestAMachineWithoutAWatchLeftStartsAllTheSameAndReloadsWhenAsked(t *testing.T) {
	t.Parallel()
	const none = `echo 0 >/proc/sys/user/max_inotify_instances && exec "$0" "$@"`
	if out, err := exec.Command("unshare", "--user", "--map-root-user", "sh", "-c", none,
		"true").CombinedOutput(); err != nil {
		t.Skipf("needs unshare (util-linux) and user namespaces: %v: %s", err, out)
	}
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	config := shared.config("no-watch", "")
	write(t, path, config)
	p := testkit.Start(t, testkit.Command{Program: "unshare", Args: []string{"--user", "--map-root-user", "sh", "-c",
		none, hooklockProgram, "serve", "--config", path}, Dir: filepath.Dir(path)})
	h := &testkit.Hooklock{Process: p, Config: path}
	h.AwaitReady(t)
	h.Stderr.AwaitRecord(t, "config.warning", func(r testkit.Record) bool {
		return strings.Contains(r.Text("problem"), "is not watched")
	})
	write(t, path, config+`  - {name: added, path: "/added/{w}", workflow: "added/{path.w}"}`+"\n")
	h.Signal(t, syscall.SIGHUP)
	h.Stderr.AwaitRecord(t, "config.reloaded", func(r testkit.Record) bool {
		return strings.Contains(text(r), "added")
	})
	h.Signal(t, syscall.SIGTERM)
	if code := h.ExitCode(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, h.Stderr)
	}
}

func TestAConfigurationFromAPipeIsReadOnce(t *testing.T) {
	t.Parallel()
	bash := testkit.Program(t, "bash")
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	write(t, path, shared.config(ownPrefix()[1:], ""))
	p := testkit.Start(t, testkit.Command{Program: bash,
		Args: []string{"-c", `exec "$0" serve --config <(cat "$1")`, hooklockProgram, path}, Dir: filepath.Dir(path)})
	h := &testkit.Hooklock{Process: p}
	h.AwaitReady(t)
	h.Stderr.AwaitRecord(t, "config.warning", func(r testkit.Record) bool {
		return strings.Contains(r.Text("problem"), "not a file")
	})
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
	leave(t, h.Process)
	if said := h.Stderr.String(); strings.Contains(said, "config.refused") ||
		strings.Contains(said, "max_user_instances") {
		t.Error(said)
	}
}
