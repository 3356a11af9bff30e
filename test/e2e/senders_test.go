package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// sample is one event of a sender: the same event again comes with fresh times and signatures.
type sample struct {
	name   string
	route  string
	secret string
	verify func(secret string, h http.Header, body string) error
	body   string
	lines  func(again int) []string
}

// senderRoutes names each sender's events as the notes on senders say, with general settings alone.
const senderRoutes = `
routes:
  - {name: front, path: "/front/{w}", workflow: "front/{path.w}", lock: {release_delay: 0s}}
  - {name: named, match: {path: "/named/{w}", hosts: [hooks.example.com]}, workflow: "named/{path.w}"}
  - {name: stripe, path: /stripe, workflow: stripe, event_id: "{body.id}"}
  - {name: github, path: /github, workflow: github, event_id: "{header.X-GitHub-Hook-ID}/{header.X-GitHub-Delivery}"}
  - {name: shopify, path: /shopify, workflow: "shopify/{header.X-Shopify-Shop-Domain}", event_id: "{header.X-Shopify-Webhook-Id}"}
  - {name: slack, path: /slack, workflow: "slack/{body.team_id}", event_id: "{body.event_id}"}
  - {name: standard, path: /standard, workflow: standard, event_id: "{header.webhook-id}"}
  - {name: cloudevents, match: {path: /cloudevents, methods: [POST, PUT]}, workflow: cloudevents, event_id: "{header.ce-source} {header.ce-id}"}
  - {name: sns, path: /sns, workflow: "sns/{body.TopicArn}", event_id: "{body.MessageId}"}
`

func TestSignedDeliveriesOfManySendersArriveIntactThroughNginxAndDuplicatesAreReplayed(t *testing.T) {
	t.Parallel()
	addr := senderFront(t)
	for _, s := range ownSamples(t) {
		t.Run(s.name, func(t *testing.T) { s.deliver(t, addr) })
	}
}

func TestPublishedSampleDeliveriesArriveIntactThroughNginx(t *testing.T) {
	t.Parallel()
	samples := sharedSamples(t)
	addr := senderFront(t)
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) { s.deliver(t, addr) })
	}
}

// deliver posts the event twice. The upstream verifies it by itself; what it does not find intact
// it answers with 401.
func (s *sample) deliver(t *testing.T, addr string) {
	target := fmt.Sprintf("/%s?sample=%s", s.route, strings.ReplaceAll(s.name, " ", "-"))
	shared.on(t, target, func(r *testkit.Received) string {
		if err := s.verify(s.secret, r.Header, r.Body); err != nil {
			return testkit.Reply(401, err.Error())
		}
		return testkit.OK("verified")
	})
	first := testkit.Post(t, addr, target, s.body, s.lines(0)...)
	passed(t, first, 200, "verified", "executed")
	second := testkit.Post(t, addr, target, s.body, s.lines(1)...)
	passed(t, second, 200, "verified", "replayed")
	if second.Header.Get("Idempotent-Replayed") != "true" || second.Execution() != first.Execution() {
		t.Errorf("%v", second)
	}
	got := shared.up.Received(target)
	if len(got) != 1 {
		t.Fatalf("%d requests at the upstream", len(got))
	}
	if got[0].Body != s.body {
		t.Errorf("body %q, want %q", got[0].Body, s.body)
	}
	for _, line := range s.lines(0) {
		if !slices.Contains(got[0].Lines, line) {
			t.Errorf("%q did not arrive in %q", line, got[0].Lines)
		}
	}
}

