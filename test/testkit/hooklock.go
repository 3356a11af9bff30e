package testkit

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// Hooklock is a running `hooklock serve`.
type Hooklock struct {
	*Process
	// Addr is where senders come in, Admin where health and metrics are: host:port.
	Addr, Admin string
	// Config is the path of its sidecar.yaml; writing to it reloads.
	Config string
}

// Serve writes config as sidecar.yaml into a folder of its own, starts program with it, and waits
// until it is ready for deliveries. The configuration must log JSON at level info; ports may be 0.
func Serve(tb testing.TB, program, config string, env ...string) *Hooklock {
	tb.Helper()
	h := StartServe(tb, program, config, env...)
	h.AwaitReady(tb)
	return h
}

// StartServe is Serve without the wait: for a process that is expected to fail, or to wait for its
// etcd.
func StartServe(tb testing.TB, program, config string, env ...string) *Hooklock {
	tb.Helper()
	return StartServeTo(tb, nil, program, config, env...)
}

// StartServeTo is StartServe with a file as standard error; nil: Stderr keeps it.
func StartServeTo(tb testing.TB, stderr *os.File, program, config string, env ...string) *Hooklock {
	tb.Helper()
	dir := tb.TempDir()
	path := filepath.Join(dir, "sidecar.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	p := Start(tb, Command{Program: program, Args: []string{"serve", "--config", path}, Dir: dir, Env: env,
		Stderr: stderr})
	return &Hooklock{Process: p, Config: path}
}

// AwaitReady learns the addresses from the log, and waits for /readyz.
func (h *Hooklock) AwaitReady(tb testing.TB) {
	tb.Helper()
	started := record(h.AwaitLine(tb, h.Stderr, `"msg":"started"`))
	h.Addr, h.Admin = started.Text("listen"), started.Text("admin")
	client := &http.Client{Timeout: Patience}
	defer client.CloseIdleConnections()
	Until(tb, "/readyz is 200", func() bool {
		res, err := client.Get("http://" + h.Admin + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// Metrics is the page of metrics.
func (h *Hooklock) Metrics(tb testing.TB) string {
	tb.Helper()
	return string(Exchange(tb, h.Admin, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").Body)
}
