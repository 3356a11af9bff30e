package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// reloads runs `hooklock reload` for h, and says how it ended.
func reloads(t *testing.T, h *testkit.Hooklock) (code int, said string) {
	t.Helper()
	c := exec.Command(hooklockProgram, "reload", "--config", h.Config, "--pid", fmt.Sprint(h.Pid()))
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

func TestReloadSaysWhetherTheConfigurationWasTakenOver(t *testing.T) {
	t.Parallel()
	admin := testkit.FreePort(t)
	config := strings.Replace(shared.config("reload", ""), `{listen: "127.0.0.1:0"}`, `{listen: "`+admin+`"}`, 1)
	h := own(t, config)
	for _, step := range []struct {
		what, file string
		code       int
		says       string
	}{
		{"the same", config, 0, "taken over"},
		{"another route", config + `  - {name: added, path: "/added/{w}", workflow: "added/{path.w}"}` + "\n", 0,
			"taken over"},
		{"what needs a restart", strings.Replace(config, `{url: "http:`, `{url: "https:`, 1), 1, "was refused"},
		{"what is not valid", config + "nonsense: 1\n", 2, "nonsense"},
		{"another address of the API", strings.Replace(config, admin, testkit.FreePort(t), 1), 1, "needs a restart"},
		{"the first one again", config, 0, "taken over"},
	} {
		write(t, h.Config, step.file)
		if code, said := reloads(t, h); code != step.code || !strings.Contains(said, step.says) {
			t.Errorf("%s: exit code %d: %s", step.what, code, said)
		}
	}
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
}

func TestReloadSignalsNoOtherProcess(t *testing.T) {
	t.Parallel()
	config := strings.Replace(shared.config("reload-other", ""), `{listen: "127.0.0.1:0"}`,
		`{listen: "`+testkit.FreePort(t)+`"}`, 1)
	h := own(t, config)
	out, err := exec.Command(hooklockProgram, "reload", "--config", h.Config, "--pid",
		fmt.Sprint(os.Getpid())).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "and not hooklock") {
		t.Errorf("%v: %s", err, out)
	}
}