// senderFront is nginx in front of a Hooklock with an embedded etcd, in front of the shared
// upstream.
func senderFront(t *testing.T) string {
	t.Helper()
	program := testkit.Program(t, "nginx")
	config := embedded(t.TempDir(), "")
	h := own(t, config[:strings.Index(config, "routes:")]+senderRoutes)
	dir, addr := t.TempDir(), testkit.FreePort(t)
	path := filepath.Join(dir, "nginx.conf")
	shipped, err := filepath.Abs("../../deploy/nginx/webhooks.conf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, nginxConfig, dir, addr, h.Addr, shipped), 0o600); err != nil {
		t.Fatal(err)
	}
	nginx := testkit.Start(t, testkit.Command{Program: program,
		Args: []string{"-p", dir, "-c", path, "-e", dir + "/error.log"}})
	testkit.Until(t, "nginx answers", func() bool {
		select {
		case <-nginx.Done():
			t.Fatalf("nginx ended: %s%s", nginx.Stderr, nginx.Stdout)
		default:
		}
		c, err := (&http.Client{}).Get("http://" + addr + "/")
		if err == nil {
			_ = c.Body.Close()
		}
		return err == nil
	})
	return addr
}

// nginxConfig is around what deploy/nginx/webhooks.conf tells people to write. Its buffer is small,
// so that larger bodies take the way over the disk.
const nginxConfig = `
daemon off; master_process off; worker_processes 1;
pid "%[1]s/nginx.pid";
error_log "%[1]s/error.log";
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path "%[1]s/body"; proxy_temp_path "%[1]s/proxy"; fastcgi_temp_path "%[1]s/fastcgi";
  uwsgi_temp_path "%[1]s/uwsgi"; scgi_temp_path "%[1]s/scgi";
  client_body_buffer_size 1k;
  server {
    listen %[2]s;
    include "%[4]s";
  }
  upstream hooklock { server %[3]s max_fails=0; keepalive 64; }
}
`

// ownSamples are signed here and now.
func ownSamples(t *testing.T) []*sample {
	t.Helper()
	const jsonType = "Content-Type: application/json"
	at := func(again int) string { return fmt.Sprint(1767225600 + 60*again) }
	static := func(lines ...string) func(int) []string { return func(int) []string { return lines } }

	stripe := &sample{name: "Stripe", route: "stripe", secret: "whsec_" + planted, verify: verifyStripe,
		body: "{\n  \"id\": \"evt_1\",\n  \"object\": \"event\", \"amount\": 1.10, \"name\": \"Zo\\u00eb \u00e9\"\n}"}
	stripe.lines = func(again int) []string {
		return []string{"Content-Type: application/json; charset=utf-8", "Stripe-Signature: " +
			signStripe(stripe.secret, at(again), stripe.body)}
	}
	form := "payload=%7B%22action%22%3A%22opened%22%7D&x=a+b"
	github := &sample{name: "GitHub form", route: "github", secret: planted, verify: verifyGitHub, body: form,
		lines: static("Content-Type: application/x-www-form-urlencoded", "User-Agent: GitHub-Hookshot/test",
			"X-GitHub-Event: issues", "X-GitHub-Hook-ID: 7",
			"X-GitHub-Delivery: 11111111-2222-3333-4444-000000000001", "X-Hub-Signature-256: "+
				signGitHub(planted, form))}
	// over the disk of nginx
	order := `{"id":820982911946154508,"total":"403.00","note":"` + strings.Repeat("long ", 2000) + `"}`
	shopify := &sample{name: "Shopify", route: "shopify", secret: planted, verify: verifyShopify, body: order,
		lines: static(jsonType, "X-Shopify-Topic: orders/create", "X-Shopify-Shop-Domain: demo.example.com",
			"X-Shopify-Webhook-Id: b54557e4", "X-Shopify-Hmac-Sha256: "+signShopify(planted, order))}
	slack := &sample{name: "Slack", route: "slack", secret: planted, verify: verifySlack,
		body: `{"token":"x","team_id":"T1","event":{"type":"app_mention"},"type":"event_callback","event_id":"Ev1"}`}
	slack.lines = func(again int) []string {
		lines := []string{jsonType, "X-Slack-Request-Timestamp: " + at(again), "X-Slack-Signature: " +
			signSlack(planted, at(again), slack.body)}
		if again > 0 {
			lines = append(lines, "X-Slack-Retry-Num: 1", "X-Slack-Retry-Reason: http_timeout")
		}
		return lines
	}
	standard := &sample{name: "Standard Webhooks", route: "standard", secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		verify: verifyStandard, body: `{"type":"contact.created","data":{}}`}
	standard.lines = func(again int) []string {
		return []string{jsonType, "webhook-id: msg_1", "webhook-timestamp: " + at(again), "webhook-signature: " +
			signStandard(standard.secret, "msg_1", at(again), standard.body)}
	}
	cloudevents := &sample{name: "CloudEvents", route: "cloudevents", verify: verifyCloudEvents, body: `{"a":1}`,
		lines: static(jsonType, "ce-specversion: 1.0", "ce-type: com.example.someevent",
			"ce-source: /ctx/caf%C3%A9%20a", "ce-id: 1234", "ce-time: 2026-01-01T00:00:00Z")}
	return []*sample{stripe, github, shopify, slack, standard, cloudevents, snsSample(t, "1"), snsSample(t, "2")}
}

