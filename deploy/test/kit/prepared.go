package kit

import (
	"os"
	"path/filepath"
	"testing"
)

// prepare is the path of what is made once and kept in the user's cache, in a folder that is there.
func prepare(name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "hooklock")
	return filepath.Join(dir, name), os.MkdirAll(dir, 0o755)
}

// prepared is that path for a test, which is skipped where nothing was made: missing says so, and
// how it is made.
func prepared(t testing.TB, name, missing string) string {
	t.Helper()
	path, err := prepare(name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skipf("%s: %v", missing, err)
	}
	return path
}
