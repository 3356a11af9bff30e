package e2e

import (
	"regexp"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

func TestEachDeliveryLeavesOneLineThatSaysWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	workflow := strings.TrimPrefix(path, "/")
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	secrets := []string{"Authorization: Bearer " + planted, "Cookie: " + planted, "Stripe-Signature: " + planted,
		"traceparent: " + trace}
	body := `{"card":"` + planted + `"}`
	first := testkit.Post(t, shared.patient.Addr, path+"?q="+planted, body, append(secrets, key("1"))...)
	testkit.Post(t, shared.patient.Addr, path+"?q="+planted, body, append(secrets, key("1"))...)
	testkit.Post(t, shared.patient.Addr, path, "other "+planted, append(secrets, key("1"))...)
	var lines []testkit.Record
	testkit.Until(t, "three lines", func() bool {
		lines = nil
		for _, r := range shared.patient.Stderr.Records() {
			if r.Text("msg") == "delivery" && r.Text("workflow") == workflow {
				lines = append(lines, r)
			}
		}
		return len(lines) >= 3
	})
	if len(lines) != 3 {
		t.Errorf("%d lines", len(lines))
	}
	for i, decision := range []string{"executed", "replayed", "mismatch"} {
		r := lines[i]
		if r.Text("decision") != decision || r.Text("route") != "plain" || r.Text("level") != "INFO" ||
			r.Text("execution") != first.Execution() ||
			r.Text("trace_id") != "0af7651916cd43dd8448eb211c80319c" || r.Number("duration_ms") <= 0 ||
			!shortKey.MatchString(r.Text("key")) {
			t.Errorf("%v", r)
		}
	}
	if lines[0].Number("upstream_ms") <= 0 || lines[0].Number("attempt") != 1 || lines[0].Number("status") != 200 ||
		lines[2].Number("status") != 422 {
		t.Errorf("%v", lines)
	}
}

var shortKey = regexp.MustCompile(`^[0-9a-f]{16}$`)

func TestTheLifeOfALockIsLogged(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, shared.patient.Addr, path, "{}", key("1"))
	work.await(t)
	testkit.Post(t, shared.patient.Addr, path, "{}", key("2"))
	work.answer <- testkit.OK("")
	id := testkit.Receive(t, "the answer", first).Execution()
	mine := func(r testkit.Record) bool {
		return r.Text("execution") == id && r.Text("workflow") == strings.TrimPrefix(path, "/")
	}
	for _, event := range []string{"lock.acquired", "lock.refused", "lock.released"} {
		r := shared.patient.Stderr.AwaitRecord(t, event, mine)
		if event == "lock.released" && (r.Number("held_ms") <= 0 || r["recorded"] != true ||
			r.Text("outcome") != "executed") {
			t.Errorf("%v", r)
		}
	}
}

func TestDecisionsAreCounted(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("counted", ""))
	path := at(t, "plain")
	for range 3 {
		testkit.Post(t, h.Addr, path, planted, key("counted-event"))
	}
	testkit.Post(t, h.Addr, at(t, "observe"), "{}")
	page := h.Metrics(t)
	for decision, count := range map[string]string{"executed": "1", "replayed": "2"} {
		found := regexp.MustCompile(`(?m)^hooklock_deliveries_total\{[^}]*decision="` + decision +
			`"[^}]*route="plain"[^}]*\} ` + count + `$`).MatchString(page)
		if !found {
			t.Errorf("%s is not counted %s times:\n%s", decision, count, page)
		}
	}
	if !regexp.MustCompile(`(?m)^hooklock_deliveries_total\{decision="bypassed"[^}]*would="executed"\} 1$`).MatchString(
		page) {
		t.Errorf("what would have been decided is not counted:\n%s", page)
	}
	if strings.Contains(page, path) || strings.Contains(page, planted) || strings.Contains(page, "counted-event") {
		t.Errorf("a workflow or a key is a label:\n%s", page)
	}
}

// What cannot be read as a request is said at level debug, without the line that could not be read.
func TestNoSecretIsInALineAboutARequestThatCannotBeRead(t *testing.T) {
	t.Parallel()
	// at its end, nothing that was planted may be in the log
	h := own(t, shared.config("unreadable", "log: {level: debug}"))
	heads := []string{
		"Authorization: Bearer " + planted + "\x01", "Authorization: " + planted + "\x00", "Authorization: " + planted +
			"\rx", "Authorization " + planted,
		"Authorization: \"" + planted + "\\\"\x01" + planted, "Author ization: " + planted,
		"Authorization\x01" + planted + ": x", "Transfer-Encoding: " + planted,
		"Content-Length: " + planted, "Cookie: " + planted + "\x7f",
	}
	path := at(t, "plain")
	requests := []string{"POST /" + planted + "\x01 HTTP/1.1\r\nHost: h\r\n\r\n", "POST / HTTP/" + planted + "\r\n\r\n",
		planted + "\r\n\r\n"}
	for _, line := range heads {
		requests = append(requests, testkit.Request(path, "{}", line))
	}
	for _, request := range requests {
		if a := testkit.Exchange(t, h.Addr, request); a.Status < 400 {
			t.Errorf("%q: %v", request, a)
		}
	}
	h.Stderr.AwaitRecord(t, "connection", func(r testkit.Record) bool {
		return strings.Contains(r.Text("error"), `invalid header value "…"`)
	})
	work := at(t, "plain") + "-upstream"
	shared.on(t, work, answers(testkit.Reply(200, "x", "Set-Cookie: "+planted+"\x01")))
	testkit.Post(t, h.Addr, work, "{}", key("1"))
}
