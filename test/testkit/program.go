package testkit

import (
	"os/exec"
	"testing"
)

// Program is the path of an optional program of the machine. Where it is missing the test is
// skipped: the caller's, so a test with subtests asks before the first of them if anything after
// them depends on what they did.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: this is not tested", name)
	}
	return path
}
