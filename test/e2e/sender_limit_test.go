package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

func TestASenderThatIsAboutToSwitchOffTheEndpointIsSeenAndSparedFurtherFailures(t *testing.T) {
	t.Parallel()
	h := own(t, bare(shared.up.URL, `
shutdown_timeout: 5s
park_store: {single_member: true}
routes:
  - {name: gitlab, path: "/limit/{w}", workflow: "{path.w}", preset: gitlab, verify: {secret_env: SIGNED}, park: {enabled: true, on: [locked]}, on_sender_limit: park}
`), "SIGNED="+planted)
	path := at(t, "limit")
	shared.on(t, path, answers(testkit.Reply(500, "broken"), testkit.Reply(500, "broken"), testkit.OK("mended")))
	near := func(want string) {
		t.Helper()
		testkit.Until(t, "the sender to be at "+want, func() bool {
			return strings.Contains(h.Metrics(t), `hooklock_sender_limit_ratio{limit="4_in_a_row",route="gitlab"} `+
				want+"\n")
		})
		if _, said := asked(t, h, http.MethodGet, "/v1/routes", "", ""); !strings.Contains(fmt.Sprint(said),
			"map[limit:4_in_a_row ratio:"+want+"]") || !strings.Contains(fmt.Sprint(said), "onUnknown:retry") {
			t.Errorf("the API does not say %s: %v", want, said)
		}
	}
	near("0")
	for _, id := range []string{"1", "2"} {
		if a := testkit.Post(t, h.Addr, path, id, key(id), "X-Gitlab-Token: "+planted); a.Status != 500 {
			t.Fatal(a)
		}
	}
	near("0.5")
	id := acceptedAs(t, testkit.Post(t, h.Addr, path, "3", key("3"), "X-Gitlab-Token: "+planted), 202)
	near("0")
	shows(t, h, `hooklock_parked_accepted_total{on="sender_limit",route="gitlab"} 1`)
	testkit.Until(t, "the accepted event to run", func() bool { return execution(t, h, id)["status"] == "SUCCESS" })
	if !strings.Contains(h.Metrics(t), `hooklock_route_last_delivery_timestamp_seconds{route="gitlab"} 1`) {
		t.Error("no time of the last delivery")
	}
}

// The failures that a sender counts are those at all replicas, the dead ones included.
func TestFailuresInARowOutliveTheProcessThatHasSeenThem(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.Reply(500, "database is locked") })
	config := fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {url: %q}
etcd: {endpoints: [%q], prefix: %s, session_ttl: 6s, request_timeout: 5s}
routes: [{name: gitlab, path: "/row/{w}", workflow: "{path.w}", preset: gitlab, verify: {secret_env: SIGNED}}]
`, up.URL, shared.etcd.Endpoint, ownPrefix())
	fail := func(h *testkit.Hooklock, id string) {
		if a := testkit.Post(t, h.Addr, "/row/a", id, key(id), "X-Gitlab-Token: "+planted); a.Status != 500 {
			t.Fatal(a)
		}
	}
	says := func(h *testkit.Hooklock, want string) {
		t.Helper()
		testkit.Until(t, "it to say "+want, func() bool { return strings.Contains(cli(t, h, "status"), want) })
	}
	first, other := testkit.Serve(t, hooklockProgram, config, "SIGNED="+planted), own(t, config, "SIGNED="+planted)
	for _, id := range []string{"1", "2", "3"} {
		fail(first, id)
	}
	says(other, "gitlab is at 75% of 4 in a row")
	first.Kill() // SIGKILL
	<-first.Done()
	testkit.Until(t, "its session to end", func() bool {
		_, list := asked(t, other, http.MethodGet, "/v1/replicas", "", "")
		return strings.Contains(fmt.Sprint(list), "state:gone")
	})
	next := own(t, config, "SIGNED="+planted)
	says(next, "gitlab is at 75% of 4 in a row")
	fail(next, "4")
	for _, h := range []*testkit.Hooklock{next, other} {
		says(h, "gitlab has counted 4 in a row")
	}
}

// Anybody can send requests without the sender's token, and handshakes that need none.
func TestStrangersRequestsDoNotCountAsTheSenders(t *testing.T) {
	t.Parallel()
	h := own(t, bare(shared.up.URL, `
