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
	h := own(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {url: %q}
etcd: {endpoints: [%q], prefix: %s, request_timeout: 10s}
shutdown_timeout: 5s
park_store: {single_member: true}
routes:
  - {name: gitlab, path: "/limit/{w}", workflow: "{path.w}", preset: gitlab, verify: {secret_env: SIGNED}, park: {enabled: true, on: [locked]}, on_sender_limit: park}
`, shared.up.URL, shared.etcd.Endpoint, ownPrefix()), "SIGNED="+planted)
	path := at(t, "limit")
	shared.on(t, path, answers(testkit.Reply(500, "broken"), testkit.Reply(500, "broken"), testkit.OK("mended")))
	near := func(want string) {
		t.Helper()
		testkit.Until(t, "the sender to be at "+want, func() bool {
			return strings.Contains(h.Metrics(t), `hooklock_sender_limit_ratio{limit="4_in_a_row",route="gitlab"} `+want+"\n")
		})
		if _, said := asked(t, h, http.MethodGet, "/v1/routes", "", ""); !strings.Contains(fmt.Sprint(said), "map[limit:4_in_a_row ratio:"+want+"]") {
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
	testkit.Until(t, "the accepted event to run", func() bool { return execution(t, h, id)["status"] == "SUCCESS" })
	if !strings.Contains(h.Metrics(t), `hooklock_route_last_delivery_timestamp_seconds{route="gitlab"} 1`) {
		t.Error("no time of the last delivery")
	}
}
