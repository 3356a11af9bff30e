package e2e

import (
	"strings"
	"testing"

	"hooklock/test/testkit"
)

func TestBehindNginxADeliveryIsSentOnceAndAnswersComeThroughWhole(t *testing.T) {
	t.Parallel()
	front := senderFront(t)
	path := at(t, "front")
	shared.on(t, path, func(*testkit.Received) string { return "" }) // reads the request and hangs up
	a := testkit.Exchange(t, front, testkit.RequestWith("PUT", path, `{"id":1}`, key("1"), "Connection: close"))
	if a.Status != 502 || a.JSON()["code"] != "upstream_failed" || a.JSON()["executed"] != "unknown" {
		t.Errorf("got %v", a)
	}
	reached(t, path, 1)
	work := shared.holds(t, path)
	first := testkit.GoPost(t, front, path, `{"id":2}`, key("2"), "X-Forwarded-For: 203.0.113.7")
	if got := work.await(t).Header.Get("X-Forwarded-For"); !strings.HasPrefix(got, "203.0.113.7, 127.0.0.1") {
		t.Errorf("X-Forwarded-For: %q", got)
	}
	a = testkit.Post(t, front, path, `{"id":3}`, key("3"))
	refused{409, "workflow_locked", "no", "locked"}.check(t, a)
	if a.Header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %v", a)
	}
	work.answer <- testkit.OK("done")
	passed(t, testkit.Receive(t, "the first answer", first), 200, "done", "executed")
}

// nginx takes a name with the root's dot behind it for the same server, and hands it on as it came.
func TestBehindNginxAHostIsTheSameInAllItsSpellings(t *testing.T) {
	t.Parallel()
	front := senderFront(t)
	for i, host := range []string{"hooks.example.com.", "HOOKS.example.com", "hooks.example.com:80",
		"hooks.example.com.:80"} {
		request := strings.Replace(testkit.Request(at(t, "named"), "{}", key(host)), "hooks.example.com", host, 1)
		if a := testkit.Exchange(t, front, request); a.Status != 200 || a.Decision() != "executed" {
			t.Errorf("%d: %s: %v", i, host, a)
		}
	}
}
