package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hooklock/test/testkit"
)

// strangers are senders without a preset, as the configuration alone describes them.
const strangers = `routes:
  - name: parts
    path: /parts
    event_id: "{body.id}"
    idempotency: {on_mismatch: replay}
    verify: {scheme: hmac, secret_file: %[1]s, from: ["header.X-Sig[h1]"], content: "{header.X-Sig[ts]}:{body}", timestamp: "header.X-Sig[ts]", tolerance: 5m}
  - name: token
    path: /token
    event_id: "{body.id}"
    verify: {scheme: token, secret_file: %[1]s, from: ["body.passcode"]}
  - name: jwt
    path: /jwt
    event_id: "{body.id}"
    verify: {scheme: jwt, secret_file: %[1]s, header: X-Webhook-Signature, issuer: netlify, body_hash: sha256}
  - name: xml
    path: /xml
    workflow: "xml/{xml.Envelope.Body.notifications.OrganizationId}"
    event_id: "{xml.Envelope.Body.notifications.Notification[0].Id}"
    idempotency: {on_mismatch: replay_unsigned}
  - name: buttons
    path: /buttons
    workflow: "slack/{form.payload.team.id}"
  - name: meta
    path: /meta
    verify: {scheme: hmac, secret_file: %[1]s, header: X-Hub-Signature-256, prefix: "sha256="}
    handshake: {method: GET, when: ["query.hub.mode=subscribe"], unsigned: true, token: query.hub.verify_token, token_file: %[1]s, answer: "{query.hub.challenge}"}
  - name: asana
    path: /asana
    verify: {scheme: hmac, secret_file: %[1]s, header: X-Hook-Signature}
    handshake: {when: [header.X-Hook-Secret], unsigned: true, header: "X-Hook-Secret: {header.X-Hook-Secret}"}
  - name: zoom
    path: /zoom
    preset: zoom
    verify: {secret_file: %[1]s}
    handshake:
      when: ["body.event=endpoint.url_validation"]
      content_type: application/json
      answer: '{{"plainToken":"{body.payload.plainToken}","encryptedToken":"{hmac.body.payload.plainToken}"}}'
  - name: watched
    path: /watched
    mode: observe
    verify: {scheme: hmac, secret_file: %[1]s, header: X-Hub-Signature-256}
    handshake: {method: GET, when: [query.challenge], unsigned: true, answer: "{query.challenge}"}
`

