package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"hooklock/test/testkit"
)

// stage is what most tests share: one etcd, one upstream that each test tells what to answer, and
// two proxies in front of it. Tests do not disturb one another because each has a path, and so a
// workflow, of its own.
type stage struct {
	etcd *testkit.Member
	up   *testkit.Upstream
	// Both wait long for upstream and sender, because these share their machine; strict has small
	// limits.
	patient, strict *testkit.Hooklock

	mu   sync.Mutex
	acts map[string]testkit.Handler
}

var shared *stage

func newStage(all *testkit.Run) *stage {
	s := &stage{acts: map[string]testkit.Handler{}}
	s.etcd = testkit.StartEtcd(all, etcdProgram, 1)[0]
	s.up = testkit.NewUpstream(all, s.act)
	s.patient = testkit.Serve(all, hooklockProgram, s.config("patient", ""))
	s.strict = testkit.Serve(all, hooklockProgram, s.config("strict", `
unmatched: reject
limits: {request_body: 64KiB, response_body: 64KiB, request_header: 4KiB}
`))
	return s
}

// routes has one route for each policy that tests look at. The lock is free at once after an
// unknown outcome, but for the route that tests the delay.
const routes = `
routes:
  - {name: plain, path: "/plain/{w}", workflow: "plain/{path.w}", lock: {release_delay: 0s}}
  - {name: body-id, path: "/body-id/{w}", workflow: "body-id/{path.w}", event_id: "{header.Idempotency-Key ?? body.event.id}"}
  - {name: by-query, path: /by-query, workflow: "by-query/{query.account}"}
  - {name: mismatch-replay, path: "/mismatch-replay/{w}", workflow: "r/{path.w}", idempotency: {on_mismatch: replay_unsigned}}
  - {name: named-credentials, path: "/named-credentials/{w}", workflow: "nc/{path.w}", idempotency: {on_mismatch: replay_unsigned, credentials: [X-Tenant]}}
  - {name: mismatch-execute, path: "/mismatch-execute/{w}", workflow: "e/{path.w}", idempotency: {on_mismatch: execute}}
  - {name: keep, path: "/keep/{w}", workflow: "keep/{path.w}", lock: {release_delay: 0s}, idempotency: {keep: [2xx, 404], unknown: [502, 504]}}
  - {name: block, path: "/block/{w}", workflow: "block/{path.w}", lock: {release_delay: 0s}, idempotency: {on_unknown: block}}
  - {name: cooling, path: "/cooling/{w}", workflow: "cooling/{path.w}", lock: {release_delay: 8s}}
  - {name: cold, path: "/cold/{w}", workflow: "cold/{path.w}", lock: {release_delay: 50s}}
  - {name: short, path: "/short/{w}", workflow: "short/{path.w}", lock: {max_duration: 400ms, release_delay: 0s}}
  - {name: small, path: "/small/{w}", workflow: "small/{path.w}", idempotency: {replay_body: 16B}}
  - {name: observe, path: "/observe/{w}", workflow: "observe/{path.w}", mode: observe}
  - {name: needs-id, path: "/needs-id/{w}", workflow: "needs-id/{path.w}", on_missing_event_id: reject}
  - {name: pass-id, path: "/pass-id/{w}", workflow: "pass-id/{path.w}", on_missing_event_id: pass}
  - {name: off, path: "/off/{w}", workflow: "off/{path.w}", idempotency: {enabled: false}}
  - {name: hosts, match: {path: "/hosts/{w}", hosts: [hooks.example.com]}, workflow: "hosts/{path.w}"}
  - {name: wait, path: "/wait/{w}", workflow: "wait/{path.w}", lock: {strategy: wait, wait_timeout: 20s, max_waiting: 8}}
  - {name: wait-short, path: "/wait-short/{w}", workflow: "ws/{path.w}", lock: {strategy: wait, wait_timeout: 300ms}}
  - {name: skip, path: "/skip/{w}", workflow: "skip/{path.w}", lock: {strategy: skip}}
  - {name: none, path: "/none/{w}", workflow: "none/{path.w}", lock: {strategy: none}}
  - {name: attach, path: "/attach/{w}", workflow: "attach/{path.w}", idempotency: {in_flight: attach}}
  - {name: hold, path: "/hold/{w}", workflow: "hold/{path.w}", lock: {release_delay: 0s}, idempotency: {on_unknown: block}, hold: {on_status: [202], ttl: 40s}}
  - {name: hold-attach, path: "/hold-attach/{w}", workflow: "ha/{path.w}", idempotency: {in_flight: attach}, hold: {on_status: [202], ttl: 40s}}
  - {name: hold-observe, path: "/hold-observe/{w}", workflow: "ho/{path.w}", mode: observe, hold: {on_status: [202], ttl: 40s}}
  - {name: hold-short, path: "/hold-short/{w}", workflow: "hs/{path.w}", lock: {max_duration: 6s, release_delay: 0s}, hold: {on_status: [202], ttl: 40s}}
  - {name: respond, path: "/respond/{w}", workflow: "respond/{path.w}", lock: {release_delay: 0s},
     respond: {locked: 503, in_flight: 425, mismatch: 409, upstream_failed: 503, rejected: 422}}
`

