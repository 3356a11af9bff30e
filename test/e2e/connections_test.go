package e2e

import (
	"strings"
	"testing"

	"hooklock/test/testkit"
)

func TestConnectionsWithoutARequestStarveNoOthers(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("idle", "limits: {max_connections: 10}"))
	for range 30 {
		testkit.Dial(t, h.Addr)
	}
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
	h.Stderr.AwaitRecord(t, "connections.full", nil)
	if page := h.Metrics(t); !strings.Contains(page, `hooklock_connections_refused_total{listener="listen"} 0`) {
		t.Errorf("some were refused:\n%s", pageLines(page, "hooklock_connections"))
	}
}

// lines are those of a page that begin so.
func pageLines(page, prefix string) string {
	var found strings.Builder
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, prefix) {
			found.WriteString(line)
		}
	}
	return found.String()
}

func TestRefusedConnectionsAreCountedAndLogged(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("full", "limits: {max_connections: 10, header_timeout: 60s}"))
	for range 10 { // each has begun a request
		c := testkit.Dial(t, h.Addr)
		c.Say("POST / HTTP/1.1\r\nHost: a\r\n")
	}
	testkit.Until(t, "all of them have begun", func() bool {
		page := h.Metrics(t)
		return strings.Contains(page, `hooklock_connections_open{listener="listen"} 10`) &&
			strings.Contains(page, `hooklock_connections_idle{listener="listen"} 0`)
	})
	for range 3 {
		if a := testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")); a.Status != 503 ||
			a.JSON()["code"] != "too_many_connections" {
			t.Errorf("%v", a)
		}
	}
	said := h.Stderr.AwaitRecord(t, "connections.full", nil)
	if said.Text("listener") != "listen" || said.Number("limit") != 10 {
		t.Errorf("%v", said)
	}
	if page := h.Metrics(t); !strings.Contains(page, `hooklock_connections_refused_total{listener="listen"} 3`) ||
		!strings.Contains(page, `hooklock_connections_limit{listener="listen"} 10`) {
		t.Error(pageLines(page, "hooklock_connections"))
	}
	if n := strings.Count(h.Stderr.String(), `"connections.full"`); n != 1 {
		t.Errorf("%d lines within a minute", n)
	}
}
