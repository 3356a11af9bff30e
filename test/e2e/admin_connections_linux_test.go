package e2e

import (
	"fmt"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// TestIdleConnectionsKeepNoProbeOut: on the listeners of probes, of the page and of the API, whatever has no request that is
// being answered makes room.
func TestIdleConnectionsKeepNoProbeOut(t *testing.T) {
	t.Parallel()
	health := testkit.FreePort(t)
	h := testkit.Serve(t, withFiles(t, 256), embedded(t.TempDir(), fmt.Sprintf("health: {listen: %q}", health))) // 8 connections each
	for name, addr := range map[string]string{"health.listen": health, "admin.listen": h.Admin} {
		for how, begin := range map[string]string{"silent": "", "with half a request": "GET /livez HTTP/1.1\r\nHo", "after a request": "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"} {
			for range 20 {
				c := testkit.Dial(t, addr)
				c.Say(begin)
				if strings.HasPrefix(how, "after") {
					if a := c.Answer("GET"); a.Status != 200 {
						t.Fatalf("%s, connections %s: %v", name, how, a)
					}
				}
			}
			for _, path := range []string{"/livez", "/readyz", "/metrics"} {
				c := testkit.Dial(t, addr)
				c.Say("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
				if a := c.Answer("GET"); a.Status != 200 {
					t.Errorf("%s, connections %s: %s is %v", name, how, path, a)
				}
			}
		}
	}
	leave(t, h.Process)
}
