package testkit

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// The packages that are built.
const (
	HooklockPackage = "hooklock/cmd/hooklock"
	EtcdPackage     = "go.etcd.io/etcd/server/v3" // the member that users run, from the module that is linked in anyway
)

// Build builds a main package into dir, with the race detector where race is set, and returns the
// path of the program. It is meant for TestMain: once per run, into a folder that TestMain removes.
func Build(dir, name, pkg string, race bool) (string, error) {
	program := filepath.Join(dir, name)
	args := []string{"build", "-buildvcs=false", "-o", program} // see Makefile
	if race {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, pkg)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}
