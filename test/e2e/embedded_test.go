package e2e

import (
	"fmt"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// embeddedAlone is a Hooklock with a small embedded etcd in dir, where an event that comes with another payload runs again.
func embeddedAlone(upstream, dir string) string {
	return fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
data_dir: %s
upstream: %s
etcd: {embedded: {quota: 16MiB}, session_ttl: 5s}
routes: [{name: hooks, path: "/hooks/{w}", workflow: "{path.w}", idempotency: {on_mismatch: execute, replay_body: 512KiB}}]
`, dir, upstream)
}

func readyz(t *testing.T, h *testkit.Hooklock) string {
	t.Helper()
	return string(testkit.Exchange(t, h.Admin, "GET /readyz?verbose HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").Body)
}

// A record that is replaced is history. So much of it is written here that the quota is used up several times over.
func TestAnEmbeddedEtcdThatHistoryFillsGoesOnTakingDeliveries(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK(strings.Repeat("x", 500<<10)) })
	h := own(t, embeddedAlone(up.URL, t.TempDir()))
	if said := readyz(t, h); !strings.HasPrefix(said, "ok\nembedded etcd: the database has ") || strings.Contains(said, "it is full") {
		t.Errorf("readyz says %q", said)
	}
	for n := range 100 {
		testkit.Until(t, fmt.Sprintf("payload %d runs and is recorded", n), func() bool {
			a := testkit.Post(t, h.Addr, "/hooks/w", fmt.Sprint(n), key("1"))
			return a.Status == 200 && a.Decision() == "executed" && a.Header.Get("Hooklock-Recorded") == "" || a.Decision() == "replayed"
		})
	}
	if said := h.Stderr.String(); !strings.Contains(said, `"msg":"etcd.defragmented"`) {
		t.Error("it has not made room")
	}
}
