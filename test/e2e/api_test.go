package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hooklock/proxy/wiretest"
	"hooklock/test/testkit"
)

// apiConfig is the shared one with an admin section and a prefix of this test's own.
func apiConfig(name, admin string) string {
	return strings.Replace(shared.config(name, ""), `admin: {listen: "127.0.0.1:0"}`, "admin: "+admin, 1)
}

// asked asks the admin API of h.
func asked(t *testing.T, h *testkit.Hooklock, method, path, token, body string) (int, map[string]any) {
	t.Helper()
	client := &http.Client{Timeout: testkit.Patience}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+h.Admin+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	a, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if len(text) > 0 && json.Unmarshal(bytes.TrimSpace(text), &answer) != nil {
		answer = map[string]any{"text": string(text)}
	}
	return a.StatusCode, answer
}

// localToken is the token that h has generated.
func localToken(t *testing.T, h *testkit.Hooklock) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(h.Config), "hooklock-data", "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestWithoutTokensOneIsGeneratedForThisMachineAndKept(t *testing.T) {
	t.Parallel()
	config := shared.config("generated", "")
	h := own(t, config)
	path := filepath.Join(filepath.Dir(h.Config), "hooklock-data", "admin.token")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	token := localToken(t, h)
	if status, a := asked(t, h, "GET", "/v1/locks", "", ""); status != 200 {
		t.Errorf("a read without token: %d %v", status, a)
	}
	const acquire, body = "/v1/locks/w/acquire", `{"ttl":"1m"}`
	if status, _ := asked(t, h, "POST", acquire, "", body); status != 401 {
		t.Errorf("a change without token: %d", status)
	}
	status, lock := asked(t, h, "POST", acquire, token, body)
	if status != 201 || lock["holder"] != "admin" {
		t.Errorf("a change with it: %d %v", status, lock)
	}
	if strings.Contains(h.Stderr.String(), token) {
		t.Error("the token is in the log")
	}
	line := h.Stderr.AwaitRecord(t, "admin.audit", func(r testkit.Record) bool { return r.Text("result") == "done" })
	if line.Text("who") != "admin" || line.Text("what") != "lock.acquire" || line.Text("workflow") != "w" {
		t.Errorf("%v", line)
	}
	again := testkit.Start(t, testkit.Command{Program: hooklockProgram, Args: []string{"serve", "--config", h.Config},
		Dir: filepath.Dir(h.Config)})
	defer leave(t, again)
	second := &testkit.Hooklock{Process: again, Config: h.Config}
	second.AwaitReady(t)
	if localToken(t, second) != token {
		t.Error("a second start made another token")
	}
	claim := fmt.Sprintf(`{"executionId":%q,"token":%.0f}`, lock["executionId"], lock["token"])
	if status, a := asked(t, second, "POST", "/v1/locks/w/release", token, claim); status != 204 {
		t.Errorf("released at another replica: %d %v", status, a)
	}
}

func TestWithoutTokensOtherMachinesAreNotLetIn(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0"} {
		p := testkit.StartServe(t, hooklockProgram, apiConfig("open", fmt.Sprintf("{listen: %q}", listen)))
		if code := p.ExitCode(t); code != 78 || !strings.Contains(p.Stderr.String(), "admin.tokens") {
			t.Errorf("%s: exit %d: %s", listen, code, p.Stderr)
		}
	}
}

func TestWhereTheTokenCannotBeKeptTheAPITakesNoChanges(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	h := testkit.Serve(t, hooklockProgram, "data_dir: "+filepath.Join(file, "data")+"\n"+shared.config("readonly", ""))
	defer h.Kill()
	h.Stderr.AwaitRecord(t, "admin.read_only", nil)
	if status, _ := asked(t, h, "GET", "/v1/locks", "", ""); status != 200 {
		t.Errorf("a read: %d", status)
	}
	if status, _ := asked(t, h, "POST", "/v1/locks/w/acquire", "guess", `{"ttl":"1m"}`); status != 401 {
		t.Errorf("a change: %d", status)
	}
}

func TestTokensScopesAndPatternsAreReloaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := func(name string) (path, token string) {
		path, token = filepath.Join(dir, name), strings.Repeat(name, 8)
		write(t, path, token+"\n")
		return path, token
	}
	opsFile, ops := secret("opsops")
	billingFile, billing := secret("billing")
	tokens := func(list string) string {
		return apiConfig("tokens", `{listen: "127.0.0.1:0", hosts: [hooklock.internal], tokens: [`+list+`]}`)
	}
	h := own(t, tokens(fmt.Sprintf("{name: ops, token_file: %q, scopes: [read, write]}", opsFile)))
	if _, err := os.Stat(filepath.Join(filepath.Dir(h.Config), "hooklock-data", "admin.token")); err == nil {
		t.Error("a token was generated beside configured ones")
	}
	for token, want := range map[string]int{"": 401, ops: 200, billing: 401} {
		if status, _ := asked(t, h, "GET", "/v1/locks", token, ""); status != want {
			t.Errorf("%.10s: %d, want %d", token, status, want)
		}
	}
	write(t, h.Config, tokens(fmt.Sprintf(`{name: billing, token_file: %q, scopes: [read], workflows: ["plain/*"]}`,
		billingFile)))
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	for token, want := range map[string]int{ops: 401, billing: 200} {
		if status, _ := asked(t, h, "GET", "/v1/locks", token, ""); status != want {
			t.Errorf("after the reload %.10s: %d, want %d", token, status, want)
		}
	}
	if status, _ := asked(t, h, "POST", "/v1/locks/plain%2Fx/acquire", billing, `{"ttl":"1m"}`); status != 403 {
		t.Errorf("a change with scope read: %d", status)
	}
	host := "GET /v1/locks HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer " + billing + "\r\n\r\n"
	for name, want := range map[string]int{"hooklock.internal": 200, "evil.example": 421} {
		if a := testkit.Exchange(t, h.Admin, fmt.Sprintf(host, name)); a.Status != want {
			t.Errorf("Host %s: %d", name, a.Status)
		}
	}
}

// A token that the file has no more ends with the file, also where the rest of it needs a restart.
// What reads the file again is left to the generated one.
func TestATokenEndsWithTheFileThatHasItNoMore(t *testing.T) {
	t.Parallel()
	opsFile := filepath.Join(t.TempDir(), "ops")
	otherFile, ops := opsFile+".other", strings.Repeat("opsops", 8)
	write(t, opsFile, ops+"\n")
	write(t, otherFile, strings.Repeat("others", 8)+"\n")
	none := shared.config("ends", "")
	set := apiConfig("ends",
		fmt.Sprintf(`{listen: "127.0.0.1:0", tokens: [{name: ops, token_file: %q, scopes: [read, write]}]}`, opsFile))
	restart := func(config string) string {
		return strings.Replace(config, "listen: 127.0.0.1:0", "listen: 127.0.0.1:1", 1)
	}
	h := own(t, none)
	generated := localToken(t, h)
	may := func(when, token string, reload, change int) {
		t.Helper()
		if status, a := asked(t, h, "POST", "/v1/config/reload", token, ""); status != reload {
			t.Errorf("%s: a reload is %d, want %d: %v", when, status, reload, a)
		}
		if status, a := asked(t, h, "DELETE", "/v1/locks/nothing?reason=r&execution=exec_"+strings.Repeat("a", 32),
			token, ""); status != change {
			t.Errorf("%s: a change is %d, want %d: %v", when, status, change, a)
		}
	}
	may("without tokens", generated, 200, 404)
	write(t, h.Config, restart(set))
	may("with one in a file that needs a restart", generated, 422, 403)
	if line := h.Stderr.AwaitRecord(t, "config.refused", func(r testkit.Record) bool {
		return strings.Contains(r.Text("problem"), "admin.tokens")
	}); !strings.Contains(line.Text("problem"), "is accepted no more") {
		t.Errorf("%v", line)
	}
	may("and that one", ops, 401, 401)
	write(t, h.Config, none)
	may("without tokens again", generated, 200, 404)

	write(t, h.Config, set)
	// Asked without a token: each wrong one counts, and few are answered.
	testkit.Until(t, "the tokens are in force", func() bool {
		status, _ := asked(t, h, "GET", "/v1/locks", "", "")
		return status == 401
	})
	may("with one", generated, 401, 401)
	may("with one", ops, 200, 404)
	write(t, h.Config, restart(apiConfig("ends",
		fmt.Sprintf(`{listen: "127.0.0.1:0", tokens: [{name: other, token_file: %q, scopes: [read]}]}`, otherFile))))
	may("with another one in a file that needs a restart", ops, 422, 403)

	// A generated token is a file's, too.
	if err := os.Remove(filepath.Join(filepath.Dir(h.Config), "hooklock-data", "admin.token")); err != nil {
		t.Fatal(err)
	}
	write(t, h.Config, none)
	testkit.Until(t, "there are no tokens", func() bool {
		status, _ := asked(t, h, "GET", "/v1/locks", "", "")
		return status == 200
	})
	may("the one that was removed", generated, 401, 401)
	may("the one in its place", localToken(t, h), 200, 404)
}

func TestAGeneratedTokenIsRolledWithoutARestart(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("rolled", ""))
	old := localToken(t, h)
	if err := os.Remove(filepath.Join(filepath.Dir(h.Config), "hooklock-data", "admin.token")); err != nil {
		t.Fatal(err)
	}
	if status, a := asked(t, h, "POST", "/v1/config/reload", old, ""); status != 200 {
		t.Fatalf("a reload is %d: %v", status, a)
	}
	const change = "/v1/locks/nothing?reason=r&execution=exec_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	if status, a := asked(t, h, "DELETE", change, old, ""); status != 401 {
		t.Errorf("a change with the token that was removed is %d: %v", status, a)
	}
	if status, a := asked(t, h, "DELETE", change, localToken(t, h), ""); status != 404 {
		t.Errorf("a change with the token in its place is %d: %v", status, a)
	}
}

