package e2e

import (
	"fmt"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// short is a configuration whose sessions do not outlive much.
func short(s *stage, endpoint, prefix string) string {
	return fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: %s
etcd: {endpoints: [%q], prefix: /%s, session_ttl: 3s, request_timeout: 2s}
shutdown_timeout: 5s
%s`, s.up.URL, endpoint, prefix, routes)
}

// shows waits for a line of the page of metrics.
func shows(t *testing.T, h *testkit.Hooklock, line string) {
	t.Helper()
	testkit.Until(t, line, func() bool { return strings.Contains(h.Metrics(t), "\n"+line+"\n") })
}

func TestAReplicaThatReapsAnExecutionLogsAndCountsIt(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	work := shared.holds(t, path)
	dying := testkit.Serve(t, hooklockProgram, short(shared, shared.etcd.Endpoint, "buried"))
	heir := own(t, short(shared, shared.etcd.Endpoint, "buried"))
	testkit.GoPost(t, dying.Addr, path, "{}", key("1"))
	id := work.await(t).Header.Get("Hooklock-Execution")
	dying.Kill()
	r := heir.Stderr.AwaitRecord(t, "lock.expired", nil)
	if r.Text("execution") != id || r.Text("route") != "plain" || r.Text("workflow") != strings.TrimPrefix(path, "/") ||
		r.Text("level") != "WARN" || r.Number("held_ms") <= 0 {
		t.Errorf("%v", r)
	}
	shows(t, heir, `hooklock_executions_total{outcome="buried",route="plain"} 1`)
	shows(t, heir, `hooklock_lock_losses_total{reason="session_lost"} 0`)
}

func TestALockIsLostWhereEtcdDoesNotConfirmItsSession(t *testing.T) {
	t.Parallel()
	etcd := testkit.StartEtcd(t, etcdProgram, 1)[0]
	path := at(t, "plain")
	work := shared.holds(t, path)
	h := own(t, short(shared, etcd.Endpoint, "unheard"))
	sent := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	etcd.Freeze(t)
	refused{503, "lock_lost", "unknown", "lock_lost"}.check(t, testkit.Receive(t, "the answer", sent))
	etcd.Thaw(t)
	if r := h.Stderr.AwaitRecord(t, "lock.lost", nil); r.Text("reason") != "unheard" {
		t.Errorf("%v", r)
	}
	shows(t, h, `hooklock_lock_losses_total{reason="unheard"} 1`)
	shows(t, h, `hooklock_deliveries_total{decision="lock_lost",route="plain",would=""} 1`)
}

func TestALockThatIsReleasedByForceIsALoss(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	work := shared.holds(t, path)
	h := own(t, shared.config("forced-loss", ""))
	sent := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	id := work.await(t).Header.Get("Hooklock-Execution")
	cli(t, h, "locks", "release", strings.TrimPrefix(path, "/"), "--execution", id, "--reason", "test")
	if a := testkit.Receive(t, "the answer", sent); a.Decision() != "lock_lost" {
		t.Errorf("%v", a)
	}
	if r := h.Stderr.AwaitRecord(t, "lock.lost", nil); r.Text("reason") != "released" {
		t.Errorf("%v", r)
	}
	shows(t, h, `hooklock_lock_losses_total{reason="released"} 1`)
	audit := h.Stderr.AwaitRecord(t, "admin.audit", nil)
	if audit.Text("what") != "lock.force_release" || audit.Text("why") != "test" {
		t.Errorf("%v", audit)
	}
}

func TestARefusedConfigurationShowsUntilTheNextOneIsTaken(t *testing.T) {
	t.Parallel()
	config := shared.config("stale", "")
	h := own(t, config)
	shows(t, h, "hooklock_config_last_reload_successful 1")
	write(t, h.Config, config+"nonsense: true\n")
	shows(t, h, `hooklock_config_reloads_total{result="refused"} 1`)
	shows(t, h, "hooklock_config_last_reload_successful 0")
	write(t, h.Config, config+"  - {name: added, path: /added}\n")
	shows(t, h, "hooklock_config_last_reload_successful 1")
	shows(t, h, `hooklock_route_info{mode="enforce",route="added"} 1`)
	shows(t, h, `hooklock_deliveries_total{decision="executed",route="added",would=""} 0`)
}
