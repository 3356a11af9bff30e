package kit

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Root is the folder of the project, whatever the working directory is.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// Deploy is a path below deploy/.
func Deploy(path string) string { return filepath.Join(Root(), "deploy", filepath.FromSlash(path)) }

// BuildHooklock builds the program into dir, from the project's own module and so with the versions
// that users get, and returns its path. It is meant for TestMain.
func BuildHooklock(dir string) (string, error) {
	program := filepath.Join(dir, "hooklock")
	build := exec.Command("go", "build", "-o", program, "./cmd/hooklock")
	build.Dir = Root()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/hooklock: %w\n%s", err, out)
	}
	return program, nil
}
