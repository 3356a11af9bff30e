package config

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// someSenders has post, a sender that does not exist, with settings of every kind.
func someSenders() Senders {
	return Senders{
		Presets: []Known{
			{Name: "post", Aliases: []string{"mail"}, Settings: map[string]string{
				"match.methods": "GET,POST", "event_id": "{body.id}", "verify.scheme": "post",
				"idempotency.retention": "720h", "idempotency.on_mismatch": "execute",
				"lock.strategy": "wait", "lock.wait_timeout": "2s", "respond.locked": "503", "respond.rejected": "503",
			}},
			{Name: "open", Settings: map[string]string{"event_id": naming.EventIDOfPreset}},
		},
		Schemes: []Known{{Name: "none"}, {Name: "hmac"},
			{Name: "post", Settings: map[string]string{"verify.tolerance": "5m"}}},
	}
}

func loadWith(t *testing.T, text string, env ...string) *Loaded {
	t.Helper()
	loaded, err := Load(Source{Path: "sidecar.yaml", Bytes: []byte(text), Env: env, Senders: someSenders()})
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return loaded
}

func TestAPresetFillsWhatIsLeftOut(t *testing.T) {
	for _, preset := range []string{"post", "mail"} {
		r := loadWith(t, "routes: [{name: a, path: /a, preset: "+preset+"}]").Config.Routes[0]
		want := defaultRoute()
		want.Name, want.Match.Path, want.Preset, want.EventID = "a", "/a", preset, "{body.id}"
		want.Match.Methods = []string{"GET", "POST"}
		want.Verify.Scheme, want.Verify.Tolerance = "post", 5*time.Minute
		want.Idempotency.Retention, want.Idempotency.OnMismatch = 720*time.Hour, idem.MismatchExecute
		want.Lock.Strategy, want.Lock.WaitTimeout = idem.Wait, 2*time.Second
		want.Respond = map[string]int{"locked": 503, "rejected": 503}
		if !reflect.DeepEqual(r, want) {
			t.Errorf("got  %+v\nwant %+v", r, want)
		}
	}
}

// TestAnEventIDWithoutEffectIsWarnedAbout: a preset whose sender names no event switches the look
// for duplicates off, and an event_id alone does not switch it on.
func TestAnEventIDWithoutEffectIsWarnedAbout(t *testing.T) {
	known := Senders{Presets: []Known{{Name: "post", Settings: map[string]string{"idempotency.enabled": "false"}}}}
	for text, want := range map[string]string{
		`preset: post, event_id: "{body.id}"`: `routes[0].event_id: has no effect: idempotency.enabled is false, as the preset says: no delivery is taken for a copy of another one; ` +
			`say idempotency: {enabled: true}, too, where this names an event`,
		`preset: post, on_missing_event_id: reject`:                         `routes[0].on_missing_event_id: has no effect: idempotency.enabled is false`,
		`preset: post, event_id: "{body.id}", idempotency: {enabled: true}`: ``,
		`preset: post`: ``,
		`event_id: "{body.id}", idempotency: {enabled: false}`: `routes[0].event_id: has no effect: idempotency.enabled is false: no delivery is taken for a copy of another one`,
	} {
		loaded, err := Load(Source{Path: "sidecar.yaml", Bytes: []byte("routes: [{name: a, path: /a, " + text + "}]"),
			Senders: known})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range loaded.Warnings {
			got = append(got, w.String())
		}
		if said := strings.Join(got, "\n"); (said == "") != (want == "") || !strings.HasSuffix(said, want) {
			t.Errorf("%s:\n%s\nwant\n%s", text, said, want)
		}
	}
}

