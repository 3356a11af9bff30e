package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// pausing is a replica of its own with routes of each kind.
func pausing(t *testing.T) (h *testkit.Hooklock, config string) {
	t.Helper()
	config = bare(shared.up.URL, `
shutdown_timeout: 5s
park_store: {single_member: true}
routes:
  - {name: plain, path: "/plain/{w}", workflow: "plain/{path.w}"}
  - {name: pass-id, path: "/pass-id/{w}", workflow: "pass-id/{path.w}", on_missing_event_id: pass}
  - {name: observe, path: "/observe/{w}", workflow: "observe/{path.w}", mode: observe}
  - {name: wait, path: "/wait/{w}", workflow: "wait/{path.w}", lock: {strategy: wait, wait_timeout: 30s}}
  - {name: wait-short, path: "/wait-short/{w}", workflow: "ws/{path.w}", lock: {strategy: wait, wait_timeout: 100ms}}
  - {name: park, path: "/park/{w}", workflow: "park/{path.w}", park: {enabled: true, after: 60s, on: [failed]}}
`)
	return own(t, config), config
}

// drained pauses, and waits until nothing of it runs or can begin.
func drained(t *testing.T, h *testkit.Hooklock, scope string) {
	t.Helper()
	token := localToken(t, h)
	if status, got := asked(t, h, http.MethodPost, "/v1/pauses", token,
		`{"scope":"`+scope+`","reason":"a migration"}`); status != 201 {
		t.Fatalf("%d %v", status, got)
	}
	testkit.Until(t, scope+" to be drained", func() bool {
		_, got := asked(t, h, http.MethodGet, "/v1/pauses/"+url.PathEscape(scope), token, "")
		return got["drained"] == true
	})
}

func resumed(t *testing.T, h *testkit.Hooklock, scope string) {
	t.Helper()
	if status, got := asked(t, h, http.MethodDelete, "/v1/pauses/"+url.PathEscape(scope), localToken(t, h),
		""); status != 200 {
		t.Fatalf("%d %v", status, got)
	}
}

func TestNothingOfAPausedRouteBeginsAndNoRestartLiftsThat(t *testing.T) {
	t.Parallel()
	h, config := pausing(t)
	path := at(t, "plain")
	passed(t, testkit.Post(t, h.Addr, path, "1", key("1")), 200, "done", "executed")
	drained(t, h, "route:plain")
	paused := refused{503, "workflow_paused", "no", "paused"}
	paused.check(t, testkit.Post(t, h.Addr, path, "2", key("2")))
	passed(t, testkit.Post(t, h.Addr, path, "1", key("1")), 200, "done", "replayed")
	passed(t, testkit.Post(t, h.Addr, at(t, "wait"), "1", key("1")), 200, "done", "executed")
	h.Kill()
	next := own(t, config)
	paused.check(t, testkit.Post(t, next.Addr, path, "2", key("2")))
	if _, status := asked(t, next, http.MethodGet, "/v1/status", localToken(t, next),
		""); !strings.Contains(fmt.Sprint(status["paused"]), "route:plain") {
		t.Errorf("the status says %v", status["paused"])
	}
	metrics := next.Metrics(t)
	for _, want := range []string{`hooklock_pause_age_seconds{pause="route:plain"}`,
		`hooklock_pause_overdue_seconds{pause="route:plain"} 0`, `hooklock_pause_parked{pause="route:plain"} 0`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s", want)
		}
	}
	if got := next.Stderr.AwaitRecord(t, "pause.began", func(testkit.Record) bool {
		return true
	}); got.Text("scope") != "route:plain" || got.Text("reason") != "a migration" {
		t.Errorf("%v", got)
	}
	resumed(t, next, "route:plain")
	next.Stderr.AwaitRecord(t, "pause.ended", func(testkit.Record) bool { return true })
	passed(t, testkit.Post(t, next.Addr, path, "2", key("2")), 200, "done", "executed")
}

func TestWhatRunsGoesOnAndIsWaitedFor(t *testing.T) {
	t.Parallel()
	h, _ := pausing(t)
	path := at(t, "plain")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, h.Addr, path, "1", key("1"))
	work.await(t)
	token := localToken(t, h)
	scope := "workflow:" + strings.TrimPrefix(path, "/")
	asked(t, h, http.MethodPost, "/v1/pauses", token, `{"scope":"`+scope+`","reason":"a migration"}`)
	testkit.Until(t, "the replica to have heard of it", func() bool {
		_, got := asked(t, h, http.MethodGet, "/v1/pauses/"+url.PathEscape(scope), token, "")
		return len(got["unheard"].([]any)) == 0 && got["running"] == 1.0 && got["drained"] == false
	})
	work.answer <- testkit.OK("done")
	passed(t, testkit.Receive(t, "the answer", first), 200, "done", "executed")
	testkit.Until(t, "it to be drained", func() bool {
		_, got := asked(t, h, http.MethodGet, "/v1/pauses/"+url.PathEscape(scope), token, "")
		return got["drained"] == true
	})
}

func TestArrivalsOfAPausedRouteParkAndRunInTheirOrderAfterwards(t *testing.T) {
	t.Parallel()
	h, _ := pausing(t)
	path := at(t, "park")
	drained(t, h, "route:park")
	for _, body := range []string{"1", "2", "3"} {
		acceptedAs(t, testkit.Post(t, h.Addr, path, body, key(body)), 202)
	}
	id := testkit.Post(t, h.Addr, path, "2", key("2")).Execution()
	if p := execution(t, h, id)["parked"].(map[string]any); p["on"] != "paused" {
		t.Errorf("parked for %v", p["on"])
	}
	testkit.Until(t, "the pause to say who waits", func() bool {
		_, got := asked(t, h, http.MethodGet, "/v1/pauses/route:park", localToken(t, h), "")
		return got["waiting"] == 0.0 && got["parked"] == 3.0 && got["drained"] == true
	})
	if got := shared.up.Received(path); len(got) > 0 {
		t.Fatalf("%d were tried", len(got))
	}
	resumed(t, h, "route:park")
	settles(t, h.Addr, path, "3", "3", 200, "done")
	if got := bodies(path); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("ran %v", got)
	}
}

func TestArrivalsOfAPausedRouteWaitWhereItWaits(t *testing.T) {
	t.Parallel()
	h, _ := pausing(t)
	drained(t, h, "workflow:w*")
	answer := testkit.GoPost(t, h.Addr, at(t, "wait"), "1", key("1"))
	refused{503, "workflow_paused", "no", "paused"}.check(t,
		testkit.Post(t, h.Addr, at(t, "wait-short"), "1", key("1")))
	testkit.Until(t, "it to wait", func() bool {
		_, got := asked(t, h, http.MethodGet, "/v1/pauses/"+url.PathEscape("workflow:w*"), localToken(t, h), "")
		return got["waiting"] == 1.0 && got["parked"] == 0.0
	})
	resumed(t, h, "workflow:w*")
	passed(t, testkit.Receive(t, "the answer", answer), 200, "done", "executed")
}

func TestWhatTakesNoLockIsHeldBackTooAndARouteThatObservesIsNot(t *testing.T) {
	t.Parallel()
	h, _ := pausing(t)
	drained(t, h, "workflow:*")
	refused{503, "workflow_paused", "no", "paused"}.check(t, testkit.Post(t, h.Addr, at(t, "pass-id"), "1"))
	passed(t, testkit.Post(t, h.Addr, at(t, "observe"), "1", key("1")), 200, "done", "bypassed; would=paused")
}
