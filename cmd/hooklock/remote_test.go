package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"hooklock/admin"
	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/remote"
)

// adminAPI gives the answers of the admin API that a test names by "METHOD /path", and remembers
// what it was asked.
type adminAPI struct {
	url     string
	answers map[string]string // a status, a space, and a body

	mu    sync.Mutex
	asked []string
	token string
}

func (a *adminAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.asked = append(a.asked, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)))
	a.token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	a.mu.Unlock()
	text := a.answers[r.Method+" "+r.RequestURI]
	if text == "" {
		text = a.answers["*"]
	}
	status := map[string]int{
		"200": 200, "201": 201, "202": 202, "400": 400, "401": 401, "403": 403, "404": 404, "409": 409, "412": 412,
		"421": 421, "429": 429, "502": 502, "503": 503}[text[:3]]
	w.Header().Set("Content-Type", "application/json")
	if status == 429 {
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text[4:])
}

func (a *adminAPI) last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[len(a.asked)-1]
}

func serveAPI(t *testing.T, answers map[string]string) *adminAPI {
	t.Helper()
	a := &adminAPI{answers: answers}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// command runs the program in an empty folder.
func command(t *testing.T, env []string, args ...string) (code int, out, problems string) {
	t.Helper()
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), args, env, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

const (
	id        = "exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra"
	lockJSON  = `{"workflow":"stripe/acme","executionId":"` + id + `","holder":"host/1/s","token":42,"lockedAt":"2026-11-21T10:00:00.000Z","expiresAt":"2026-11-21T11:00:00.000Z","heldFor":75,"expiresIn":3525,"held":false,"waiting":3,"isStale":false,"new":1}`
	staleJSON = `{"workflow":"w\u001b[31m\u202e界","executionId":"exec_b","holder":"\u001b]0;evil\u0007","token":1,"lockedAt":"2026-11-21T10:00:00.000Z","heldFor":0,"held":true,"waiting":0,"isStale":true}`
	endedJSON = `{"executionId":"` + id + `","workflow":"stripe/acme","route":"stripe","idempotencyKey":"k","eventId":"evt_1","status":"FAILED","outcome":"unknown","token":42,` +
		`"holder":"h","attempt":2,"startedAt":"2026-11-21T10:00:00.000Z","finishedAt":"2026-11-21T10:00:01.500Z","error":{"code":"upstream_failed","detail":"reset"},` +
		`"steps":[{"name":"charge","status":"done","startedAt":"2026-11-21T10:00:00.000Z","finishedAt":"2026-11-21T10:00:00.250Z"},{"name":"mail","status":"skipped"}],"duplicates":4,"traceId":"t"}`
)

func TestLocksListShowsEachHolderInColumns(t *testing.T) {
	api := serveAPI(t, map[string]string{
		"GET /v1/locks?limit=200&prefix=s":           `200 {"locks":[` + strings.Replace(lockJSON, `"new":1`, `"eventId":"evt_1"`, 1) + `],"nextCursor":"c2"}`,
		"GET /v1/locks?cursor=c2&limit=200&prefix=s": `200 {"locks":[` + staleJSON + `],"nextCursor":""}`,
	})
	code, out, problems := command(t, nil, "locks", "list", "--prefix", "s", "--admin", api.url)
	want := `WORKFLOW     STATE    AGE    LEFT   WAITING  EVENT  EXECUTION                              HOLDER
stripe/acme  running  1m15s  58m45s  3        evt_1  exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra  host/1/s
w\x1b[31m\u202e界  held,stale  0s     -       0        -      exec_b                                 \x1b]0;evil\x07
`
	if code != cli.ExitFine || problems != "" ||
		strings.Join(strings.Fields(out), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("%d %s\n%s", code, problems, out)
	}
}

func TestAListIsALineForEachItemForASpreadsheet(t *testing.T) {
	api := serveAPI(t, map[string]string{
		"GET /v1/locks?limit=200":      `200 {"locks":[` + strings.Replace(lockJSON, `"new":1`, `"eventId":"evt_1"`, 1) + `],"nextCursor":""}`,
		"GET /v1/executions?limit=1":   `200 {"executions":[` + strings.Replace(endedJSON, `"eventId"`, `"labels":{"order":"1042"},"eventId"`, 1) + `],"nextCursor":"c2"}`,
		"GET /v1/executions/" + id:     "200 " + endedJSON,
		"GET /v1/executions?limit=200": `200 {"executions":[],"nextCursor":""}`,
	})
	code, out, problems := command(t, nil, "locks", "list", "-o", "csv", "--admin", api.url)
	want := "workflow,state,locked_at,expires_at,waiting,event,execution,holder\nstripe/acme,running,2026-11-21T10:00:00Z,2026-11-21T11:00:00Z,3,evt_1," + id + ",host/1/s\n"
	if code != cli.ExitFine || problems != "" || out != want {
		t.Errorf("%d %s\n%s", code, problems, out)
	}
	code, out, problems = command(t, nil, "events", "--limit", "1", "-o", "csv", "--admin", api.url)
	if lines := strings.Split(out, "\n"); code != cli.ExitFine || !strings.Contains(problems, "--cursor c2") ||
		len(lines) != 3 || lines[0] !=
		"time,event,route,workflow,status,outcome,what_happened,told,duration_seconds,attempt,duplicates,labels,execution,trace" ||
		!strings.Contains(lines[1], ",evt_1,stripe,stripe/acme,FAILED,unknown,") ||
		!strings.HasSuffix(lines[1], ",order=1042,"+id+",t") {
		t.Errorf("%d %s\n%s", code, problems, out)
	}
	for _, args := range [][]string{
		{"executions", "get", id, "-o", "csv"}, {"events", "--watch", "-o", "csv"}, {"status", "-o", "csv"}} {
		if code, out, problems := command(t, nil, append(args, "--admin", api.url)...); code != cli.ExitUsage ||
			out != "" || !strings.Contains(problems, "csv") {
			t.Errorf("%q: %d %s%s", args, code, out, problems)
		}
	}
}

func TestAListIsOneJSONDocumentOfTheAPIsShapes(t *testing.T) {
	api := serveAPI(t, map[string]string{
		"GET /v1/locks?limit=200":           `200 {"locks":[` + lockJSON + `],"nextCursor":"c2"}`,
		"GET /v1/locks?cursor=c2&limit=200": `200 {"locks":[` + staleJSON + `],"nextCursor":""}`,
		"GET /v1/locks?limit=1":             `200 {"locks":[` + lockJSON + `],"nextCursor":"c2"}`,
		"GET /v1/locks?limit=200&prefix=x":  `200 {"locks":[],"nextCursor":""}`,
	})
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, `{"locks":[` + lockJSON + `,` + staleJSON + `],"nextCursor":""}`},
		{[]string{"--limit", "1"}, `{"locks":[` + lockJSON + `],"nextCursor":"c2"}`},
		{[]string{"--prefix", "x"}, `{"locks":[],"nextCursor":""}`},
	} {
		code, out, problems := command(t, []string{"HOOKLOCK_ADMIN=" + api.url},
			append([]string{"locks", "list", "-o", "json"}, c.args...)...)
		var got, want any
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if a, b := encoded(t, got), encoded(t, want); code != cli.ExitFine || problems != "" || a != b {
			t.Errorf("%v: %d %s\n%s\n%s", c.args, code, problems, a, b)
		}
		if strings.ContainsAny(out, "\x1b\u202e\x07") {
			t.Errorf("a control character in %q", out)
		}
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestExecutionsAreShownWithAllThatMatters(t *testing.T) {
	api := serveAPI(t, map[string]string{
		"GET /v1/executions?limit=200&status=CANCEL_REQUESTED&workflow=stripe%2Facme": `200 {"executions":[` + endedJSON + `],"nextCursor":""}`,
		"GET /v1/executions/" + id:               "200 " + endedJSON,
		"GET /v1/executions/" + id + "?wait=30s": "200 " + endedJSON,
	})
	code, out, problems := command(t, nil, "executions", "list", "--workflow", "stripe/acme", "--status",
		"cancel-requested", "--admin", api.url)
	for _, text := range []string{"EXECUTION ", " STATUS ", " DUPLICATES ", id + "  FAILED  unknown", " 1.5s  2        4           stripe/acme  evt_1  upstream_failed: reset\n"} {
		if !strings.Contains(out, text) {
			t.Errorf("no %q in\n%s", text, out)
		}
	}
	if code != cli.ExitFine || problems != "" {
		t.Errorf("%d %s", code, problems)
	}
	code, out, problems = command(t, nil, "executions", "get", id, "--wait", "30s", "--admin", api.url)
	for _, text := range []string{
		"status      FAILED\n", "error       upstream_failed: reset\n", "(it took 1.5s)", "duplicates  4\n",
		"\ncharge  done ", " 250ms\n", "mail    skipped  -"} {
		if !strings.Contains(out, text) {
			t.Errorf("no %q in\n%s", text, out)
		}
	}
	if code != cli.ExitFine || problems != "" {
		t.Errorf("%d %s", code, problems)
	}
	if _, out, _ = command(t, nil, "executions", "get", id, "-o", "json", "--admin", api.url); !strings.Contains(out,
		"\n  \"executionId\": \""+id+"\",\n") {
		t.Errorf("got %s", out)
	}
}

func TestChangesSayWhatTheyDid(t *testing.T) {
	api := serveAPI(t, map[string]string{
		"DELETE /v1/locks/stripe%2Facme?execution=" + id + "&reason=stuck": "200 " + endedJSON,
		"POST /v1/executions/" + id + "/cancel":                            `202 {"executionId":"` + id + `","status":"CANCEL_REQUESTED","holder":"host/1/s","success":true,"message":"it is told to stop"}`,
		"DELETE /v1/executions/" + id + "?reason=again":                    "200 " + endedJSON,
	})
	for _, c := range []struct{ args, asked, says string }{
		{"locks release stripe/acme --execution " + id + " --reason stuck",
			"DELETE /v1/locks/stripe%2Facme?execution=" + id + "&reason=stuck", "stripe/acme is released"},
		{"executions cancel " + id + " --final --reason wrong", "POST /v1/executions/" + id + `/cancel {"reason":"wrong","final":true}`, id + " is CANCEL_REQUESTED: host/1 has been told to end it\n"},
		{"executions forget " + id + " --reason again", "DELETE /v1/executions/" + id + "?reason=again",
			"its event may run again"},
	} {
		code, out, problems := command(t, []string{"HOOKLOCK_ADMIN=" + api.url}, strings.Fields(c.args)...)
		if code != cli.ExitFine || problems != "" || !strings.Contains(out, c.says) || api.last() != c.asked {
			t.Errorf("%s: %d %s%s, asked %s", c.args, code, out, problems, api.last())
		}
		code, out, _ = command(t, []string{"HOOKLOCK_ADMIN=" + api.url},
			append(strings.Fields(c.args), "-o", "json")...)
		if !json.Valid([]byte(out)) || code != cli.ExitFine {
			t.Errorf("%s: %d %s", c.args, code, out)
		}
	}
}

func TestEveryRefusalHasItsExitCodeAndSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		code         int
		says         string
	}{
		{"free", `404 {"code":"lock_not_found","detail":"the lock is free"}`, cli.ExitNotFound, "lock_not_found: the lock is free"},
		{"nobody", `404 {"code":"execution_not_found","detail":"no trace"}`, cli.ExitNotFound, "execution_not_found"},
		{"unkept", `404 {"code":"answer_not_kept","detail":"there was none"}`, cli.ExitNotFound, "answer_not_kept: there was none\n"},
		{"ended", `400 {"code":"already_finished","detail":"it is SUCCESS"}`, cli.ExitRefused, "it is SUCCESS"},
		{"alive", `409 {"code":"execution_in_flight","detail":"it runs"}`, cli.ExitRefused, "it runs"},
		{"another holder", `412 {"code":"lock_lost","detail":"another has it","executionId":"exec_b"}`, cli.ExitRefused, "another has it; the holder is exec_b"},
		{"bad ID", `400 {"code":"bad_request","detail":"no ID"}`, cli.ExitUsage, "no ID"},
		{"no token", `401 {"code":"unauthorized","detail":"give a token"}`, cli.ExitFailed, "there is no hooklock-data/admin.token here; give --token-file FILE (serve wrote one to <data_dir>/admin.token)"},
		{"no scope", `403 {"code":"forbidden","detail":"the token lacks the scope write"}`, cli.ExitFailed, "admin.tokens"},
		{"a name", `421 {"code":"host_refused","detail":"no"}`, cli.ExitFailed, "admin.hosts"},
		{"too fast", `429 {"code":"rate_limited","detail":"slower"}`, cli.ExitFailed, "try again in 5s"},
		{"no etcd", `503 {"code":"store_unavailable","detail":"etcd is away"}`, cli.ExitFailed, "etcd is away"},
		{"the health listener", `404 {"code":"not_found","detail":"there is /livez"}`, cli.ExitFailed, "this is no admin listener"},
		{"the door of senders", `404 {"code":"route_not_found","detail":"no route"}`, cli.ExitFailed, "this is no admin listener"},
		{"the door before a service that is away", `502 {"code":"upstream_unreachable","detail":"no byte was sent"}`, cli.ExitFailed, "this is no admin listener"},
		{"another server", `404 <html>`, cli.ExitFailed, "name Hooklock's admin listener with --admin"},
		{"one with TLS", `400 Client sent an HTTP request to an HTTPS server.`, cli.ExitFailed, "https://"},
		{"an escape", `404 {"code":"lock_not_found","detail":"\u001b[2Jgone"}`, cli.ExitNotFound, `\x1b[2Jgone`},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := serveAPI(t, map[string]string{"*": c.answer})
			code, out, problems := command(t, nil, "executions", "get", id, "--admin", api.url)
			if code != c.code || out != "" || !strings.HasPrefix(problems, "hooklock: ") ||
				!strings.Contains(problems, c.says) || strings.Count(problems, "\n") != 1 {
				t.Errorf("%d %s%s", code, out, problems)
			}
		})
	}
}