func TestAPresetMayHaveAHandshake(t *testing.T) {
	known := Senders{Presets: []Known{{Name: "post", Settings: map[string]string{
		"handshake.when": "query.mode=subscribe,query.challenge", "handshake.method": "GET",
		"handshake.unsigned": "true", "handshake.token": "query.token",
		"handshake.answer": "{query.challenge}, {query.more}", "handshake.content_type": "text/plain",
		"handshake.header": "X-A: {query.challenge}",
	}}}}
	loaded, err := Load(Source{Bytes: []byte(
		"routes: [{name: a, path: /a, preset: post, handshake: {answer: mine, token_env: T}}]"), Env: []string{"T=t"},
		Senders: known})
	if err != nil {
		t.Fatal(err)
	}
	want := Handshake{
		When: []string{"query.mode=subscribe", "query.challenge"}, Method: "GET", Unsigned: true,
		TokenAt: "query.token", TokenEnv: "T", Token: newSecret("t"),
		Answer: "mine", ContentType: "text/plain", Header: "X-A: {query.challenge}",
	}
	if got := loaded.Config.Routes[0].Handshake; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

func TestWhateverTheUserSetsOverridesThePreset(t *testing.T) {
	loaded := loadWith(t, `
routes:
  - name: a
    match: {path: /a, methods: [PUT]}
    preset: post
    event_id: "{header.X}"
    verify: {scheme: none}
    lock: {wait_timeout: 1s}
    respond: {locked: 429}
`, "HOOKLOCK__ROUTES__0__IDEMPOTENCY__RETENTION=1h")
	r := loaded.Config.Routes[0]
	if !slices.Equal(r.Match.Methods, []string{"PUT"}) || r.EventID != "{header.X}" || r.Verify.Scheme != "none" ||
		r.Verify.Tolerance != 0 ||
		r.Lock.WaitTimeout != time.Second || r.Respond["locked"] != 429 || r.Idempotency.Retention != time.Hour {
		t.Errorf("got %+v", r)
	}
	for path, want := range map[string]string{
		"routes[0].lock.strategy": "preset post", "routes[0].lock.wait_timeout": "sidecar.yaml:8",
		"routes[0].respond.rejected":        "preset post",
		"routes[0].respond.locked":          "sidecar.yaml:9",
		"routes[0].idempotency.retention":   "environment HOOKLOCK__ROUTES__0__IDEMPOTENCY__RETENTION",
		"routes[0].idempotency.on_mismatch": "preset post", "routes[0].mode": "default",
	} {
		if got := loaded.Origin(path).String(); got != want {
			t.Errorf("%s is from %q, want %q", path, got, want)
		}
	}
}

func TestTheToleranceFollowsTheSchemeAndNotThePreset(t *testing.T) {
	loaded := loadWith(t, "routes: [{name: a, path: /a, verify: {scheme: post, secret_env: S}}]", "S=x")
	if v := loaded.Config.Routes[0].Verify; v.Tolerance != 5*time.Minute ||
		loaded.Origin("routes[0].verify.tolerance").String() != "scheme post" {
		t.Errorf("got %v from %v", v.Tolerance, loaded.Origin("routes[0].verify.tolerance"))
	}
}

func TestAPresetMayComeFromTheEnvironment(t *testing.T) {
	loaded := loadWith(t, "routes: [{name: a, path: /a}, {name: b, path: /b}]", "HOOKLOCK__ROUTES__1__PRESET=post")
	if c := loaded.Config; c.Routes[0].EventID == "{body.id}" || c.Routes[1].EventID != "{body.id}" {
		t.Errorf("got %+v", c.Routes)
	}
}

func TestWhatAPresetSetsIsShownWithItsName(t *testing.T) {
	loaded := loadWith(t, "routes: [{name: a, path: /a, preset: post}]")
	var out bytes.Buffer
	if err := loaded.Show(&out, true); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"strategy: wait # preset post", "tolerance: 5m # scheme post",
		"locked: 503 # preset post", "methods: [GET, POST] # preset post"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not in\n%s", line, &out)
		}
	}
	again, err := Load(Source{Bytes: out.Bytes(), Senders: someSenders()})
	if err != nil || !reflect.DeepEqual(again.Config, loaded.Config) {
		t.Errorf("read back: %v", err)
	}
}

