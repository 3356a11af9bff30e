package wiring

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"hooklock/cmd/hooklock/cli"
	"hooklock/proxy/requests"
)

func TestTheStoreOfParkedRequestsIsWhatTheFileSays(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"access": "ID\n", "secret": "SECRET\n",
		"keys": "k1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.ReplaceAll(`data_dir: DIR
park_store:
  inline: 1KiB
  key_file: DIR/keys
  s3: {endpoint: "http://127.0.0.1:9000/", bucket: requests, prefix: a/b, access_key_file: DIR/access, secret_key_file: DIR/secret, request_timeout: 3s}
`, "DIR", dir)
	loaded, err := Load(&cli.Environment{}, "sidecar.yaml", []byte(text), true)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParkStore(loaded.Config, nil)
	want := requests.Options{
		Inline: 1024, Keys: "k1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", S3: &requests.S3Options{
			Endpoint: "http://127.0.0.1:9000", Bucket: "requests", Prefix: "a/b", Region: "us-east-1", AccessKey: "ID",
			SecretKey: "SECRET", Timeout: 3 * time.Second,
		}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	loaded.Config.ParkStore.S3.Endpoint = ""
	if got, err := ParkStore(loaded.Config, nil); err != nil || got.S3 != nil ||
		got.Dir != filepath.Join(dir, "requests") {
		t.Errorf("without S3: %+v, %v", got, err)
	}
}

func TestASenderWithoutAKnownLimitCannotParkAtIt(t *testing.T) {
	for preset, fine := range map[string]bool{"gitlab": true, "standard-webhooks": false, "github": false} {
		text := "park_store: {single_member: true}\nroutes: [{name: a, path: /a, workflow: w, preset: " + preset +
			", on_sender_limit: park, park: {enabled: true, max_age: 4m}}]"
		_, err := Load(&cli.Environment{}, "sidecar.yaml", []byte(text), true)
		if known := err == nil || !strings.Contains(err.Error(),
			"routes[0].on_sender_limit: park: it is not known"); known != fine {
			t.Errorf("%s: %v", preset, err)
		}
	}
}

func TestABadKeyFileIsAMistakeOfTheConfiguration(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(name, []byte("k1 tooshort\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(&cli.Environment{}, "sidecar.yaml", []byte("park_store: {key_file: "+name+"}"), true)
	if err == nil || !strings.Contains(err.Error(), "park_store.key_file: key_file, line 1") ||
		strings.Contains(err.Error(), "tooshort") {
		t.Error(err)
	}
}
