package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// What is built once per run: the packages of two versions, and etcd.
var oldPackage, newPackage, etcdProgram string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if missing() != "" {
		return m.Run() // each test says why it is skipped
	}
	dir, err := os.MkdirTemp("", "hooklock-systemd-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if oldPackage, err = buildPackage(dir, "v0.0.1"); err == nil {
		if newPackage, err = buildPackage(dir, "v0.0.2"); err == nil {
			etcdProgram, err = testkit.Build(dir, "etcd", testkit.EtcdPackage, false)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// missing says what is not here of what booting needs; "" where all is.
func missing() string {
	if os.Geteuid() != 0 {
		return "booting a machine takes root"
	}
	for _, program := range []string{"systemd-nspawn", "nsenter", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed (apt-get install systemd-container)"
		}
	}
	return ""
}

func buildPackage(dir, version string) (string, error) {
	out := filepath.Join(dir, version)
	c := exec.Command("go", "run", "./packages", "-version", version, "-arch", runtime.GOARCH, "-out", out)
	c.Dir = kit.Deploy("tools")
	if said, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make packages: %w\n%s", err, said)
	}
	found, err := filepath.Glob(filepath.Join(out, "*.deb"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%s: %d packages, %v", out, len(found), err)
	}
	return found[0], nil
}
