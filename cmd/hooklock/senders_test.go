package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy"
	"hooklock/proxy/sender"
)

const aSecret = "s3cret-of-the-test"

func loadText(t *testing.T, text string, env ...string) *config.Loaded {
	t.Helper()
	e, _ := testEnvironment()
	e.Env = append(env, "S="+aSecret)
	loaded, err := wiring.Load(e, "sidecar.yaml", []byte(text), false)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return loaded
}

const maxHead = 16 << 10

func rulesOf(t *testing.T, text string) *proxy.Rules {
	t.Helper()
	rules, err := wiring.NewRules(loadText(t, text).Config)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func sampleOf(r *sender.Request) *proxy.Sample {
	s := &proxy.Sample{Method: r.Method, Target: r.Target, Body: r.Body}
	for _, f := range r.Fields {
		s.Header = append(s.Header, [2]string{string(f.Name), string(f.Value)})
	}
	return s
}

func TestEveryPresetNamesItsOwnSample(t *testing.T) {
	for _, p := range sender.Presets() {
		name := p.Name
		rules := rulesOf(t, "routes: [{name: x, path: '"+p.Page.Path+"', workflow: '"+p.Page.Workflow+"', preset: "+
			name+", verify: {scheme: none}, idempotency: {on_mismatch: replay_unsigned}}]")
		id := func(event string, at time.Time) *proxy.Explanation {
			r, err := sender.Sample(name, nil, at,
				sender.WithURL("https://a"+pathVar.ReplaceAllString(p.Page.Path, "a")), sender.WithEvent(event),
				sender.Unsigned())
			if err != nil {
				t.Fatal(err)
			}
			x := rules.Explain(sampleOf(r), maxHead, at)
			if x.Refusals != nil || x.Handshake != "" || x.Preset != name ||
				strings.Contains(x.Note, "payload") != (p.PayloadRetention > 0) {
				t.Errorf("%s: %+v", name, x)
			}
			if x.Workflow == "" || strings.HasSuffix(x.Workflow, "/other") && name != "mailgun" {
				t.Errorf("%s: the page's workflow is %q", name, x.Workflow)
			}
			return x
		}
		now := time.Now()
		one, again, two := id("one", now), id("one", now), id("two", now)
		if p.NoID {
			if one.Key != "" || !strings.Contains(one.Note, "no duplicate is found") {
				t.Errorf("%s: key %q, %q", name, one.Key, one.Note)
			}
			continue
		}
		if one.Key != again.Key || one.Key == two.Key {
			t.Errorf("%s: keys %s, again %s, of another %s", name, one.Key, again.Key, two.Key)
		}
		if p.Page.SampleID != "" && one.EventID != p.Page.SampleID {
			t.Errorf("%s: the event ID is %q, want %q", name, one.EventID, p.Page.SampleID)
		}
		later := id("one", now.Add(time.Hour))
		if later.Key != one.Key { // what changes between attempts is not in the ID
			t.Errorf("%s: a later attempt has another key", name)
		}
		if !strings.HasPrefix(string(p.OnMismatch), "replay") && later.Fingerprint != one.Fingerprint &&
			name != "mailgun" { // it signs by a part of the body
			t.Errorf("%s: a later attempt has another body, so that no duplicate can be tried", name)
		}
	}
}

func TestWhatIsOddAboutARouteForASenderIsWarnedAbout(t *testing.T) {
	for _, c := range []struct{ route, want string }{
		{"preset: stripe, verify: {secret_env: S}, idempotency: {retention: 1h}",
			"routes[0].idempotency.retention: 1h0m0s: stripe sends again for 72h0m0s"},
		{"preset: github, verify: {secret_env: S}", "routes[0].event_id: {header.X-GitHub-Hook-ID} is not signed"},
		{"preset: github, verify: {secret_env: S}",
			"routes[0].preset: github waits 10s for an answer, and lock.wait_timeout + upstream.timeout is 34s"},
		{"preset: slack, verify: {secret_env: S}, park: {on: [locked], signature: renew}",
			"slack waits 3s for an answer"},
		{"preset: slack, verify: {secret_env: S}, park: {signature: renew}", ""},
		{"preset: stripe, verify: {secret_env: S, tolerance: 0s}", "routes[0].verify.tolerance: 0s: no age check"},
		{"preset: github, verify: {secret_env: S, tolerance: 1m}", "routes[0].verify.tolerance: has no effect"},
		{"verify: {scheme: hmac, header: X, secret_env: S}", "{header.Idempotency-Key} is not signed"},
		{"verify: {scheme: hmac, header: X, secret_env: S, content: '{header.idempotency-key}{body}'}", ""},
		{"preset: stripe, verify: {secret_env: S}", ""},
		{"preset: sns, verify: {scheme: hmac, header: X, secret_env: S}",
			"{header.x-amz-sns-subscription-arn} is not signed"},
		{"preset: sns, verify: {scheme: none}, lock: {strategy: fail_fast}, idempotency: {on_mismatch: reject}",
			"sns waits 15s"},
		{"preset: stripe, verify: {secret_file: /nonexistent}", "verify.secret_file: open /nonexistent"},
	} {
		got := loadText(t, "park_store: {single_member: true}\nroutes: [{name: x, path: /x, "+c.route+
			"}]").Warnings.Error()
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.route, got)
		}
	}
}

