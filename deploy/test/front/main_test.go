package front

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// hooklockProgram and etcdProgram are built once per run.
var hooklockProgram, etcdProgram string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hooklock-front-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if hooklockProgram, err = kit.BuildHooklock(dir); err == nil {
		etcdProgram, err = testkit.Build(dir, "etcd", testkit.EtcdPackage, false)
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
