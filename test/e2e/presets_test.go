package e2e

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/proxy/sender"
	"hooklock/test/testkit"
)

// presetSecrets are what the samples of a preset are signed with, and what its route is configured
// with.
type presetSecrets struct {
	signer []byte
	verify string // settings of verify
}

// secretsOf makes test secrets for every preset that has any, with their files in dir.
func secretsOf(t *testing.T, dir string) map[string]presetSecrets {
	t.Helper()
	all := map[string]presetSecrets{}
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, p := range sender.Presets() {
		const url = ", public_url: 'https://hooks.example.com', webhook_id: WEBHOOK-SAMPLE"
		private, public := keyPair(t, p.Scheme)
		switch {
		case p.Scheme == "none":
			all[p.Name] = presetSecrets{}
		case private != nil:
			all[p.Name] = presetSecrets{private, "public_key_file: " + file(p.Name+".public", public) + url}
		default:
			secret := []byte(planted)
			switch p.Scheme {
			case "adyen":
				secret = []byte("44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056")
			case "airtable":
				secret = []byte(base64.StdEncoding.EncodeToString(secret))
			case "standard-webhooks", "gitlab":
				secret = []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
			}
			all[p.Name] = presetSecrets{secret, "secret_file: " + file(p.Name+".secret", secret) + url}
		}
	}
	return all
}

// keyPair is a pair for the schemes with public keys; nil for others.
func keyPair(t *testing.T, scheme string) (private, public []byte) {
	t.Helper()
	var key crypto.Signer
	var err error
	switch scheme {
	case "sendgrid", "plaid":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "discord":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "paypal", "sns":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		return nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})
}

// office is one Hooklock with an embedded etcd and a route for each preset, on paths of its own.
type office struct {
	*testkit.Hooklock
	secrets map[string]presetSecrets
	prefix  string
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{secrets: secretsOf(t, t.TempDir()), prefix: at(t, "presets")}
	config := embedded(t.TempDir(), "")
	config = config[:strings.Index(config, "routes:")] + "routes:\n"
	for _, p := range sender.Presets() {
		config += fmt.Sprintf(
			"  - {name: %[1]s, path: %[2]s, workflow: '%[1]s', preset: %[1]s, lock: {release_delay: 0s}, verify: {%[3]s}}\n",
			p.Name, o.path(p.Name), o.secrets[p.Name].verify)
	}
	o.Hooklock = own(t, config)
	return o
}

func (o *office) path(preset string) string { return o.prefix + "/" + preset }

// sample is an event of a sender, signed here and now.
func (o *office) sample(t *testing.T, preset, event string, more ...sender.SampleOption) *sender.Request {
	t.Helper()
	return presetSample(t, preset, o.path(preset), o.secrets[preset].signer, event, more...)
}

