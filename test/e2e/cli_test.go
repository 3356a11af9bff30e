package e2e

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"hooklock/test/testkit"
)

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(hooklockProgram)+string(os.PathListSeparator)+e.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits runs a program that must end with this exit code: `exits 2 hooklock serv`.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// demo starts `hooklock demo` on free ports and returns the curl lines that it prints.
func demo(t *testing.T, args ...string) (*testkit.Process, []string) {
	t.Helper()
	return demoOf(t, hooklockProgram, args...)
}

func demoOf(t *testing.T, program string, args ...string) (*testkit.Process, []string) {
	t.Helper()
	p := testkit.Start(t, testkit.Command{Program: program, Args: append([]string{"demo", "--auto-ports"}, args...),
		Dir: t.TempDir(), Env: []string{"TMPDIR=" + t.TempDir()}})
	p.AwaitLine(t, p.Stdout, "Ctrl-C ends it.")
	var lines []string
	for _, line := range p.Stdout.Lines() {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "curl ") {
			lines = append(lines, line)
		}
	}
	return p, lines
}

func TestTheCurlLinesOfTheDemoShowWhatTheySay(t *testing.T) {
	t.Parallel()
	testkit.Program(t, "curl")
	p, lines := demo(t)
	if len(lines) != 8 {
		t.Fatalf("%d curl lines:\n%s", len(lines), p.Stdout)
	}
	for i, want := range [][]string{
		{"HTTP/1.1 200", "Hooklock-Decision: executed", `{"charged":true,"receipt":1}`},
		{"HTTP/1.1 200", "Hooklock-Decision: replayed", "Idempotent-Replayed: true", `{"charged":true,"receipt":1}`},
		{"HTTP/1.1 422", "idempotency_key_reused"},
		{"HTTP/1.1 409", "workflow_locked", `"existingExecutionId":"exec_`, `{"charged":true,"receipt":2}`},
		{"HTTP/1.1 202", "Hooklock-Decision: parked", `"status":"accepted"`, `"eventId":"evt_4"`, `"parked":{"since":`},
		{`"workflow":"demo/acme"`, `"status":"SUCCESS"`},
		{`"locks":[`},
		{`"workflow":"backup"`, `"holder":"me"`, `"callbackKey":`},
	} {
		// tries come at growing distances: a longer outage costs twice its time
		line := strings.Replace(lines[i], "down=10s", "down=4s", 1)
		// A second is enough for people to see that the lock is taken; a busy machine is asked.
		line = strings.Replace(line, "sleep 1;", "n=0; until "+lines[6]+
			" -s | grep -q demo/acme || [ $n -ge 300 ]; do n=$((n+1)); sleep 0.1; done;", 1)
		cmd := exec.Command("sh", "-c", line)
		cmd.Env = append(os.Environ(), "NO_PROXY=*") // curl would ask a proxy of this machine
		out, err := cmd.Output()
		for _, text := range want {
			if !strings.Contains(string(out), text) {
				t.Errorf("%s\nsays (%v)\n%s\nwithout %s", lines[i], err, out, text)
			}
		}
	}
	receiver := regexp.MustCompile(`http://([0-9.:]+)/\?down`).FindStringSubmatch(lines[4])[1]
	testkit.Until(t, "the parked event to run", func() bool {
		return strings.Contains(string(testkit.Exchange(t, receiver,
			"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").Body), "evt_4")
	})
	for _, url := range regexp.MustCompile(`http://[^ ]+`).FindAllString(strings.Join(p.Stdout.Lines()[:3], " "), -1) {
		addr, path, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(url, ","), "http://"), "/")
		if strings.HasPrefix(path, "hooks/") {
			continue
		}
		if a := testkit.Exchange(t, addr, "GET /"+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); a.Status != 200 {
			t.Errorf("%s: %v", url, a)
		}
	}
	p.Signal(t, syscall.SIGINT)
	if code := p.ExitCode(t); code != 0 {
		t.Errorf("exit code %d: %s", code, p.Stderr)
	}
}