func TestTheHealthListenerHasNoAPI(t *testing.T) {
	t.Parallel()
	address := testkit.FreePort(t)
	own(t, shared.config("health", fmt.Sprintf("health: {listen: %q}", address)))
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/metrics": 200, "/v1/locks": 404,
		"/openapi.json": 404, "/v1/executions": 404} {
		if a := testkit.Exchange(t, address,
			"GET "+path+" HTTP/1.1\r\nHost: kubelet.example\r\n\r\n"); a.Status != want {
			t.Errorf("%s: %d, want %d", path, a.Status, want)
		}
	}
}

// adminCertificates are the settings of admin.tls, and a client that has the certificate which they
// ask for.
func adminCertificates(t *testing.T) (settings string, client *tls.Config) {
	t.Helper()
	server, client := wiretest.Certify(t)
	other, _ := wiretest.Certify(t)
	client.Certificates = other.Certificates
	dir := t.TempDir()
	der, err := x509.MarshalPKCS8PrivateKey(server.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, ca := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "clients.pem")
	writePEM(t, cert, "CERTIFICATE", server.Certificates[0].Certificate[0])
	writePEM(t, key, "PRIVATE KEY", der)
	writePEM(t, ca, "CERTIFICATE", other.Certificates[0].Certificate[0])
	return fmt.Sprintf("cert_file: %q, key_file: %q, client_ca_file: %q", cert, key, ca), client
}

func TestTheAdminListenerMayAskForCertificates(t *testing.T) {
	t.Parallel()
	files, client := adminCertificates(t)
	h := testkit.StartServe(t, hooklockProgram, apiConfig("tls", `{listen: "127.0.0.1:0", tls: {`+files+`}}`))
	defer func() { leave(t, h.Process) }()
	h.Admin = strings.Split(strings.SplitAfter(h.AwaitLine(t, h.Stderr, `"msg":"started"`), `"admin":"`)[1], `"`)[0]
	for name, c := range map[string]struct {
		tls  *tls.Config
		want bool
	}{"with a certificate": {client,
		true}, "without one": {&tls.Config{RootCAs: client.RootCAs, ServerName: client.ServerName}, false}} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{TLSClientConfig: c.tls}
			defer transport.CloseIdleConnections()
			a, err := (&http.Client{Transport: transport, Timeout: testkit.Patience}).Get("https://" + h.Admin +
				"/v1/locks")
			if (err == nil) != c.want {
				t.Fatalf("%v", err)
			}
			if err == nil {
				_ = a.Body.Close()
				if a.StatusCode != 200 || a.ProtoMajor != 1 {
					t.Errorf("%d %s", a.StatusCode, a.Proto)
				}
			}
		})
	}
}

func TestWhileHooklockDrainsItsUpstreamMayStillAsk(t *testing.T) {
	t.Parallel()
	h := testkit.Serve(t, hooklockProgram, shared.config("asking", ""))
	path := at(t, "plain")
	work := shared.holds(t, path)
	answer := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	r := work.await(t)
	h.Signal(t, syscall.SIGTERM)
	h.Stderr.AwaitRecord(t, "stopping", nil)
	id, token := r.Header.Get("Hooklock-Execution"), r.Header.Get("Hooklock-Fencing-Token")
	status, a := asked(t, h, "POST", "/v1/executions/"+id+"/guard", r.Header.Get("Hooklock-Callback-Key"),
		`{"token":`+token+`,"step":"last"}`)
	if status != 200 || a["proceed"] != true {
		t.Errorf("%d %v", status, a)
	}
	work.answer <- testkit.OK("done")
	passed(t, testkit.Receive(t, "the answer", answer), 200, "done", "executed")
	ended(t, h)
}

func TestRequestsThatWaitEndWhenHooklockStops(t *testing.T) {
	t.Parallel()
	h := testkit.Serve(t, hooklockProgram, shared.config("waitstop", ""))
	_, lock := asked(t, h, "POST", "/v1/locks/w/acquire", localToken(t, h), `{"ttl":"10m"}`)
	c := testkit.Dial(t, h.Admin)
	c.Say(fmt.Sprintf("GET /v1/executions/%s?wait=5m HTTP/1.1\r\nHost: localhost\r\n\r\n", lock["executionId"]))
	later := testkit.Dial(t, h.Admin) // connections are accepted in their order: that of c was
	later.Say("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if a := later.Answer("GET"); a.Status != 200 {
		t.Errorf("livez: %d", a.Status)
	}
	h.Signal(t, syscall.SIGTERM)
	if a := c.Answer("GET"); a.Status != 200 || a.JSON()["status"] != "RUNNING" {
		t.Errorf("%v", a)
	}
	ended(t, h)
}
