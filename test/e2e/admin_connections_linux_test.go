package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// TestIdleConnectionsKeepNoProbeOut: on the listeners of probes, of the page and of the API,
// whatever has no request that is being answered makes room.
func TestIdleConnectionsKeepNoProbeOut(t *testing.T) {
	t.Parallel()
	health := testkit.FreePort(t)
	dir := t.TempDir()
	// 8 connections each
	h := testkit.Serve(t, withFiles(t, 256), embedded(dir, fmt.Sprintf("health: {listen: %q}", health)))
	token, err := os.ReadFile(filepath.Join(dir, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	for name, addr := range map[string]string{"health.listen": health, "admin.listen": h.Admin} {
		for how, begin := range map[string]string{
			"silent": "", "with half a request": "GET /livez HTTP/1.1\r\nHo",
			"after a request":             "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"with half a body":            "POST /v1/pauses HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
			"with half a body of a probe": "GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
			"with half a body and a token": "POST /v1/pauses HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
				strings.TrimSpace(string(token)) + "\r\nContent-Length: 9\r\n\r\n{",
		} {
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