func presetSample(t *testing.T, preset, path string, secret []byte, event string,
	more ...sender.SampleOption) *sender.Request {
	t.Helper()
	more = append(more, sender.WithURL("https://hooks.example.com"+path), sender.WithEvent(event))
	r, err := sender.Sample(preset, secret, time.Now(), more...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func send(t *testing.T, addr string, r *sender.Request) *testkit.Answer {
	t.Helper()
	return testkit.Exchange(t, addr, testkit.RequestWith(r.Method, r.Target, string(r.Body), lines(r)...))
}

// forge changes one byte of what the sender signed.
func forge(preset string, r *sender.Request, event string) {
	at := len(r.Body) - 1
	for r.Body[at] < '0' || r.Body[at] > 'z' || r.Body[at] == '}' || r.Body[at] == ']' {
		at--
	}
	switch preset {
	case "adyen": // eight fields are signed, the event's ID among them
		at = strings.Index(string(r.Body), event)
	case "mailgun": // a timestamp and a token are signed
		at = strings.Index(string(r.Body), "aaaa")
	case "sns": // the message is signed
		at = strings.Index(string(r.Body), "Message\":\"sample") + len("Message\":\"")
	}
	r.Body[at] ^= 1
}

func TestEverySenderIsVerifiedRunsOnceAndIsReplayed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for _, p := range sender.Presets() {
		t.Run(p.Name, func(t *testing.T) {
			sample := o.sample(t, p.Name, "first")
			if p.Scheme != "none" {
				o.refuseForgery(t, &p)
			}
			first := send(t, o.Addr, sample)
			passed(t, first, 200, "done", "executed")
			second := send(t, o.Addr, sample)
			if p.NoID {
				passed(t, second, 200, "done", "executed")
				return
			}
			passed(t, second, 200, "done", "replayed")
			if second.Execution() != first.Execution() {
				t.Errorf("another execution: %v", second)
			}
			if got := shared.up.Received(sample.Target); len(got) != 1 || got[0].Body != string(sample.Body) {
				t.Errorf("%d requests at the upstream", len(got))
			}
		})
	}
	if metrics := o.Metrics(t); !strings.Contains(metrics, `hooklock_signature_verifications_total{`) ||
		!strings.Contains(metrics, `result="mismatch",route="stripe",scheme="stripe"`) {
		t.Errorf("no counter of signatures in\n%s", metrics)
	}
}

// refuseForgery sends the first event with one byte changed, and without its signature. Neither may
// reach the upstream, take the lock, or burn the event's ID: the real one runs after that.
func (o *office) refuseForgery(t *testing.T, p *sender.Preset) {
	t.Helper()
	status := cmp.Or(p.Respond[idem.DecisionUnverified], 401)
	want := refused{status, "signature_invalid", "no", "unverified"}
	forged := o.sample(t, p.Name, "first")
	forge(p.Name, forged, "first")
	unsigned := o.sample(t, p.Name, "first", sender.Unsigned())
	all := []*sender.Request{unsigned}
	if sender.Covers(sender.Config{Scheme: p.Scheme}).Body { // else a token is all that there is
		all = append(all, forged)
	}
	for _, bad := range all {
		a := send(t, o.Addr, bad)
		if p.RetryAfterUnit == time.Millisecond { // the sender reads milliseconds
			if a.Status != status || a.JSON()["code"] != "signature_invalid" || a.Header.Get("Retry-After") != "1000" {
				t.Fatalf("want %+v, got %v", want, a)
			}
			continue
		}
		want.check(t, a)
	}
	if got := shared.up.Received(forged.Target); len(got) != 0 {
		t.Fatalf("%d forgeries reached the upstream", len(got))
	}
}

func TestAForgedDeliveryDoesNotWaitForTheLock(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for _, preset := range []string{"github", "stripe"} { // one waits for its turn, one does not
		running := shared.holds(t, o.path(preset))
		sample := o.sample(t, preset, "held")
		answer := testkit.GoPost(t, o.Addr, sample.Target, string(sample.Body), lines(sample)...)
		running.await(t)
		forged := o.sample(t, preset, "other")
		forge(preset, forged, "other")
		refused{401, "signature_invalid", "no", "unverified"}.check(t, send(t, o.Addr, forged))
		running.answer <- testkit.OK("done")
		passed(t, testkit.Receive(t, "the answer", answer), 200, "done", "executed")
	}
}

func lines(r *sender.Request) []string {
	var lines []string
	for _, f := range r.Fields {
		lines = append(lines, string(f.Name)+": "+string(f.Value))
	}
	return lines
}

func TestAnAttemptThatSaysSoInItsBodyIsTheSameEvent(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	attempt := func(preset string, n int) *sender.Request {
		r := o.sample(t, preset, "again")
		switch preset {
		case "pubsub":
			r.Body = fmt.Appendf(nil,
				`{"deliveryAttempt":%d,"message":{"data":"c2FtcGxl","messageId":"again"},"subscription":"projects/s/subscriptions/s"}`, n)
		case "hubspot":
			r.Body = fmt.Appendf(nil,
				`[{"eventId":1,"subscriptionId":2,"occurredAt":1767225600000,"attemptNumber":%d}]`, n)
			signHubSpot(r, "https://hooks.example.com"+o.path(preset))
		}
		return r
	}
	for _, preset := range []string{"pubsub", "hubspot"} {
		passed(t, send(t, o.Addr, attempt(preset, 0)), 200, "done", "executed")
		passed(t, send(t, o.Addr, attempt(preset, 1)), 200, "done", "replayed")
	}
}

// signHubSpot signs a changed body anew (version 3).
func signHubSpot(r *sender.Request, url string) {
	for i := range r.Fields {
		if string(r.Fields[i].Name) == "X-HubSpot-Request-Timestamp" {
			mac := hmac.New(sha256.New, []byte(planted))
			fmt.Fprintf(mac, "%s%s%s%s", r.Method, url, r.Body, r.Fields[i].Value)
			signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
			for j := range r.Fields {
				if strings.HasPrefix(string(r.Fields[j].Name), "X-HubSpot-Signature") {
					r.Fields[j].Value = []byte(signature)
				}
			}
		}
	}
}

func TestASenderThatTriesAgainTooEarlyGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	running := shared.holds(t, o.path("slack"))
	sample := o.sample(t, "slack", "slow")
	first := testkit.GoPost(t, o.Addr, sample.Target, string(sample.Body), lines(sample)...)
	running.await(t)
	again := testkit.GoPost(t, o.Addr, sample.Target, string(sample.Body),
		append(lines(sample), "X-Slack-Retry-Num: 1", "X-Slack-Retry-Reason: http_timeout")...)
	running.answer <- testkit.Reply(200, "slow", "x-slack-no-retry: 1")
	passed(t, testkit.Receive(t, "the first answer", first), 200, "slow", "executed")
	second := testkit.Receive(t, "the answer to the copy", again)
	if second.Status != 200 || string(second.Body) != "slow" || second.Header.Get("x-slack-no-retry") != "1" {
		t.Errorf("%v", second)
	}
	// replayed: it came when the first one had ended
	if decision := second.Decision(); decision != "attached" && decision != "replayed" {
		t.Errorf("decision %q", decision)
	}
	reached(t, sample.Target, 1)
}

