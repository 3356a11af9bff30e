package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hooklock/test/testkit"
)

// doctor runs `hooklock doctor` on a configuration and returns its lines, each as result, check and
// text, and its exit code.
func doctor(t *testing.T, config string, args ...string) (lines []finding, code int) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "sidecar.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := testkit.Start(t, testkit.Command{Program: hooklockProgram,
		Args: append([]string{"doctor", "-o", "json"}, args...), Dir: dir})
	code = p.ExitCode(t)
	var out struct{ Checks []finding }
	if err := json.Unmarshal([]byte(p.Stdout.String()), &out); err != nil {
		t.Fatalf("%v in:\n%s%s", err, p.Stdout, p.Stderr)
	}
	return out.Checks, code
}

type finding struct{ Check, Result, Found, Advice string }

// says fails where there is no such finding.
func says(t *testing.T, lines []finding, check, result, text string) {
	t.Helper()
	if !slices.ContainsFunc(lines, func(f finding) bool {
		return strings.HasPrefix(f.Check, check) && f.Result == result && strings.Contains(f.Found+"; "+f.Advice, text)
	}) {
		t.Errorf("no line %q %q with %q in:\n%+v", result, check, text, lines)
	}
}

func doctorConfig(upstream, etcd string) string {
	return fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: %s
etcd: %s
routes: [{name: orders, path: "/hooks/{account}", workflow: "orders/{path.account}"}]
`, upstream, etcd)
}

func TestDoctorFindsAnEtcdClusterFitAndSendsTheUpstreamNothing(t *testing.T) {
	t.Parallel()
	members := testkit.StartEtcd(t, etcdProgram, 3)
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	endpoints := testkit.Endpoints(members)
	lines, code := doctor(t, doctorConfig("http://"+up.Addr,
		fmt.Sprintf("{endpoints: [%s]}", strings.Join(endpoints, ", "))))
	if code != 0 {
		t.Errorf("exit code %d: %+v", code, lines)
	}
	for _, endpoint := range endpoints {
		says(t, lines, "etcd "+endpoint, "ok", "answers after")
		says(t, lines, "etcd release "+endpoint, "ok", "3.")
	}
	says(t, lines, "configuration", "ok", "is valid; routes: 1")
	says(t, lines, "etcd cluster", "ok", "one cluster")
	says(t, lines, "etcd leader", "ok", "known")
	says(t, lines, "etcd members", "ok", "3")
	says(t, lines, "restart in place", "ok", "ends the session of one that was killed")
	says(t, lines, "upstream", "ok", "no request was sent")
	says(t, lines, "retries in front", "skipped", "cannot be seen")
	for _, f := range lines {
		if f.Result == "failed" || f.Result == "warning" {
			t.Errorf("%+v", f)
		}
	}
	if n := len(up.Received("")); n != 0 {
		t.Errorf("the upstream got %d requests", n)
	}
}

func TestDoctorNamesEachEndpointThatIsAwayAndFails(t *testing.T) {
	t.Parallel()
	lines, code := doctor(t, doctorConfig("http://"+shared.up.Addr,
		fmt.Sprintf("{endpoints: [%s, http://127.0.0.1:1], prefix: /doctor}", shared.etcd.Endpoint)))
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	says(t, lines, "etcd "+shared.etcd.Endpoint, "ok", "answers after")
	says(t, lines, "etcd http://127.0.0.1:1", "failed",
		"connection refused; start this member, or correct etcd.endpoints")
	says(t, lines, "etcd lease", "ok", "session_ttl 15s")
}

func TestDoctorSaysWhyARestartHasToWaitForTheSession(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{
		`""`:            "data_dir is empty",
		"/proc/self/fd": "use /proc/self/fd/outcomes: it is on proc, whose file locks may not hold between all that see the file",
	} {
		lines, _ := doctor(t, "data_dir: "+dir+doctorConfig("http://"+shared.up.Addr,
			fmt.Sprintf("{endpoints: [%s], prefix: /restart}", shared.etcd.Endpoint)))
		says(t, lines, "restart in place", "warning",
			want+"; the locks of a process that was killed stay closed for etcd.session_ttl (15s)")
	}
}

func TestDoctorFailsWithoutEtcdAndWithoutUpstream(t *testing.T) {
	t.Parallel()
	lines, code := doctor(t, doctorConfig("http://127.0.0.1:1", "{endpoints: [http://127.0.0.1:1]}"))
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	says(t, lines, "etcd http://127.0.0.1:1", "failed", "connection refused")
	says(t, lines, "etcd use", "skipped", "no endpoint answers")
	says(t, lines, "upstream http://127.0.0.1:1", "failed", "start it, or correct upstream.url")
}

func TestDoctorLooksAtTheEmbeddedEtcdBesideARunningHooklock(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	listen, admin := testkit.FreePort(t), testkit.FreePort(t)
	config := fmt.Sprintf(`
listen: %s
admin: {listen: %q}
data_dir: %q
upstream: http://%s
routes: [{name: orders, path: "/hooks/{account}", workflow: "orders/{path.account}"}]
`, listen, admin, data, shared.up.Addr)
	lines, code := doctor(t, config)
	if code != 0 {
		t.Errorf("exit code %d: %+v", code, lines)
	}
	says(t, lines, "embedded etcd", "ok", "will be made")
	says(t, lines, "listen "+listen, "ok", "free")
	if _, err := os.Stat(data); err == nil {
		t.Error("doctor made the data directory")
	}
	h := testkit.Serve(t, hooklockProgram, config)
	lines, code = doctor(t, config)
	if code != 0 {
		t.Errorf("exit code %d: %+v", code, lines)
	}
	says(t, lines, "embedded etcd", "ok", "is in use by a running hooklock")
	says(t, lines, "running hooklock", "ok", "alive and ready at "+h.Admin)
	says(t, lines, "listen "+listen, "ok", "taken by a running hooklock")
	says(t, lines, "admin.listen "+admin, "ok", "taken by a running hooklock")
}

func TestDoctorDoesNotTakeAnotherServerForAHooklock(t *testing.T) {
	t.Parallel()
	other := strings.TrimPrefix(shared.etcd.Endpoint, "http://") // etcd has a /livez, too
	lines, code := doctor(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: %q}\nupstream: http://%s\n", other,
		shared.up.Addr))
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	says(t, lines, "admin.listen", "failed",
		"address already in use; choose another address, or stop the program that uses it")
}

func TestDoctorExitsWith2OnABadConfigurationAndNamesEveryProblem(t *testing.T) {
	t.Parallel()
	lines, code := doctor(t, "upstrem: x\netcd: {username: u, endpoints: [\"127.0.0.1:2379\"]}\n")
	if code != 2 {
		t.Errorf("exit code %d", code)
	}
	says(t, lines, "configuration", "failed", `sidecar.yaml:1:1: upstrem: unknown key, did you mean "upstream"?`)
	says(t, lines, "configuration", "failed", "etcd.username: needs password_file or password_env beside it")
	says(t, lines, "the rest", "skipped", "needs a valid configuration")
	if _, code = doctor(t, "listen: 127.0.0.1:0\n", "--config", "missing.yaml"); code != 2 {
		t.Errorf("exit code %d without a file", code)
	}
}

// An etcd that is too old is not to be had here: the module has one release of it. So a real one is
// made to tell another release, by something between that changes these bytes and no others.
func TestDoctorRefusesAnEtcdThatIsTooOldAndServeWarnsOfIt(t *testing.T) {
	t.Parallel()
	endpoint := "http://" + pretend(t, strings.TrimPrefix(shared.etcd.Endpoint, "http://"), "3.7.3", "3.6.3")
	lines, code := doctor(t, doctorConfig("http://"+shared.up.Addr,
		fmt.Sprintf("{endpoints: [%s], prefix: /old}", endpoint)))
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	says(t, lines, "etcd release", "failed",
		"etcd 3.6.3 is too old to be relied on: a lease that was revoked can be reported alive; reads can be stale")
	says(t, lines, "etcd release", "failed", "upgrade to 3.7.1, 3.6.14 or 3.5.33")
	says(t, lines, "etcd lease", "ok", "")
	h := testkit.Serve(t, hooklockProgram,
		doctorConfig("http://"+shared.up.Addr, fmt.Sprintf("{endpoints: [%s], prefix: /old}", endpoint)))
	warning := h.Stderr.AwaitRecord(t, "etcd.release", nil)
	if warning.Text("level") != "WARN" || warning.Text("release") != "3.6.3" ||
		!strings.Contains(warning.Text("problem"), "too old to be relied on") {
		t.Errorf("got %v", warning)
	}
	if n := testkit.Post(t, h.Addr, "/hooks/a", "{}", key("1")).Status; n != 200 {
		t.Errorf("status %d: a warning is no refusal", n)
	}
}

// pretend carries connections to target and replaces one text in what comes back by another of the
// same length.
func pretend(t *testing.T, target, text, by string) string {
	t.Helper()
	if len(text) != len(by) {
		t.Fatal("the texts differ in length")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var carrying sync.WaitGroup
	carrying.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				_ = near.Close()
				continue
			}
			end := context.AfterFunc(t.Context(), func() { _ = near.Close(); _ = far.Close() })
			carrying.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
			carrying.Go(func() {
				defer end()
				defer near.Close()
				_, _ = io.Copy(replacing{near, []byte(text), []byte(by)}, far)
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close(); carrying.Wait() }) // the test's context has ended, and the connections with it
	return ln.Addr().String()
}

type replacing struct {
	to       io.Writer
	text, by []byte
}

func (r replacing) Write(p []byte) (int, error) { return r.to.Write(bytes.ReplaceAll(p, r.text, r.by)) }
