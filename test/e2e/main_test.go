// Package e2e tests the built program from outside: real processes, real sockets, a real etcd. Each
// test is a sentence of the contract with senders and operators.
package e2e

import (
	"fmt"
	"os"
	"testing"

	"hooklock/test/testkit"
)

// The programs under test, built once per run. With the race detector on, Hooklock is built with
// it, too: the build costs some seconds, and a race in any test ends the process and fails that
// test.
var hooklockProgram, etcdProgram string

func TestMain(m *testing.M) {
	testkit.Main(staged{m}, func(dir string) (err error) {
		if hooklockProgram, err = testkit.Build(dir, "hooklock", testkit.HooklockPackage, testkit.Race); err != nil {
			return err
		}
		if etcdProgram, err = testkit.Build(dir, "etcd", testkit.EtcdPackage, false); err != nil {
			return err
		}
		all = testkit.NewRun(dir)
		return nil
	})
}

// all owns what the tests share.
var all *testkit.Run

// staged runs the tests on the stage that they share, and fails where one of its processes is not
// well in the end.
type staged struct{ m *testing.M }

func (s staged) Run() int {
	defer all.Close()
	shared = newStage(all)
	code := s.m.Run()
	for name, h := range map[string]*testkit.Hooklock{"patient": shared.patient, "strict": shared.strict} {
		if fault := stopped(all, h.Process); fault != "" {
			fmt.Fprintf(os.Stderr, "FAIL: the shared process %s: %s\n", name, fault)
			code = 1
		}
	}
	return code
}
