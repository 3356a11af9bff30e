package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

const apiPage = "../../docs/api.md"

// docRun is a Hooklock on which the commands of docs/api.md are run.
type docRun struct {
	*testkit.Hooklock
	t    *testing.T
	work *held
	n    int

	running chan *testkit.Answer // the answer of the delivery that runs
}

// TestTheCommandsOfTheAPIPageRun runs each block of the page, with executions as the page speaks of
// them.
func TestTheCommandsOfTheAPIPageRun(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"curl", "sh", "sed"} {
		testkit.Program(t, program)
	}
	text, err := os.ReadFile(apiPage)
	if err != nil {
		t.Fatal(err)
	}
	d := &docRun{t: t, work: newHeld(t)}
	config := shared.config("apidoc", "")
	config = config[:strings.Index(config, "routes:")] + `park_store: {single_member: true}
routes:
  - {name: orders, path: "/apidoc/orders/{shop}", workflow: "orders/{path.shop}", park: {enabled: true, after: 0s, attempts: 1}}
  - {name: demo, path: "/apidoc/{account}", workflow: "demo/{path.account}", lock: {release_delay: 0s}, hold: {on_status: [202]}}
`
	d.Hooklock = own(t, config)
	shared.on(t, "/apidoc/acme", d.work.handle)
	shared.on(t, "/apidoc/done", answers(testkit.OK("done")))
	kept := newHeld(t)
	kept.answer <- accepted
	shared.on(t, "/apidoc/held", kept.handle)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 8 {
		t.Fatalf("%d blocks", len(blocks))
	}
	environment := d.environment(kept)
	for _, block := range blocks {
		environment["EXECUTION"] = d.run()
		output := d.sh(block[1], environment)
		if strings.Contains(output, "urn:hooklock:problem") ||
			strings.Contains(block[1], "nightly") && !strings.Contains(output, "the work of the night") {
			t.Errorf("%s%s", block[1], output)
		}
		if strings.Contains(block[1], "nightly") {
			d.interrupted(block[1], environment)
		}
		d.end()
	}
	if a := testkit.Post(t, d.Addr, "/apidoc/held", "{}", key("held")); a.Decision() != "replayed" ||
		string(a.Body) != `{"shipped":true}` {
		t.Errorf("a duplicate of the event that the page completes: %v", a)
	}
}

// environment is what the page calls its executions.
func (d *docRun) environment(kept *held) map[string]string {
	d.t.Helper()
	ended := testkit.Post(d.t, d.Addr, "/apidoc/done", "{}", key("ended"))
	passed(d.t, testkit.Post(d.t, d.Addr, "/apidoc/held", "{}", key("held")), 202, "later", "executed")
	delivery := kept.await(d.t)
	parked, letter := d.blocked("acme"), d.blocked("globex")
	asked(d.t, d.Hooklock, "POST", "/v1/executions/"+letter+"/skip", localToken(d.t, d.Hooklock),
		`{"reason":"the page needs a dead letter"}`)
	testkit.Until(d.t, "the dead letter", func() bool {
		return execution(d.t, d.Hooklock, letter)["requestKept"] == true
	})
	return map[string]string{
		"PARKED": parked, "LETTER": letter,
		"AUTH": "Authorization: Bearer " + localToken(d.t, d.Hooklock), "ENDED": ended.Execution(),
		"HELD": delivery.Header.Get("Hooklock-Execution"), "TOKEN": delivery.Header.Get("Hooklock-Fencing-Token"),
		"KEY": delivery.Header.Get("Hooklock-Callback-Key"),
	}
}

// blocked parks a delivery that waits for a person.
func (d *docRun) blocked(shop string) string {
	d.t.Helper()
	path := "/apidoc/orders/" + shop
	shared.on(d.t, path, answers(testkit.Reply(500, "broken"), testkit.OK("charged")))
	id := acceptedAs(d.t, testkit.Post(d.t, d.Addr, path, "{}", key(shop)), 202)
	testkit.Until(d.t, "it waits for a person", func() bool {
		parked, _ := execution(d.t, d.Hooklock, id)["parked"].(map[string]any)
		return parked["blocked"] != nil
	})
	return id
}

// run starts a delivery that runs until end, and returns its execution.
func (d *docRun) run() string {
	d.t.Helper()
	d.n++
	d.running = make(chan *testkit.Answer, 1)
	answer := testkit.GoPost(d.t, d.Addr, "/apidoc/acme", "{}", key("run-"+string(rune('a'+d.n))))
	go func() { d.running <- <-answer }()
	return d.work.await(d.t).Header.Get("Hooklock-Execution")
}

// end lets it end, if nobody has ended it.
func (d *docRun) end() {
	d.t.Helper()
	d.work.answer <- testkit.OK("done")
	testkit.Receive(d.t, "the end of the delivery", d.running)
	select {
	case <-d.work.answer: // its call was closed, and nobody took the answer
	default:
	}
}

// interrupted runs the script for cron once more, which is told to end in the middle of its work,
// and asks for its lock.
func (d *docRun) interrupted(block string, environment map[string]string) {
	d.t.Helper()
	const work = `echo "the work of the night"`
	script := strings.Replace(block, work, work+"\nkill -TERM $$\nsleep 1", 1)
	output := d.sh(strings.Replace(script, "sh nightly.sh", "sh nightly.sh || true", 1), environment)
	if status, _ := asked(d.t, d.Hooklock, "GET", "/v1/locks/backup%2Fnightly", "", ""); !strings.Contains(output,
		"the work of the night") || status != 404 {
		d.t.Errorf("the lock of a script that was told to end: status %d, want 404\n%s", status, output)
	}
}

// sh runs a block, with the addresses of this test.
func (d *docRun) sh(block string, environment map[string]string) string {
	d.t.Helper()
	cmd := exec.Command("sh", "-eu", "-c", strings.ReplaceAll(block, "127.0.0.1:8079", d.Admin))
	cmd.Dir = filepath.Dir(d.Config)
	cmd.Env = append(os.Environ(), "NO_PROXY=*")
	for name, value := range environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	output, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Errorf("%v:\n%s%s", err, block, output)
	}
	return string(output)
}
