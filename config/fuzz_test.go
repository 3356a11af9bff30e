package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// FuzzLoad: whatever the file and the environment say, Load does not panic, and what Show writes is
// read back as the same.
func FuzzLoad(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, name := range append(files, "../sidecar.yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "HOOKLOCK__ETCD__ENDPOINTS=a:1,b:2")
	}
	for _, text := range []string{
		"", "---", "...", "&a [*a]", "routes: &a [*a, *a]", "a: &a\n  <<: *a",
		"routes: [&r {name: a, verify: &v {x: *v}}]", "%YAML 1.1\n---\n", "? \n: ",
		"!!binary x", "limits: !!map {}", "listen: !!str 1", "\xff\xfe", "\x00", "{", "[[[[[[[[", "- - - -",
		"routes: [{}]", "respond: {a.b: 1}",
		"routes: [{name: a, path: /a, respond: {locked: 1e3}}]",
		"admin: {tokens: [{name: a, token_env: A, scopes: [read], workflows: [a*]}]}",
		"routes: [{name: a, path: /a, preset: post, lock: {wait_timeout: 1s}, verify: {secret_files: [x]}, respond: {locked: 429}}]", "limits: {waiting: 0x10}", "limits: {waiting: 1_000}", "data_dir: |\n  a\n  b\n",
	} {
		f.Add(text, "HOOKLOCK__ROUTES__0__NAME=x")
	}
	f.Fuzz(func(t *testing.T, text, env string) {
		loaded, err := Load(Source{Path: "f", Bytes: []byte(text), Env: strings.Split(env, "\n"),
			Senders: someSenders()})
		if err != nil {
			var problems Problems
			if !errors.As(err, &problems) || len(problems) == 0 || problems.Error() == "" {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		var shown strings.Builder
		if err := loaded.Show(&shown, true); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(shown.String(), redacted) {
			return // what looks like a secret is not shown
		}
		again, err := Load(Source{Path: "f", Bytes: []byte(shown.String()), Env: loadedSecrets(env),
			Senders: someSenders()})
		if err != nil {
			t.Fatalf("shown as\n%s\n%v", shown.String(), err)
		}
		if !reflect.DeepEqual(loaded.Config, again.Config) {
			t.Fatalf("shown as\n%s", shown.String())
		}
	})
}

// loadedSecrets is env without the settings in it: the shown configuration says them already.
func loadedSecrets(env string) []string {
	var rest []string
	for entry := range strings.SplitSeq(env, "\n") {
		if !strings.HasPrefix(entry, envPrefix) {
			rest = append(rest, entry)
		}
	}
	return rest
}

// FuzzOverride: no name of a variable makes Load panic.
func FuzzOverride(f *testing.F) {
	for _, name := range []string{"", "__", "LISTEN", "ROUTES__0", "ROUTES__0__RESPOND__", "ROUTES____NAME",
		"routes[0].name", "a.b[1]..c", "ROUTES__99999__NAME", "ETCD__TLS", "ADMIN__TOKENS__0__NAME", "ADMIN__TOKENS"} {
		f.Add(name, "1")
	}
	f.Fuzz(func(_ *testing.T, name, text string) {
		_, _ = Load(Source{Env: []string{envPrefix + name + "=" + text}, Senders: someSenders()})
	})
}
