package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
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
	testkit.Until(t, "the request of "+id+" is in the store",
		func() bool { return execution(t, h, id)["requestStored"] == "yes" })
}

var anExecution = regexp.MustCompile(`exec_[0-9a-z]{32}`)

// framesIn returns the executions whose requests are in the folder, for a day.
func framesIn(t *testing.T, folder string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "kept", "86400", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range anExecution.FindAll(b, -1) {
			all = append(all, string(id))
		}
	}
	return all
}

// requestOf reads the request of an execution; status 404: it is not kept.
func requestOf(t *testing.T, h *testkit.Hooklock, id string, status int) string {
	t.Helper()
	url := "http://" + h.Admin + "/v1/executions/" + id + "/request"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
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
	if got := requestOf(t, h, a.Execution(), 200); !strings.HasSuffix(got, body) ||
		!strings.HasPrefix(got, "POST /kept/a HTTP/1.1") {
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
	testkit.Until(t, "both are written",
		func() bool { return strings.Contains(h.Metrics(t), "hooklock_kept_events 2") })
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
		passed(t, testkit.Post(t, h.Addr, "/kept/stop", fmt.Sprint(n), key(fmt.Sprint("stop_", n))), 200, "done",
			"executed")
	}
	leave(t, h.Process)
	if got := framesIn(t, folder); len(got) != 200 {
		t.Errorf("%d requests are there", len(got))
	}
}

func TestAllThatIsKnownOfACustomerIsErased(t *testing.T) {
	t.Parallel()
	h, folder := keeping(t, "")
	shared.on(t, "/kept/e",
		answers(testkit.Reply(500, "no"), testkit.OK("done"), testkit.OK("done"), testkit.OK("done")))
	var of, other []string
	for _, customer := range []string{"4711", "4711", "4712"} {
		event := fmt.Sprintf("erase_%s_%d", customer, len(of))
		body := fmt.Sprintf(`{"customer":%q}`, customer)
		a := testkit.Post(t, h.Addr, "/kept/e", body, key(event))
		if len(of) == 0 { // it failed first
			isStored(t, h, a.Execution())
			a = testkit.Post(t, h.Addr, "/kept/e", body, key(event))
		}
		passed(t, a, 200, "done", "executed")
		isStored(t, h, a.Execution())
		passed(t, testkit.Post(t, h.Addr, "/kept/e", body, key(event)), 200, "done", "replayed")
		if customer == "4711" {
			of = append(of, a.Execution())
		} else {
			other = append(other, a.Execution())
		}
	}
	if said := cli(t, h, "executions", "erase", "--label", "customer=4711", "--dry-run"); !strings.Contains(said,
		"2 match") {
		t.Errorf("a dry run says\n%s", said)
	}
	said := cli(t, h, "executions", "erase", "--label", "customer=4711", "--reason", "request 12")
	if !strings.Contains(said, "2 of 2 erased") {
		t.Errorf("erase says\n%s", said)
	}
	for _, id := range of {
		if x := execution(t, h, id); x["code"] != "execution_not_found" {
			t.Errorf("%s is there: %v", id, x)
		}
	}
	if said := cli(t, h, "executions", "list"); strings.Contains(said, "erase_4711") {
		t.Errorf("what is left:\n%s", said)
	}
	isStored(t, h, other[0])
	testkit.Until(t, "that of another customer alone is in the folder", func() bool {
		return slices.Equal(framesIn(t, folder), other)
	})
	for _, list := range [][]string{{"audit", "list", "-o", "json"}, {"jobs", "-o", "json"}} {
		if said := cli(t, h, list...); strings.Contains(said, "=4711") || !strings.Contains(said, "customer=…") {
			t.Errorf("it is kept whose data it was: %v says\n%s", list, said)
		}
	}
	if said := cli(t, h, "audit", "list"); strings.Count(said, "execution.erase") != 2 {
		t.Errorf("the audit has\n%s", said)
	}
	passed(t, testkit.Post(t, h.Addr, "/kept/e", `{"customer":"4711"}`, key("erase_4711_0")), 200, "done", "executed")
}

// What a replica has not written yet when another one erases the event is not written, or goes,
// also if the replica is ended before it has heard of it.
func TestARequestThatAnotherReplicaHasNotWrittenYetIsErased(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "requests")
	config := bare(shared.up.URL, fmt.Sprintf(`
park_store: {dir: %q}
routes:
  - {name: kept, path: "/kept/{test}", event_id: "{header.Idempotency-Key}", requests: {keep: 24h}}
`, folder))
	writes, erases := own(t, config), own(t, config)
	shared.on(t, "/kept/elsewhere", answers(testkit.OK("done")))
	a := testkit.Post(t, writes.Addr, "/kept/elsewhere", "{}", key("evt_elsewhere"))
	passed(t, a, 200, "done", "executed")
	path := "/v1/executions/" + a.Execution() + "?erase=true&reason=asked"
	if status, text := asked(t, erases, http.MethodDelete, path, localToken(t, erases), ""); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	writes.Signal(t, syscall.SIGTERM) // it writes what waits
	_ = writes.ExitCode(t)
	if left := framesIn(t, folder); slices.Contains(left, a.Execution()) {
		t.Errorf("left: %v", left)
	}
}

// TestTheRequestsOfAllAttemptsAreErased is an event with more attempts than its record names, and
// one that was forgotten: no command leads to the requests of such attempts.
func TestTheRequestsOfAllAttemptsAreErased(t *testing.T) {
	t.Parallel()
	h, folder := keeping(t, "")
	id := testkit.Post(t, h.Addr, "/kept/often", "{}", key("often")).Execution()
	for range 20 {
		isStored(t, h, id)
		again := anExecution.FindString(cli(t, h, "rerun", id, "--again", "--reason", "it was wrong"))
		testkit.Until(t, again+" has run", func() bool { return execution(t, h, again)["status"] == "SUCCESS" })
		id = again
	}
	isStored(t, h, id)
	cli(t, h, "forget", id, "--erase", "--reason", "request 12")
	testkit.Until(t, "no request is left", func() bool { return len(framesIn(t, folder)) == 0 })

	id = testkit.Post(t, h.Addr, "/kept/often", "{}", key("forgotten")).Execution()
	isStored(t, h, id)
	cli(t, h, "forget", id, "--reason", "the bank has no trace of it")
	testkit.Until(t, "its request is not left", func() bool { return len(framesIn(t, folder)) == 0 })
}