func TestNoServerThereSaysHowToStartOneOrNameIt(t *testing.T) {
	for _, c := range []struct{ admin, says string }{
		{"127.0.0.1:1", "start it (hooklock serve), or name its admin listener with --admin or HOOKLOCK_ADMIN"},
		{"unix:///nowhere.sock", "start it (hooklock serve)"},
	} {
		code, _, problems := command(t, nil, "locks", "list", "--admin", c.admin)
		if code != cli.ExitFailed || !strings.Contains(problems, c.says) {
			t.Errorf("%s: %d %s", c.admin, code, problems)
		}
	}
}

func TestMistakesOfUsageAreFoundBeforeAnythingIsSent(t *testing.T) {
	api := serveAPI(t, nil)
	for args, says := range map[string]string{
		"locks lst":                                     `unknown command "lst" for hooklock locks; hooklock locks --help lists them; did you mean list?`,
		"locks list extra":                              "takes no arguments",
		"locks get":                                     "takes one WORKFLOW",
		"locks get a b":                                 "takes one WORKFLOW",
		"locks list -o xml":                             "use table, wide, json, yaml",
		"locks list --limit -1":                         "from 0 on",
		"locks release w --reason r":                    "needs --execution",
		"locks release w --execution exec_a":            "needs --reason",
		"executions cancel exec_a":                      "needs --reason",
		"executions cancel exec_a --reason= --final":    "needs --reason",
		"executions forget exec_a":                      "needs --reason",
		"executions get":                                "takes one ID",
		"executions get exec_a --wait -1s":              "not negative",
		"pause route:r --reason x --until -5m":          "how long the pause lasts",
		"pause route:r --reason x --until 0s":           "how long the pause lasts",
		"executions get exec_a --wait 30":               "hooklock executions get --help",
		"executions list --status DONE":                 "use PENDING, RUNNING, CANCEL_REQUESTED, SUCCESS, FAILED, ABORTED",
		"executions list --token-file none":             "--token-file: read token file: open none",
		"executions list --config none.yaml":            "none.yaml",
		"executions list --admin ftp://x":               "--admin ftp://x",
		"executions list --admin http://me:secret@x":    "--admin http://…@x: URL: write it as http://HOST:PORT",
		"executions list --ca-file none":                "begins with https://",
		"executions list --admin https://a --ca-file x": "read CA file",
	} {
		code, out, problems := command(t, []string{"HOOKLOCK_ADMIN=" + api.url}, strings.Fields(args)...)
		if code != cli.ExitUsage || out != "" || !strings.Contains(problems, says) {
			t.Errorf("%s: %d %s%s", args, code, out, problems)
		}
	}
	if code, _, problems := command(t, []string{"HOOKLOCK_TOKEN_FILE=none"}, "locks", "list"); code != cli.ExitUsage ||
		!strings.Contains(problems, "HOOKLOCK_TOKEN_FILE: read token file: open none") {
		t.Errorf("%d %s", code, problems)
	}
	if len(api.asked) != 0 {
		t.Errorf("asked %v", api.asked)
	}
}