shutdown_timeout: 5s
park_store: {single_member: true}
routes:
  - name: gitlab
    path: "/strangers/{w}"
    workflow: "{path.w}"
    preset: gitlab
    verify: {secret_env: SIGNED}
    handshake: {when: [header.X-Ping], unsigned: true, answer: pong}
    park: {on: [locked]}
    on_sender_limit: park
`), "SIGNED="+planted)
	path := at(t, "strangers")
	shared.on(t, path, answers(testkit.OK("well"), testkit.Reply(500, "broken"), testkit.Reply(500, "broken"),
		testkit.OK("mended")))
	post := func(want int, id string, header ...string) *testkit.Answer {
		t.Helper()
		a := testkit.Post(t, h.Addr, path, id, append(header, key(id))...)
		if a.Status != want {
			t.Fatalf("%s: %v, want %d", id, a, want)
		}
		return a
	}
	const limit = `{limit="4_in_a_row",route="gitlab"} `
	shows := func(when string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			testkit.Until(t, when+" to be shown as "+line, func() bool {
				return strings.Contains(h.Metrics(t), "\n"+line+"\n")
			})
		}
	}
	token := "X-Gitlab-Token: " + planted

	post(503, "s1")
	post(503, "s2", "X-Gitlab-Token: guessed")
	shows("two requests without the token", "hooklock_sender_limit_unverified_ratio"+limit+"0.5",
		"hooklock_sender_limit_ratio"+limit+"0")
	if strings.Contains(h.Metrics(t), "hooklock_route_last_delivery_timestamp_seconds{") {
		t.Error("a stranger's request is the route's last delivery")
	}
	post(200, "1", token) // it runs at once
	shows("a success", "hooklock_sender_limit_unverified_ratio"+limit+"0", "hooklock_sender_limit_ratio"+limit+"0")

	post(500, "2", token)
	post(500, "3", token)
	shows("two failures", "hooklock_sender_limit_ratio"+limit+"0.5")
	if a := post(200, "p", "X-Ping: 1"); string(a.Body) != "pong" {
		t.Fatal(a)
	}
	testkit.Until(t, "the handshake to be counted", func() bool {
		return strings.Contains(h.Metrics(t),
			`hooklock_deliveries_total{decision="answered",route="gitlab",would=""} 1`)
	})
	shows("a handshake without the token", "hooklock_sender_limit_unverified_ratio"+limit+"0.5",
		"hooklock_sender_limit_ratio"+limit+"0.5")
	post(202, "4", token) // its sender is spared further failures
}

// A balancer gives each replica a part of the failures, of which the sender counts all.
func TestFailuresInARowAtAnotherReplicaSpareTheSenderFurtherOnes(t *testing.T) {
	t.Parallel()
	config := fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {url: %q}
etcd: {endpoints: [%q], prefix: %s}
routes:
  - {name: gitlab, path: "/balanced/{w}", workflow: "{path.w}", preset: gitlab, verify: {secret_env: SIGNED}, park: {enabled: true, on: [locked]}, on_sender_limit: park}
`, shared.up.URL, shared.etcd.Endpoint, ownPrefix())
	both := []*testkit.Hooklock{own(t, config, "SIGNED="+planted), own(t, config, "SIGNED="+planted)}
	path := at(t, "balanced")
	shared.on(t, path, answers(testkit.Reply(500, "broken"), testkit.Reply(500, "broken"), testkit.OK("mended")))
	near := func(want string) {
		t.Helper()
		for _, h := range both {
			testkit.Until(t, "each replica to show "+want, func() bool {
				_, said := asked(t, h, http.MethodGet, "/v1/routes", "", "")
				metrics := h.Metrics(t)
				return strings.Contains(fmt.Sprint(said), "map[limit:4_in_a_row ratio:"+want+"]") &&
					strings.Contains(metrics, `hooklock_sender_limit_ratio{limit="4_in_a_row",route="gitlab"} `+want+"\n")
			})
		}
	}
	for i, h := range both {
		if a := testkit.Post(t, h.Addr, path, "{}", key(fmt.Sprint(i)), "X-Gitlab-Token: "+planted); a.Status != 500 {
			t.Fatal(a)
		}
	}
	near("0.5")
	acceptedAs(t, testkit.Post(t, both[0].Addr, path, "{}", key("3"), "X-Gitlab-Token: "+planted), 202)
	near("0")
}
