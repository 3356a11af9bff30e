package kit

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Source is the folder of a Go module, such as "istio.io/api@v1.31.1", that has the schemas of
// another project in it. Nothing of it is compiled, so it is no requirement of this module; Go
// verifies it against its checksum database. A machine that cannot fetch it skips the test.
func Source(t *testing.T, module string) string {
	t.Helper()
	c := exec.Command("go", "mod", "download", "-json", module)
	c.Dir = t.TempDir() // outside of this module, whose go.sum is left alone
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, runErr := c.Output()
	var got struct{ Dir, Error string }
	if err := json.Unmarshal(out, &got); err != nil || got.Dir == "" {
		t.Skipf("%s cannot be fetched (%v): %s%s", module, runErr, got.Error, &stderr)
	}
	return got.Dir
}

// Read is the text of a file, whose path may be a pattern that matches one file.
func Read(t *testing.T, path string) string {
	t.Helper()
	found, err := filepath.Glob(path)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %d files, %v", path, len(found), err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
