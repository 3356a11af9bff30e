package e2e

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"hooklock/proxy/wiretest"
	"hooklock/test/testkit"
)

// careless is Python's own HTTP server with a handler that leaves the body of a GET unread: what is in it is the next request. It answers
// /slow when the request behind that has come.
const careless = `
import http.server, select
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def say(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
    def do_GET(self):
        if self.path == "/slow":
            select.select([self.connection], [], [])
        self.say(self.path)
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.say("ran " + self.headers["Hooklock-Key"])
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
`

// startPython starts the careless server and returns its URL.
func startPython(t *testing.T) string {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "python3", "-c", careless)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		end()
		t.Skipf("needs python3: %v", err)
	}
	t.Cleanup(func() {
		end()
		_ = cmd.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Skipf("needs a python3 that works: %v", err)
	}
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}

// TestAStrangerCannotWriteAnEventsOutcome: the service runs what a stranger hid in a body, and answers that when the event is under way.
// proxy tests the same with a service that is not Python's.
func TestAStrangerCannotWriteAnEventsOutcome(t *testing.T) {
	t.Parallel()
	h := own(t, strings.Replace(shared.config("careless", ""), shared.up.URL, startPython(t), 1))
	hidden := "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"
	for i := range 5 {
		if a := testkit.Exchange(t, h.Addr, testkit.RequestWith("GET", "/x", hidden)); a.Status != 200 || string(a.Body) != "/x" {
			t.Fatalf("the stranger's own answer is %v", a)
		}
		first := testkit.Post(t, h.Addr, at(t, "plain"), "{}", key(fmt.Sprint(i)))
		if first.Status != 200 || !strings.HasPrefix(string(first.Body), "ran ") || first.Decision() != "executed" {
			t.Fatalf("the event's answer is %v", first)
		}
		passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key(fmt.Sprint(i))), 200, string(first.Body), "replayed")
	}
}

func TestConnectionsOfDeliveriesAreKeptWhereTheServiceReadsBodies(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]int{"": 3, "reuse_after_body: true, ": 1} {
		up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
		config := strings.Replace(shared.config("reuse", ""), shared.up.URL, up.URL, 1)
		h := own(t, strings.Replace(config, "timeout: 30s", setting+"timeout: 30s", 1))
		for i := range 3 {
			passed(t, testkit.Post(t, h.Addr, at(t, "off"), "{}", key(fmt.Sprint(i))), 200, "done", "executed")
		}
		if up.Conns() != want {
			t.Errorf("%q: %d connections, want %d", setting, up.Conns(), want)
		}
		if a := testkit.Post(t, h.Addr, "/unmatched", "{}"); a.Status != 200 || up.Conns() != want+1 {
			t.Errorf("%q: an unmatched request went over a connection of deliveries: %v", setting, a)
		}
	}
}

// Only deliveries that a sender has signed go over connections that carried a body, as long as the service stays silent behind an empty line.
func TestConnectionsOfSignedDeliveriesAreKeptByThemselves(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	h := own(t, bare(up.URL, `
routes:
  - {name: signed, path: /signed, workflow: signed, verify: {scheme: hmac, header: X-Sig, secret_env: S}}
  - {name: open, path: /open, workflow: open}
  - {name: observed, path: /observed, mode: observe, workflow: observed, verify: {scheme: hmac, header: X-Sig, secret_env: S}}
`), "S="+planted)
	n := 0
	post := func(path, signed string) {
		t.Helper()
		n++
		body := fmt.Sprintf(`{"n":%d}`, n)
		sig := hex.EncodeToString(mac([]byte(planted), signed+body))
		if a := testkit.Exchange(t, h.Addr, testkit.RequestWith("POST", path, body, "X-Sig: "+sig)); a.Status != 200 {
			t.Fatal(a)
		}
	}
	for again := false; !again; {
		before := up.Conns()
		post("/signed", "")
		again = up.Conns() == before
		if n > 10_000 {
			t.Fatal("no connection is used again")
		}
	}
	if out := cli(t, h, "status"); !strings.Contains(out, "connections behind a body: kept, 1 requests") || !strings.Contains(h.Metrics(t), "hooklock_upstream_reused_total 1") {
		t.Errorf("status says\n%s", out)
	}
	for _, path := range []string{"/open", "/observed"} {
		before := up.Conns()
		for range 100 { // they take longer than the last signed one needs to be proven
			post(path, "wrong")
		}
		if up.Conns() != before+100 {
			t.Errorf("%s: what nobody signed went over a connection of signed deliveries", path)
		}
	}
}

// A service that refuses the empty line is told of it once: the log, the status, doctor and a metric say that its connections are not kept.
func TestAServiceThatRefusesTheEmptyLineGetsOne(t *testing.T) {
	t.Parallel()
	var empty atomic.Int32
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		if _, err := c.ReadRequest(); err != nil || c.Say(testkit.OK("done")) != nil {
			return
		}
		if _, err := io.ReadFull(c, make([]byte, 2)); err == nil {
			empty.Add(1)
			_ = c.Say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		}
	})
	config := fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: %q}
upstream: http://%s
etcd: {endpoints: [%q], prefix: %s, request_timeout: 10s}
routes: [{name: signed, path: /signed, workflow: signed, verify: {scheme: hmac, header: X-Sig, secret_env: S}}]
`, testkit.FreePort(t), up.Addr, shared.etcd.Endpoint, ownPrefix())
	h := own(t, config, "S="+planted)
	n := 0
	post := func() {
		n++
		body := fmt.Sprintf(`{"n":%d}`, n)
		sig := hex.EncodeToString(mac([]byte(planted), body))
		if a := testkit.Exchange(t, h.Addr, testkit.RequestWith("POST", "/signed", body, "X-Sig: "+sig)); a.Status != 200 {
			t.Fatal(a)
		}
	}
	post()
	testkit.Until(t, "the reuse to end", func() bool { return strings.Contains(h.Metrics(t), "hooklock_upstream_reuse_ended 1") })
	for range 5 {
		post()
	}
	if up.Conns() != n || empty.Load() != 1 {
		t.Errorf("%d connections for %d deliveries, %d empty lines", up.Conns(), n, empty.Load())
	}
	const why = `sent "HTTP/1.1 400 Bad Request"`
	testkit.Until(t, "the line in the log", func() bool { return strings.Contains(h.Stderr.String(), "upstream.reuse_ended") })
	if lines := strings.Count(h.Stderr.String(), "upstream.reuse_ended"); lines != 1 || !strings.Contains(h.Stderr.String(), "HTTP/1.1 400 Bad Request") {
		t.Errorf("the log says it %d times", lines)
	}
	if out := cli(t, h, "status"); !strings.Contains(out, "none is kept since") || !strings.Contains(out, why) {
		t.Errorf("status says\n%s", out)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, planted)
	lines, _ := doctor(t, strings.Replace(config, "secret_env: S", fmt.Sprintf("secret_file: %q", secret), 1))
	says(t, lines, "upstream connections", "warning", why)
}
