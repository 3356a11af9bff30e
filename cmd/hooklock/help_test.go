package main

import (
	"io"
	"os"
	"path/filepath"
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
		"cancel": true, "erase": true, "forget": true, "rerun": true, "run": true, "skip": true,
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

// TestEachCommandThatATextNamesIsThere: a message or a page that says what to run is worth nothing
// if that is refused.
func TestEachCommandThatATextNamesIsThere(t *testing.T) {
	const root = "../.."
	anywhere := regexp.MustCompile("hooklock ([a-z]+)((?: [a-z]+)?)")
	asCode := regexp.MustCompile("(?m)(?:`|^ *(?:\\$ )?|-- )hooklock ([a-z]+)((?: [a-z]+)?)")
	commands := newRoot(&cli.Environment{Stdout: io.Discard, Stderr: io.Discard})
	commands.InitDefaultCompletionCmd()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		kind := filepath.Ext(path)
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || kind != ".go" && kind != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		named := anywhere
		if kind == ".md" {
			named = asCode
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			cmd, _, err := commands.Find([]string{m[1]})
			if err != nil || cmd == commands {
				if kind == ".md" { // elsewhere it may be prose
					t.Errorf("%s: %s: there is no such command", path, m[0])
				}
				continue
			}
			if sub, _, err := cmd.Find([]string{strings.TrimSpace(m[2])}); cmd.HasSubCommands() && m[2] != "" &&
				(err != nil || sub == cmd) {
				t.Errorf("%s: %s: there is no such command", path, m[0])
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
