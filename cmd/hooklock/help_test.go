package main

import (
	"regexp"
	"strings"
	"testing"

	"hooklock/cmd/hooklock/cli"
)

func TestTheHelpHasTheCommandsInGroupsAndFirstThoseToBeginWith(t *testing.T) {
	code, out, _ := command(t, nil, "--help")
	want := regexp.MustCompile(
		`(?s)\nBegin with:\n  demo .*\n  explain .*\n  serve .*\n  show .*\n  status .*\n  validate [^\n]*\n\n` +
			`Serve and check:\n.*\n\nLook:\n.*\n  events .*\n\nAct:\n.*\n  rerun .*\n\nLocks:\n.*\n\netcd:\n.*\n\nAdditional Commands:\n  completion [^\n]*\n  help [^\n]*\n  version [^\n]*\n\n`)
	if code != cli.ExitFine || !want.MatchString(out) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestEachActOnAnEventIsListedUnderOneName(t *testing.T) {
	_, out, _ := command(t, nil, "--help")
	for name, listed := range map[string]bool{
		"events": true, "show": true, "answer": true, "request": true,
		"cancel": true, "forget": true, "rerun": true, "run": true, "skip": true,
		"executions": false, "allow": false, "retry": false, "try": false,
	} {
		if got := strings.Contains(out, "\n  "+name+" "); got != listed {
			t.Errorf("%s: listed %t", name, got)
		}
		if code, help, _ := command(t, nil, name, "--help"); code != cli.ExitFine ||
			!strings.Contains(help, "hooklock "+name) {
			t.Errorf("%s: it does not work any more: %d %s", name, code, help)
		}
	}
}
