package etcd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// The programs, built once into bin; etcdctl and etcdutl are tools of the module deploy/tools.
var bin, hooklockProgram, etcdProgram string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hooklock-etcd-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin, etcdProgram = dir, filepath.Join(dir, "etcd")
	if hooklockProgram, err = kit.BuildHooklock(dir); err == nil {
		err = build(kit.Root(), "-o", etcdProgram, testkit.EtcdPackage)
	}
	if err == nil {
		err = build(kit.Deploy("tools"), "-o", dir+"/etcdctl", "go.etcd.io/etcd/etcdctl/v3")
	}
	if err == nil {
		err = build(kit.Deploy("tools"), "-o", dir+"/etcdutl", "go.etcd.io/etcd/etcdutl/v3")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		code = 1
	}
	return code
}

func build(dir string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}
