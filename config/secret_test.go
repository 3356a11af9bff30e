package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestASecretIsNeverShown(t *testing.T) {
	c := Default()
	c.Etcd.Password = newSecret("hunter2")
	c.Routes = []Route{{Verify: Verify{Secrets: []Secret{newSecret("hunter2")},
		PublicKeys: []Secret{newSecret("hunter2")}}}}
	c.Admin.Tokens = []Token{{Name: "ops", Token: newSecret("hunter2")}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		fmt.Fprintf(&out, verb+"\n", c.Etcd.Password)
		fmt.Fprintf(&out, verb+"\n", c.Etcd)
		fmt.Fprintf(&out, verb+"\n", &c.Etcd)
		fmt.Fprintf(&out, verb+"\n", c.Routes)
		fmt.Fprintf(&out, verb+"\n", c.Admin)
	}
	text, _ := json.Marshal(c)
	out.Write(text)
	text, _ = yaml.Marshal(c)
	out.Write(text)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", c.Etcd.Password, "etcd", c.Etcd)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", c.Etcd.Password, "etcd", c.Etcd)
	if strings.Contains(out.String(), "hunter2") || strings.Contains(out.String(), fmt.Sprintf("%x", "hunter2")) {
		t.Error(out.String())
	}
	if !strings.Contains(out.String(), redacted) || c.Etcd.Password.Reveal() != "hunter2" {
		t.Error("the secret is lost")
	}
}

func TestOneNewlineIsCutFromASecret(t *testing.T) {
	for content, want := range map[string]string{
		"pw": "pw", "pw\n": "pw", "pw\r\n": "pw", "pw\n\n": "pw\n", " pw ": " pw ",
	} {
		name := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		fromFile, err := Load(Source{Env: []string{"HOOKLOCK__ETCD__USERNAME=me", "HOOKLOCK__ETCD__PASSWORD_FILE=" +
			name}, NeedFiles: true})
		if err != nil {
			t.Fatal(err)
		}
		fromEnv, err := Load(Source{Env: []string{"HOOKLOCK__ETCD__USERNAME=me", "HOOKLOCK__ETCD__PASSWORD_ENV=PW",
			"PW=" + content}})
		if err != nil {
			t.Fatal(err)
		}
		if got := fromFile.Config.Etcd.Password.Reveal(); got != want {
			t.Errorf("file %q gives %q", content, got)
		}
		if got := fromEnv.Config.Etcd.Password.Reveal(); got != want {
			t.Errorf("variable %q gives %q", content, got)
		}
	}
}

func TestAMissingFileIsAWarningForValidateAndAnErrorForServe(t *testing.T) {
	for _, text := range []string{
		"etcd: {username: me, password_file: /nonexistent/x}",
		"etcd: {username: me, password_env: NOT_THERE}",
		"listen: {address: ':0', tls: {cert_file: /nonexistent/c, key_file: /proc/self/exe}}",
		"listen: {address: ':0', tls: {cert_file: /, key_file: /proc/self/exe}}",
		"upstream: {url: 'https://a', tls: {ca_file: /nonexistent/x}}",
		"admin: {tokens: [{name: ops, token_file: /nonexistent/x}]}",
		"admin: {tokens: [{name: ops, token_env: NOT_THERE}]}",
		"admin: {tls: {cert_file: /proc/self/exe, key_file: /proc/self/exe, client_ca_file: /nonexistent/x}}",
	} {
		if got := load(t, text+"\nroutes: [{name: a, path: /a}]").Warnings; len(got) != 1 &&
			!strings.Contains(text, "username") {
			t.Errorf("%s: %v", text, got)
		}
		if got := refusalOf(t, Source{Bytes: []byte(text), NeedFiles: true}); !strings.Contains(got,
			"sidecar.yaml:1:") {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestASecretIsRefusedWhenItIsEmptyOrGivenTwiceOrHuge(t *testing.T) {
	empty, huge := filepath.Join(t.TempDir(), "empty"), filepath.Join(t.TempDir(), "huge")
	if os.WriteFile(empty, []byte("\n"), 0o600) != nil || os.WriteFile(huge, make([]byte, maxSecret+1), 0o600) != nil {
		t.Fatal("cannot write")
	}
	for _, c := range []struct{ text, want string }{
		{"password_file: " + empty, "etcd.password_file: the secret is empty"},
		{"password_env: PW", "etcd.password_env: the secret is empty"},
		{"password_file: x, password_env: y", "give either password_file or password_env"},
		{"password_file: " + huge, "is it the right file?"},
	} {
		src := Source{Bytes: []byte("etcd: {endpoints: ['http://a:1'], username: me, " + c.text + "}"),
			Env: []string{"PW="}, NeedFiles: true}
		if got := refusalOf(t, src); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.text, got)
		}
	}
}

func TestTokensComeFromFilesAndTheEnvironmentAndAreNeverShown(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte("correct-horse-battery-staple\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(Source{
		Path: "sidecar.yaml",
		Bytes: []byte("admin: {tokens: [{name: ops, token_file: " + name +
			", scopes: [read, write], workflows: ['stripe/*', b]}]}"),
		Env: []string{"T=wrong-horse-battery-staple", "HOOKLOCK__ADMIN__TOKENS__1__NAME=second",
			"HOOKLOCK__ADMIN__TOKENS__1__TOKEN_ENV=T"}, NeedFiles: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	second := defaultToken()
	second.Name, second.TokenEnv, second.Token = "second", "T", newSecret("wrong-horse-battery-staple")
	want := []Token{{
		Name: "ops", TokenFile: name, Scopes: []Scope{ScopeRead, ScopeWrite}, Workflows: []string{"stripe/*", "b"},
		Token: newSecret("correct-horse-battery-staple"),
	}, second}
	if !reflect.DeepEqual(loaded.Config.Admin.Tokens, want) {
		t.Errorf("got %+v", loaded.Config.Admin.Tokens)
	}
	var shown strings.Builder
	if err := loaded.Show(&shown, true); err != nil || strings.Contains(shown.String(), "horse") {
		t.Errorf("%v\n%s", err, shown.String())
	}
}

func TestARefusedTokenIsNotShown(t *testing.T) {
	for token, want := range map[string]string{
		"hunter2":                       "needs at least 8",
		"hunter2 and hunter2":           "a character that a bearer token cannot have",
		"hunter2hunter2\nhunter2":       "on one line",
		strings.Repeat("hunter2", 1000): "is it the right file?",
	} {
		got := refusalOf(t, Source{Bytes: []byte("admin: {tokens: [{name: ops, token_env: T}]}"),
			Env: []string{"T=" + token}})
		if !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
			t.Errorf("%.20q: %s", token, got)
		}
	}
}

// What cannot be parsed may still be a URL with a password in it.
func TestAPasswordOrAKeyInAURLIsNotShown(t *testing.T) {
	for _, url := range []string{
		"http://u:hunter2@h", "http://u:hunter2@h:port", "http://u:hun ter2@h", "http://u:hunter2%zz@h",
		"http://u:hun/ter2@h", "u:hunter2@h:1", "ftp://u:hunter2@h",
		"http://h:port/?key=hunter2", "ftp://h?key=hunter2",
	} {
		for _, text := range []string{
			fmt.Sprintf("upstream: %q\nroutes: [{name: a, path: /a}]", url),
			fmt.Sprintf("etcd: {endpoints: [%q]}\nroutes: [{name: a, path: /a}]", url),
		} {
			if got := refusalOf(t, Source{Bytes: []byte(text)}); strings.Contains(got, "ter2") {
				t.Error(got)
			}
		}
	}
}

// TestAKeyFileHasAsManyLinesAsItHasKeys: to roll a key is nothing to be warned about.
func TestAKeyFileHasAsManyLinesAsItHasKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("# rolled\nk2 two\nk1 one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(Source{Bytes: []byte("park_store: {key_file: '" + file + "'}\nroutes: [{name: a, path: /a}]"),
		Senders: someSenders()})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range loaded.Warnings {
		if w.Path == "park_store.key_file" {
			t.Error(w)
		}
	}
}