// What a sender never sends again is lost where its body is longer than what is taken.
func TestALimitThatIsLessThanASendersBodiesIsWarnedAbout(t *testing.T) {
	for limit, warned := range map[string]bool{"8MiB": true, "24MiB": true, "25MiB": false, "1GiB": false} {
		for preset, known := range map[string]bool{"github": true, "gitlab": true, "stripe": false} {
			text := loadText(t, "limits: {request_body: "+limit+"}\nroutes: [{name: x, path: /x, preset: "+preset+
				", verify: {secret_env: S}}]").Warnings.Error()
			want := "routes[0].preset: " + preset +
				" sends bodies of up to 25 MiB, more than limits.request_body: what is longer is 413, however often it comes; write limits: {request_body: 25MiB}"
			if strings.Contains(text, want) != (warned && known) {
				t.Errorf("%s with %s: %s", preset, limit, text)
			}
		}
	}
}

func TestWhatCannotBeVerifiedIsRefusedWithAWayOut(t *testing.T) {
	for route, want := range map[string]string{
		"preset: stripe":                          "routes[0].verify: scheme stripe: give secret_file or scheme: none",
		"preset: discord":                         "give public_key_file or scheme: none",
		"preset: square, verify: {secret_env: S}": "give public_url",
		"preset: strip":                           `"strip" is not known, did you mean "stripe"?`,
		"preset: svicks":                          `is not known`,
		"verify: {scheme: stirpe, secret_env: S}": `did you mean "stripe"?`,
		"event_id: '{preset}'":                    `"{preset}" needs a preset`,
		"preset: stripe, verify: {secret_env: S}, event_id: '{body}'":       "routes[0].event_id: ",
		"verify: {scheme: hmac, secret_env: S}":                             "give header",
		"verify: {scheme: hmac, header: X, secret_env: S, encoding: hex64}": "give hex or base64",
	} {
		e, _ := testEnvironment()
		e.Env = []string{"S=" + aSecret}
		_, err := wiring.Load(e, "sidecar.yaml", []byte("routes: [{name: x, path: /x, "+route+"}]"), false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", route, err)
		}
	}
}

func TestWithoutItsSecretARouteAcceptsNothing(t *testing.T) {
	rules := rulesOf(t, "routes: [{name: x, path: /x, preset: stripe, verify: {secret_file: /nonexistent}}]")
	x := rules.Explain(&proxy.Sample{Method: "POST", Target: "/x", Body: []byte(`{"id":"e"}`)}, maxHead, time.Now())
	if len(x.Refusals) == 0 || x.Refusals[0].Code != "signature_invalid" ||
		!strings.Contains(x.Signature, "could not be read here") || !rules.Table.Routes[0].Policy.Verified {
		t.Errorf("%+v", x)
	}
}

