package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

// said is what a command printed, and its exit code.
type said struct {
	code             int
	stdout, problems string
}

// hooklockSays runs the program to its end.
func hooklockSays(t *testing.T, args ...string) said {
	t.Helper()
	p := testkit.Start(t, testkit.Command{Program: hooklockProgram, Args: args, Dir: t.TempDir()})
	return said{p.ExitCode(t), p.Stdout.String(), p.Stderr.String()}
}

func TestCtrlCEndsACommandThatWaits(t *testing.T) {
	t.Parallel()
	arrived, over := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-over
	}))
	defer server.Close()
	defer close(over)
	p := testkit.Start(t, testkit.Command{Program: hooklockProgram,
		Args: []string{"executions", "get", "exec_a", "--wait", "5m", "--admin", server.URL}, Dir: t.TempDir()})
	testkit.Receive(t, "the request", arrived)
	p.Signal(t, syscall.SIGINT)
	if code := p.ExitCode(t); code != 1 || p.Stderr.String() != "hooklock: interrupted\n" || p.Stdout.String() != "" {
		t.Errorf("exit code %d: %s%s", code, p.Stdout, p.Stderr)
	}
}

func TestTheCommandLineSpeaksTLSAndHasARightOfItsOwn(t *testing.T) {
	t.Parallel()
	authority := etcdtest.NewAuthority(t)
	server, person := authority.Issue("admin"), authority.Issue("ops")
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	reader, writer := file("reader", strings.Repeat("r", 32)+"\n"), file("writer", strings.Repeat("w", 32)+"\n")
	config := fmt.Sprintf(`
listen: 127.0.0.1:0
upstream: %s
etcd: {endpoints: [%q], prefix: %s, request_timeout: 10s}
admin:
  listen: %s
  tls: {cert_file: %q, key_file: %q, client_ca_file: %q}
  tokens:
    - {name: reader, token_file: %q, workflows: ["seen/*"]}
    - {name: writer, token_file: %q, scopes: [read, write]}
routes: [{name: seen, path: "/seen/{w}", workflow: "seen/{path.w}"}, {name: other, path: "/other/{w}", workflow: "other/{path.w}"}]
`, shared.up.URL, shared.etcd.Endpoint, ownPrefix(), testkit.FreePort(t), server.CertFile, server.KeyFile, authority.CAFile, reader, writer)
	h := testkit.StartServe(t, hooklockProgram, config)
	started := h.Stderr.AwaitRecord(t, "started", nil)
	h.Stderr.AwaitRecord(t, "session.opened", nil)
	h.Addr, h.Admin = started.Text("listen"), started.Text("admin")
	seen := testkit.Post(t, h.Addr, "/seen/a", "{}", key("1")).Execution()
	other := testkit.Post(t, h.Addr, "/other/a", "{}", key("1")).Execution()
	at, trust := "--admin=https://"+h.Admin, "--ca-file="+authority.CAFile
	cert, private := "--cert-file="+person.CertFile, "--key-file="+person.KeyFile
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"plain text", []string{"executions", "get", seen, "--admin=http://" + h.Admin}, 1,
			"one with TLS begins with https://"},
		{"an authority that is not known", []string{"executions", "get", seen, at}, 1,
			"name the authority of its certificate with --ca-file"},
		{"no certificate", []string{"executions", "get", seen, at, trust}, 1,
			"it asks for a client certificate: give --cert-file and --key-file"},
		{"no token", []string{"executions", "get", seen, at, trust, cert, private}, 1, "unauthorized: "},
		{"what it may see", []string{"executions", "get", seen, at, trust, cert, private, "--token-file", reader}, 0,
			"SUCCESS"},
		{"what it may not see", []string{"executions", "get", other, at, trust, cert, private, "--token-file", reader},
			3, "execution_not_found"},
		{"what it may not do", []string{"executions", "forget", seen, "--reason=x", at, trust, cert, private,
			"--token-file", reader}, 1, "its scopes are in admin.tokens of the server"},
		{"what another may do", []string{"executions", "forget", seen, "--reason=x", at, trust, cert, private,
			"--token-file", writer}, 0, "is forgotten"},
		{"where its configuration says", []string{"executions", "get", other, "--config", h.Config, cert, private,
			"--token-file", writer}, 0, "SUCCESS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := hooklockSays(t, c.args...)
			if got.code != c.code || !strings.Contains(got.stdout+got.problems, c.says) {
				t.Errorf("got %+v", got)
			}
		})
	}
	lines, code := doctor(t, config)
	says(t, lines, "running hooklock", "ok", "shows the certificate of admin.tls at https://"+h.Admin)
	says(t, lines, "admin certificate", "warning", "renew it")
	says(t, lines, "admin token reader", "ok", "has mode 0600")
	says(t, lines, "admin API", "skipped", "client certificate")
	if code != 0 {
		t.Errorf("exit code %d: %+v", code, lines)
	}
}
