package senders

import (
	"testing"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// hooklockProgram is built once per run.
var hooklockProgram string

func TestMain(m *testing.M) {
	testkit.Main(m, func(dir string) (err error) {
		hooklockProgram, err = kit.BuildHooklock(dir)
		return err
	})
}
