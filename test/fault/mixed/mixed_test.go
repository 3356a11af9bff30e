package mixed

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

// stage is an etcd, an upstream that works until it is told to end, and a process of each release.
type stage struct {
	etcd   *testkit.Member
	up     *testkit.Upstream
	came   chan *testkit.Received
	answer chan string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	if old == "" {
		t.Skipf("the release before could not be built: %s", whyNot)
	}
	s := &stage{etcd: testkit.StartEtcd(t, etcdProgram, 1)[0], came: make(chan *testkit.Received, 100),
		answer: make(chan string, 100)}
	s.up = testkit.NewUpstream(t, func(r *testkit.Received) string {
		if strings.HasPrefix(r.Target, "/quick/") {
			return testkit.OK("quick " + r.Header.Get("Idempotency-Key"))
		}
		s.came <- r
		select {
		case a := <-s.answer:
			return a
		case <-r.Context.Done():
			return ""
		}
	})
	return s
}

func (s *stage) start(t *testing.T, program string) *testkit.Hooklock {
	t.Helper()
	return testkit.Serve(t, program, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
data_dir: %q
upstream: %s
etcd: {endpoints: [%q], prefix: /mixed, session_ttl: 5s}
shutdown_timeout: 5s
routes:
  - {name: quick, path: "/quick/{w}", workflow: "quick/{path.w}", idempotency: {retention: 87600h}}
  - {name: slow, path: "/slow/{w}", workflow: "slow/{path.w}", lock: {release_delay: 0s}, idempotency: {retention: 87600h}}
  - {name: wait, path: "/wait/{w}", workflow: "slow/{path.w}", lock: {strategy: wait, wait_timeout: 15s}, idempotency: {retention: 87600h}}
`, t.TempDir(), s.up.URL, s.etcd.Endpoint))
}

// bothWays runs a test with each release as the one that comes first.
func bothWays(t *testing.T, test func(t *testing.T, s *stage, first, second *testkit.Hooklock)) {
	t.Parallel()
	for name, programs := range map[string][2]*string{"the older one first": {&old, &young},
		"the younger one first": {&young, &old}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			test(t, s, s.start(t, *programs[0]), s.start(t, *programs[1]))
		})
	}
}

func key(name string) string { return "Idempotency-Key: " + name }

func is(t *testing.T, a *testkit.Answer, status int, decision, body string) {
	t.Helper()
	if a == nil || a.Status != status || a.Decision() != decision || body != "" && string(a.Body) != body {
		t.Fatalf("want %d %s %q, got %v", status, decision, body, a)
	}
}

func TestEachReplaysWhatTheOtherSettled(t *testing.T) {
	bothWays(t, func(t *testing.T, s *stage, first, second *testkit.Hooklock) {
		is(t, testkit.Post(t, first.Addr, "/quick/a", "{}", key("1")), 200, "executed", "quick 1")
		is(t, testkit.Post(t, second.Addr, "/quick/a", "{}", key("1")), 200, "replayed", "quick 1")
		is(t, testkit.Post(t, second.Addr, "/quick/a", `{"another":1}`, key("1")), 422, "mismatch", "")
		is(t, testkit.Post(t, second.Addr, "/quick/a", "{}", key("2")), 200, "executed", "quick 2")
		is(t, testkit.Post(t, first.Addr, "/quick/a", "{}", key("2")), 200, "replayed", "quick 2")
	})
}

func TestEachRespectsTheOthersLock(t *testing.T) {
	bothWays(t, func(t *testing.T, s *stage, first, second *testkit.Hooklock) {
		running := testkit.GoPost(t, first.Addr, "/slow/a", "{}", key("1"))
		token := testkit.Receive(t, "a request", s.came).Header.Get("Hooklock-Fencing-Token")
		is(t, testkit.Post(t, second.Addr, "/slow/a", "{}", key("1")), 409, "in_flight", "")
		is(t, testkit.Post(t, second.Addr, "/slow/a", "{}", key("2")), 409, "locked", "")
		waiting := testkit.GoPost(t, second.Addr, "/wait/a", "{}", key("3"))
		s.answer <- testkit.OK("first")
		is(t, testkit.Receive(t, "the first answer", running), 200, "executed", "first")
		next := testkit.Receive(t, "the one that waited", s.came).Header.Get("Hooklock-Fencing-Token")
		if len(next) < len(token) || len(next) == len(token) && next <= token {
			t.Errorf("fencing token %s after %s", next, token)
		}
		is(t, testkit.Post(t, first.Addr, "/slow/a", "{}", key("4")), 409, "locked", "")
		s.answer <- testkit.OK("second")
		is(t, testkit.Receive(t, "the second answer", waiting), 200, "executed", "second")
		is(t, testkit.Post(t, second.Addr, "/slow/a", "{}", key("1")), 200, "replayed", "first")
		is(t, testkit.Post(t, first.Addr, "/wait/a", "{}", key("3")), 200, "replayed", "second")
	})
}

func TestEachReleaseReapsWhatTheOtherLeftBehind(t *testing.T) {
	bothWays(t, func(t *testing.T, s *stage, first, second *testkit.Hooklock) {
		cut := testkit.GoPost(t, first.Addr, "/slow/a", "{}", key("1"))
		testkit.Receive(t, "a request", s.came)
		first.Kill()
		testkit.Receive(t, "the end of the connection", cut)
		waiting := testkit.GoPost(t, second.Addr, "/wait/a", "{}", key("2"))
		testkit.Receive(t, "the one that waited", s.came)
		s.answer <- testkit.OK("stray") // the dead one's call may still take it
		s.answer <- testkit.OK("after")
		if a := testkit.Receive(t, "its answer", waiting); a == nil || a.Status != 200 {
			t.Fatalf("got %v", a)
		}
		again := testkit.GoPost(t, second.Addr, "/slow/a", "{}", key("1"))
		attempt := testkit.Receive(t, "the event whose outcome is unknown", s.came).Header.Get("Hooklock-Attempt")
		if attempt != "2" {
			t.Errorf("attempt %s", attempt)
		}
		s.answer <- testkit.OK("again")
		s.answer <- testkit.OK("again")
		is(t, testkit.Receive(t, "the second attempt", again), 200, "executed", "")
	})
}

// The release before leaves, in this order, a settled event, an event whose outcome is unknown, a
// lock and a place in the queue of a process that died. test/e2e reads it with the current release;
// this test writes it, when it is asked to.
func TestRecordTheLayoutOfTheReleaseBefore(t *testing.T) {
	if !*record {
		t.Skip("nothing was asked for: -record writes test/e2e/testdata/layout")
	}
	s := newStage(t)
	h := s.start(t, old)
	is(t, testkit.Post(t, h.Addr, "/quick/settled", "{}", key("1")), 200, "executed", "quick 1")
	unknown := testkit.GoPost(t, h.Addr, "/slow/unknown", "{}", key("1"))
	testkit.Receive(t, "a request", s.came)
	s.answer <- "" // hangs up
	is(t, testkit.Receive(t, "the answer", unknown), 502, "upstream_failed", "")
	cut := testkit.GoPost(t, h.Addr, "/slow/running", "{}", key("1"))
	testkit.Receive(t, "a request", s.came)
	queued := testkit.GoPost(t, h.Addr, "/wait/running", "{}", key("2"))
	client := etcdtest.Dial(t, strings.TrimPrefix(s.etcd.Endpoint, "http://"))
	var dump []stored
	testkit.Until(t, "everything is in etcd", func() bool {
		dump = read(t, client)
		return len(dump) == 4
	})
	h.Signal(t, syscall.SIGKILL)
	testkit.Receive(t, "the end of a connection", cut)
	testkit.Receive(t, "the end of a connection", queued)
	text, err := json.MarshalIndent(map[string]any{"commit": before[:7], "keys": dump}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("../../e2e/testdata/layout/before.json", append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// stored is a key and its value: neither is text.
type stored struct{ Key, Value []byte }

// read is everything below the prefix but the sessions, which are over when the layout is read, and
// the leases with their list.
func read(t *testing.T, client *clientv3.Client) []stored {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	got, err := client.Get(ctx, "/mixed/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	var found []stored
	for _, kv := range got.Kvs {
		if key := string(kv.Key); !strings.Contains(key, "/v1/sessions/") && !strings.Contains(key, "/v1/leases/") {
			found = append(found, stored{kv.Key, kv.Value})
		}
	}
	return found
}
