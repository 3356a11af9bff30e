package behind

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hooklock/test/testkit"
)

// hidden is a request that a stranger may put into a body.
const hidden = "GET /hidden HTTP/1.1\r\nHost: hidden\r\n\r\n"

// bodies are what is sent. Some could be taken for requests by a server that does not skip them.
var bodies = []struct {
	name, body string
	chunks     bool // it comes in chunks, which pass through on unmatched paths
	own        bool // it gets a connection of its own
}{
	{name: "short", body: `{"n":1}`},
	{name: "one KiB", body: `{"n":"` + strings.Repeat("x", 1<<10) + `"}`},
	{name: "one MiB", body: `{"n":"` + strings.Repeat("x", 1<<20) + `"}`},
	{name: "a request behind an empty line", body: "{}\r\n\r\n" + hidden},
	{name: "nothing but a request", body: hidden, own: true},
	{name: "one MiB of requests", body: strings.Repeat(hidden, 1<<20/len(hidden)), own: true},
	{name: "a short body in chunks", body: `{"n":1}`, chunks: true},
	{name: "requests in chunks", body: strings.Repeat(hidden, 100), chunks: true},
	{name: "one MiB of requests in chunks", body: strings.Repeat(hidden, 1<<20/len(hidden)), chunks: true},
}

// TestAKnownServerNeverTakesABodyForARequest: eight callers, three handlers and an application that
// refuses. Each answer is that to its request, the server has no request in its log that was not
// sent, and connections are shared.
func TestAKnownServerNeverTakesABodyForARequest(t *testing.T) {
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			backend := testkit.NewUpstream(t, func(r *testkit.Received) string {
				if strings.HasPrefix(r.Target, "/refuses/") {
					return "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
				}
				return testkit.OK("read")
			})
			listen := testkit.FreePort(t)
			log := s.start(t, listen, backend.Addr)
			said := testkit.Exchange(t, listen,
				"GET /leaves/first HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").Header.Get("Server")
			if !strings.HasPrefix(said, s.says) {
				t.Fatalf("it says %q", said)
			}
			hook := testkit.Serve(t, hooklockProgram, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
data_dir: %q
upstream: http://%s
unmatched: pass
routes: [{name: all, path: "/{kind}/hooks/{n}", workflow: "{path.n}", event_id: "{path.n}", lock: {release_delay: 0s}}]
`, t.TempDir(), listen))
			d := &deliveries{server: s, hook: hook, sent: map[string]int{"/leaves/first": 1, "/leaves/second": 1}}
			testkit.Exchange(t, hook.Addr, "GET /leaves/second HTTP/1.1\r\nHost: a\r\nIdempotency-Key: second\r\n\r\n")
			all := map[string]int{} // on shared connections, by handler
			for _, b := range bodies {
				for _, kind := range []string{"reads", "leaves", "early", "refuses"} {
					from := len(log.lines(t))
					d.sendMany(t, kind, b.name, b.body, b.chunks)
					shared := 0
					for _, line := range log.lines(t)[from:] {
						if n := strings.Fields(line)[2]; n != "0" && n != "1" ||
							n == "1" && !strings.HasPrefix(s.says, "nginx") {
							shared++
						}
					}
					t.Logf("%s, %s: %d of %d requests on a shared connection", kind, b.name, shared, callers*rounds)
					all[kind] += shared
					if b.own && shared > 0 {
						t.Errorf("%s, %s: %d shared a connection", kind, b.name, shared)
					}
				}
			}
			for kind, n := range all {
				if n == 0 {
					t.Errorf("%s: no connection was shared", kind)
				}
			}
			for _, line := range log.lines(t) {
				target := strings.Fields(line)[0]
				if target == "*" { // Apache wakes its children so
					continue
				}
				if d.sent[target]--; d.sent[target] < 0 {
					t.Errorf("it has a request in its log that was not sent: %s", line)
				}
			}
			if m := hook.Metrics(t); !strings.Contains(m, "hooklock_upstream_reuse_ended 0") ||
				!strings.Contains(m, "hooklock_upstream_known 1") {
				t.Errorf("the reuse has ended:\n%s", hook.Stderr)
			}
		})
	}
}

const callers, rounds = 8, 5

type deliveries struct {
	server *server
	hook   *testkit.Hooklock
	n      atomic.Int32
	mu     sync.Mutex
	sent   map[string]int
}

// sendMany sends a body as a delivery and as what passes through, by each of the callers.
func (d *deliveries) sendMany(t *testing.T, kind, name, body string, chunks bool) {
	t.Helper()
	want := map[string]int{"reads": 200, "leaves": 200, "early": d.server.early, "refuses": 400}[kind]
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range rounds {
				target := fmt.Sprintf("/%s/hooks/%d", kind, d.n.Add(1))
				if chunks || i%2 == 1 {
					target = strings.Replace(target, "hooks", "passes/through", 1)
				}
				d.mu.Lock()
				d.sent[target]++
				d.mu.Unlock()
				request := testkit.Request(target, body)
				if chunks {
					request = strings.Replace(testkit.Request(target, ""), "Content-Length: 0",
						"Transfer-Encoding: chunked", 1) +
						strconv.FormatInt(int64(len(body)), 16) + "\r\n" + body + "\r\n0\r\n\r\n"
				}
				a := testkit.Exchange(t, d.hook.Addr, request)
				if a.Status != want || a.Header.Get("X-Echo") != target {
					t.Errorf("%s, %s, %s: status %d, want %d, the answer to %q: %s", kind, name, target, a.Status, want,
						a.Header.Get("X-Echo"), a.Body)
				}
			}
		})
	}
	all.Wait()
}
