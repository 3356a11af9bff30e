package e2e

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// rerunTo runs "hooklock rerun --to", and returns its exit code.
func rerunTo(t *testing.T, h *testkit.Hooklock, to string, args ...string) (code int, out, problems string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), hooklockProgram,
		append([]string{"rerun", "--admin", "http://" + h.Admin, "--to", to}, args...)...)
	cmd.Dir = filepath.Dir(h.Config)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return code, stdout.String(), stderr.String()
}

// TestKeptRequestsGoToAnotherServiceAndItsAnswersAreCompared: nothing runs, and nothing changes.
func TestKeptRequestsGoToAnotherServiceAndItsAnswersAreCompared(t *testing.T) {
	t.Parallel()
	h, _ := keeping(t, "")
	var ids []string
	for i := range 6 {
		path := fmt.Sprint("/kept/to-", i%2)
		a := testkit.Post(t, h.Addr, path+"?n=1", fmt.Sprintf(`{"customer":"to","n":%d}`, i), key(fmt.Sprint("to_", i)),
			"X-Odd:  as  it came", "Connection: X-Hop", "X-Hop: 1", "Hooklock-Execution: forged")
		passed(t, a, 200, "done", "executed")
		isStored(t, h, a.Execution())
		ids = append(ids, a.Execution())
	}
	before := execution(t, h, ids[0])
	called := len(shared.up.Received("/kept/to-0?n=1"))
	other := testkit.NewUpstream(t, func(r *testkit.Received) string {
		switch r.Header.Get("Idempotency-Key") {
		case "to_3":
			return testkit.Reply(500, "not yet")
		case "to_4":
			return ""
		}
		return testkit.OK("done")
	})

	code, out, said := rerunTo(t, h, other.URL, "--label", "customer=to", "--rate", "1000", "--reason", "release 2",
		"-o", "json")
	var report struct {
		Matched, Sent, Same, Differ, Unanswered int
		Statuses                                map[string]int
		Differences                             []struct{ ExecutionID, Why string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, said)
	}
	if code != 1 || report.Matched != 6 || report.Sent != 5 || report.Same != 4 || report.Differ != 1 ||
		report.Unanswered != 1 ||
		report.Statuses["200"] != 4 || report.Statuses["500"] != 1 || len(report.Differences) != 2 {
		t.Errorf("%d\n%s\n%s", code, out, said)
	}
	if !strings.Contains(said, "park.signature: renew is for the configured service alone") {
		t.Errorf("it says nothing of signatures:\n%s", said)
	}
	for workflow := range 2 {
		var order []string
		for _, r := range other.Received(fmt.Sprintf("/kept/to-%d?n=1", workflow)) {
			order = append(order, r.Header.Get("Idempotency-Key"))
			if r.Header.Get("Hooklock-Replay") != "true" || r.Header.Get("Host") != other.Addr ||
				r.Header.Get("X-Forwarded-Host") != "hooks.example.com" ||
				!slices.Contains(r.Lines, "X-Odd:  as  it came") ||
				r.Header.Get("X-Hop") != "" || r.Header.Get("Hooklock-Execution") != "" ||
				!strings.Contains(r.Body, `"customer":"to"`) {
				t.Errorf("the service got\n%s", r.Raw)
			}
		}
		if want := []string{fmt.Sprint("to_", workflow), fmt.Sprint("to_", workflow+2),
			fmt.Sprint("to_", workflow+4)}; !slices.Equal(order, want) {
			t.Errorf("workflow %d: %v", workflow, order)
		}
	}
	if now := execution(t, h, ids[0]); fmt.Sprint(now) != fmt.Sprint(before) ||
		len(shared.up.Received("/kept/to-0?n=1")) != called {
		t.Errorf("it changed: %v\n%v", before, now)
	}
	if audits := cli(t, h, "audit", "list", "-o", "json"); strings.Count(audits, "execution.request") != 6 ||
		strings.Count(audits, `"rerun --to `+other.URL+`: release 2"`) != 6 {
		t.Errorf("the audit has\n%s", audits)
	}

	if code, out, said := rerunTo(t, h, other.URL, ids[0]); code != 0 ||
		!strings.Contains(said, "1 answered as recorded") {
		t.Errorf("%d %s\n%s", code, out, said)
	}
	if code, out, said := rerunTo(t, h, other.URL, "--route", "kept", "--dry-run"); code != 0 ||
		!strings.Contains(said, "6 match") ||
		!strings.Contains(out, ids[0]) {
		t.Errorf("a dry run: %d %s\n%s", code, out, said)
	}
}