func TestTheGeneratedTokenIsFoundAndStaysOnThisMachine(t *testing.T) {
	api := serveAPI(t, map[string]string{"*": `200 {"locks":[],"nextCursor":""}`})
	data := t.TempDir()
	token := write(t, "token", "given\n")
	other := write(t, "other", "other\n")
	if err := os.WriteFile(filepath.Join(data, admin.TokenFile), []byte("generated\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := write(t, "sidecar.yaml",
		"upstream: http://127.0.0.1:1\ndata_dir: "+data+"\nadmin: {listen: "+strings.TrimPrefix(api.url, "http://")+
			"}\n")
	for _, c := range []struct {
		env  []string
		args []string
		want string
	}{
		{nil, []string{"--admin", api.url}, ""},
		{nil, []string{"--config", config}, "generated"},
		// as in a pod
		{[]string{"HOOKLOCK__ADMIN__LISTEN=" + strings.TrimPrefix(api.url, "http://"), "HOOKLOCK__DATA_DIR=" + data},
			nil, "generated"},
		{[]string{"HOOKLOCK_TOKEN_FILE=" + other}, []string{"--config", config}, "other"},
		{[]string{"HOOKLOCK_TOKEN_FILE=" + other, "HOOKLOCK_ADMIN=http://127.0.0.1:1"},
			[]string{"--token-file", token, "--admin", api.url}, "given"},
	} {
		code, _, problems := command(t, c.env, append([]string{"locks", "list"}, c.args...)...)
		if code != cli.ExitFine || api.token != c.want {
			t.Errorf("%v %v: %d %s, token %q", c.env, c.args, code, problems, api.token)
		}
	}
	free := write(t, "sidecar.yaml", "upstream: http://127.0.0.1:1\nadmin: {listen: \"127.0.0.1:0\"}\n")
	if code, _, problems := command(t, nil, "locks", "list", "--config", free); code != cli.ExitUsage ||
		!strings.Contains(problems, "name it with --admin") {
		t.Errorf("%d %s", code, problems)
	}
	for _, c := range []struct {
		url   string
		local bool
	}{
		{"http://127.0.0.1:8079", true}, {"http://[::1]:8079", true}, {"https://LOCALHOST", true}, {"unix:///x", true},
		{"http://127.9.9.9/x", true},
		{"http://10.0.0.1:8079", false}, {"http://127.0.0.1.evil.example", false},
		{"http://localhost.evil.example:1", false}, {"http://evil.example/127.0.0.1", false},
	} {
		if remote.IsLocal(c.url) != c.local {
			t.Errorf("%s: local is %v", c.url, !c.local)
		}
	}
}

func TestAChangeWhoseAnswerIsLostSaysHowToLook(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}))
	defer server.Close()
	code, _, problems := command(t, nil, "executions", "cancel", id, "--reason", "r", "--admin", server.URL)
	if code != cli.ExitFailed ||
		!strings.Contains(problems, "it may have been done all the same: hooklock show "+id+" tells") {
		t.Errorf("%d %s", code, problems)
	}
	if code, _, problems = command(t, nil, "executions", "get", id, "--admin", server.URL); code != cli.ExitFailed ||
		strings.Contains(problems, "all the same") {
		t.Errorf("%d %s", code, problems)
	}
}

