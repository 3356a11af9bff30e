package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hooklock/test/testkit"
)

func TestADrainedProcessIsNotReadyAndEndsEachConnectionWithItsAnswer(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	h := own(t, embedded(t.TempDir(), ""))
	kept := testkit.Dial(t, h.Addr)
	kept.Say(testkit.Request(path, "{}", key("1")))
	if a := kept.Answer("POST"); closes(a) {
		t.Errorf("before: %v", a)
	}
	if out, err := exec.Command(hooklockProgram, "drain", "--pid", fmt.Sprint(h.Pid())).CombinedOutput(); err != nil {
		t.Fatalf("drain: %v: %s", err, out)
	}
	h.AwaitLine(t, h.Stderr, `"msg":"draining"`)
	if a := testkit.Exchange(t, h.Admin,
		"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); a.Status != 503 {
		t.Errorf("readyz: %v", a)
	}
	kept.Say(testkit.Request(path, "{}", key("2")))
	a := kept.Answer("POST")
	passed(t, a, 200, "done", "executed")
	if !closes(a) {
		t.Errorf("the connection is kept: %v", a)
	}
	for target, status := range map[string]int{at(t, "unmatched"): 200, path: 200} {
		if a := testkit.Post(t, h.Addr, target, "{}", key("3")); a.Status != status || !closes(a) {
			t.Errorf("%s: %v", target, a)
		}
	}
	h.Signal(t, syscall.SIGTERM)
	if code := h.ExitCode(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// closes says that an answer ends its connection. net/http takes the line out of the header.
func closes(a *testkit.Answer) bool { return strings.Contains(a.Raw, "\r\nConnection: close\r\n") }

// TestTheHealthCheckOfAContainerIsAnExitCode: 0 while deliveries may come, 1 while they may not or
// if nothing answers, and 2 for an address that is none.
func TestTheHealthCheckOfAContainerIsAnExitCode(t *testing.T) {
	t.Parallel()
	h := own(t, strings.Replace(shared.config("check", ""), `{listen: "127.0.0.1:0"}`, `{listen: "`+testkit.FreePort(t)+
		`"}`, 1))
	check := func(want int, says string, args ...string) {
		t.Helper()
		c := exec.Command(hooklockProgram, append([]string{"healthcheck"}, args...)...)
		out, _ := c.CombinedOutput()
		if c.ProcessState.ExitCode() != want || !strings.Contains(string(out), says) || (want == 0) != (len(out) == 0) {
			t.Errorf("%v: %v: %s", args, c.ProcessState, out)
		}
	}
	check(0, "", "--config", h.Config)
	check(0, "", "--url", "http://"+h.Admin)
	check(0, "", "--url", h.Admin)
	check(2, "--url ftp://"+h.Admin, "--url", "ftp://"+h.Admin)
	if out, err := exec.Command(hooklockProgram, "drain", "--pid", fmt.Sprint(h.Pid())).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testkit.Until(t, "it is not ready", func() bool {
		return exec.Command(hooklockProgram, "healthcheck", "--config", h.Config).Run() != nil
	})
	check(1, "not ready", "--config", h.Config)
	check(0, "", "--live", "--config", h.Config)
	if a := testkit.Exchange(t, h.Admin, "GET /livez HTTP/1.0\r\n\r\n"); a.Status != 200 {
		t.Errorf("a probe of HTTP/1.0 without a host got %d", a.Status)
	}
	check(1, "no answer", "--url", "http://"+testkit.FreePort(t))
}

func TestDrainSignalsNoOtherProgram(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(hooklockProgram, "drain", "--pid", fmt.Sprint(shared.etcd.Pid())).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not hooklock") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestDrainAndReloadSignalNoGroupOfProcesses(t *testing.T) {
	t.Parallel()
	h := own(t, strings.Replace(shared.config("group", ""), `{listen: "127.0.0.1:0"}`, `{listen: "`+testkit.FreePort(t)+
		`"}`, 1))
	for _, command := range []string{"drain", "reload"} {
		other := exec.Command("sleep", "1000")
		other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it is the group that is named: nobody else is in it
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(hooklockProgram, command, "--pid", fmt.Sprint(-other.Process.Pid))
		c.Dir = filepath.Dir(h.Config)
		out, _ := c.CombinedOutput()
		if c.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "--pid") {
			t.Errorf("%s: %v: %s", command, c.ProcessState, out)
		}
		_ = other.Process.Signal(os.Kill)
		_ = other.Wait()
		if got := other.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != syscall.SIGKILL {
			t.Errorf("%s ended another program: %v", command, got)
		}
	}
}

func TestAClientThatDoesNotReadTheAdminListenersAnswersDelaysNoShutdown(t *testing.T) {
	t.Parallel()
	token, health := filepath.Join(t.TempDir(), "token"), testkit.FreePort(t)
	write(t, token, strings.Repeat("t", 32))
	admin := fmt.Sprintf(
		`admin: {listen: "127.0.0.1:0", pprof: true, tokens: [{name: t, token_file: %s, scopes: [read, write]}]}`,
		token)
	config := strings.Replace(shared.config("unread", "health: {listen: \""+health+"\"}"),
		`admin: {listen: "127.0.0.1:0"}`, admin, 1)
	h := own(t, strings.Replace(config, "shutdown_timeout: 5s", "shutdown_timeout: 60s", 1))
	ask := func(path string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + strings.Repeat("t", 32) +
			"\r\n"
	}
	for _, addr := range []string{h.Admin, health} {
		c := testkit.Dial(t, addr)
		go c.Say(strings.Repeat(ask("/metrics")+"\r\n", 4000)) // until c is closed
	}
	testkit.Until(t, "nothing can be written any more", func() bool {
		a := testkit.Exchange(t, h.Admin, ask("/debug/pprof/goroutine?debug=2")+"Connection: close\r\n\r\n")
		return strings.Count(string(a.Body), "poll.(*pollDesc).waitWrite") == 2
	})
	began := time.Now()
	h.Signal(t, syscall.SIGTERM)
	if code := h.ExitCode(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the end took %v", took)
	}
}

func TestASenderInTheMiddleOfABodyMakesNoBadEnd(t *testing.T) {
	t.Parallel()
	config := strings.NewReplacer("request_timeout: 10s", "request_timeout: 2s", "shutdown_timeout: 5s",
		"shutdown_timeout: 1s").Replace(shared.config("half", ""))
	h := testkit.Serve(t, hooklockProgram, config)
	c := testkit.Dial(t, h.Addr)
	c.Say("POST " + at(t, "plain") + " HTTP/1.1\r\nHost: localhost\r\n" + key("1") +
		"\r\nContent-Length: 200000\r\nExpect: 100-continue\r\n\r\n")
	if _, err := c.Reader().ReadString('\n'); err != nil { // 100: the body is read
		t.Fatal(err)
	}
	c.Say(strings.Repeat("x", 20000))
	leave(t, h.Process)
}