func snsSample(t *testing.T, version string) *sample {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	body, err := signSNS(private, map[string]string{
		"Type": "Notification", "MessageId": "22b80b92-" + version,
		"TopicArn": "arn:aws:sns:us-east-1:123456789012:MyTopic", "Subject": "s",
		"Message": "line1\nline2 \"q\" <&>", "Timestamp": "2026-01-01T00:00:00.000Z", "SignatureVersion": version,
		"SigningCertURL": "https://sns.example.com/cert.pem",
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{"Content-Type: text/plain; charset=UTF-8", "x-amz-sns-message-type: Notification",
		"x-amz-sns-message-id: 22b80b92-" + version}
	return &sample{name: "SNS version " + version, route: "sns", verify: verifySNS, body: body,
		lines: func(int) []string {
			return lines
		},
		secret: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))}
}

// sharedSamples are the sample deliveries that the project keeps beside its sources, where they are
// there.
func sharedSamples(t *testing.T) []*sample {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "facts", "vectors.json"))
	if err != nil {
		t.Skip("no vectors.json beside the project: only deliveries that are signed here are tested")
	}
	type vector struct {
		ID        string            `json:"id"`
		Sender    string            `json:"sender"`
		Secret    string            `json:"secret"`
		PublicKey string            `json:"public_key"`
		Body      string            `json:"body"`
		Headers   map[string]string `json:"headers"`
		DedupKey  *string           `json:"dedup_key"`
		Valid     bool              `json:"expect_valid"`
	}
	var file struct {
		Synthetic []vector `json:"synthetic"`
		Published []vector `json:"published"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	known := map[string]struct {
		route  string
		verify func(string, http.Header, string) error
	}{
		"Stripe": {"stripe", verifyStripe}, "GitHub": {"github", verifyGitHub}, "Shopify": {"shopify", verifyShopify},
		"Slack":                    {"slack", verifySlack},
		"Standard Webhooks / Svix": {"standard", verifyStandard}, "CloudEvents": {"cloudevents", verifyCloudEvents},
		"AWS SNS": {"sns", verifySNS},
	}
	var samples []*sample
	for _, v := range append(file.Synthetic, file.Published...) {
		k, ours := known[v.Sender]
		if !ours || !v.Valid || len(v.Body) == 0 {
			continue
		}
		secret := v.Secret
		if v.PublicKey != "" {
			secret = v.PublicKey
		}
		var lines []string
		for name, value := range v.Headers {
			lines = append(lines, name+": "+value)
		}
		slices.Sort(lines)
		if !slices.ContainsFunc(lines, func(l string) bool { return name(l) == "content-type" }) {
			lines = append(lines, "Content-Type: application/json")
		}
		if strings.Contains(k.route, "slack") && v.DedupKey == nil && !strings.Contains(v.Body, "team_id\"") {
			continue // a handshake without a team: it has no workflow on this route
		}
		samples = append(samples, &sample{name: v.ID, route: k.route, secret: secret, verify: k.verify, body: v.Body,
			lines: func(int) []string {
				return lines
			}})
	}
	if len(samples) < 7 {
		t.Errorf("only %d samples in vectors.json", len(samples))
	}
	return samples
}