func TestTheStatusesAreThoseOfTheProgram(t *testing.T) {
	want := map[idem.Decision]int{} // of the decisions that refuse, without a preset
	for _, row := range idem.Decisions() {
		if row.Status >= 400 && !row.Droppable {
			want[row.Decision] = row.Status
		}
	}
	seen := map[idem.Decision]bool{}
	for _, strategy := range []string{"fail_fast", "wait"} {
		rules := rulesOf(t, "limits: {shared: {erp: 2}}\nroutes: [{name: x, path: /x, uses: [erp], lock: {strategy: "+
			strategy+
			"}, idempotency: {on_unknown: block, new_per_second: 5}, verify: {scheme: token, header: X, secret_env: S}}]")
		for _, a := range rules.Explain(&proxy.Sample{Method: "POST", Target: "/x"}, maxHead, time.Now()).Answers {
			var status int
			if _, err := fmt.Sscanf(a.Text, "%d ", &status); err != nil {
				continue
			}
			seen[a.Decision] = true
			if want[a.Decision] != status {
				t.Errorf("%s is %s, the docs say %d", a.Decision, a.Text, want[a.Decision])
			}
		}
	}
	for decision := range want {
		if !seen[decision] && decision != idem.DecisionRejected {
			t.Errorf("explain does not say what %s answers", decision)
		}
	}
}

// inFolder runs the program on a configuration.
func inFolder(t *testing.T, text string, args ...string) (code int, out string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e, buffer := testEnvironment()
	code = run(t.Context(), append(args, "--config", path), []string{"S=" + aSecret}, e.Stdout, e.Stderr)
	return code, buffer.String()
}

func TestExplainFailsForADeliveryThatNoRouteTakes(t *testing.T) {
	for unmatched, want := range map[string]string{"pass": "untouched and unguarded", "reject": "404"} {
		code, out := inFolder(t, "unmatched: "+unmatched+"\nroutes: [{name: x, path: /x}]", "explain", "--path", "/y",
			"-d", "{}")
		if code != cli.ExitNotFound || !strings.Contains(out, want) ||
			!strings.Contains(out, "NO ROUTE takes this delivery") {
			t.Errorf("unmatched %s: exit code %d\n%s", unmatched, code, out)
		}
	}
}

func TestExplainSaysWhatIsWrongWithASignatureAndNeverTheSecret(t *testing.T) {
	const route = "routes: [{name: x, path: /x, preset: stripe, verify: {secret_env: S}, lock: {strategy: wait}, idempotency: {retention: 1h}}]"
	sign := func(secret string, at time.Time) []string {
		r, err := sender.Sample("stripe", []byte(secret), at, sender.WithURL("https://a/x"))
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"explain", "--path", "/x", "-d", string(r.Body)}
		for _, f := range r.Fields {
			args = append(args, "-H", string(f.Name)+": "+string(f.Value))
		}
		return args
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"right", sign(aSecret, time.Now()), cli.ExitFine, "signature      valid"},
		{"wrong", sign("another", time.Now()), cli.ExitFailed, "mismatch: Stripe-Signature: "},
		{"old", sign(aSecret, time.Now().Add(-time.Hour)), cli.ExitFailed, "too_old: "},
		{"none", []string{"explain", "--path", "/x", "-d", "{}"}, cli.ExitFailed, "missing: Stripe-Signature"},
	} {
		code, out := inFolder(t, route, c.args...)
		for _, want := range []string{c.want, "# preset stripe", "# scheme stripe", "sends again for", "unverified "} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is missing in\n%s", c.name, want, out)
			}
		}
		if code != c.code {
			t.Errorf("%s: exit code %d", c.name, code)
		}
		if strings.Contains(out, aSecret) {
			t.Errorf("%s: the secret is in\n%s", c.name, out)
		}
	}
}

