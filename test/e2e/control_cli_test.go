package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"hooklock/test/testkit"
)

// TestTheCommandLineSeesAndSteers runs the scripts of testdata/control, each with a hooklock of its
// own in the script's folder.
func TestTheCommandLineSeesAndSteers(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:   filepath.Join("testdata", "control"),
		Setup: setTheScene,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "sends": sends, "runs": runs, "begins": begins, "ends": ends, "answered": answered,
			"retoken": retoken, "becomes": becomes, "shorten": shorten,
		},
	})
}

// scene is what a script has: a hooklock, and an upstream behind it that answers as its paths say.
type scene struct {
	tb      testing.TB
	h       *testkit.Hooklock
	arrived chan arrival
	// Of the delivery that began last.
	sender   <-chan *testkit.Answer
	upstream chan<- string
}

// arrival is a delivery at the upstream, which answers with what it is given.
type arrival struct {
	r      *testkit.Received
	answer chan<- string
}

type sceneKey struct{}

// sceneRoutes has a path for each thing that a script needs: /slow ends when the script says so,
// /hold goes on after its answer.
const sceneRoutes = `
routes:
  - {name: plain, path: "/plain/{w}", workflow: "{path.w}"}
  - {name: slow, path: "/slow/{w}", workflow: "slow/{path.w}", lock: {release_delay: 0s, strategy: wait, wait_timeout: 20s}}
  - {name: hold, path: "/hold/{w}", workflow: "hold/{path.w}", hold: {on_status: [202], ttl: 30m}}
  - {name: fail, path: "/fail/{w}", workflow: "fail/{path.w}"}
  - {name: letters, path: "/letters/{w}", workflow: "letters/{path.w}", park: {attempts: 1, on: [failed], on_failure: skip}}
`

func (s *scene) act(r *testkit.Received) string {
	switch {
	case strings.HasPrefix(r.Target, "/slow/"):
		answer := make(chan string, 1)
		s.arrived <- arrival{r, answer}
		select {
		case text := <-answer:
			return text
		case <-r.Context.Done():
			return ""
		}
	case strings.HasPrefix(r.Target, "/hold/"):
		return testkit.Reply(202, "taken")
	case strings.HasPrefix(r.Target, "/fail/"), strings.HasPrefix(r.Target, "/letters/"):
		return testkit.Reply(500, "broken")
	}
	return testkit.OK("done")
}

func setTheScene(e *testscript.Env) error {
	tb, ok := e.T().(testing.TB)
	if !ok {
		return fmt.Errorf("%T is no testing.TB", e.T())
	}
	s := &scene{tb: tb, arrived: make(chan arrival, 1)}
	up := testkit.NewUpstream(tb, s.act)
	dir := filepath.Join(e.WorkDir, "hooklock-data")
	s.h = testkit.Serve(tb, hooklockProgram, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
data_dir: %q
upstream: {url: %q, timeout: 30s}
etcd: {endpoints: [%q], prefix: %q, request_timeout: 10s}
shutdown_timeout: 1s
%s`, dir, up.URL, shared.etcd.Endpoint, ownPrefix(), sceneRoutes))
	e.Values[sceneKey{}] = s
	e.Setenv("PATH", filepath.Dir(hooklockProgram)+string(os.PathListSeparator)+e.Getenv("PATH"))
	e.Setenv("HOOKLOCK_ADMIN", "http://"+s.h.Admin)
	e.Setenv("ADMIN", s.h.Admin)
	e.Setenv("CONFIG", s.h.Config)
	return nil
}

func sceneOf(ts *testscript.TestScript) *scene {
	s, ok := ts.Value(sceneKey{}).(*scene)
	if !ok {
		ts.Fatalf("there is no scene")
	}
	return s
}

// sends delivers an event and wants a status: `sends 200 /plain/acme evt_1 FIRST` also sets $FIRST
// to the execution.
func sends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: sends STATUS TARGET EVENT [VARIABLE]")
	}
	a := testkit.Post(sceneOf(ts).tb, sceneOf(ts).h.Addr, args[1], `{"id":"`+args[2]+`"}`, key(args[2]))
	if strconv.Itoa(a.Status) != args[0] {
		ts.Fatalf("got %v", a)
	}
	if len(args) == 4 {
		ts.Setenv(args[3], a.Execution())
	}
}

// runs delivers an event until it runs again, which a forgotten one does within 2 s: `runs
// /plain/acme evt_1 AGAIN`.
func runs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: runs TARGET EVENT VARIABLE")
	}
	s := sceneOf(ts)
	testkit.Until(s.tb, args[1]+" runs", func() bool {
		a := testkit.Post(s.tb, s.h.Addr, args[0], `{"id":"`+args[1]+`"}`, key(args[1]))
		ts.Setenv(args[2], a.Execution())
		return a.Decision() == "executed"
	})
}

// begins delivers an event and waits until it has reached the upstream: `begins /slow/acme evt_1
// FIRST` sets $FIRST to the execution.
func begins(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: begins TARGET EVENT VARIABLE")
	}
	s := sceneOf(ts)
	s.sender = testkit.GoPost(s.tb, s.h.Addr, args[0], `{"id":"`+args[1]+`"}`, key(args[1]))
	came := testkit.Receive(s.tb, "the delivery at the upstream", s.arrived)
	s.upstream = came.answer
	ts.Setenv(args[2], came.r.Header.Get("Hooklock-Execution"))
}

// ends lets the upstream answer what began.
func ends(ts *testscript.TestScript, _ bool, _ []string) { sceneOf(ts).upstream <- testkit.OK("done") }

// answered waits for the answer to what began, and wants a status and a text in it: `answered 503
// lock_lost`.
func answered(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: answered STATUS TEXT")
	}
	a := testkit.Receive(sceneOf(ts).tb, "the sender's answer", sceneOf(ts).sender)
	if strconv.Itoa(a.Status) != args[0] || !strings.Contains(a.Raw, args[1]) {
		ts.Fatalf("got %v", a)
	}
}

// becomes runs a program until what it prints matches: `becomes '^duplicates +1$' hooklock
// executions get $FIRST`.
func becomes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: becomes PATTERN PROGRAM ARG...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	testkit.Until(sceneOf(ts).tb, args[0], func() bool {
		ts.Check(ts.Exec(args[1], args[2:]...))
		return pattern.MatchString(ts.ReadFile("stdout"))
	})
}

// shorten keeps the beginning of a text: `shorten $FIRST 20 SHORT` sets $SHORT.
func shorten(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: shorten TEXT LENGTH VARIABLE")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Setenv(args[2], args[0][:n])
}

// retoken writes a changed token: `retoken hooklock-data/admin.token other.token` copies it with
// its letters turned around.
func retoken(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: retoken FILE COPY")
	}
	text := regexp.MustCompile(`[a-z]`).ReplaceAllString(ts.ReadFile(args[0]), "x")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}
