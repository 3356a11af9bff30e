package schema

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hooklock/config"
	"hooklock/deploy/test/kit"
)

// promise is where a file says the things that every route has to say.
type promise struct {
	file string
	// wait are the times that a delivery may take, size is the largest body, idle how long a
	// connection to Hooklock may be kept; each pattern has the value as its group. An empty
	// pattern: the proxy has no such setting, or a default that is right.
	wait       []string
	size, idle string
	// repeats are lines about retries that are right.
	repeats []string
}

var promises = []promise{
	{"gateway-api/httproute.yaml", []string{`request: (\S+)`, `backendRequest: (\S+)`}, "", "", nil},
	{"gateway-api/envoy-gateway.yaml", []string{`requestTimeout: (\S+)`}, `limit: (\S+)}`,
		`connectionIdleTimeout: (\S+)`, nil},
	{"traefik/ingressroute.yaml", []string{`responseHeaderTimeout: (\S+)`}, `maxRequestBodyBytes: (\S+)`,
		`idleConnTimeout: (\S+)`,
		[]string{"- name: shop-webhooks-retry\n", "  name: shop-webhooks-retry\n", "\n  retry:\n"}},
	{"traefik/webhooks.yaml", []string{`responseHeaderTimeout: (\S+)`}, `maxRequestBodyBytes: (\S+)`,
		`idleConnTimeout: (\S+)`,
		[]string{"middlewares: [webhooks-body, webhooks-retry]\n", "    webhooks-retry:\n", "      retry:\n"}},
	{"apache/webhooks.conf", []string{`ProxyTimeout (\S+)`}, `LimitRequestBody (\S+)`, `ttl=(\S+)`,
		[]string{" retry=1 "}},
	{"istio/virtualservice.yaml", []string{`\btimeout: (\S+)`}, "", `idleTimeout: (\S+)`,
		[]string{"retries: {attempts: 0}"}},
	{"nginx/webhooks.conf", []string{`proxy_read_timeout (\S+);`, `proxy_send_timeout (\S+);`},
		`client_max_body_size (\S+);`, "", []string{"error_page 418 = @hooklock_once;"}},
	{"f5-nginx/virtualserver.yaml", []string{`read-timeout: (\S+)`, `send-timeout: (\S+)`},
		`client-max-body-size: (\S+)`, "", nil},
	{"f5-nginx/ingress.yaml", []string{`proxy-read-timeout: (\S+)`, `proxy-send-timeout: (\S+)`},
		`client-max-body-size: (\S+)`, "", nil},
	{"ingress-nginx/ingress.yaml", []string{`proxy-read-timeout: "(\S+)"`, `proxy-send-timeout: "(\S+)"`},
		`proxy-body-size: (\S+)`, "", nil},
	{"haproxy/haproxy.cfg", []string{`timeout server (\S+)`, `timeout client (\S+)`}, `body_size gt (\S+)`, "",
		[]string{"retry-on conn-failure", "http-request disable-l7-retry", "retries 2", "option redispatch 1"}},
	{"caddy/Caddyfile", []string{`response_header_timeout (\S+)`}, `max_size (\S+)`, `keepalive (\S+)`, nil},
	{"envoy/envoy.yaml", []string{`\btimeout: (\S+)`}, `max_request_bytes: (\S+)`, `idle_timeout: (\S+)}`, nil},
}

// defaults are what the files are made for.
func defaults(t *testing.T) *config.Config {
	t.Helper()
	loaded, err := config.Load(config.Source{Path: "four lines",
		Bytes: []byte("upstream: http://127.0.0.1:8081\nroutes: [{name: a, path: /a, workflow: a}]\n")})
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Config
}

// code is a file without its comments.
func code(text string) string { return regexp.MustCompile(`(?m)(^|\s)#.*$`).ReplaceAllString(text, "") }

func value(t *testing.T, file, text, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("%s: %s is there %d times", file, pattern, len(found))
	}
	return strings.TrimRight(found[0][1], "},")
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(seconds) * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func bytes(t *testing.T, text string) int64 {
	t.Helper()
	number := strings.TrimRight(text, "MmiB")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if number != text {
		n <<= 20
	}
	return n
}

func TestEveryRouteWaitsLongerThanADeliveryTakesAndLetsItsBodyThrough(t *testing.T) {
	d := defaults(t)
	longest := d.Upstream.ConnectTimeout + d.Upstream.Timeout + d.Routes[0].Lock.WaitTimeout + 4*d.Etcd.RequestTimeout
	for _, p := range promises {
		text := code(kit.Read(t, kit.Deploy(p.file)))
		for _, pattern := range p.wait {
			if got := duration(t, value(t, p.file, text, pattern)); got <= longest {
				t.Errorf("%s: %s is %v; a delivery may take %v", p.file, pattern, got, longest)
			}
		}
		if p.size != "" {
			if got := bytes(t, value(t, p.file, text, p.size)); got <= int64(d.Limits.RequestBody) {
				t.Errorf("%s: %s is %d; limits.request_body is %d", p.file, p.size, got, d.Limits.RequestBody)
			}
		}
		if p.idle != "" {
			if got := duration(t, value(t, p.file, text, p.idle)); got >= d.Limits.IdleTimeout {
				t.Errorf("%s: %s is %v; limits.idle_timeout is %v", p.file, p.idle, got, d.Limits.IdleTimeout)
			}
		}
	}
}

func TestNoRouteRepeatsADeliveryOrReplacesAnAnswer(t *testing.T) {
	forbidden := regexp.MustCompile(
		`(?i)retr[iy]|idempotent|mirror|hedge|redispatch|lb_try|error_page|errorfile|errorpages|errors:|custom-http|http-error|responseoverride|` +
			`local_reply|handle_errors|handle_response|proxy_intercept_errors on|outlier|rewrite`)
	for _, p := range promises {
		text := code(kit.Read(t, kit.Deploy(p.file)))
		for _, right := range p.repeats {
			if !strings.Contains(text, right) {
				t.Errorf("%s does not say %s", p.file, right)
			}
			text = strings.Replace(text, right, "", 1)
		}
		if found := forbidden.FindString(text); found != "" {
			t.Errorf("%s: %s", p.file, found)
		}
	}
}

func TestEveryRouteSaysWhy(t *testing.T) {
	for _, p := range promises {
		text := strings.Join(strings.Fields(strings.ReplaceAll(kit.Read(t, kit.Deploy(p.file)), "#", "")), " ")
		for _, reason := range []string{"limits.request_body (8MiB)", "twice", "Retry-After"} {
			if !strings.Contains(text, reason) {
				t.Errorf("%s has no comment about %q", p.file, reason)
			}
		}
		if !strings.Contains(text, "upstream.timeout (30s) and lock.wait_timeout (5s)") &&
			p.file != "gateway-api/envoy-gateway.yaml" {
			t.Errorf("%s does not say why it waits so long", p.file)
		}
	}
}

// A file that is not named above is not looked at.
func TestEveryIngressIsLookedAt(t *testing.T) {
	known := map[string]bool{}
	for _, p := range promises {
		known[p.file] = true
	}
	for folder := range map[string]bool{"gateway-api": true, "traefik": true, "istio": true, "nginx": true,
		"f5-nginx": true, "haproxy": true, "apache": true, "caddy": true, "envoy": true, "ingress-nginx": true} {
		files, err := os.ReadDir(kit.Deploy(folder))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", folder, len(files), err)
		}
		for _, f := range files {
			if path := filepath.ToSlash(filepath.Join(folder, f.Name())); !known[path] {
				t.Errorf("%s is not looked at", path)
			}
		}
	}
}