func TestHandshakesPassWithTheirSignatureAndNotWithoutIt(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	now := fmt.Sprint(time.Now().Unix())
	const jsonType = "Content-Type: application/json"
	discord := func(body string) []string {
		block, _ := pem.Decode(o.secrets["discord"].signer)
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return []string{jsonType, "X-Signature-Timestamp: " + now,
			fmt.Sprintf("X-Signature-Ed25519: %x", ed25519.Sign(key.(ed25519.PrivateKey), []byte(now+body)))}
	}
	sns := func() string {
		block, _ := pem.Decode(o.secrets["sns"].signer)
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		body, err := signSNS(key.(*rsa.PrivateKey), map[string]string{"Type": "SubscriptionConfirmation",
			"MessageId": "m", "Token": "t", "TopicArn": "arn:aws:sns:us-east-1:1:T",
			"Message": "confirm", "SubscribeURL": "https://sns.example.com/?Action=ConfirmSubscription",
			"Timestamp": "2026-01-01T00:00:00.000Z", "SignatureVersion": "2"})
		if err != nil {
			t.Fatal(err)
		}
		return body
	}()
	slack, zoom, ping := `{"type":"url_verification","challenge":"c"}`,
		`{"event":"endpoint.url_validation","payload":{"plainToken":"p"}}`, `{"type":1}`
	for _, c := range []struct {
		preset, body string
		lines        []string
		unverified   int // its status without a signature; 0: there is none to check
	}{
		{"slack", slack, []string{jsonType, "X-Slack-Request-Timestamp: " + now, "X-Slack-Signature: " +
			signSlack(planted, now, slack)}, 401},
		{"zoom", zoom, []string{jsonType, "x-zm-request-timestamp: " + now,
			"x-zm-signature: " + signSlack(planted, now, zoom)}, 503},
		{"discord", ping, discord(ping), 401},
		{"sns", sns, []string{"Content-Type: text/plain", "x-amz-sns-message-type: SubscriptionConfirmation"}, 503},
		{"eventgrid",
			`[{"id":"1","eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","data":{"validationCode":"v"}}]`,
			[]string{jsonType, "aeg-event-type: SubscriptionValidation"}, 0},
	} {
		target := o.path(c.preset)
		for range 2 { // it is no event: nobody remembers it
			passed(t, testkit.Post(t, o.Addr, target, c.body, c.lines...), 200, "done", "bypassed; would=executed")
		}
		got := shared.up.Received(target)
		if len(got) < 2 || got[0].Body != c.body || got[0].Header.Get("Hooklock-Execution") != "" {
			t.Errorf("%s: %d requests at the upstream", c.preset, len(got))
		}
		if c.unverified != 0 {
			forged := strings.Replace(c.body, `"c`, `"d`, 1)
			forged = strings.Replace(forged, `"p"`, `"q"`, 1)
			forged = strings.Replace(forged, `:1}`, `:0}`, 1)
			a := testkit.Post(t, o.Addr, target, forged, c.lines...)
			refused{c.unverified, "signature_invalid", "no", "unverified"}.check(t, a)
		}
	}
	options := testkit.Exchange(t, o.Addr,
		testkit.RequestWith("OPTIONS", o.path("cloudevents"), "", "WebHook-Request-Origin: eventemitter.example.com"))
	if options.Status != 200 || string(options.Body) != "done" {
		t.Errorf("OPTIONS: %v", options)
	}
}

