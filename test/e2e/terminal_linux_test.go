package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	term "hooklock/cmd/hooklock/cli"
	"hooklock/test/testkit"
)

// screen is a terminal with a program in it, and what that has written so far.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	over chan struct{}

	person *os.File // the side on which a person types
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// onScreen starts a program on a terminal of 80 columns; stderr is the terminal, too.
func onScreen(t *testing.T, dir string, env []string, args ...string) (*screen, *exec.Cmd) {
	t.Helper()
	person, program := testkit.Terminal(t, 80, 24)
	c := exec.CommandContext(t.Context(), hooklockProgram, args...)
	c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, program, program, program
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TERM=xterm"}, env...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close() // the program has it, and its end is the end of the terminal
	s := &screen{over: make(chan struct{}), person: person}
	go func() {
		defer close(s.over)
		_, _ = person.WriteTo(s) // ends with an error when nobody has the other side any more
	}()
	return s, c
}

// shown is what a program that ends writes to a terminal.
func shown(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	s, c := onScreen(t, dir, env, args...)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, s)
	}
	<-s.over
	return s.String()
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestOnATerminalNoLineIsLongerThanItIsWide(t *testing.T) {
	t.Parallel()
	h, long := crowded(t)
	env := []string{"HOOKLOCK_ADMIN=http://" + h.Admin}
	for _, args := range [][]string{
		{"locks", "list"}, {"executions", "list"}, {"status"}, {"report", "--examples"}, {"locks", "get", long},
		{"locks", "list", "--prefix", "hold/"}, {"audit", "list"},
		{"events"}, {"queue"}, {"show", "evt_3"}, {"doctor", "--config", h.Config}, {"executions", "--help"},
		{"executions", "list", "--help"}, {"status", "--help"},
	} {
		text := shown(t, filepath.Dir(h.Config), env, args...)
		for line := range strings.Lines(colour.ReplaceAllString(text, "")) {
			if w := term.Width(strings.TrimRight(line, "\r\n")); w > 80 {
				t.Errorf("%v: %d columns: %q", args, w, line)
			}
		}
	}
	if wide := shown(t, filepath.Dir(h.Config), env, "locks", "list", "-o", "wide"); !strings.Contains(wide, long) ||
		!strings.Contains(wide, "HOLDER") {
		t.Errorf("wide leaves something out: %s", wide)
	}
}

// What a person needs first is in 80 columns: whether a change was refused, and how many deliveries
// came.
func TestEightyColumnsShowWhatMatters(t *testing.T) {
	t.Parallel()
	h, long := crowded(t)
	dir, env := filepath.Dir(h.Config), []string{"HOOKLOCK_ADMIN=http://" + h.Admin, "TZ=Europe/Berlin"}
	refused := exec.CommandContext(t.Context(), hooklockProgram, "resume", "route:plain", "--admin", "http://"+h.Admin)
	refused.Dir = dir
	if out, err := refused.CombinedOutput(); err == nil {
		t.Fatalf("it was not paused: %s", out)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"audit", "list"}, `resume +refused: pause_not_found`},
		{[]string{"events"}, `\d\d:\d\d:\d\d +evt_with.*_own_2 +FAILED +500 +fail/acme`},
		{[]string{"events"}, `^TIME CES?T +EVENT +STATUS +WHAT HAPPENED +WORKFLOW`},
		{[]string{"report"}, `ROUTE +MODE +DELIVERIES\s`},
		{[]string{"locks", "get", long}, `locked at +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} CES?T \(`},
	} {
		testkit.Until(t, c.says, func() bool {
			return regexp.MustCompile(c.says).MatchString(colour.ReplaceAllString(shown(t, dir, env, c.args...), ""))
		})
	}
}

func TestColoursAreForTerminalsThatWantThem(t *testing.T) {
	t.Parallel()
	h, _ := crowded(t)
	env := []string{"HOOKLOCK_ADMIN=http://" + h.Admin}
	dir := filepath.Dir(h.Config)
	if text := shown(t, dir, env, "executions", "list"); !strings.Contains(text, "\x1b[31mFAILED\x1b[0m") {
		t.Errorf("a failure is not red: %q", text)
	}
	for _, no := range []string{"NO_COLOR=1", "TERM=dumb"} {
		if text := shown(t, dir, append(env, no), "executions", "list"); strings.Contains(text, "\x1b") ||
			!strings.Contains(text, "FAILED") {
			t.Errorf("%s: %q", no, text)
		}
	}
	if text := cli(t, h, "executions", "list"); strings.Contains(text, "\x1b") || strings.Contains(text, "…") {
		t.Errorf("to a pipe: %q", text)
	}
}