func TestKeptRequestsAreNotSentToTheServiceItselfNorBackHere(t *testing.T) {
	t.Parallel()
	h, _ := keeping(t, "")
	a := testkit.Post(t, h.Addr, "/kept/own", `{"customer":"own"}`, key("own"))
	passed(t, a, 200, "done", "executed")
	isStored(t, h, a.Execution())
	_, port, _ := strings.Cut(shared.up.Addr, ":")
	_, adminPort, _ := strings.Cut(h.Admin, ":")
	for to, setting := range map[string]string{
		shared.up.URL: "upstream", "http://localhost:" + port: "upstream", "http://localhost:" + adminPort: "admin",
		"http://0.0.0.0:" + port: "upstream",
	} {
		if code, _, said := rerunTo(t, h, to, a.Execution()); code != 2 ||
			!strings.Contains(said, "a replay goes to another service") ||
			!strings.Contains(said, setting) {
			t.Errorf("--to %s: %d %s", to, code, said)
		}
	}
	if code, _, said := rerunTo(t, h, "http://"+h.Addr, a.Execution()); code != 1 ||
		!strings.Contains(said, "a Hooklock answered") {
		t.Errorf("back here: %d %s", code, said)
	}
	for _, to := range []string{"127.0.0.1:1", "ftp://x", "http://a:b@x", "http://x/path", "http://x?y"} {
		if code, _, said := rerunTo(t, h, to, a.Execution()); code != 2 {
			t.Errorf("--to %s: %d %s", to, code, said)
		}
	}
	if n := len(shared.up.Received("/kept/own")); n != 1 {
		t.Errorf("the service was called %d times", n)
	}
}

// TestAReplayNeverRunsThroughHooklock: a failed event would be the next attempt there. Another
// replica, or a name of a load balancer, is no address that the command could know.
func TestAReplayNeverRunsThroughHooklock(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.Reply(500, "not yet") })
	h := own(t, bare(up.URL, fmt.Sprintf(`
park_store: {dir: %q}
routes:
  - {name: kept, path: "/kept/{test}", event_id: "{header.Idempotency-Key}", requests: {keep: 24h}}
`, filepath.Join(t.TempDir(), "requests"))))
	a := testkit.Post(t, h.Addr, "/kept/failed", `{}`, key("failed"))
	passed(t, a, 500, "not yet", "executed")
	isStored(t, h, a.Execution())
	code, _, said := rerunTo(t, h, "http://"+h.Addr, a.Execution())
	if n := len(up.Received("/kept/failed")); n != 1 || code != 1 ||
		!strings.Contains(said, "name the service itself") {
		t.Errorf("%d calls: %d %s", n, code, said)
	}
	if a := testkit.Post(t, h.Addr, "/elsewhere", `{}`, "hooklock-replay: true"); a.Status != 400 {
		t.Errorf("on the way through: %v", a)
	}
}

// A staging service has a certificate of its own authority more often than not.
func TestKeptRequestsGoToAServiceWithAPrivateAuthority(t *testing.T) {
	t.Parallel()
	h, _ := keeping(t, "")
	a := testkit.Post(t, h.Addr, "/kept/tls", `{"customer":"tls"}`, key("tls"))
	passed(t, a, 200, "done", "executed")
	isStored(t, h, a.Execution())
	other := testkit.NewTLSUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	conn, err := tls.Dial("tcp", other.Addr, other.TLS)
	if err != nil {
		t.Fatal(err)
	}
	chain := conn.ConnectionState().PeerCertificates
	_ = conn.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	signed := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain[len(chain)-1].Raw})
	if err := os.WriteFile(file, signed, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		to   string
		code int
		says string
		more []string
	}{
		{other.URL, 0, "1 answered as recorded", []string{"--to-ca-file", file}},
		{other.URL, 1, "1 without a whole answer", nil},
		{other.URL, 2, "no such file", []string{"--to-ca-file", file + ".not"}},
		{"http://" + other.Addr, 2, "is for https", []string{"--to-ca-file", file}},
	} {
		args := append([]string{"--label", "customer=tls", "--reason", "release 2"}, c.more...)
		if code, out, said := rerunTo(t, h, c.to, args...); code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%s %v: code %d\n%s\n%s", c.to, c.more, code, out, said)
		}
	}
}
