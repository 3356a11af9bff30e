package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// inFront starts nginx on a port of its own, with that server block, in front of backend.
func inFront(t *testing.T, backend, upstream, server string) string {
	t.Helper()
	program := testkit.Program(t, "nginx")
	dir, addr := t.TempDir(), testkit.FreePort(t)
	text := strings.NewReplacer("DIR", dir, "LISTEN", addr, "UPSTREAM", upstream, "SERVER", server).Replace(`
daemon off; master_process off; worker_processes 1; pid "DIR/pid"; error_log "DIR/error.log";
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path "DIR/body"; proxy_temp_path "DIR/proxy"; fastcgi_temp_path "DIR/f"; uwsgi_temp_path "DIR/u"; scgi_temp_path "DIR/s";
  upstream hooklock { UPSTREAM }
  server { listen LISTEN; SERVER }
}
`)
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "BACKEND", backend)), 0o600); err != nil {
		t.Fatal(err)
	}
	nginx := testkit.Start(t, testkit.Command{Program: program,
		Args: []string{"-p", dir, "-c", path, "-e", dir + "/error.log"}})
	client := &http.Client{Timeout: testkit.Patience}
	defer client.CloseIdleConnections()
	testkit.Until(t, "nginx answers", func() bool {
		select {
		case <-nginx.Done():
			t.Fatalf("nginx ended: %s%s", nginx.Stderr, nginx.Stdout)
		default:
		}
		res, err := client.Get("http://" + addr + "/")
		if err == nil {
			_ = res.Body.Close()
		}
		return err == nil
	})
	return "http://" + addr
}

// probed is the configuration of a hooklock that would listen at address.
func probed(t *testing.T, address, timeout string) string {
	return fmt.Sprintf(`
listen: %s
admin: {listen: "127.0.0.1:0"}
data_dir: %q
upstream: {url: %q, timeout: %s, connect_timeout: 100ms}
etcd: {request_timeout: 100ms}
routes: [{name: orders, path: "/hooks/{account}", workflow: "orders/{path.account}", event_id: "{header.X_Order}", lock: {wait_timeout: 1s}}]
`, address, t.TempDir(), shared.up.URL, timeout)
}

func TestAFrontThatKeepsTheRulesPassesTheProbe(t *testing.T) {
	t.Parallel()
	shipped, err := filepath.Abs("../../deploy/nginx/webhooks.conf")
	if err != nil {
		t.Fatal(err)
	}
	address := testkit.FreePort(t)
	front := inFront(t, address, "server BACKEND max_fails=0;", `underscores_in_headers on; include "`+shipped+`";`)
	lines, code := doctor(t, probed(t, address, "1s"), "--probe", front+"/hooks/a%20b?x=1")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, check := range []string{"front http", "front, headers", "front, address", "front, body", "front, spelling",
		"front, size", "front, answers", "front, patience", "front, retries"} {
		says(t, lines, check, "ok", "")
	}
	says(t, lines, "front, patience", "ok", "waits 2.2s")
	says(t, lines, "front, headers", "ok", "added: X-Forwarded-For, X-Forwarded-Proto")
}

func TestTheProbeFindsWhatAFrontDoesWrong(t *testing.T) {
	t.Parallel()
	address := testkit.FreePort(t)
	front := inFront(t, address, "server BACKEND max_fails=0; server BACKEND max_fails=0;", `
    location / {
      proxy_pass http://hooklock/stripped/;
      proxy_set_header Stripe-Signature "";
      proxy_set_header X-GitHub-Delivery "another";
      proxy_next_upstream error timeout http_503 non_idempotent;
      proxy_intercept_errors on;
      error_page 409 /page;
      proxy_read_timeout 1s;
    }
    location = /page { return 409 "sorry"; }`)
	lines, code := doctor(t, probed(t, address, "3s"), "--probe", front+"/hooks/acme")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	says(t, lines, "front http", "ok", "leads here")
	says(t, lines, "front, headers", "failed", "stripped: Stripe-Signature, X_order; changed: X-Github-Delivery")
	says(t, lines, "front, address", "warning", "arrives as hooklock")
	says(t, lines, "front, body", "ok", "byte for byte")
	says(t, lines, "front, size", "failed", "8388608 bytes, does not arrive: status 413")
	says(t, lines, "front, answers", "failed", "409")
	says(t, lines, "front, answers", "failed", "sent again after 503: 2 times")
	says(t, lines, "front, patience", "failed", "sent 2 times")
	says(t, lines, "front, retries", "failed",
		"a POST whose connection breaks is sent 2 times; a POST without a body whose connection breaks is sent 2 times; a PUT")
	says(t, lines, "front, retries", "failed", "off for PUT and DELETE, error timeout for the others")
}

func TestTheProbeFindsAnImpatientFrontAndAPathThatIsRewritten(t *testing.T) {
	t.Parallel()
	address := testkit.FreePort(t)
	front := inFront(t, address, "server BACKEND max_fails=0;", `
    location /api/ { proxy_pass http://hooklock/; proxy_set_header Host $http_host; proxy_read_timeout 1s; client_max_body_size 16m; }`)
	lines, _ := doctor(t, probed(t, address, "3s"), "--probe", front+"/api/hooks/acme")
	says(t, lines, "front, address", "warning", "/api/hooks/acme arrives as /hooks/acme")
	says(t, lines, "front, patience", "failed", "gives up after ")
	says(t, lines, "front, retries", "ok", "sent once")
}

