package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

// The layout that the release before left in an etcd when it was killed: test/fault/mixed recorded
// it. Two neighbouring releases share one etcd, so it has to be understood to the letter.
func TestWhatTheReleaseBeforeLeftIsUnderstood(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/layout/before.json")
	if err != nil {
		t.Fatal(err)
	}
	var layout struct {
		Commit string
		Keys   []struct{ Key, Value []byte }
	}
	if err := json.Unmarshal(text, &layout); err != nil || len(layout.Keys) != 4 {
		t.Fatalf("%d keys, %v", len(layout.Keys), err)
	}
	member := testkit.StartEtcd(t, etcdProgram, 1)[0]
	client := etcdtest.Dial(t, strings.TrimPrefix(member.Endpoint, "http://"))
	session, err := client.Grant(t.Context(), 600) // the dead one's; its place in the queue goes with it
	if err != nil {
		t.Fatal(err)
	}
	var puts []clientv3.Op
	for _, kv := range layout.Keys {
		var options []clientv3.OpOption
		if bytes.Contains(kv.Key, []byte("/v1/queue/")) {
			options = append(options, clientv3.WithLease(session.ID))
		}
		puts = append(puts, clientv3.OpPut(string(kv.Key), string(kv.Value), options...))
	}
	if _, err := client.Txn(t.Context()).Then(puts...).Commit(); err != nil {
		t.Fatal(err)
	}
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		return testkit.OK("attempt " + r.Header.Get("Hooklock-Attempt"))
	})
	h := own(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
data_dir: %q
upstream: %s
etcd: {endpoints: [%q], prefix: /mixed, request_timeout: 10s}
routes:
  - {name: quick, path: "/quick/{w}", workflow: "quick/{path.w}"}
  - {name: slow, path: "/slow/{w}", workflow: "slow/{path.w}", lock: {release_delay: 0s}}
  - {name: wait, path: "/wait/{w}", workflow: "slow/{path.w}", lock: {strategy: wait, wait_timeout: 15s}}
`, t.TempDir(), up.URL, member.Endpoint))
	// A settled event is answered with the answer of then.
	passed(t, testkit.Post(t, h.Addr, "/quick/settled", "{}", key("1")), 200, "quick 1", "replayed")
	refused{422, "idempotency_key_reused", "no", "mismatch"}.check(t,
		testkit.Post(t, h.Addr, "/quick/settled", `{"x":1}`, key("1")))
	// An unknown outcome runs again, as the next attempt.
	passed(t, testkit.Post(t, h.Addr, "/slow/unknown", "{}", key("1")), 200, "attempt 2", "executed")
	// The lock of a process that is dead goes to who comes, after those that wait before; what it
	// ran is unknown.
	behind := testkit.GoPost(t, h.Addr, "/wait/running", "{}", key("3"))
	testkit.Until(t, "it waits", func() bool { return waiting(t, h) == 1 })
	if _, err := client.Revoke(t.Context(), session.ID); err != nil { // and so the session runs out
		t.Fatal(err)
	}
	passed(t, testkit.Receive(t, "its answer", behind), 200, "attempt 1", "executed")
	passed(t, testkit.Post(t, h.Addr, "/wait/running", "{}", key("2")), 200, "attempt 1", "executed")
	passed(t, testkit.Post(t, h.Addr, "/slow/running", "{}", key("1")), 200, "attempt 2", "executed")
	if n := len(up.Received("")); n != 4 {
		t.Errorf("the upstream got %d requests", n)
	}
}
