package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoCommandPrintsASecretThatStandsInPlaceOfItsFile: what is written where a file or a variable
// is asked for ends up in terminals, logs of CI and tickets.
func TestNoCommandPrintsASecretThatStandsInPlaceOfItsFile(t *testing.T) {
	issued, password := "whsec_"+strings.Repeat("0a", 16), "hunter2"
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	text := fmt.Sprintf(`
upstream: http://127.0.0.1:1
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:1"}
routes:
  - {name: a, path: /a, preset: stripe, verify: {secret_file: %s}}
  - {name: b, path: /b, preset: stripe, verify: {secret_env: STRIPE_SECRET=%[1]s}}
  - {name: c, path: /c, preset: stripe, verify: {secret_files: [%s]}}
`, issued, password)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"validate"}, {"validate", "--without-files"}, {"validate", "--without-files", "-o", "json"},
		{"validate", "-o", "json"}, {"doctor"}, {"doctor", "--json"}, {"serve"},
		{"explain", "--path", "/a", "-d", "{}"}, {"explain", "--path", "/b", "-d", "{}"},
		{"explain", "--path", "/c", "-d", "{}"}, {"config", "show"}, {"config", "show", "--origin"},
		{"status", "--token-file", issued}, {"status", "--token-file", password},
		{"status", "--admin", "http://me:" + password + "@127.0.0.1:1"},
	} {
		_, out, problems := command(t, nil, append(args, "--config", path)...)
		if all := out + problems; strings.Contains(all, issued) || strings.Contains(all, password) {
			t.Errorf("%q prints it:\n%s", args, all)
		}
	}
}