func TestTheProbeLeavesAServiceAloneThatTheFrontLeadsTo(t *testing.T) {
	t.Parallel()
	testkit.Program(t, "nginx") // here, and not in the parts alone: what follows them counts what they sent
	legacy := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	address := testkit.FreePort(t)
	for name, upstream := range map[string]string{
		"elsewhere": "server " + legacy.Addr + ";",
		"to both":   "server BACKEND; server " + legacy.Addr + ";",
	} {
		t.Run(name, func(t *testing.T) {
			front := inFront(t, address, upstream, "location / { proxy_pass http://hooklock; }")
			lines, code := doctor(t, probed(t, address, "1s"), "--probe", front+"/hooks/acme")
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			says(t, lines, "front http", "failed", "status 200")
			says(t, lines, "front, the rest", "skipped", "no service takes a probe for a delivery")
		})
	}
	harmless := 0
	for _, r := range legacy.Received("") {
		if r.Method != http.MethodGet {
			t.Errorf("the service got a %s", r.Method)
		}
		harmless++
	}
	if harmless < 4 { // nginx's own wait for readiness, and a probe, each twice
		t.Errorf("the service got %d requests: the front does not lead there", harmless)
	}
}

func TestTheProbeNeedsTheAddressOfHooklockForItself(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("probed", ""))
	lines, code := doctor(t, probed(t, h.Addr, "1s"), "--probe", "http://"+h.Addr+"/hooks/acme")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	says(t, lines, "front", "failed", "--probe-listen")
	address := testkit.FreePort(t)
	lines, _ = doctor(t, probed(t, h.Addr, "1s"), "--probe", "http://"+address+"/hooks/acme", "--probe-listen", address,
		"--probe-wait", "0s")
	says(t, lines, "front http", "ok", "leads here")
	says(t, lines, "front, address", "warning", "no X-Forwarded-For")
	says(t, lines, "front, patience", "skipped", "--probe-wait")
	lines, _ = doctor(t, probed(t, address, "1s"), "--probe", "hooks.example.com")
	says(t, lines, "front", "failed", "no URL")
}

func TestTheProbeWaitsForAFrontWhoseChecksFoundNoReplica(t *testing.T) {
	t.Parallel()
	program := testkit.Program(t, "haproxy")
	address, at := testkit.FreePort(t), testkit.FreePort(t)
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	text, err := os.ReadFile("../../deploy/haproxy/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.NewReplacer("bind :80\n", "bind "+at+"\n", "127.0.0.1:8080", address).Replace(string(text)))
	haproxy := testkit.Start(t, testkit.Command{Program: program, Args: []string{"-db", "-f", path}})
	haproxy.AwaitLine(t, haproxy.Stderr, "is DOWN")
	lines, code := doctor(t, probed(t, address, "1s"), "--probe", "http://"+at+"/hooks/acme", "--probe-wait", "0s")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	says(t, lines, "front http", "ok", "leads here")
	says(t, lines, "front, replicas", "skipped", "--probe-listen")
}

func TestTheProbeLetsAReplicaDie(t *testing.T) {
	t.Parallel()
	shipped, err := filepath.Abs("../../deploy/nginx/webhooks.conf")
	if err != nil {
		t.Fatal(err)
	}
	const careless = "location / { proxy_pass http://hooklock; proxy_set_header Host $http_host; client_max_body_size 16m; proxy_next_upstream off; }"
	for server, want := range map[string][2]string{
		`include "` + shipped + `";`: {"ok", "deliveries go to the others, once"},
		careless:                     {"failed", "of 24 requests fail (status 502)"},
	} {
		first, second := testkit.FreePort(t), testkit.FreePort(t)
		front := inFront(t, first, "server BACKEND max_fails=0; server "+second+" max_fails=0;",
			"underscores_in_headers on; "+server)
		lines, code := doctor(t, probed(t, first, "1s"), "--probe", front+"/hooks/acme", "--probe-wait", "0s",
			"--probe-listen", first, "--probe-listen", second)
		if (code == 0) != (want[0] == "ok") {
			t.Errorf("exit code %d", code)
		}
		says(t, lines, "front, replicas", want[0], want[1])
		if want[0] == "failed" { // and no advice leads back to what it is against
			says(t, lines, "front, replicas", "failed", "off for PUT and DELETE, error timeout for the others")
		}
		// With one of them dead from the beginning, nothing but harmless GETs is sent.
		lines, _ = doctor(t, probed(t, first, "1s"), "--probe", front+"/hooks/acme", "--probe-wait", "0s")
		says(t, lines, "front http", want[0],
			map[string]string{"ok": "leads here", "failed": "the next one did not: status 502"}[want[0]])
	}
}

func TestTheProbeTellsOfAPathThatIsSpelledAnew(t *testing.T) {
	t.Parallel()
	address := testkit.FreePort(t)
	front := inFront(t, address, "server BACKEND max_fails=0;", `
    location / { proxy_pass http://hooklock$uri$is_args$args; proxy_set_header Host $http_host; proxy_set_header Accept-Encoding gzip; proxy_http_version 1.1; }`)
	lines, _ := doctor(t, probed(t, address, "1s"), "--probe", front+"/hooks/acme", "--probe-wait", "0s")
	says(t, lines, "front, spelling", "warning", "arrives as /hooks/acme/")
	says(t, lines, "front, headers", "failed", "added: Accept-Encoding") // it strips X_Order, too
}
