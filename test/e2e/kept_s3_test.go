package e2e

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// TestKeptRequestsInABucket is what people do with kept requests, where they are in S3.
func TestKeptRequestsInABucket(t *testing.T) {
	t.Parallel()
	program, reason, err := testkit.BuildS3(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if reason != "" {
		t.Skip(reason)
	}
	folder, keys := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"id": testkit.S3Access, "secret": testkit.S3Secret,
		"seal": "k1 " + strings.Repeat("A", 43) + "="} {
		write(t, filepath.Join(keys, name), text)
	}
	up := testkit.NewUpstream(t, func(r *testkit.Received) string { return testkit.OK("done") })
	h := own(t, bare(up.URL, fmt.Sprintf(`
park_store:
  key_file: %[1]s/seal
  s3: {endpoint: "http://%[2]s", bucket: %[3]s, prefix: one, region: us-east-1, access_key_file: %[1]s/id, secret_key_file: %[1]s/secret}
routes:
  - {name: kept, path: "/kept/{test}", event_id: "{header.Idempotency-Key}", labels: {customer: "{body.customer}"}, requests: {keep: 24h}}
`, keys, testkit.StartS3(t, program, folder), testkit.S3Bucket)))
	ids := map[string]string{}
	for event, customer := range map[string]string{"a": "1", "b": "1", "c": "2"} {
		a := testkit.Post(t, h.Addr, "/kept/"+event, `{"customer":"`+customer+`"}`, key(event))
		passed(t, a, 200, "done", "executed")
		isStored(t, h, a.Execution())
		ids[event] = a.Execution()
	}

	said := cli(t, h, "rerun", "--again", "--route", "kept", "--label", "customer=1", "--rate", "100", "--reason", "r")
	if !strings.Contains(said, "2 of 2 ran: 2 succeeded, 0 failed") {
		t.Errorf("again: %s", said)
	}
	for event, want := range map[string]int{"a": 2, "b": 2, "c": 1} {
		if n := len(up.Received("/kept/" + event)); n != want {
			t.Errorf("%s: the service was called %d times, want %d", event, n, want)
		}
	}

	other := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	code, _, said := rerunTo(t, h, other.URL, "--route", "kept", "--rate", "100")
	if code != 0 || !strings.Contains(said, "3 match, 3 sent") || len(other.Received("/kept/c")) != 1 {
		t.Errorf("elsewhere: %d %s", code, said)
	}

	said = cli(t, h, "executions", "erase", "--label", "customer=1", "--rate", "100", "--reason", "r")
	if !strings.Contains(said, "2 of 2 erased") {
		t.Errorf("erased: %s", said)
	}
	requestOf(t, h, ids["c"], 200)
	var objects []string
	err = filepath.WalkDir(filepath.Join(folder, "objects"), func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), "exec_") {
			objects = append(objects, d.Name())
		}
		return err
	})
	if err != nil || len(objects) != 1 || objects[0] != ids["c"] {
		t.Errorf("the bucket has %v, %v; want %s", objects, err, ids["c"])
	}
}
