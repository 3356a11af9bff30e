package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// keeping is a Hooklock that keeps requests in a folder, and where that folder is.
func keeping(t *testing.T, more string) (h *testkit.Hooklock, folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "requests")
	return own(t, bare(shared.up.URL, fmt.Sprintf(`
park_store: {dir: %q}
%s
routes:
  - name: kept
    path: /kept/{test}
    event_id: "{header.Idempotency-Key}"
    labels: {customer: "{body.customer}"}
    requests: {keep: 24h}
    workflow: "kept/{path.test}"
  - name: parked
    path: /parked/{test}
    event_id: "{header.Idempotency-Key}"
    requests: {keep: 24h}
    park: {enabled: true, after: 0s, on: [locked, failed], retry: {first: 100ms}}
  - {name: plain, path: "/plain/{test}", event_id: "{header.Idempotency-Key}"}
`, folder, more))), folder
}

// isStored waits until show says that the request of an execution is in the store.
func isStored(t *testing.T, h *testkit.Hooklock, id string) {
	t.Helper()
	testkit.Until(t, "the request of "+id+" is in the store", func() bool { return execution(t, h, id)["requestStored"] == "yes" })
}

// requestOf reads the request of an execution; status 404: it is not kept.
func requestOf(t *testing.T, h *testkit.Hooklock, id string, status int) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.Admin+"/v1/executions/"+id+"/request", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+localToken(t, h))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		t.Fatalf("%d %s, %v; want %d", answer.StatusCode, text, err, status)
	}
	return string(text)
}

func TestTheRequestOfAnEventThatWentThroughIsKept(t *testing.T) {
	t.Parallel()
	h, folder := keeping(t, "")
	for _, path := range []string{"/kept/a", "/plain/a", "/parked/a"} {
		shared.on(t, path, answers(testkit.OK("done"), testkit.OK("done")))
	}
	body := `{"customer":"4711","text":"` + strings.Repeat("a", 40_000) + `"}`
	a := testkit.Post(t, h.Addr, "/kept/a", body, key("evt_1"))
	passed(t, a, 200, "done", "executed")
	isStored(t, h, a.Execution())
	if got := requestOf(t, h, a.Execution(), 200); !strings.HasSuffix(got, body) || !strings.HasPrefix(got, "POST /kept/a HTTP/1.1") {
		t.Errorf("the stored request is %.200s", got)
	}
	if said := cli(t, h, "show", "evt_1"); !strings.Contains(said, "Its request is in the request store.") {
		t.Errorf("show says\n%s", said)
	}
	plain := testkit.Post(t, h.Addr, "/plain/a", "{}", key("evt_2"))
	if x := execution(t, h, plain.Execution()); x["requestStored"] != nil {
		t.Errorf("a route without requests.keep: %v", x)
	}
	requestOf(t, h, plain.Execution(), 404)

	p := acceptedAs(t, testkit.Post(t, h.Addr, "/parked/a", "{}", key("evt_3")), 202)
	testkit.Until(t, "the parked event has run", func() bool { return execution(t, h, p)["status"] == "SUCCESS" })
	isStored(t, h, p)
	if got := requestOf(t, h, p, 200); !strings.HasSuffix(got, "\r\n\r\n{}") {
		t.Errorf("the stored request is %q", got)
	}
	metrics := h.Metrics(t)
	if !strings.Contains(metrics, "hooklock_kept_events 2") {
		t.Errorf("the metrics say\n%s", metrics)
	}
	if err := os.RemoveAll(filepath.Join(folder, "kept")); err != nil {
		t.Fatal(err)
	}
	if x := execution(t, h, a.Execution()); x["requestStored"] != "no" {
		t.Errorf("after the folder was deleted: %v", x)
	}
	if said := cli(t, h, "show", "evt_1"); !strings.Contains(said, "Its request is not in the request store") {
		t.Errorf("show says\n%s", said)
	}
}

func TestAStopWritesTheRequestsThatWait(t *testing.T) {
	t.Parallel()
	h, folder := keeping(t, "")
	for n := range 200 {
		passed(t, testkit.Post(t, h.Addr, "/kept/stop", fmt.Sprint(n), key(fmt.Sprint("stop_", n))), 200, "done", "executed")
	}
	leave(t, h.Process)
	files, err := filepath.Glob(filepath.Join(folder, "kept", "86400", "*", "exec_*"))
	if err != nil || len(files) != 200 {
		t.Errorf("%d requests are there, %v", len(files), err)
	}
}
