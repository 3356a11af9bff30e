package main

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"hooklock/test/testkit"
)

// The programs, built once.
var hooklockProgram, etcdProgram string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hooklock-scale-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if hooklockProgram, err = testkit.Build(dir, "hooklock", testkit.HooklockPackage, false); err == nil {
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