func newStrangers(t *testing.T) *testkit.Hooklock {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(planted+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := shared.config("strangers"+strings.ReplaceAll(ownPrefix(), "/", "-"), "")
	return own(t, config[:strings.Index(config, "routes:")]+fmt.Sprintf(strangers, secret))
}

func hexMAC(parts ...string) string {
	h := hmac.New(sha256.New, []byte(planted))
	h.Write([]byte(strings.Join(parts, "")))
	return hex.EncodeToString(h.Sum(nil))
}

func TestSendersWithoutAPresetAreVerifiedByConfigurationAlone(t *testing.T) {
	t.Parallel()
	h := newStrangers(t)
	stamped := func(at time.Time, body string) string {
		ts := fmt.Sprint(at.Unix())
		return "X-Sig: ts=" + ts + ";h1=" + strings.Repeat("0", 64) + ";h1=" + hexMAC(ts, ":", body)
	}
	const one = `{"id":"1","attempt":1}`
	passed(t, testkit.Post(t, h.Addr, "/parts", one, stamped(time.Now(), one)), 200, "done", "executed")
	const again = `{"id":"1","attempt":2}`
	passed(t, testkit.Post(t, h.Addr, "/parts", again, stamped(time.Now(), again)), 200, "done", "replayed")
	for _, line := range []string{stamped(time.Now(), again), stamped(time.Now().Add(-time.Hour), one), "X-Sig: ts=1",
		"X-None: 1"} {
		refused{401, "signature_invalid", "no", "unverified"}.check(t, testkit.Post(t, h.Addr, "/parts", one, line))
	}

	passed(t, testkit.Post(t, h.Addr, "/token", `{"id":"1","passcode":"`+planted+`"}`), 200, "done", "executed")
	refused{401, "signature_invalid", "no", "unverified"}.check(t,
		testkit.Post(t, h.Addr, "/token", `{"id":"2","passcode":"wrong"}`))

	token := func(issuer, body string) string {
		sum := sha256.Sum256([]byte(body))
		text, err := jwt.NewWithClaims(jwt.SigningMethodHS256,
			jwt.MapClaims{"iss": issuer, "sha256": hex.EncodeToString(sum[:])}).SignedString([]byte(planted))
		if err != nil {
			t.Fatal(err)
		}
		return "X-Webhook-Signature: " + text
	}
	passed(t, testkit.Post(t, h.Addr, "/jwt", one, token("netlify", one)), 200, "done", "executed")
	refused{401, "signature_invalid", "no", "unverified"}.check(t,
		testkit.Post(t, h.Addr, "/jwt", one, token("else", one)))
	refused{401, "signature_invalid", "no", "unverified"}.check(t,
		testkit.Post(t, h.Addr, "/jwt", one, token("netlify", again)))
}

func TestXMLAndJSONInFormsNameEvents(t *testing.T) {
	t.Parallel()
	h := newStrangers(t)
	soap := func(id, session string) string {
		return `<s:Envelope xmlns:s="u"><s:Body><notifications><OrganizationId>00D</OrganizationId><SessionId>` +
			session +
			`</SessionId><Notification><Id>` + id + `</Id></Notification></notifications></s:Body></s:Envelope>`
	}
	first := testkit.Post(t, h.Addr, "/xml", soap("04l1", "a"), "Content-Type: text/xml")
	passed(t, first, 200, "done", "executed")
	passed(t, testkit.Post(t, h.Addr, "/xml", soap("04l1", "b"), "Content-Type: text/xml"), 200, "done", "replayed")
	passed(t, testkit.Post(t, h.Addr, "/xml", soap("04l2", "b"), "Content-Type: text/xml"), 200, "done", "executed")
	refused{400, "workflow_missing", "no", "rejected"}.check(t,
		testkit.Post(t, h.Addr, "/xml", "<s:Envelope>", "Content-Type: text/xml"))

	const form = "Content-Type: application/x-www-form-urlencoded"
	testkit.Post(t, h.Addr, "/buttons", "payload=%7B%22team%22%3A%7B%22id%22%3A%22T1%22%7D%7D", form)
	if got := shared.up.Received("/buttons"); len(got) != 1 || got[0].Header.Get("Hooklock-Workflow") != "slack/T1" {
		t.Errorf("%v", got)
	}
}

func TestHandshakesAreAnsweredByRule(t *testing.T) {
	t.Parallel()
	h := newStrangers(t)
	get := func(target string) *testkit.Answer {
		return testkit.Exchange(t, h.Addr, testkit.RequestWith("GET", target, ""))
	}
	answered := get("/meta?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=" + planted)
	passed(t, answered, 200, "1158201444", "answered")
	if answered.Header.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(answered.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%v", answered)
	}
	refused{401, "signature_invalid", "no", "unverified"}.check(t,
		get("/meta?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=guessed"))
	if got := get("/meta?hub.mode=other"); got.Status != 200 || got.Decision() != "" {
		t.Errorf("another GET passes by: %v", got)
	}
	refused{401, "signature_invalid", "no", "unverified"}.check(t,
		testkit.Post(t, h.Addr, "/meta?hub.mode=subscribe&hub.challenge=1&hub.verify_token="+planted, "{}"))

	asana := testkit.Post(t, h.Addr, "/asana", "{}", "X-Hook-Secret: b537")
	passed(t, asana, 200, "", "answered")
	if asana.Header.Get("X-Hook-Secret") != "b537" {
		t.Errorf("%v", asana)
	}
	refused{401, "signature_invalid", "no", "unverified"}.check(t, testkit.Post(t, h.Addr, "/asana", "{}"))

	const body = `{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}}`
	ts := fmt.Sprint(time.Now().Unix())
	signed := []string{"x-zm-request-timestamp: " + ts, "x-zm-signature: v0=" + hexMAC("v0:", ts, ":", body)}
	passed(t, testkit.Post(t, h.Addr, "/zoom", body, signed...), 200,
		`{"plainToken":"qgg8vlvZRS6UYooatFL8Aw","encryptedToken":"`+hexMAC("qgg8vlvZRS6UYooatFL8Aw")+`"}`, "answered")
	refused{503, "signature_invalid", "no", "unverified"}.check(t, testkit.Post(t, h.Addr, "/zoom", body))

	passed(t, get("/watched?challenge=1"), 200, "done", "bypassed; would=answered")
	for _, target := range []string{"/asana", "/zoom"} {
		if got := shared.up.Received(target); len(got) != 0 {
			t.Errorf("%s reached the upstream: %v", target, got)
		}
	}
	if text := h.Metrics(t); !strings.Contains(text, `hooklock_deliveries_total{decision="answered",route="meta"`) {
		t.Error("answered is not counted")
	}
}

// renewing are senders that make something anew for each attempt of an event.
const renewing = `routes:
  - {name: zoom, path: /zoom-again, preset: zoom, verify: {secret_file: %[1]s}}
  - {name: mailgun, path: /mailgun-again, preset: mailgun, verify: {secret_file: %[1]s}}
  - {name: hubspot, path: /hubspot-again, preset: hubspot, verify: {secret_file: %[1]s, public_url: "https://hooks.example.com"}}
`

func TestARetryWithWhatItsSenderMakesAnewIsTheSameEvent(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, planted)
	config := shared.config("changing"+strings.ReplaceAll(ownPrefix(), "/", "-"), "")
	h := own(t, config[:strings.Index(config, "routes:")]+fmt.Sprintf(renewing, secret))
	ts := fmt.Sprint(time.Now().Unix())

	for attempt, want := range []string{"executed", "replayed"} {
		body := fmt.Sprintf(
			`{"event":"recording.completed","event_ts":1,"download_token":"%d","payload":{"object":{"recording_files":[{"download_url":"https://zoom.us/%d"}]}}}`, attempt, attempt)
		passed(t, testkit.Post(t, h.Addr, "/zoom-again", body, "x-zm-request-timestamp: "+ts, "x-zm-signature: v0="+
			hexMAC("v0:", ts, ":", body)), 200, "done", want)

		token := fmt.Sprint("token", attempt)
		body = fmt.Sprintf(`{"signature":{"timestamp":"%s","token":"%s","signature":"%s"},"event-data":{"id":"1"}}`, ts,
			token, hexMAC(ts, token))
		passed(t, testkit.Post(t, h.Addr, "/mailgun-again", body), 200, "done", want)

		body = "recipient=a%40example.com&body-plain=hi&timestamp=" + ts + "&token=" + token + "&signature=" +
			hexMAC(ts, token)
		passed(t, testkit.Post(t, h.Addr, "/mailgun-again", body, "Content-Type: application/x-www-form-urlencoded"),
			200, "done", want)
	}

	const body = `[{"eventId":1,"subscriptionId":1,"occurredAt":1}]`
	for i, signed := range []string{"?email=foo@bar.com", "?email=foo%40bar.com"} {
		stamp := fmt.Sprint(time.Now().UnixMilli())
		mac := hmac.New(sha256.New, []byte(planted))
		mac.Write([]byte("POSThttps://hooks.example.com/hubspot-again" + signed + body + stamp))
		a := testkit.Post(t, h.Addr, "/hubspot-again?email=foo%40bar.com", body, "X-HubSpot-Request-Timestamp: "+stamp,
			"X-HubSpot-Signature-v3: "+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		passed(t, a, 200, "done", []string{"executed", "replayed"}[i])
	}
}
