package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/cmd/hooklock/cli"
	"hooklock/etcdlock/etcdtest"
)

// What is valid is what serve starts with: a file that is missing, or is no certificate, is looked
// at where the service will run.
func TestValidateRefusesWhatServeRefuses(t *testing.T) {
	dir := t.TempDir()
	path := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own := etcdtest.NewAuthority(t).Issue("localhost")
	nothing, noPEM, secret := filepath.Join(dir, "nothing"), path("no.pem", "no certificate"),
		path("secret", "whsec_x\n")
	for name, c := range map[string]struct {
		text, says string
		elsewhere  bool // whether --without-files takes it
	}{
		"fine": {text: "routes: [{name: a, path: /a, preset: stripe, verify: {secret_file: " + secret +
			"}}]"},
		"no secret": {"routes: [{name: a, path: /a, preset: stripe, verify: {secret_file: " + nothing + "}}]",
			"no such file", true},
		"no certificate": {"listen: {tls: {cert_file: " + nothing + ", key_file: " + nothing + "}}", "no such file",
			true},
		"a bad certificate": {"listen: {tls: {cert_file: " + noPEM + ", key_file: " + noPEM + "}}", "listen.tls",
			true},
		"a bad one of admin": {"admin: {tls: {cert_file: " + noPEM + ", key_file: " + noPEM + "}}", "admin.tls", true},
		"a bad authority": {"etcd: {endpoints: [\"https://127.0.0.1:1\"], tls: {ca_file: " + noPEM + "}}",
			"etcd.tls", true},
		"a bad one upstream": {"upstream: {url: \"https://127.0.0.1:1\", tls: {ca_file: " + noPEM + "}}",
			"upstream.tls", true},
		"a bad one of S3": {"park_store: {single_member: true, s3: {endpoint: \"https://127.0.0.1:1\", bucket: hooklock, access_key_file: " + secret + ", secret_key_file: " + secret +
			", tls: {ca_file: " + noPEM + "}}}", "park_store.s3.tls", true},
		"a bad one of clients": {"admin: {tls: {cert_file: " + own.CertFile + ", key_file: " + own.KeyFile +
			", client_ca_file: " + noPEM + "}}", "admin.tls.client_ca_file", true},
		"nothing is read": {"routes: [{name: a, path: /a, event_id: x}]",
			"event_id: reads nothing of the delivery", false},
		"not even the schema": {"nonsense: 1", "nonsense", false},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.text + "\n"
			if !strings.Contains(text, "upstream:") {
				text += "upstream: http://127.0.0.1:1\n"
			}
			config := path("sidecar.yaml", text)
			code, out, problems := command(t, nil, "validate", "--config", config)
			if c.says == "" && (code != cli.ExitFine || !strings.Contains(out, ": valid")) ||
				c.says != "" && (code != cli.ExitUsage || !strings.Contains(problems, c.says) ||
					strings.Contains(out, ": valid")) {
				t.Errorf("exit code %d: %s%s", code, out, problems)
			}
			if c.says != "" && !strings.HasPrefix(problems, config+":1:") {
				t.Errorf("it has no place: %s", problems)
			}
			if code, _, problems := command(t, nil, "validate", "--without-files", "--config",
				config); (code == cli.ExitFine) != (c.elsewhere || c.says == "") {
				t.Errorf("--without-files: exit code %d: %s", code, problems)
			}
			if c.says != "" {
				if code, out, problems := command(t, nil, "doctor", "--config", config); code != cli.ExitUsage ||
					!strings.Contains(out, c.says) {
					t.Errorf("doctor: exit code %d: %s%s", code, out, problems)
				}
			}
		})
	}
}

func TestConfigShowPrintsNoYAMLWhereJSONIsAskedFor(t *testing.T) {
	config := filepath.Join(t.TempDir(), "sidecar.yaml")
	if err := os.WriteFile(config, []byte("upstream: http://127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string]int{"json": cli.ExitUsage, "nonsense": cli.ExitUsage, "yaml": cli.ExitFine} {
		if code, out, problems := command(t, nil, "config", "show", "--config", config, "-o", output); code != want ||
			code != cli.ExitFine && (out != "" || !strings.Contains(problems, "--running")) {
			t.Errorf("-o %s: exit code %d: %s%s", output, code, out, problems)
		}
	}
}

// A full disk under the output is told by the exit code of every command: a script would take what
// is not there for said.
func TestNoCommandIsFineWhoseOutputIsNotWritten(t *testing.T) {
	config := filepath.Join(t.TempDir(), "sidecar.yaml")
	if err := os.WriteFile(config, []byte("upstream: http://127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"version"}, {"--version"}, {"--help"}, {"etcd"}, {"validate", "--config", config},
		{"validate", "-o", "json", "--config", config}, {"completion", "bash"},
		{"config", "show", "--config", config}, {"config", "schema"},
	} {
		var problems bytes.Buffer
		if code := run(t.Context(), args, nil, full{}, &problems); code != cli.ExitFailed ||
			!strings.Contains(problems.String(), "no space left") {
			t.Errorf("%v: exit code %d: %s", args, code, problems.String())
		}
	}
}
