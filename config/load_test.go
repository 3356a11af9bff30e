package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

const fourLines = `upstream: http://127.0.0.1:8081
routes:
  - name: stripe
    path: /hooks/stripe
    workflow: stripe
`

func TestFourLinesAreEnough(t *testing.T) {
	got := load(t, fourLines).Config
	want := Default()
	r := defaultRoute()
	r.Name, r.Match.Path, r.Workflow = "stripe", "/hooks/stripe", "stripe"
	want.Routes = []Route{r}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestAnEmptyFileIsTheDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "{}", "---\n", "limits:\netcd:\n  embedded:\nroutes:\n",
		"routes: []"} {
		if got := load(t, text).Config; !reflect.DeepEqual(got, Default()) {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

func TestTheShippedFileIsTheDefaultsAndOneRoute(t *testing.T) {
	loaded, err := Load(Source{Path: "../sidecar.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded.Warnings) > 0 {
		t.Errorf("it warns:\n%s", loaded.Warnings)
	}
	want := Default()
	r := defaultRoute()
	r.Name, r.Match.Path = "stripe", "/hooks/stripe/{account}"
	r.Workflow, r.EventID = "stripe/{path.account}", "{header.Idempotency-Key ?? body.id}"
	want.Routes = []Route{r}
	if !reflect.DeepEqual(loaded.Config, want) {
		t.Errorf("got  %+v\nwant %+v", loaded.Config, want)
	}
	shipped, err := os.ReadFile("../sidecar.yaml")
	if err != nil {
		t.Fatal(err)
	}
	eachValue(rootKey(), "", reflect.ValueOf(want).Elem(), func(k *key, path string, _ reflect.Value) {
		if k.kind == kindEntries {
			if !strings.Contains(string(shipped), " "+path[strings.LastIndex(path, ".")+1:]+": {") {
				t.Errorf("sidecar.yaml does not show %s", path)
			}
			return
		}
		if loaded.Origin(path).Kind != FromFile {
			t.Errorf("sidecar.yaml does not show %s", path)
		}
	})
}

func TestJSONIsRead(t *testing.T) {
	got := load(t,
		`{"listen": "127.0.0.1:1", "limits": {"waiting": 7}, "routes": [{"name": "a", "match": {"path": "/a"}, "respond": {"locked": 503}}]}`).Config
	if got.Listen.Address != "127.0.0.1:1" || got.Limits.Waiting != 7 || got.Routes[0].Respond["locked"] != 503 {
		t.Errorf("got %+v", got)
	}
}

func TestAnAliasStandsForAWholeValue(t *testing.T) {
	got := load(t,
		"routes:\n- {name: a, path: /a, lock: &slow {max_duration: 2h}}\n- {name: b, path: /b, lock: *slow}\n").Config
	if got.Routes[1].Lock.MaxDuration != 2*time.Hour {
		t.Errorf("got %+v", got.Routes[1])
	}
}

func TestEveryKindOfValueIsRead(t *testing.T) {
	c := load(t, `
listen: {address: "[::1]:8443", tls: {cert_file: cert.pem, key_file: key.pem}}
limits: {request_body: 512B, max_connections: 5}
shutdown_delay: 1m30s
etcd: {endpoints: ["http://a:2379", "http://b:2379"]}
log: {level: debug, format: text}
routes:
  - name: a
    match: {path: "/a/{x}/{rest...}", methods: [POST], hosts: [Hooks.example.com]}
    idempotency: {enabled: false, keep: [2xx, 404, 410-412], unknown: ["502"], replay_body: 0B}
    mode: observe
`).Config
	r := c.Routes[0]
	for _, check := range []struct{ got, want any }{
		{c.Listen, Listen{"[::1]:8443", ServerTLS{"cert.pem", "key.pem"}}},
		{c.Limits.RequestBody, Size(512)},
		{c.Limits.MaxConnections, 5},
		{c.ShutdownDelay, 90 * time.Second},
		{c.Etcd.Endpoints, []string{"http://a:2379", "http://b:2379"}},
		{c.Log, Log{LogDebug, LogText, 1, true}},
		{r.Match.Hosts, []string{"Hooks.example.com"}},
		{r.Idempotency.Enabled, false},
		{r.Idempotency.Keep, []StatusRange{{200, 299}, {404, 404}, {410, 412}}},
		{r.Idempotency.Unknown, []StatusRange{{502, 502}}},
		{r.Idempotency.ReplayBody, Size(0)},
		{r.Mode, ModeObserve},
	} {
		if !reflect.DeepEqual(check.got, check.want) {
			t.Errorf("got %#v, want %#v", check.got, check.want)
		}
	}
}

func TestTheEnvironmentWinsOverTheFileOverTheDefaults(t *testing.T) {
	loaded, err := Load(Source{
		Path:  "sidecar.yaml",
		Bytes: []byte("upstream: http://127.0.0.1:1\nshutdown_timeout: 1m\nlimits: {waiting: 1}\nlog: {level: warn}\n"),
		Env: []string{
			"HOOKLOCK__UPSTREAM__TIMEOUT=3s", "HOOKLOCK__LIMITS__WAITING=3", "HOOKLOCK__LISTEN=127.0.0.1:0",
			"HOOKLOCK__LOG__LEVEL=error",
			"HOOKLOCK__ETCD__ENDPOINTS=http://a:2379, http://b:2379", "HOOKLOCK_PORT=tcp://10.0.0.1:8080",
			"HOOKLOCK_LISTEN=no",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := loaded.Config
	for _, check := range []struct {
		path      string
		got, want any
		origin    string
	}{
		{"upstream.url", c.Upstream.URL, "http://127.0.0.1:1", "sidecar.yaml:1"},
		{"upstream.timeout", c.Upstream.Timeout, 3 * time.Second, "environment HOOKLOCK__UPSTREAM__TIMEOUT"},
		{"shutdown_timeout", c.ShutdownTimeout, time.Minute, "sidecar.yaml:2"},
		{"limits.waiting", c.Limits.Waiting, 3, "environment HOOKLOCK__LIMITS__WAITING"},
		{"log.level", c.Log.Level, LogError, "environment HOOKLOCK__LOG__LEVEL"},
		{"listen.address", c.Listen.Address, "127.0.0.1:0", "environment HOOKLOCK__LISTEN"},
		{"etcd.endpoints", c.Etcd.Endpoints, []string{"http://a:2379", "http://b:2379"},
			"environment HOOKLOCK__ETCD__ENDPOINTS"},
		{"data_dir", c.DataDir, "./hooklock-data", "default"},
	} {
		if !reflect.DeepEqual(check.got, check.want) {
			t.Errorf("%s: got %v, want %v", check.path, check.got, check.want)
		}
		if got := loaded.Origin(check.path).String(); got != check.origin {
			t.Errorf("%s: from %q, want %q", check.path, got, check.origin)
		}
	}
}

func TestTheEnvironmentReachesRoutesByIndex(t *testing.T) {
	loaded, err := Load(Source{Bytes: []byte(fourLines), Path: "sidecar.yaml", Env: []string{
		"HOOKLOCK__ROUTES__0__WORKFLOW=other",
		"HOOKLOCK__ROUTES__0__RESPOND__LOCKED=503",
		"HOOKLOCK__ROUTES__1__NAME=second",
		"HOOKLOCK__ROUTES__1__PATH=/second",
		"HOOKLOCK__ROUTES__1__IDEMPOTENCY__KEEP=2xx,409",
	}})
	if err != nil {
		t.Fatal(err)
	}
	first, second := loaded.Config.Routes[0], loaded.Config.Routes[1]
	if first.Workflow != "other" || first.Match.Path != "/hooks/stripe" || first.Respond["locked"] != 503 {
		t.Errorf("got %+v", first)
	}
	if second.Name != "second" || second.Match.Path != "/second" || len(second.Idempotency.Keep) != 2 ||
		second.Lock != defaultRoute().Lock {
		t.Errorf("got %+v", second)
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	_, err := Load(Source{Path: t.TempDir() + "/none.yaml"})
	if err == nil || !strings.Contains(err.Error(), "none.yaml: no such file") {
		t.Error(err)
	}
}

func TestShowIsReadBackAsTheSameConfiguration(t *testing.T) {
	text, err := os.ReadFile("../sidecar.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", string(text),
		`{upstream: "unix:///run/a b.sock", data_dir: "123", limits: {request_body: 1GiB}, routes: [{name: "404", path: "/{x...}", workflow: "true", idempotency: {keep: [404, 2xx, 301-308]}, respond: {locked: 503, in_flight: 425}}]}`,
	} {
		first := load(t, text)
		for _, origin := range []bool{false, true} {
			var shown strings.Builder
			if err := first.Show(&shown, origin); err != nil {
				t.Fatal(err)
			}
			if again := load(t, shown.String()); !reflect.DeepEqual(first.Config, again.Config) {
				t.Errorf("shown as\n%s", shown.String())
			}
		}
	}
}

func TestShowNamesTheOrigin(t *testing.T) {
	loaded, err := Load(Source{
		Path:  "sidecar.yaml",
		Bytes: []byte("upstream: http://127.0.0.1:8081\nroutes:\n  - {name: a, path: /a, respond: {locked: 503}}\n"),
		Env:   []string{"HOOKLOCK__ETCD__USERNAME=me", "HOOKLOCK__ETCD__PASSWORD_ENV=PW", "PW=hunter2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	if err := loaded.Show(&shown, true); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"  url: http://127.0.0.1:8081 # sidecar.yaml:1\n",
		"  timeout: 30s # default\n",
		"  username: me # environment HOOKLOCK__ETCD__USERNAME\n",
		"      path: /a # sidecar.yaml:3\n",
		"      locked: 503 # sidecar.yaml:3\n",
		"      keep: [2xx] # default\n",
	} {
		if !strings.Contains(shown.String(), line) {
			t.Errorf("no line %q in\n%s", line, shown.String())
		}
	}
	if strings.Contains(shown.String(), "hunter2") {
		t.Error("the password is shown")
	}
}

func TestAGapIsNamedByItsVariableAlsoWhereThatIsWrong(t *testing.T) {
	got := refusalOf(t, Source{Bytes: []byte{}, Env: []string{"HOOKLOCK__ADMIN__TOKENS__1__SCOPES=all"}})
	want := "environment HOOKLOCK__ADMIN__TOKENS__1__SCOPES: admin.tokens[1]: leaves a gap; the next new one is admin.tokens[0]"
	if !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What a script makes of variables that are not set must not be taken for the empty list: with no
// endpoints, each replica has locks of its own.
func TestAListOfTheEnvironmentWithNothingBetweenItsCommasIsRefused(t *testing.T) {
	for _, text := range []string{",", " , "} {
		said := refusalOf(t, Source{Bytes: []byte(fourLines), Path: "sidecar.yaml",
			Env: []string{"HOOKLOCK__ETCD__ENDPOINTS=" + text}})
		if !strings.Contains(said, "environment HOOKLOCK__ETCD__ENDPOINTS: etcd.endpoints: ") ||
			!strings.Contains(said, "nothing between") {
			t.Errorf("%q: got %s", text, said)
		}
	}
}

// A chart or a script that has no value for it leaves a variable empty. Where that would give a
// protection up, it is refused.
func TestAnEmptyVariableThatWouldGiveAProtectionUpIsRefused(t *testing.T) {
	for variable, means := range map[string]string{
		"ETCD__ENDPOINTS":             "etcd.endpoints: the variable is empty, and each replica would have an etcd and locks of its own",
		"ROUTES__0__PRESET":           "routes[0].preset: the variable is empty, and its signatures would not be checked",
		"ROUTES__0__MATCH__HOSTS":     "any host",
		"ROUTES__0__VERIFY__ISSUER":   "any issuer",
		"ROUTES__0__VERIFY__AUDIENCE": "any audience",
		"ROUTES__0__VERIFY__CLAIMS":   "without these claims",
		"ADMIN__TLS__CERT_FILE":       "plain HTTP",
		"ADMIN__TLS__CLIENT_CA_FILE":  "not be asked for a certificate",
		"LISTEN__TLS__CERT_FILE":      "plain HTTP",
		"PARK_STORE__KEY_FILE":        "unsealed",
	} {
		for _, text := range []string{"", " "} {
			said := refusalOf(t, Source{Bytes: []byte(fourLines), Path: "sidecar.yaml",
				Env: []string{"HOOKLOCK__" + variable + "=" + text}})
			if !strings.Contains(said, "environment HOOKLOCK__"+variable+": ") || !strings.Contains(said, means) ||
				!strings.Contains(said, "do not set it") {
				t.Errorf("%s=%q: got %s", variable, text, said)
			}
		}
	}
	for _, variable := range []string{"ETCD__USERNAME", "ROUTES__0__LABELS__A", "ROUTES__0__HOLD__ON_STATUS"} {
		if _, err := Load(Source{Bytes: []byte(fourLines), Path: "sidecar.yaml",
			Env: []string{"HOOKLOCK__" + variable + "="}}); err != nil {
			t.Errorf("%s: %v", variable, err)
		}
	}
}
