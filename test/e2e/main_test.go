// Package e2e tests the built program from outside: real processes, real sockets, a real etcd. Each test is a sentence of the
// contract with senders and operators.
package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hooklock/test/testkit"
)

// The programs under test, built once per run. With the race detector on, Hooklock is built with it, too: the build costs some
// seconds, and a race in any test ends the process and fails that test.
var hooklockProgram, etcdProgram string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hooklock-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if hooklockProgram, err = testkit.Build(dir, "hooklock", testkit.HooklockPackage, testkit.Race); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if etcdProgram, err = testkit.Build(dir, "etcd", testkit.EtcdPackage, false); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	all := testkit.NewRun(dir)
	shared = newStage(all)
	code := m.Run()
	for name, h := range map[string]*testkit.Hooklock{"patient": shared.patient, "strict": shared.strict} {
		if fault := stopped(all, h.Process); fault != "" {
			fmt.Fprintf(os.Stderr, "FAIL: the shared process %s: %s\n", name, fault)
			code = 1
		}
	}
	all.Close()
	err = goleak.Find()
	for late := time.Now().Add(testkit.Patience); err != nil && time.Now().Before(late); {
		err = goleak.Find() // what is ending needs a while on a busy machine
	}
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		code = 1
	}
	return code
}