func TestASecretThatLooksWrongIsWarnedAbout(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"fine":           {"s3cret\n", ""},
		"fine in CRLF":   {"s3cret\r\n", ""},
		"spaces inside":  {"two words\n", ""},
		"a space behind": {"s3cret \n", "has spaces around it"},
		"a space before": {" s3cret", "has spaces around it"},
		"a second line":  {"s3cret\n\n", "has a line break beside"},
		"two secrets":    {"one\ntwo\n", "has a line break beside"},
		"a mark":         {"\ufeffs3cret\n", "byte order mark"},
		"quotes":         {"\"s3cret\"\n", "stands in quotes"},
		"single quotes":  {"'s3cret'", "stands in quotes"},
		"UTF-16":         {"s\x003\x00", "has a NUL byte"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			for setting, path := range map[string]string{
				"verify: {scheme: hmac, secret_file: '" + file +
					"'}": "routes[0].verify.secret_file",
				"verify: {scheme: hmac, secret_files: [/dev/null/none, '" + file +
					"']}": "routes[0].verify.secret_files[1]",
				"handshake: {when: [query.a], token_file: '" + file +
					"'}": "routes[0].handshake.token_file",
			} {
				loaded, err := Load(Source{Bytes: []byte("routes: [{name: a, path: /a, " + setting + "}]"),
					Senders: someSenders()})
				if err != nil {
					t.Fatal(err)
				}
				found := ""
				for _, w := range loaded.Warnings {
					if w.Path == path {
						found = w.Text
					}
				}
				if (found != "") != (tt.want != "") || !strings.Contains(found, tt.want) ||
					strings.Contains(found, "s3cret") {
					t.Errorf("%s: %q", path, found)
				}
			}
			loaded, err := Load(Source{Bytes: []byte(
				"routes: [{name: a, path: /a, verify: {scheme: hmac, public_key_file: '" + file + "'}}]"),
				Senders: someSenders()})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range loaded.Warnings {
				if strings.Contains(w.Text, "the secret") {
					t.Errorf("a public key: %s", w)
				}
			}
		})
	}
}

func TestASecretOfNothingButAMarkIsEmpty(t *testing.T) {
	for _, text := range []string{"", "\n", "\ufeff", "\ufeff\r\n", "\x00", "\x00\x00\n", "\xff\xfe", "\xfe\xff",
		"\xff\xfe\r\x00\n\x00", "\xfe\xff\x00\n"} {
		path := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &secretReader{}
		s.readSecret(secretPlace{path: "p", file: path})
		if len(s.problems) != 1 || s.problems[0].Text != "the secret is empty" {
			t.Errorf("%q: %v", text, s.problems)
		}
	}
}