// prefixes counts those that ownPrefix gave.
var prefixes atomic.Int64

// ownPrefix is a part of the shared etcd in which nobody has been, also when a test is run again.
func ownPrefix() string { return fmt.Sprintf("/own-%d", prefixes.Add(1)) }

// config is a whole sidecar.yaml in front of the shared upstream and etcd.
func (s *stage) config(name, top string) string {
	return s.head(s.up.URL, "/"+name) + "shutdown_timeout: 5s\n" + top + "\n" + routes
}

// head is how a sidecar.yaml begins, with the shared etcd. Each transaction has a second, and what
// was provably not applied is tried again until request_timeout: on a busy machine more often than
// the default has room for.
func (s *stage) head(upstream, prefix string) string {
	return fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {url: %q, timeout: 30s}
etcd: {endpoints: [%q], prefix: %s, request_timeout: 10s}
`, upstream, s.etcd.Endpoint, prefix)
}

// bare is a sidecar.yaml with the given rest, in front of upstream and with a prefix of its own.
func bare(upstream, rest string) string {
	return shared.head(upstream, ownPrefix()) + strings.TrimPrefix(rest, "\n")
}

// act is the upstream: what the test said for this target or this path, else 200.
func (s *stage) act(r *testkit.Received) string {
	path, _, _ := strings.Cut(r.Target, "?")
	s.mu.Lock()
	handle := s.acts[r.Target]
	if handle == nil {
		handle = s.acts[path]
	}
	s.mu.Unlock()
	if handle == nil {
		return testkit.OK("done")
	}
	return handle(r)
}

// on says what the upstream does with requests for path, which no other test has, until the test
// ends.
func (s *stage) on(t *testing.T, path string, handle testkit.Handler) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acts[path] = handle
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.acts, path)
	})
}

// answers gives the answers in turn, the last one again and again.
func answers(texts ...string) testkit.Handler {
	var mu sync.Mutex
	return func(*testkit.Received) string {
		mu.Lock()
		defer mu.Unlock()
		text := texts[0]
		if len(texts) > 1 {
			texts = texts[1:]
		}
		return text
	}
}

// held is an upstream that works until the test lets it end.
type held struct {
	arrived chan *testkit.Received
	answer  chan string
	gone    <-chan struct{}
}

func newHeld(t *testing.T) *held {
	return &held{arrived: make(chan *testkit.Received, 100), answer: make(chan string, 100), gone: t.Context().Done()}
}

// holds lets requests for path, which no other test has, wait until the test lets them end.
func (s *stage) holds(t *testing.T, path string) *held {
	t.Helper()
	h := newHeld(t)
	s.on(t, path, h.handle)
	return h
}

// reached fails the test where another number of requests for path than n reached the shared
// upstream.
func reached(t *testing.T, path string, n int) {
	t.Helper()
	if got := len(shared.up.Received(path)); got != n {
		t.Errorf("%d requests for %s reached the upstream, want %d", got, path, n)
	}
}

func (h *held) handle(r *testkit.Received) string {
	h.arrived <- r
	select {
	case answer := <-h.answer:
		return answer
	case <-h.gone:
	case <-r.Context.Done():
	}
	return ""
}

// await waits for a request to be at work.
func (h *held) await(t *testing.T) *testkit.Received {
	t.Helper()
	return testkit.Receive(t, "a request at the upstream", h.arrived)
}

var notPath = regexp.MustCompile("[^a-z0-9]+")

// at is a path of this test's own on a route of that name.
func at(t *testing.T, route string) string {
	return "/" + route + "/" + strings.Trim(notPath.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
}

// own starts a Hooklock of this test's own. At the end it must stop as asked, with nothing in its
// log that may not be there.
func own(t *testing.T, config string, env ...string) *testkit.Hooklock {
	t.Helper()
	h := testkit.Serve(t, hooklockProgram, config, env...)
	t.Cleanup(func() { leave(t, h.Process) })
	return h
}

// leave ends a process, if it has not ended, and looks at what it said.
func leave(t *testing.T, p *testkit.Process) {
	t.Helper()
	if fault := stopped(t, p); fault != "" {
		t.Error(fault)
	}
}

// stopped asks a process to end, if it has not ended, and says what is wrong with its end or with
// what it said.
func stopped(tb testing.TB, p *testkit.Process) string {
	select {
	case <-p.Done():
	default:
		p.Signal(tb, syscall.SIGTERM)
		if code := p.ExitCode(tb); code != 0 {
			return fmt.Sprintf("exit code %d after SIGTERM:\n%s", code, tail(p.Stderr.String()))
		}
	}
	return faults(p)
}

// planted is in every secret that tests send: in Authorization, in Cookie, in signatures and in
// bodies.
const planted = "planted-secret"

// faults says what is in a process's output that may never be there.
func faults(p *testkit.Process) string {
	for _, line := range append(p.Stderr.Lines(), p.Stdout.Lines()...) {
		for _, bad := range []string{planted, "DATA RACE", `"msg":"panic"`, "goroutine "} {
			if strings.Contains(line, bad) {
				return fmt.Sprintf("the output has %q: %s\n%s", bad, line, tail(p.Stderr.String()))
			}
		}
	}
	return ""
}

func tail(s string) string { return s[max(0, len(s)-8000):] }

// refused says that an answer is a problem that Hooklock itself made, with these facts.
type refused struct {
	status   int
	code     string
	executed string
	decision string
}

func (want refused) check(t *testing.T, a *testkit.Answer) {
	t.Helper()
	p := a.JSON()
	switch {
	case a.Status != want.status || p["code"] != want.code || p["executed"] != want.executed:
		t.Fatalf("want %+v, got %v", want, a)
	case a.Header.Get("Content-Type") != "application/problem+json":
		t.Errorf("content type of %v", a)
	case a.Decision() != want.decision:
		t.Errorf("decision %q, want %q", a.Decision(), want.decision)
	case p["status"] != float64(want.status) || p["title"] == "" || p["type"] == "" || p["detail"] == "":
		t.Errorf("problem has not all of its members: %s", a.Body)
	}
	retry, has := p["retryAfter"].(float64)
	if wants := want.status == 409 || want.status == 429 || want.status == 503; has != wants {
		t.Errorf("retryAfter in %s", a.Body)
	}
	if has && (retry < 1 || retry > 60 || a.Header.Get("Retry-After") != fmt.Sprint(int(retry))) {
		t.Errorf("Retry-After %q, retryAfter %v", a.Header.Get("Retry-After"), retry)
	}
}

// undecided says that a sender delivers again, and nothing was executed meanwhile: somebody has the
// lock, or etcd could not decide in time.
func undecided(a *testkit.Answer) bool { return a.Status == 409 || a.Decision() == "store_unavailable" }

// check that a whole answer of the upstream came with this decision.
func passed(t *testing.T, a *testkit.Answer, status int, body, decision string) {
	t.Helper()
	if a.Status != status || string(a.Body) != body || a.Cut != nil || a.Decision() != decision {
		t.Fatalf("want %d %q %s, got %v", status, body, decision, a)
	}
}

func key(name string) string { return "Idempotency-Key: " + name }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