func TestWhatIsObservedIsForwardedEvenUnverified(t *testing.T) {
	t.Parallel()
	h := own(t, embedded(t.TempDir(), "")+
		"  - {name: watched, path: /presets/watched, preset: stripe, verify: {secret_env: S}, mode: observe}\n",
		"S="+planted)
	passed(t, testkit.Post(t, h.Addr, "/presets/watched", `{"id":"evt_1"}`), 200, "done", "bypassed; would=unverified")
}

func TestARolledSecretIsTakenOverOnSIGHUP(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	write(t, file, "old-"+planted+"\n")
	h := own(t, embedded(t.TempDir(), "")+
		"  - {name: rolled, path: /presets/rolled, preset: stripe, verify: {secret_file: "+file+"}}\n")
	old, fresh := []byte("old-"+planted), []byte("new-"+planted)
	denied := refused{401, "signature_invalid", "no", "unverified"}
	passed(t, send(t, h.Addr, presetSample(t, "stripe", "/presets/rolled", old, "roll-1")), 200, "done", "executed")
	denied.check(t, send(t, h.Addr, presetSample(t, "stripe", "/presets/rolled", fresh, "roll-2")))
	write(t, file, string(fresh)+"\n")
	h.Signal(t, syscall.SIGHUP)
	h.AwaitLine(t, h.Stderr, `secrets of verify`)
	passed(t, send(t, h.Addr, presetSample(t, "stripe", "/presets/rolled", fresh, "roll-2")), 200, "done", "executed")
	denied.check(t, send(t, h.Addr, presetSample(t, "stripe", "/presets/rolled", old, "roll-3")))
}

func TestTheSampleCommandTriesARoute(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, planted+"\n")
	sample := func(preset string, args ...string) (code int, out string) {
		args = append([]string{"sample", preset, "--url", "http://" + o.Addr + o.path(preset), "--event", "tried"},
			args...)
		p := testkit.Start(t, testkit.Command{Program: hooklockProgram, Args: args})
		code = p.ExitCode(t)
		if fault := faults(p); fault != "" {
			t.Error(fault)
		}
		return code, p.Stdout.String()
	}
	for _, want := range []string{"executed", "replayed"} {
		if code, out := sample("stripe", "--secret-file", secret); code != 0 ||
			!strings.Contains(out, "< 200 OK\n< Hooklock-Decision: "+want+"\n") {
			t.Errorf("exit code %d, %s", code, out)
		}
	}
	if code, out := sample("stripe", "--unsigned"); code != 1 || !strings.Contains(out, "401 Unauthorized") ||
		!strings.Contains(out, "signature_invalid") {
		t.Errorf("exit code %d, %s", code, out)
	}
	if code, out := sample("hubspot", "--secret-file", secret, "--public-url",
		"https://hooks.example.com"); code != 0 || !strings.Contains(out, "executed") {
		t.Errorf("exit code %d, %s", code, out)
	}
}
