package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hooklock/admin/client"
	"hooklock/test/testkit"
)

func TestTheReportSaysWhatObserveWouldHaveStopped(t *testing.T) {
	t.Parallel()
	slow := newHeld(t)
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		if strings.Contains(r.Header.Get("Idempotency-Key"), "slow") {
			return slow.handle(r)
		}
		return testkit.OK("done")
	})
	h := own(t, bare(up.URL, `
shutdown_timeout: 1s
routes:
  - {name: watched, path: "/watched/{w}", workflow: "{path.w}", mode: observe, verify: {scheme: token, header: X-Token, secret_env: WATCHED}}
  - {name: other, path: /other}
`), "WATCHED="+planted)
	token := "X-Token: " + planted
	send := func(body string, headers ...string) *testkit.Answer {
		a := testkit.Post(t, h.Addr, "/watched/w", body, headers...)
		if a.Status != 200 {
			t.Fatalf("observe refused: %v", a)
		}
		return a
	}
	first := send("{}", token, key("1")).Execution()
	send("{}", token, key("1"))         // duplicate
	send(`{"n":2}`, token, key("1"))    // mismatch
	send(`{"n":3}`, token)              // no ID
	send("{}", "X-Token: no", key("4")) // forged
	holder := testkit.GoPost(t, h.Addr, "/watched/w", "{}", token, key("slow"))
	slow.await(t)
	send("{}", token, key("5")) // overlap
	slow.answer <- testkit.OK("")
	testkit.Receive(t, "the holder's answer", holder)

	r := reported(t, h, "1h")
	w := r.Routes[0]
	if w.Route != "watched" || w.Mode != "observe" || w.Deliveries != 7 || r.Routes[1].Mode != "enforce" ||
		r.Routes[1].Deliveries != 0 {
		t.Errorf("%+v", r)
	}
	for name, f := range map[string]client.Finding{"duplicates": w.Duplicates, "overlaps": w.Overlaps,
		"mismatches": w.Mismatches, "missing": w.MissingEventIDs, "forged": w.Forged} {
		if f.Count != 1 || len(f.Examples) != 1 || name != "missing" && f.Examples[0].CarriedOut {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if x := w.Duplicates.Examples[0]; x.ExecutionID != first ||
		!regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(x.Key) || x.Workflow != "w" || x.Decision != "replayed" {
		t.Errorf("%+v", x)
	}
	table := cli(t, h, "report", "--examples")
	for _, line := range []string{
		`(?m)^watched +observe +7 +0 +1 +1 +1 +1 +1 +0$`, `(?m)^watched +duplicate +\S+ +replayed +[0-9a-f]{16} +w +` +
			first + ` +-$`, `(?m)^watched +forged +.* unverified .* mismatch$`,
	} {
		if !regexp.MustCompile(line).MatchString(table) {
			t.Errorf("no line %s in\n%s", line, table)
		}
	}
	if strings.Contains(table, planted) {
		t.Error("the report has a secret")
	}
}

// cli runs a command of the program against h.
func cli(t *testing.T, h *testkit.Hooklock, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), hooklockProgram, append(args, "--admin", "http://"+h.Admin)...)
	cmd.Dir = filepath.Dir(h.Config)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("hooklock %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func reported(t *testing.T, h *testkit.Hooklock, since string) *client.Report {
	t.Helper()
	r := new(client.Report)
	if err := json.Unmarshal([]byte(cli(t, h, "report", "--since", since, "-o", "json")), r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestProfilesNeedTheSwitchAndAToken(t *testing.T) {
	t.Parallel()
	config := shared.config("profiles", "")
	plain := own(t, config)
	on := own(t, strings.Replace(config, `admin: {listen: "127.0.0.1:0"}`,
		`admin: {listen: "127.0.0.1:0", pprof: true, tokens: [{name: ops, token_env: OPS, scopes: [write]}, {name: eye, token_env: EYE, scopes: [read]}]}`, 1),
		"OPS="+strings.Repeat("o", 32), "EYE="+strings.Repeat("e", 32))
	get := func(h *testkit.Hooklock, token string) int {
		return testkit.Exchange(t, h.Admin,
			"GET /debug/pprof/heap HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+token+"\r\n").Status
	}
	for _, c := range []struct {
		h      *testkit.Hooklock
		token  string
		status int
	}{
		{plain, "", 404}, {on, "", 401}, {on, "Authorization: Bearer " + strings.Repeat("e", 32) + "\r\n", 403},
		{on, "Authorization: Bearer " + strings.Repeat("o", 32) + "\r\n", 200},
	} {
		if status := get(c.h, c.token); status != c.status {
			t.Errorf("%q: %d, want %d", c.token, status, c.status)
		}
	}
}

func TestTheReportSaysWhatASenderChangesBetweenAttempts(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, answers(testkit.Reply(500, "not yet"), testkit.OK("done")))
	h := own(t, bare(up.URL, `
routes:
  - {name: line, path: /line, event_id: "{body.id}"}
`))
	send := func(redelivery string) *testkit.Answer {
		return testkit.Post(t, h.Addr, "/line", `{"id":"1","deliveryContext":{"isRedelivery":`+redelivery+`}}`)
	}
	changing := func(refused int64) {
		t.Helper()
		c := reported(t, h, "1h").Routes[0].Changing
		if c == nil || c.Refused != refused || len(c.Members) != 1 ||
			c.Members[0] != "body.deliveryContext.isRedelivery" {
			t.Fatalf("want %d refused: %+v", refused, c)
		}
	}
	if a := send("false"); a.Status != 500 {
		t.Fatal(a)
	}
	if a := send("true"); a.Status != 200 {
		t.Fatal(a)
	}
	changing(0)
	for range 2 {
		refused{422, "idempotency_key_reused", "no", "mismatch"}.check(t, send("false"))
	}
	changing(2)
	out, err := exec.Command(hooklockProgram, "report", "--admin", "http://"+h.Admin).CombinedOutput()
	if err != nil || !strings.Contains(string(out),
		"line: the sender changes something between attempts: body.deliveryContext.isRedelivery (refused 2 times") ||
		!strings.Contains(string(out),
			"say ignore: [body.deliveryContext.isRedelivery] if they say nothing about the event, or idempotency.on_mismatch: replay; "+
				"without verify execute, or replay_unsigned if only the sender can reach it") {
		t.Errorf("%v\n%s", err, out)
	}
}

// An event ID that names a group swallows its events, because on_mismatch: replay lets the ID alone
// decide. Everything that a person looks at says so.
func TestADuplicateThatIsAnotherRequestIsNamed(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("told") })
	h := own(t, bare(up.URL, `
routes:
  - {name: am, path: /am, event_id: "{body.groupKey}", idempotency: {on_mismatch: replay_unsigned}}
  - {name: watched, path: /watched, event_id: "{body.groupKey}", mode: observe, idempotency: {on_mismatch: replay_unsigned}}
  - {name: syslog, path: /syslog, event_id: "{header.X-Id}", idempotency: {on_mismatch: replay_unsigned}}
`))
	for _, path := range []string{"/am", "/watched"} {
		for _, status := range []string{"firing", "resolved", "firing", "resolved"} {
			if a := testkit.Post(t, h.Addr, path, `{"groupKey":"g","status":"`+status+`"}`); a.Status != 200 {
				t.Fatalf("%v", a)
			}
		}
	}
	for range 2 {
		testkit.Post(t, h.Addr, "/syslog", `{}`, "X-Id: $UNIQID")
	}
	r := reported(t, h, "1h")
	for i, name := range []string{"am", "watched"} {
		f := r.Routes[i]
		if f.Route != name || f.Duplicates.Count != 3 || f.Changed.Count != 2 || len(f.Changed.Examples) != 2 ||
			strings.Join(f.Changed.Examples[0].Differs, " ") != "body" {
			t.Errorf("%s: %+v", name, f)
		}
		if c := f.Changing; c == nil || strings.Join(c.Members, " ") != "body.status" || c.Replayed != 1 ||
			c.Refused != 0 {
			t.Errorf("%s: what differs: %+v", name, c)
		}
	}
	if w := r.Routes[2].WrongEventID; w == nil || w.EventID != "$UNIQID" || w.Why != client.IDPlaceholder ||
		w.Deliveries != 2 {
		t.Errorf("%+v", w)
	}
	table := cli(t, h, "report", "--examples")
	for _, line := range []string{
		`(?m)^am: 2 of 3 duplicates were other requests than the first delivery of their event ID \(body\.status\), and theirs never ran: .*correct event_id$`,
		`(?m)^watched: 2 of 3 duplicates .*, and theirs would not have run: `, `(?m)^am +changed .* another body$`,
		`(?m)^syslog: the event ID "\$UNIQID" is a placeholder`,
	} {
		if !regexp.MustCompile(line).MatchString(table) {
			t.Errorf("no line %s in\n%s", line, table)
		}
	}
	status := cli(t, h, "status")
	for _, line := range []string{`2 of 3 duplicates of am were other requests, they never ran: `,
		`syslog: wrong event ID, the event ID "\$UNIQID" is a placeholder`} {
		if !regexp.MustCompile(line).MatchString(status) {
			t.Errorf("no line %s in\n%s", line, status)
		}
	}
	cli(t, h, "seen", "changed:am", "--reason", "its sender counts attempts")
	if status := cli(t, h, "status"); strings.Contains(status, "am: duplicates") {
		t.Errorf("what was looked at needs attention:\n%s", status)
	}
	metrics := h.Metrics(t)
	for _, line := range []string{`hooklock_duplicates_changed_total{route="am"} 2`,
		`hooklock_duplicates_changed_total{route="watched"} 2`,
		`hooklock_key_extractions_total{part="event_id",result="placeholder",route="syslog"} 2`} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %s in the metrics", line)
		}
	}
	if found := cli(t, h, "executions", "get",
		r.Routes[0].Changed.Examples[0].ExecutionID); !regexp.MustCompile(`replayed +200 .* body `).MatchString(found) {
		t.Errorf("the story does not say what differs:\n%s", found)
	}
}
