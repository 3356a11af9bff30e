package main

import (
	"strings"
	"testing"

	"hooklock/cmd/hooklock/cli"
)

func TestATimeThatNoPauseMayLastIsNamedAsItsFlag(t *testing.T) {
	api := serveAPI(t, map[string]string{"*": `400 {"code":"bad_request","detail":"for: give 2s to 8760h"}`})
	code, _, problems := command(t, nil, "pause", "route:r", "--reason", "r", "--until", "1s", "--admin", api.url)
	if want := "hooklock: bad_request: --until: give 2s to 8760h\n"; code != cli.ExitUsage || problems != want {
		t.Errorf("%d %s", code, problems)
	}
}

// What is taken where a flag is left out is what its help says.
func TestHelpShowsNoDefaultThatIsNone(t *testing.T) {
	for args, not := range map[string]string{"reload --help": "(default 1)", "doctor --help": "(default -1ns)"} {
		if code, out, _ := command(t, nil, strings.Fields(args)...); code != cli.ExitFine ||
			strings.Contains(out, not) {
			t.Errorf("%s: %d %s", args, code, out)
		}
	}
}

// A variable of the shell that is not set must not widen what is done, and is to be told from an
// argument too few.
func TestAnEmptyArgumentIsNotTakenForNone(t *testing.T) {
	api := serveAPI(t, nil)
	for says, all := range map[string][][]string{
		"and it is empty": {{"executions", "get", ""}, {"executions", "run", "", "--reason", "r"}, {"locks", "get", ""},
			{"embedded", "backup", ""}},
		"--workflow is empty": {
			{"executions", "skip", "--blocked", "--workflow", "", "--reason", "r"},
			{"executions", "rerun", "--dead-letters", "--workflow=", "--dry-run"},
		},
		"--route is empty": {{"executions", "run", "--workflow", "w", "--route", "", "--reason", "r"}},
	} {
		for _, args := range all {
			code, out, problems := command(t, []string{"HOOKLOCK_ADMIN=" + api.url}, args...)
			if code != cli.ExitUsage || out != "" || !strings.Contains(problems, says) {
				t.Errorf("%q: %d %s%s", args, code, out, problems)
			}
		}
	}
	if len(api.asked) != 0 {
		t.Errorf("asked %v", api.asked)
	}
}
