package e2e

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"hooklock/proxy/wiretest"
	"hooklock/test/testkit"
)

// careless is Python's own HTTP server with a handler that leaves the body of a GET unread: what is
// in it is the next request. It answers /slow when the request behind that has come.
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

// TestAStrangerCannotWriteAnEventsOutcome: the service runs what a stranger hid in a body, and
// answers that when the event is under way. proxy tests the same with a service that is not
// Python's.
func TestAStrangerCannotWriteAnEventsOutcome(t *testing.T) {
	t.Parallel()
	h := own(t, strings.Replace(shared.config("careless", ""), shared.up.URL, startPython(t), 1))
	hidden := "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"
	for i := range 5 {
		if a := testkit.Exchange(t, h.Addr, testkit.RequestWith("GET", "/x", hidden)); a.Status != 200 ||
			string(a.Body) != "/x" {
			t.Fatalf("the stranger's own answer is %v", a)
		}
		first := testkit.Post(t, h.Addr, at(t, "plain"), "{}", key(fmt.Sprint(i)))
		if first.Status != 200 || !strings.HasPrefix(string(first.Body), "ran ") || first.Decision() != "executed" {
			t.Fatalf("the event's answer is %v", first)
		}
		passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key(fmt.Sprint(i))), 200, string(first.Body),
			"replayed")
	}
}

// named is an answer of a server that says what it is.
func named(server string) string {
	return "HTTP/1.1 200 OK\r\nServer: " + server + "\r\nContent-Length: 4\r\n\r\ndone"
}

// shares sends requests one after the other until two have shared a connection to up; it returns
// false if none of many does.
func shares(up *testkit.Upstream, send func()) bool {
	for range 100 {
		before := up.Conns()
		if send(); up.Conns() == before {
			return true
		}
	}
	return false
}

func TestConnectionsOfDeliveriesAreKeptWhereTheServiceReadsBodies(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]bool{"": false, "reuse_after_body: true, ": true} {
		up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
		config := strings.Replace(shared.config("reuse", ""), shared.up.URL, up.URL, 1)
		h := own(t, strings.Replace(config, "timeout: 30s", setting+"timeout: 30s", 1))
		n := 0
		if got := shares(up, func() {
			n++
			passed(t, testkit.Post(t, h.Addr, at(t, "off"), "{}", key(fmt.Sprint(n))), 200, "done", "executed")
		}); got != want {
			t.Errorf("%q: deliveries share connections: %v", setting, got)
		}
		if shares(up, func() { testkit.Post(t, h.Addr, "/unmatched", "{}") }) {
			t.Errorf("%q: unmatched requests share connections", setting)
		}
	}
}

// With a known server a connection takes whatever has a body; nothing is sent that is no request.
func TestConnectionsToAKnownServerAreKept(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"nginx/1.22.1", "gunicorn"} {
		up := testkit.NewUpstream(t, func(*testkit.Received) string { return named(server) })
		h := own(t, bare(up.URL, `
routes:
  - {name: signed, path: /signed, workflow: signed, verify: {scheme: hmac, header: X-Sig, secret_env: S}}
  - {name: open, path: /open, workflow: open}
  - {name: observed, path: /observed, mode: observe, workflow: observed, verify: {scheme: hmac, header: X-Sig, secret_env: S}}
unmatched: pass
`), "S="+planted)
		n := 0
		known := server != "gunicorn"
		for _, path := range []string{"/signed", "/open", "/observed", "/unmatched"} {
			if got := shares(up, func() {
				n++
				body := fmt.Sprintf(`{"n":%d}`, n)
				sig := hex.EncodeToString(mac([]byte(planted), body))
				if a := testkit.Exchange(t, h.Addr,
					testkit.RequestWith("POST", path, body, "X-Sig: "+sig)); a.Status != 200 {
					t.Fatal(a)
				}
			}); got != known {
				t.Errorf("%s of %s shares connections: %v", path, server, got)
			}
		}
		out := cli(t, h, "status")
		if known && (!strings.Contains(out, "connections behind a body: kept, nginx drops what is left of a body") ||
			!strings.Contains(h.Metrics(t), "hooklock_upstream_known 1")) ||
			!known && (!strings.Contains(out,
				`connections behind a body: none is kept, nothing is known of a service that says "gunicorn"`) ||
				!strings.Contains(h.Metrics(t), "hooklock_upstream_known 0")) {
			t.Errorf("status says\n%s", out)
		}
	}
}

// A parser that has taken something else for a request refuses that: an event which gets its answer
// has an unknown outcome. The log, the status, doctor and a metric say that connections are not
// kept any more.
func TestARefusalOfAParserIsNoOutcomeOfAnEvent(t *testing.T) {
	t.Parallel()
	up := wiretest.Serve(t, func(c *wiretest.Conn) {
		for answer := testkit.OK(
			"done"); ; answer = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" {
			if _, err := c.ReadRequest(); err != nil || c.Say(answer) != nil {
				return
			}
		}
	})
	config := fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: %q}
upstream: {url: "http://%s", reuse_after_body: true}
etcd: {endpoints: [%q], prefix: %s, request_timeout: 10s}
routes: [{name: plain, path: /plain, workflow: plain, event_id: "{body.n}", lock: {release_delay: 0s}}]
`, testkit.FreePort(t), up.Addr, shared.etcd.Endpoint, ownPrefix())
	h := own(t, config)
	n := 0
	post := func() *testkit.Answer {
		n++
		return testkit.Post(t, h.Addr, "/plain", fmt.Sprintf(`{"n":%d}`, n))
	}
	a := post()
	for a.Status == 200 && n < 100 {
		a = post()
	}
	refused{502, "upstream_failed", "unknown", "upstream_failed"}.check(t, a)
	if !strings.Contains(string(a.Body), "the upstream answered 400 as a parser does") {
		t.Errorf("the sender is told %s", a.Body)
	}
	testkit.Until(t, "the line in the log", func() bool {
		return strings.Contains(h.Stderr.String(), "upstream.reuse_ended")
	})
	if !strings.Contains(h.Metrics(t), "hooklock_upstream_reuse_ended 1") ||
		strings.Count(h.Stderr.String(), "upstream.reuse_ended") != 1 {
		t.Errorf("the log says\n%s", h.Stderr)
	}
	// over a new connection
	passed(t, testkit.Post(t, h.Addr, "/plain", fmt.Sprintf(`{"n":%d}`, n)), 200, "done", "executed")
	for range 3 {
		if a := post(); a.Status != 200 {
			t.Error(a)
		}
	}
	const why = "answered 400 to a request and closed the connection"
	if out := cli(t, h, "status"); !strings.Contains(out, "none is kept since") || !strings.Contains(out, why) {
		t.Errorf("status says\n%s", out)
	}
	lines, _ := doctor(t, config)
	says(t, lines, "upstream connections", "warning", why)
}
