package checks

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hooklock/deploy/tools/dist"
)

// A unit that is too hard kills the process at the first call that it forbids. No systemd runs in a
// test, so what the program calls is compared with what the unit allows.
func TestTheUnitAllowsWhatHooklockCalls(t *testing.T) {
	strace, analyze := tool(t, "strace", "strace"), tool(t, "systemd-analyze", "systemd")
	s := checkout(t)
	unit := read(t, filepath.Join(s.Root, "deploy/systemd/hooklock.service"))
	trace := traced(t, s, strace)
	allowed := allows(t, analyze, regexp.MustCompile(`(?m)^SystemCallFilter=(.*)$`).FindAllStringSubmatch(unit, -1))
	called := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\d+ +([a-z_0-9]+)\(`).FindAllStringSubmatch(trace, -1) {
		called[m[1]] = true
	}
	if len(called) < 20 {
		t.Fatalf("strace saw %v alone", called)
	}
	for name := range called {
		if !allowed[name] {
			t.Errorf("SystemCallFilter forbids %s", name)
		}
	}
	families := strings.Fields(setting(t, unit, "RestrictAddressFamilies"))
	for _, m := range regexp.MustCompile(`socket\((AF_\w+)`).FindAllStringSubmatch(trace, -1) {
		// etcd's embed package asks for the default route while it is initialised, and does without
		// an answer.
		if m[1] != "AF_NETLINK" && !slices.Contains(families, m[1]) {
			t.Errorf("RestrictAddressFamilies forbids %s", m[1])
		}
	}
}

// traced runs a delivery through Hooklock with an embedded etcd, and returns what strace wrote.
func traced(t *testing.T, s dist.Source, strace string) string {
	t.Helper()
	dir := t.TempDir()
	program, log := filepath.Join(dir, "hooklock"), filepath.Join(dir, "trace")
	if err := s.Build(dist.Host(), program); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	config := fmt.Sprintf(
		"data_dir: %q\nlisten: %s\nadmin: {listen: \"127.0.0.1:0\"}\nupstream: http://%s\nroutes: [{name: a, path: /a}]\n", filepath.Join(dir, "data"), address, freeAddress(t))
	path := filepath.Join(dir, "sidecar.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(strace, "-f", "-qq", "-o", log, program, "serve", "--config", path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end := func() {
		if ended {
			return
		}
		ended = true
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("hooklock under strace: %v", err)
		}
	}
	defer end()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			t.Fatal("no delivery was decided")
		case <-tick.C:
		}
		// The upstream is not there, which Hooklock can only say when the store has decided.
		res, err := http.Post("http://"+address+"/a", "application/json", strings.NewReader("{}"))
		if err != nil {
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusBadGateway {
			tick.Stop()
			break
		}
	}
	end()
	return read(t, log)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// allows reads filters: groups of calls, the ones after ~ are taken away.
func allows(t *testing.T, analyze string, filters [][]string) map[string]bool {
	t.Helper()
	out, err := exec.Command(analyze, "syscall-filter", "--no-pager").Output()
	if err != nil {
		t.Fatal(err)
	}
	groups, name := map[string][]string{}, ""
	for line := range strings.Lines(string(out)) {
		switch word := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "@"):
			name = word
		case strings.HasPrefix(line, "    ") && !strings.HasPrefix(word, "#"):
			groups[name] = append(groups[name], word)
		}
	}
	allowed := map[string]bool{}
	var set func(group string, value bool)
	set = func(group string, value bool) {
		for _, member := range groups[group] {
			if strings.HasPrefix(member, "@") {
				set(member, value)
			} else {
				allowed[member] = value
			}
		}
	}
	for _, f := range filters {
		rest, less := strings.CutPrefix(f[1], "~")
		for group := range strings.FieldsSeq(rest) {
			set(group, !less)
		}
	}
	set("@default", true)
	return allowed
}