func TestWatchShowsTheNewStateInThePlaceOfTheOld(t *testing.T) {
	t.Parallel()
	h, _ := crowded(t)
	s, c := onScreen(t, filepath.Dir(h.Config), []string{"HOOKLOCK_ADMIN=http://" + h.Admin}, "executions", "list",
		"--watch=500ms")
	testkit.Until(t, "a first page is shown", func() bool { return strings.Contains(s.String(), "FAILED") })
	testkit.Post(t, h.Addr, "/plain/later", "{}", key("later"))
	testkit.Until(t, "the new event is shown", func() bool { return strings.Contains(s.String(), "later") })
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("Ctrl-C is no failure: %v", err)
	}
	<-s.over
	if text := s.String(); strings.Count(text, "\x1b[2J") != 1 || strings.Count(text, "\x1b[H") < 2 {
		t.Errorf("%q", text)
	}
}

func TestWhatTakesLongSaysSoAndGoesAway(t *testing.T) {
	t.Parallel()
	h, _ := crowded(t)
	running := testkit.Exchange(t, h.Admin,
		"GET /v1/executions?status=RUNNING HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	id := regexp.MustCompile(`exec_[a-z2-7]{32}`).FindString(string(running.Body))
	text := shown(t, filepath.Dir(h.Config), []string{"HOOKLOCK_ADMIN=http://" + h.Admin}, "executions", "get", id,
		"--wait", "3s")
	if !regexp.MustCompile(`\r\x1b\[Kasking http://` + regexp.QuoteMeta(h.Admin) + `: [1-9]\d*s`).MatchString(text) {
		t.Errorf("nothing says that it takes long: %q", text)
	}
	if i, j := strings.LastIndex(text, "asking "), strings.LastIndex(text, "\r\x1b[K"); j < i ||
		strings.Contains(text[j:], "asking") {
		t.Errorf("the line stays: %q", text)
	}
}

func TestServeOnATerminalPrintsLinesForPeople(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"":                      `(?m)^\d\d:\d\d:\d\d INFO  started version=`,
		"log: {format: json}\n": `(?m)^\{"time":.*"msg":"started"`,
	} {
		dir := t.TempDir()
		config := format + bare("http://127.0.0.1:1", "routes: [{name: a, path: /a}]\n")
		if err := os.WriteFile(filepath.Join(dir, "sidecar.yaml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		s, c := onScreen(t, dir, nil, "serve")
		testkit.Until(t, "it has started", func() bool {
			return regexp.MustCompile(want).MatchString(strings.ReplaceAll(colour.ReplaceAllString(s.String(), ""),
				"\r", ""))
		})
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
		<-s.over
	}
}

// crowded is a hooklock with a held lock of a long name, an execution that failed, and one that
// went well.
func crowded(t *testing.T) (h *testkit.Hooklock, long string) {
	t.Helper()
	up := testkit.NewUpstream(t, (&scene{}).act)
	h = own(t, bare(up.URL, "shutdown_timeout: 1s\n"+sceneRoutes))
	long = "a-customer-with-a-name-that-is-longer-than-anybody-wants-to-read-in-a-list"
	testkit.Post(t, h.Addr, "/hold/"+long, "{}", key("evt_with_a_long_name_of_its_own_1"))
	testkit.Post(t, h.Addr, "/fail/acme", "{}", key("evt_with_a_long_name_of_its_own_2"))
	testkit.Post(t, h.Addr, "/plain/acme", "{}", key("evt_3"))
	return h, "hold/" + long
}

// A person at a terminal sees whose lock it is before it is taken away, and a script says --yes.
func TestReleasingALockAsksOnATerminal(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.Reply(202, "taken") })
	h := own(t, bare(up.URL, "routes: [{name: assess, path: /assess, hold: {on_status: [202]}}]\n"))
	testkit.Post(t, h.Addr, "/assess", "{}", key("onboarding-7"))
	release := func(answer string, args ...string) (string, error) {
		s, c := onScreen(t, filepath.Dir(h.Config), []string{"HOOKLOCK_ADMIN=http://" + h.Admin},
			append([]string{"locks", "release", "assess", "--reason", "gone"}, args...)...)
		if answer != "" {
			testkit.Until(t, "it asks", func() bool { return strings.Contains(s.String(), "Release the lock? [y/N] ") })
			if _, err := s.person.WriteString(answer + "\n"); err != nil {
				t.Fatal(err)
			}
		}
		err := c.Wait()
		<-s.over
		return s.String(), err
	}
	if text, err := release("n"); err == nil || !strings.Contains(text, "nothing was released") ||
		!regexp.MustCompile(`state +held`).MatchString(text) {
		t.Errorf("%v\n%s", err, text)
	}
	if text, err := release("y"); err != nil || !strings.Contains(text, "assess is released") {
		t.Errorf("%v\n%s", err, text)
	}
	if text, err := release("", "--yes"); err == nil || !strings.Contains(text, "needs --execution") {
		t.Errorf("%v\n%s", err, text)
	}
}
