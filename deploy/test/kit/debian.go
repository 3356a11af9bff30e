package kit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Debian is a tar of the smallest Debian that boots with systemd, as BuildDebian has left it. A
// test that finds none is skipped.
func Debian(t testing.TB) string {
	t.Helper()
	return prepared(t, debianTree, "there is no Debian tree to boot (make test-systemd makes one, as root)")
}

const debianTree = "debian-" + debianSuite + ".tar"

// debianSuite is the release that is booted.
const debianSuite = "bookworm"

// BuildDebian makes the tree in the user's cache, unless it is there, and returns its path. It
// takes mmdebstrap, root, and a way to the packages that this machine's apt is set up for.
func BuildDebian(out io.Writer) (string, error) {
	path, err := prepare(debianTree)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	program, err := exec.LookPath("mmdebstrap")
	if err != nil {
		return "", errors.New("mmdebstrap is not installed (apt-get install mmdebstrap systemd-container)")
	}
	made, err := os.CreateTemp(filepath.Dir(path), "debian-*.tar")
	if err != nil {
		return "", err
	}
	defer os.Remove(made.Name())
	fmt.Fprintln(out, "making a Debian tree, once: a minute")
	args := []string{"--mode=root", "--variant=minbase", "--include=systemd,systemd-sysv,dbus", "--format=tar",
		debianSuite, made.Name()}
	if own := "/etc/apt/sources.list.d/debian.sources"; readable(own) {
		args = append(args, own)
	}
	said, runErr := exec.Command(program, args...).CombinedOutput()
	if err := errors.Join(runErr, made.Close()); err != nil {
		return "", fmt.Errorf("mmdebstrap: %w\n%s", err, said)
	}
	return path, os.Rename(made.Name(), path)
}

func readable(path string) bool {
	_, err := os.ReadFile(path)
	return err == nil
}
