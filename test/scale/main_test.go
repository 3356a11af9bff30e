package main

import (
	"testing"

	"hooklock/test/testkit"
)

// The programs, built once.
var hooklockProgram, etcdProgram string

func TestMain(m *testing.M) {
	testkit.Main(m, func(dir string) (err error) {
		if hooklockProgram, err = testkit.Build(dir, "hooklock", testkit.HooklockPackage, false); err == nil {
			etcdProgram, err = testkit.Build(dir, "etcd", testkit.EtcdPackage, false)
		}
		return err
	})
}