func TestThePageOfTheDemoIsNotEmpty(t *testing.T) {
	t.Parallel()
	p, _ := demo(t)
	page := regexp.MustCompile(`The page for people: http://([^/]+)/`).FindStringSubmatch(p.Stdout.String())
	for query, event := range map[string]string{
		"status=SUCCESS": "evt_slow", "decision=replayed": "evt_twice", "status=REFUSED": "evt_refused",
		"parked=true&state=parked": "evt_parked", "parked=true&state=dead_letter": "evt_dead_letter",
	} {
		testkit.Until(t, query+" has "+event, func() bool {
			answer := testkit.Exchange(t, page[1], "GET /v1/executions?"+query+
				" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			return strings.Contains(string(answer.Body), `"`+event+`"`)
		})
	}
}

func TestTheDemoSaysHowPeopleSeeWhatRan(t *testing.T) {
	t.Parallel()
	testkit.Program(t, "sh")
	odd := filepath.Join(t.TempDir(), "Tom's $HOME & more")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(odd, "hooklock")
	if err := os.Symlink(hooklockProgram, link); err != nil {
		t.Fatal(err)
	}
	for _, where := range []struct {
		program string
		args    []string
	}{{hooklockProgram, nil}, {link, []string{"--dir", odd}}} {
		p, _ := demoOf(t, where.program, where.args...)
		text := p.Stdout.String()
		hook := regexp.MustCompile(`http://([^/]+)/hooks/acme`).FindStringSubmatch(text)
		testkit.Post(t, hook[1], "/hooks/acme", `{"id":"evt_7"}`)
		_, lines, found := strings.Cut(text, "   export HOOKLOCK_ADMIN=")
		lines, _, ended := strings.Cut(lines, "\n\n")
		if !found || !ended {
			t.Fatal(text)
		}
		out, err := exec.Command("sh", "-c", "export HOOKLOCK_ADMIN="+lines).CombinedOutput()
		if err != nil || !strings.Contains(string(out), " evt_7 ") ||
			!regexp.MustCompile("no locks|HOLDER").Match(out) {
			t.Errorf("%v\n%s\n%s", err, lines, out)
		}
	}
}

func TestTheEndOfTheDemoDoesNotWaitForItsSampleService(t *testing.T) {
	t.Parallel()
	p, _ := demo(t)
	said := regexp.MustCompile(
		`reach it at http://([^/]+)/hooks/acme, the legacy receiver behind it is at http://([^/]+)/ `).FindStringSubmatch(p.Stdout.String())
	answer := testkit.GoPost(t, said[1], "/hooks/acme?sleep=1m", `{"id":"evt_nap"}`)
	testkit.Until(t, "the service sleeps", func() bool {
		page := testkit.Exchange(t, said[2], "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		return strings.Contains(string(page.Body), "evt_nap")
	})
	p.Signal(t, syscall.SIGTERM)
	if a := testkit.Receive(t, "the answer", answer); a == nil || a.Status != 200 ||
		!strings.Contains(string(a.Body), "receipt") {
		t.Errorf("%+v", a)
	}
	if code := p.ExitCode(t); code != 0 {
		t.Errorf("exit code %d: %s", code, p.Stderr)
	}
}

func TestTheDemoLeavesNothingBehindUnlessItIsGivenAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, _ := demo(t, "--dir", dir)
	p.Signal(t, syscall.SIGTERM)
	if code := p.ExitCode(t); code != 0 {
		t.Errorf("exit code %d: %s", code, p.Stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err != nil {
		t.Error(err)
	}
	temp := t.TempDir()
	q := testkit.Start(t, testkit.Command{Program: hooklockProgram, Args: []string{"demo", "--auto-ports"},
		Env: []string{"TMPDIR=" + temp}})
	q.AwaitLine(t, q.Stdout, "Ctrl-C ends it.")
	q.Signal(t, syscall.SIGTERM)
	q.ExitCode(t)
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}

func TestAPortThatIsTakenIsNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	for setting, config := range map[string]string{
		"listen": strings.Replace(shared.config("taken", ""), "listen: 127.0.0.1:0", "listen: "+taken, 1),
		"admin.listen": strings.Replace(shared.config("taken", ""), `{listen: "127.0.0.1:0"}`, `{listen: "`+taken+`"}`,
			1),
	} {
		h := testkit.StartServe(t, hooklockProgram, config)
		if code := h.ExitCode(t); code != 1 { // it may be free the next time, so a supervisor starts it again
			t.Errorf("%s: exit code %d", setting, code)
		}
		if said := h.Stderr.String(); !strings.Contains(said, setting+": listen on "+taken) ||
			!strings.Contains(said, "address already in use") {
			t.Errorf("it said: %s", said)
		}
	}
	if l, err := net.Listen("tcp", "127.0.0.1:8081"); err == nil { // else somebody else has it, which is as good
		defer l.Close()
	}
	p := testkit.Start(t, testkit.Command{Program: hooklockProgram, Args: []string{"demo"}, Dir: t.TempDir()})
	if code := p.ExitCode(t); code != 2 {
		t.Errorf("demo: exit code %d", code)
	}
	if said := p.Stderr.String(); !strings.Contains(said, "127.0.0.1:8081") || !strings.Contains(said, "--auto-ports") {
		t.Errorf("it said: %s", said)
	}
}