func TestUnknownPresetsAndSchemesAreRefusedWithASuggestion(t *testing.T) {
	for text, want := range map[string]string{
		"preset: pots":                      `sidecar.yaml:1:46: routes[0].preset: "pots" is not known, did you mean "post"?`,
		"preset: zebra":                     `"zebra" is not known; choose from post, open`,
		"verify: {scheme: hmacs}":           `routes[0].verify.scheme: "hmacs" is not known, did you mean "hmac"?`,
		"verify: {tolerance: 5}":            "routes[0].verify.tolerance: 5: give a unit",
		"verify: {secrets_file: x}":         `did you mean "secret_file"?`,
		"verify: {scheme: [hmac]}":          "routes[0].verify.scheme: needs text",
		"preset: post, event_id: ''":        "routes[0].event_id: is empty",
		"preset: post, respond: {lockd: 5}": `did you mean "locked"?`,
	} {
		got := refusalOf(t, Source{Bytes: []byte("routes: [{name: a, path: /aaaaaaaaa, " + text + "}]"),
			Senders: someSenders()})
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestSeveralSecretsAreReadInTheirOrder(t *testing.T) {
	dir := t.TempDir()
	name := func(n string) string { return filepath.Join(dir, n) }
	for n, text := range map[string]string{"new": "n\n", "old": "o", "key": "k\n"} {
		if err := os.WriteFile(name(n), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verify := func(text string, env ...string) *Verify {
		return &loadWith(t, "routes: [{name: a, path: /a, verify: {scheme: hmac, "+text+"}}]",
			env...).Config.Routes[0].Verify
	}
	v := verify("secret_files: [" + name("new") + ", " + name("old") + "], public_key_file: " + name("key"))
	if len(v.Secrets) != 2 || v.Secrets[0].Reveal() != "n" || v.Secrets[1].Reveal() != "o" || len(v.PublicKeys) != 1 ||
		v.PublicKeys[0].Reveal() != "k" || !v.Complete() {
		t.Errorf("got %d secrets, %d keys", len(v.Secrets), len(v.PublicKeys))
	}
	if v := verify("secret_env: S", "S=e"); v.Secrets[0].Reveal() != "e" || !v.Complete() {
		t.Error("the variable was not read")
	}
	if v := verify("secret_files: [" + name("new") + ", /nonexistent/x]"); len(v.Secrets) != 1 || v.Complete() {
		t.Error("a missing secret must show")
	}
	got := refusalOf(t,
		Source{Bytes: []byte("routes: [{name: a, path: /a, verify: {scheme: hmac, secret_env: A, secret_files: [b]}}]"),
			Senders: someSenders()})
	if !strings.Contains(got, "give either secret_file or secret_env or secret_files") {
		t.Error(got)
	}
	got = refusalOf(t,
		Source{Bytes: []byte("routes: [{name: a, path: /a, verify: {scheme: hmac, secret_file: /nonexistent/x}}]"),
			Senders: someSenders(), NeedFiles: true})
	if !strings.Contains(got, "routes[0].verify.secret_file: open /nonexistent/x") {
		t.Error(got)
	}
}

func TestVerifySettingsWithoutEffectAreWarnedAbout(t *testing.T) {
	for text, want := range map[string]string{

		"verify: {secret_env: S}": "routes[0].verify: has no effect: verify.scheme is none",

		"verify: {scheme: post, secret_env: S, header: X}":       "routes[0].verify.header: has no effect",
		"verify: {scheme: post, secret_env: S}":                  "",
		"preset: post, lock: {strategy: fail_fast}":              "", // the wait_timeout is the preset's
		"preset: post, lock: {strategy: none, wait_timeout: 3s}": "routes[0].lock.wait_timeout: has no effect",
	} {
		got := loadWith(t, "routes: [{name: a, path: /a, "+text+"}]", "S=x").Warnings.Error()
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestTheCallerJudgesARouteOnlyWhenItIsSound(t *testing.T) {
	check := func(_ *Config, r *Route) (problems, warnings Problems) {
		if r.Name == "bad" {
			return Problems{{Path: "verify", Text: "give secret_file or scheme: none"}}, nil
		}
		return nil, Problems{{Path: "idempotency.retention", Text: "short"}}
	}
	text := "routes:\n- {name: a, path: /a, preset: post}\n- {name: b, path: /b, idempotency: {retention: 1h}}\n"
	loaded, err := Load(Source{Path: "s", Bytes: []byte(text), Senders: someSenders(), CheckRoute: check})
	if err != nil ||
		loaded.Warnings.Error() != "s:2:3: routes[0].idempotency.retention: short\ns:3:48: routes[1].idempotency.retention: short" {
		t.Errorf("%v\n%v", err, loaded.Warnings)
	}
	got := refusalOf(t, Source{Bytes: []byte("routes: [{name: bad, path: /a}, {name: bad, path: '', mode: x}]"),
		CheckRoute: check})
	if strings.Count(got, "secret_file") != 1 {
		t.Error(got)
	}
}

func TestANewSecretIsTakenOverByAReload(t *testing.T) {
	before := loadWith(t, "routes: [{name: a, path: /a, verify: {scheme: hmac, secret_env: S}}]", "S=x").Config
	after := loadWith(t, "routes: [{name: a, path: /a, verify: {scheme: hmac, secret_env: S}}]", "S=y").Config
	restart, reload := Changes(before, after)
	if restart != nil || !slices.Equal(reload, []string{"route a: secrets of verify"}) {
		t.Errorf("%v %v", restart, reload)
	}
}

// Without its token a handshake would take any request for the sender's, so it must show where the
// token was not read.
func TestAHandshakeIsCompleteWhenTheTokenThatItNamesWasRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"answer: '{query.a}'":                        true,
		"token: query.t, token_file: " + file:        true,
		"token: query.t, token_file: /nonexistent/x": false,
		"token: query.t, token_env: THERE":           true,
		"token: query.t, token_env: NOT_THERE":       false,
	} {
		h := &loadWith(t, "routes: [{name: a, path: /a, handshake: {when: [query.a], "+text+"}}]",
			"THERE=e").Config.Routes[0].Handshake
		if h.Complete() != want {
			t.Errorf("%s: complete is %v", text, h.Complete())
		}
	}
}

// One secret, one variable and one key are each enough only where nothing else is named.
func TestASignatureIsCompleteWhenAllThatItNamesWasRead(t *testing.T) {
	dir := t.TempDir()
	file, missing := filepath.Join(dir, "there"), filepath.Join(dir, "missing")
	if err := os.WriteFile(file, []byte("f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"header: X":                                              true,
		"secret_file: " + file:                                   true,
		"secret_file: " + missing:                                false,
		"secret_env: THERE":                                      true,
		"secret_env: NOT_THERE":                                  false,
		"secret_files: [" + file + ", " + file + "]":             true,
		"secret_files: [" + missing + ", " + file + "]":          false,
		"public_key_file: " + file:                               true,
		"public_key_file: " + missing:                            false,
		"public_key_files: [" + file + "]":                       true,
		"public_key_files: [" + file + ", " + missing + "]":      false,
		"secret_file: " + file + ", public_key_file: " + missing: false,
		"secret_file: " + missing + ", public_key_file: " + file: false,
		"secret_env: THERE, public_key_files: [" + file + "]":    true,
	} {
		v := &loadWith(t, "routes: [{name: a, path: /a, verify: {scheme: hmac, "+text+"}}]",
			"THERE=e").Config.Routes[0].Verify
		if v.Complete() != want {
			t.Errorf("%s: complete is %v, with %d secrets and %d keys", text, v.Complete(), len(v.Secrets),
				len(v.PublicKeys))
		}
	}
}