func TestAChangeWhoseAnswerEtcdOwesSaysHowToLook(t *testing.T) {
	api := serveAPI(t, map[string]string{"*": `503 {"code":"store_unavailable","detail":"etcd does not answer in time: whether this was done is not known"}`})
	for args, look := range map[string]string{
		"pause route:r --reason r":                "hooklock pauses tells",
		"executions forget " + id + " --reason r": "hooklock show " + id + " tells"} {
		code, _, problems := command(t, nil, append(strings.Fields(args), "--admin", api.url)...)
		if code != cli.ExitFailed || !strings.Contains(problems, look) {
			t.Errorf("%s: %d %s", args, code, problems)
		}
	}
}

func TestAnInterruptEndsAWait(t *testing.T) {
	arrived, over := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(
		http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) { close(arrived); <-over }))
	defer server.Close()
	defer close(over)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var out, problems bytes.Buffer
	go func() {
		ended <- run(ctx, []string{"executions", "get", id, "--wait", "1h", "--admin", server.URL}, nil, &out,
			&problems)
	}()
	<-arrived
	cancel()
	if code := <-ended; code != cli.ExitFailed || problems.String() != "hooklock: interrupted\n" || out.Len() != 0 {
		t.Errorf("%d %s%s", code, &out, &problems)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "out.json", Err: syscall.ENOSPC}
}

