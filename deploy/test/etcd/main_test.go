package etcd

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// The programs, built once into bin; etcdctl and etcdutl are tools of the module deploy/tools.
var bin, hooklockProgram, etcdProgram string

func TestMain(m *testing.M) {
	testkit.Main(m, func(dir string) (err error) {
		bin, etcdProgram = dir, filepath.Join(dir, "etcd")
		if hooklockProgram, err = kit.BuildHooklock(dir); err != nil {
			return err
		}
		return errors.Join(build(kit.Root(), "-o", etcdProgram, testkit.EtcdPackage),
			build(kit.Deploy("tools"), "-o", dir+"/etcdctl", "go.etcd.io/etcd/etcdctl/v3"),
			build(kit.Deploy("tools"), "-o", dir+"/etcdutl", "go.etcd.io/etcd/etcdutl/v3"))
	})
}

func build(dir string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}