func TestExplainSaysWhyATemplateHasNoValue(t *testing.T) {
	const route = "routes: [{name: x, path: /x, event_id: '{xml.order.number}'}]"
	for body, want := range map[string]string{
		"<?xml version='1.0' encoding='ISO-8859-1'?><order><number>\xe9</number></order>": "event ID       é\n",
		"<?xml version='1.0' encoding='klingon'?><order><number>1</number></order>":       "{xml.order.number}: the body cannot be read: ",
		"<order><id>1</id></order>": "{xml.order.number}: the document has no such element",
	} {
		if _, out := inFolder(t, route, "explain", "--path", "/x", "-d", body); !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestShowNamesThePresetAsTheOrigin(t *testing.T) {
	_, out := inFolder(t, "routes: [{name: x, path: /x, preset: svix, verify: {secret_file: /nonexistent}}]", "config",
		"show", "--origin")
	for _, want := range []string{"event_id: \"{preset}\" # preset standard-webhooks",
		"tolerance: 5m # scheme standard-webhooks"} {
		if !strings.Contains(strings.ReplaceAll(out, "'", `"`), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestSampleSendsWhatTheSenderWould(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(aSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	verifier, err := sender.New(sender.Config{Scheme: "twilio", Secrets: [][]byte{[]byte(aSecret)},
		PublicURL: "https://hooks.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	answer := func(status int, decision string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d := sender.Delivery{Method: []byte(r.Method), Target: []byte(r.RequestURI)}
			for name, values := range r.Header {
				for _, v := range values {
					d.Fields = append(d.Fields, naming.Field{Name: []byte(name), Value: []byte(v)})
				}
			}
			body := make([]byte, r.ContentLength)
			_, _ = r.Body.Read(body)
			d.Body = body
			if decision != "" {
				w.Header().Set("Hooklock-Decision", decision)
			}
			if err := verifier.Verify(&d, time.Now()); err != nil {
				status = 401
			}
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]string{"seen": r.Header.Get("I-Twilio-Idempotency-Token")})
		}))
		t.Cleanup(s.Close)
		return s
	}
	fine, refusing, plain := answer(200, "executed"), answer(409, "locked"), answer(200, "")
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"taken", []string{"twilio", "--url", fine.URL + "/a?b=c", "--secret-file", secret, "--public-url",
			"https://hooks.example.com", "--event", "e1"}, cli.ExitFine,
			"< 200 OK\n< Hooklock-Decision: executed\n{\"seen\":\"e1\"}\n"},
		{"refused", []string{"twilio", "--url", refusing.URL, "--secret-file", secret, "--public-url",
			"https://hooks.example.com"}, cli.ExitFailed, "409 Conflict"},
		{"signed for another URL", []string{"twilio", "--url", fine.URL, "--secret-file", secret}, cli.ExitFailed,
			"401 Unauthorized"},
		{"no Hooklock there", []string{"twilio", "--url", plain.URL, "--secret-file", secret, "--public-url",
			"https://hooks.example.com"}, cli.ExitFailed, "no route of Hooklock has it"},
		{"nothing there", []string{"twilio", "--url", "http://127.0.0.1:1", "--secret-file", secret}, cli.ExitFailed,
			"is Hooklock running there?"},
		{"no secret", []string{"twilio", "--url", fine.URL}, cli.ExitUsage, "give --secret-file"},
		{"no URL", []string{"twilio"}, cli.ExitUsage, "give where Hooklock listens"},
		{"no preset", nil, cli.ExitUsage, "takes one preset"},
		{"unknown preset", []string{"twillio", "--url", fine.URL}, cli.ExitUsage, "unknown; give one of adyen"},
		{"printed", []string{"twilio", "--url", fine.URL + "/it's", "--secret-file", secret, "--print"}, cli.ExitFine,
			"curl -i -X POST '" + fine.URL + `/it'\''s'`},
	} {
		e, out := testEnvironment()
		code := run(t.Context(), append([]string{"sample"}, c.args...), nil, e.Stdout, e.Stderr)
		if code != c.code || !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), aSecret) {
			t.Errorf("%s: exit code %d\n%s", c.name, code, out)
		}
	}
}
