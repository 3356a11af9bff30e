package mixed

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// before is the release before this one: the commit that it was made of. It moves with each
// release, and the recorded layout with it (-record).
const before = "dd9c69c80c3e2799504603c94c6ce78ac5a2adb7"

var record = flag.Bool("record", false, "write what the release before leaves in etcd to test/e2e/testdata/layout")

// The programs, built once. old is empty where its sources cannot be had, and whyNot says why.
var (
	young, old, whyNot string
	etcdProgram        string
)

func TestMain(m *testing.M) {
	testkit.Main(m, func(dir string) (err error) {
		if young, err = testkit.Build(dir, "hooklock", testkit.HooklockPackage, false); err != nil {
			return err
		}
		if old, err = buildBefore(filepath.Join(dir, "before")); err != nil {
			old, whyNot = "", err.Error()
		}
		etcdProgram, err = testkit.Build(dir, "etcd", testkit.EtcdPackage, false)
		return err
	})
}

// buildBefore builds the release before from the history that this checkout has.
func buildBefore(dir string) (string, error) {
	archive := exec.Command("git", "archive", "--format=tar", before)
	archive.Dir = "../../.."
	var stderr bytes.Buffer
	archive.Stderr = &stderr
	out, err := archive.Output()
	if err != nil {
		return "", fmt.Errorf("git archive %s: %w: %s", before[:7], err, strings.TrimSpace(stderr.String()))
	}
	for r := tar.NewReader(bytes.NewReader(out)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("read the archive: %w", err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeReg:
			var text []byte
			if text, err = io.ReadAll(r); err == nil {
				err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644))
			}
		}
		if err != nil {
			return "", fmt.Errorf("unpack %s: %w", h.Name, err)
		}
	}
	program := filepath.Join(dir, "hooklock-before")
	build := exec.Command("go", "build", "-o", program, "./cmd/hooklock")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
}
