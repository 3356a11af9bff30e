package e2e

import (
	"crypto/md5" //nolint:gosec // curl answers a challenge without algorithm with MD5 (RFC 7616 section 3.3)
	"encoding/hex"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

const digestChallenge = `WWW-Authenticate: Digest realm="legacy", qop="auth", nonce="c2VydmVyLW5vbmNl"`

// digestService asks for Digest, and takes the user legacy with the password that is planted. It
// answers others 401.
func digestService(r *testkit.Received) string {
	given := map[string]string{}
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	for part := range strings.SplitSeq(rest, ", ") {
		name, value, _ := strings.Cut(part, "=")
		given[strings.TrimSpace(name)] = strings.Trim(value, `"`)
	}
	digest := func(text string) string {
		sum := md5.Sum([]byte(text)) //nolint:gosec // see above
		return hex.EncodeToString(sum[:])
	}
	want := digest(strings.Join([]string{
		digest("legacy:legacy:" + planted), given["nonce"], given["nc"], given["cnonce"], given["qop"],
		digest("POST:" + r.Target),
	}, ":"))
	if scheme != "Digest" || given["response"] != want {
		return testkit.Reply(401, "who are you?", digestChallenge)
	}
	return testkit.OK("charged " + r.Body)
}

// curl posts a body with Digest, and returns the status and what it printed.
func curl(t *testing.T, url, body string, lines ...string) (status, printed string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	args := []string{"-sS", "--max-time", "20", "--digest", "-u", "legacy:" + planted, "-d", body, "-w",
		"\n%{http_code}"}
	for _, line := range append(lines, "Content-Type: application/json") {
		args = append(args, "-H", line)
	}
	out, err := exec.CommandContext(t.Context(), "curl", append(args, url)...).CombinedOutput()
	if err != nil {
		t.Fatalf("curl: %v\n%s", err, out)
	}
	at := strings.LastIndexByte(string(out), '\n')
	return string(out)[at+1:], string(out)[:at]
}

func TestASenderThatAnswersADigestChallengeIsServedWhereverItsNamesAre(t *testing.T) {
	t.Parallel()
	for name, route := range map[string]string{
		"names in the header": `workflow: "w/{header.X-Account}", event_id: "{header.X-Id}"`,
		"names in the body":   `workflow: "w/{body.account}", event_id: "{body.id}", on_missing_event_id: reject`,
		"accepted at once":    `workflow: "w/{body.account}", event_id: "{body.id}", park: {enabled: true, after: 0s, on: [locked]}`,
		"skipped while busy":  `workflow: "w/{header.X-Account}", event_id: "{header.X-Id}", lock: {strategy: skip}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := testkit.NewUpstream(t, digestService)
			h := own(t, bare(up.URL, "routes: [{name: d, path: /d, digest: true, "+route+"}]"))
			for i, want := range []string{"charged", ""} {
				const body = `{"id":"1","account":"a"}`
				status, printed := curl(t, "http://"+h.Addr+"/d", body, "X-Id: 1", "X-Account: a")
				switch {
				case strings.Contains(route, "park"):
					if i == 0 && status != "202" || i == 1 && status != "202" && status != "200" {
						t.Errorf("time %d: %s %s", i+1, status, printed)
					}
					testkit.Until(t, "the accepted event ran", func() bool { return ran(up, body) == 1 })
				case status != "200" || !strings.HasPrefix(printed, want):
					t.Errorf("time %d: %s %s", i+1, status, printed)
				}
			}
			if n := ran(up, `{"id":"1","account":"a"}`); n != 1 {
				t.Errorf("the event ran %d times", n)
			}
		})
	}
}

// ran returns how many requests with that body the service took.
func ran(up *testkit.Upstream, body string) (n int) {
	for _, r := range up.Received("/d") {
		if r.Body == body && r.Header.Get("Authorization") != "" {
			n++
		}
	}
	return n
}

func TestAChallengeIsNoOutcomeOfItsEvent(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, digestService)
	h := own(t, bare(up.URL, `
routes:
  - {name: plain, path: /d, workflow: "{header.X-Account}", event_id: "{header.X-Id}"}
  - {name: keeps, path: /keeps, event_id: "{header.X-Id}", idempotency: {keep: [2xx, 4xx], on_unknown: block}}
  - {name: watch, path: /watch, event_id: "{header.X-Id}", mode: observe}
`))
	for path, decision := range map[string]string{"/d": "challenged", "/keeps": "challenged",
		"/watch": "bypassed; would=challenged"} {
		for range 2 {
			a := testkit.Post(t, h.Addr, path, "{}", "X-Id: 1", "X-Account: a")
			passed(t, a, 401, "who are you?", decision)
			if a.Header.Get("Www-Authenticate") != strings.TrimPrefix(digestChallenge, "WWW-Authenticate: ") {
				t.Errorf("its challenge did not pass: %v", a)
			}
			status, body := asked(t, h, "GET", "/v1/executions/"+a.Execution(), "", "")
			if status != 404 {
				t.Errorf("%s: it has a record: %v", path, body)
			}
		}
	}
	status, _ := curl(t, "http://"+h.Addr+"/d", `{"id":1}`, "X-Id: 2", "X-Account: a")
	if status != "200" {
		t.Errorf("curl got %s", status)
	}
	testkit.Until(t, "the events are found as they came, and as nothing else", func() bool {
		_, found := asked(t, h, "GET", "/v1/executions?event=1&decision=challenged", "", "")
		text := fmt.Sprint(found)
		return strings.Count(text, "challenged:2") == 2 && strings.Count(text, "bypassed:2") == 1 &&
			!strings.Contains(text, "FAILED")
	})
	wrong := testkit.Post(t, h.Addr, "/d", "{}", "X-Id: 3", "X-Account: a",
		`Authorization: Digest username="legacy", response="0"`)
	passed(t, wrong, 401, "who are you?", "executed") // credentials that are refused are a failure
}

// Without the setting, nothing unnamed reaches the service.
func TestARequestWithoutNamesIsRejectedAlsoIfItMightAskForAChallenge(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, digestService)
	h := own(t, bare(up.URL, `
routes:
  - {name: off, path: /off, workflow: "{body.account}"}
  - {name: on, path: /on, workflow: "{body.account}", digest: true}
`))
	refused{400, "workflow_missing", "no", "rejected"}.check(t, testkit.Post(t, h.Addr, "/off", ""))
	for name, request := range map[string]string{
		"with a body":        testkit.Request("/on", "{}"),
		"with Authorization": testkit.Request("/on", "", "Authorization: Digest x"),
	} {
		a := testkit.Exchange(t, h.Addr, request)
		if a.Status != 400 || a.Decision() != "rejected" {
			t.Errorf("%s: %v", name, a)
		}
	}
	if n := len(up.Received("/off")) + len(up.Received("/on")); n != 0 {
		t.Errorf("%d requests reached the service", n)
	}
	passed(t, testkit.Post(t, h.Addr, "/on", ""), 401, "who are you?", "bypassed; would=executed")
}

func TestAServiceThatDoesNotChallengeIsNamedInTheLog(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("open") })
	h := own(t, bare(up.URL, `routes: [{name: d, path: /d, workflow: "{body.account}", digest: true}]`))
	passed(t, testkit.Post(t, h.Addr, "/d", ""), 200, "open", "bypassed; would=executed")
	h.Stderr.AwaitRecord(t, "challenge.missing", func(r testkit.Record) bool {
		return r.Text("route") == "d" && fmt.Sprint(r.Number("status")) == "200"
	})
}
