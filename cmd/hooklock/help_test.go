package main

import (
	"regexp"
	"testing"

	"hooklock/cmd/hooklock/cli"
)

func TestTheHelpHasTheCommandsInGroupsAndFirstThoseToBeginWith(t *testing.T) {
	code, out, _ := command(t, nil, "--help")
	want := regexp.MustCompile(
		`(?s)\nBegin with:\n  demo .*\n  explain .*\n  serve .*\n  show .*\n  status .*\n  validate [^\n]*\n\n` +
			`Serve and check:\n.*\n\nLook:\n.*\n  events .*\n\nAct:\n.*\n  retry .*\n\nLocks:\n.*\n\netcd:\n.*\n\nAdditional Commands:\n  completion [^\n]*\n  help [^\n]*\n  version [^\n]*\n\n`)
	if code != cli.ExitFine || !want.MatchString(out) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
