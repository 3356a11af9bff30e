package kube

import (
	"fmt"
	"os"
	"testing"

	"hooklock/deploy/test/kit"
)

// hooklockProgram is built once per run.
var hooklockProgram string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hooklock-kube-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if hooklockProgram, err = kit.BuildHooklock(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
