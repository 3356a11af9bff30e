package front

import (
	"testing"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// hooklockProgram and etcdProgram are built once per run.
var hooklockProgram, etcdProgram string

func TestMain(m *testing.M) {
	testkit.Main(m, func(dir string) (err error) {
		if hooklockProgram, err = kit.BuildHooklock(dir); err == nil {
			etcdProgram, err = testkit.Build(dir, "etcd", testkit.EtcdPackage, false)
		}
		return err
	})
}