func TestAFullDiskIsNotTheServersFault(t *testing.T) {
	api := serveAPI(t, map[string]string{"*": "200 " + endedJSON})
	var problems bytes.Buffer
	code := run(t.Context(), []string{"executions", "get", id, "-o", "json", "--admin", api.url}, nil, full{},
		&problems)
	if code != cli.ExitFailed || problems.String() != "hooklock: write out.json: no space left on device\n" {
		t.Errorf("%d %s", code, &problems)
	}
}

func TestSpansAreReadable(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 250 * time.Millisecond: "250ms", 1500 * time.Millisecond: "1.5s",
		2 * time.Second: "2s", 59 * time.Second: "59s", time.Minute: "1m", 75 * time.Second: "1m15s", time.Hour: "1h",
		90*time.Minute + time.Second: "1h30m", 26 * time.Hour: "1d2h", 24 * time.Hour: "1d",
	} {
		if got := cli.Span(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}

func TestColumnsCountWhatATerminalShows(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "ä": 1, "a\u0308": 1, "界": 2, "한글": 4, "🔒": 2, "👩‍💻": 2, "→": 1} {
		if got := cli.Width(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	if got := cli.Clip("界界界界", 6); got != "界界…" {
		t.Errorf("got %q", got)
	}
}

func FuzzNothingFromAServerReachesTheTerminalRaw(f *testing.F) {
	f.Add("w\x1b[31m\u202e\x9b\u009b\u2028界\xff\U000e0001")
	f.Fuzz(func(t *testing.T, text string) {
		if shown := cli.Plain(text); strings.ContainsFunc(shown, cli.Odd) || cli.Plain(shown) != shown {
			t.Errorf("%q is shown as %q", text, shown)
		}
		raw, err := json.Marshal(client.Lock{Workflow: text, Holder: text})
		if err != nil {
			t.Fatal(err)
		}
		line, err := cli.JSONLine(raw)
		if err != nil {
			t.Fatal(err)
		}
		var before, after client.Lock
		if json.Unmarshal(raw, &before) != nil || text == "" {
			return
		}
		if err := json.Unmarshal(line, &after); err != nil || before.Workflow != after.Workflow ||
			bytes.ContainsFunc(line, cli.Odd) {
			t.Errorf("%s became %s: %v", raw, line, err)
		}
	})
}

// What reads JSON or YAML reads nothing else.
func TestWatchKeepsFailuresOutOfWhatProgramsRead(t *testing.T) {
	for format, decoderOf := range map[string]func(io.Reader) interface{ Decode(into any) error }{
		"json": func(r io.Reader) interface{ Decode(into any) error } { return json.NewDecoder(r) },
		"yaml": func(r io.Reader) interface{ Decode(into any) error } { return yaml.NewDecoder(r) },
	} {
		t.Run(format, func(t *testing.T) {
			t.Chdir(t.TempDir())
			ctx, enough := context.WithCancel(t.Context())
			defer enough()
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch asked++; asked {
				case 1:
					w.WriteHeader(http.StatusServiceUnavailable)
					_, _ = io.WriteString(w, `{"status":503,"code":"store_unavailable","detail":"etcd is away"}`)
					return
				case 4:
					enough()
				}
				_, _ = io.WriteString(w, `{"locks":[`+lockJSON+`],"nextCursor":""}`)
			}))
			defer server.Close()
			var stdout, stderr bytes.Buffer
			if code := run(ctx, []string{"locks", "list", "-o", format, "--watch=500ms", "--admin", server.URL}, nil,
				&stdout, &stderr); code != cli.ExitFine {
				t.Errorf("exit code %d", code)
			}
			decoder := decoderOf(&stdout)
			for range 2 {
				var page struct{ Locks []any }
				if err := decoder.Decode(&page); err != nil || len(page.Locks) != 1 {
					t.Fatalf("%+v %v", page, err)
				}
			}
			if !strings.Contains(stderr.String(), "etcd is away") {
				t.Errorf("%s", &stderr)
			}
		})
	}
}

func TestWatchEndsAtAMistake(t *testing.T) {
	api := serveAPI(t, map[string]string{"*": `400 {"status":400,"code":"bad_request","detail":"no such prefix"}`})
	for _, mistake := range []string{"--limit=-1", "--prefix=mistake"} {
		if code, _, problems := command(t, nil, "locks", "list", "--watch=500ms", mistake, "--admin",
			api.url); code != cli.ExitUsage {
			t.Errorf("%s: exit code %d: %s", mistake, code, problems)
		}
	}
}
