package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// s3Files are the files of an S3 configuration, as settings.
func s3Files(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"access", "secret"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("the "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "access_key_file: '" + dir + "/access', secret_key_file: '" + dir + "/secret'"
}

func TestWhereTheBytesOfParkedRequestsAre(t *testing.T) {
	s3 := "park_store: {s3: {endpoint: 'https://s3.example.com', bucket: requests, " + s3Files(t) + "}}"
	for text, want := range map[string]string{
		"":                                     "hooklock-data/requests",
		"data_dir: /var/lib/hooklock":          "/var/lib/hooklock/requests",
		"park_store: {dir: /srv/parked}":       "/srv/parked",
		"etcd: {endpoints: ['http://a:2379']}": "",
		s3:                                     "",
		"etcd: {endpoints: ['http://a:2379']}\n" + s3:                          "",
		"etcd: {endpoints: ['http://a:2379']}\npark_store: {dir: /srv/parked}": "/srv/parked",
	} {
		if got := load(t, text).Config.RequestsDir(); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
	got := load(t, s3).Config.ParkStore.S3
	if got.AccessKey.Reveal() != "the access" || got.SecretKey.Reveal() != "the secret" || got.Region != "us-east-1" {
		t.Errorf("got %+v", got)
	}
}

func TestAnImpossibleStoreOfParkedRequestsIsRefused(t *testing.T) {
	files := s3Files(t)
	s3 := func(settings string) string { return "s3: {" + settings + ", " + files + "}" }
	for settings, want := range map[string]string{
		"inline: 257KiB": "park_store.inline: 257KiB is out of bounds; choose from 0B to 256KiB",
		"dir: /a, " + s3("endpoint: 'http://a', bucket: abc"): "park_store.dir: is set beside s3",
		s3("bucket: abc"): "park_store.s3: needs endpoint",
		s3(
			"endpoint: a:9000, bucket: abc"): "park_store.s3.endpoint: \"a:9000\" is not a URL",
		s3("endpoint: 'http://a/x', bucket: abc"):    "the URL must end after the port",
		s3("endpoint: 'http://u:pw@a', bucket: abc"): "ends up in logs",
		s3(
			"endpoint: 'http://a'"): "park_store.s3.bucket: \"\" is not the name",
		s3(
			"endpoint: 'http://a', bucket: A/b"): "park_store.s3.bucket: \"A/b\" is not the name",
		s3("endpoint: 'http://a', bucket: abc, prefix: /a/"): "park_store.s3.prefix: \"/a/\"",
		s3("endpoint: 'http://a', bucket: abc, region: ''"):  "park_store.s3.region: is empty",
		s3(
			"endpoint: 'http://a', bucket: abc, request_timeout: 0s"): "park_store.s3.request_timeout: must be longer",
		s3("endpoint: 'http://a', bucket: abc, tls: {server_name: b}"): "park_store.s3.tls: is for https",
		s3(
			"endpoint: 'https://a', bucket: abc, tls: {cert_file: '/dev/null'}"): "park_store.s3.tls.cert_file: needs key_file",

		"s3: {endpoint: 'http://a', bucket: abc}": "park_store.s3.access_key_file: is missing",

		"s3: {endpoint: 'http://a', bucket: abc, access_key_file: /nonexistent/x}": "park_store.s3.secret_key_file: is missing",
	} {
		if got := refusalOf(t, Source{Bytes: []byte("park_store: {" + settings + "}")}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", settings, got)
		}
	}
}

func TestAKeyFileIsJudgedAndNeverShown(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(name, []byte("k1 hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src := Source{Bytes: []byte("park_store: {key_file: '" + name + "'}"), CheckKeys: func(text string) error {
		if text != "k1 hunter2" {
			t.Errorf("asked about %q", text)
		}
		return errors.New("line 1: no key")
	}}
	if got := refusalOf(t, src); !strings.Contains(got, "park_store.key_file: line 1: no key") ||
		strings.Contains(got, "hunter2") {
		t.Error(got)
	}
	src.CheckKeys = nil
	loaded, err := Load(src)
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	if err := loaded.Show(&shown, true); err != nil || strings.Contains(shown.String(), "hunter2") {
		t.Errorf("%v\n%s", err, shown.String())
	}
}

func TestAFolderBesideSeveralReplicasIsAWarning(t *testing.T) {
	loaded := load(t,
		"etcd: {endpoints: ['http://a:2379']}\npark_store: {dir: /srv/parked}\nroutes: [{name: a, path: /a}]")
	if len(loaded.Warnings) != 1 || !strings.Contains(loaded.Warnings[0].Text, "every replica must see this folder") {
		t.Errorf("got %v", loaded.Warnings)
	}
}
