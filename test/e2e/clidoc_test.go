package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"hooklock/test/testkit"
)

var update = flag.Bool("update", false, "write what the commands in docs/cli.md print now into it")

// cliPage is the page whose commands are run.
const cliPage = "../../docs/cli.md"

// The deliveries that the page tells of.
func tellTheStory(t *testing.T) *testkit.Hooklock {
	t.Helper()
	slow, orders := newHeld(t), answers(testkit.Reply(500, "broken"), testkit.Reply(500, "broken"),
		testkit.OK("charged"))
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		switch {
		case strings.HasSuffix(r.Target, "/initech"):
			return slow.handle(r)
		case strings.HasSuffix(r.Target, "/globex"):
			return testkit.Reply(500, "broken")
		case strings.HasPrefix(r.Target, "/orders/"):
			return orders(r)
		case strings.HasPrefix(r.Target, "/assess/"):
			return testkit.Reply(202, "taken")
		}
		return testkit.OK("charged")
	})
	h := own(t, bare(up.URL, `
shutdown_timeout: 1s
park_store: {single_member: true}
routes:
  - {name: orders, path: "/orders/{shop}", workflow: "orders/{path.shop}", park: {enabled: true, after: 0s, attempts: 1}}
  - {name: stripe, path: "/hooks/stripe/{account}", workflow: "stripe/{path.account}"}
  - {name: assess, path: "/assess/{flow}", workflow: "assess/{path.flow}", hold: {on_status: [202]}}
`))
	first := testkit.Post(t, h.Addr, "/hooks/stripe/acme", "{}", key("evt_1")).Execution()
	testkit.Post(t, h.Addr, "/hooks/stripe/acme", "{}", key("evt_1"))
	testkit.Post(t, h.Addr, "/hooks/stripe/globex", "{}", key("evt_2"))
	testkit.Post(t, h.Addr, "/assess/flow-7", "{}", key("evt_4"))
	testkit.GoPost(t, h.Addr, "/hooks/stripe/initech", "{}", key("evt_3"))
	slow.await(t)
	testkit.Until(t, "the duplicate is counted, and its arrival is written", func() bool {
		a := testkit.Exchange(t, h.Admin, "GET /v1/executions/"+first+
			" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		listed := testkit.Exchange(t, h.Admin,
			"GET /v1/executions?decision=replayed HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		return strings.Contains(string(a.Body), `"duplicates":1`) && strings.Contains(string(listed.Body), first)
	})
	return h
}

// goOnParking tells what the page shows of parked executions.
func goOnParking(t *testing.T, h *testkit.Hooklock) {
	t.Helper()
	for _, shop := range []string{"acme", "globex"} {
		id := acceptedAs(t, testkit.Post(t, h.Addr, "/orders/"+shop, `{"amount":100}`+"\n", key("order_"+shop)), 202)
		testkit.Until(t, "the order to wait for a person", func() bool {
			now := execution(t, h, id)
			parked, _ := now["parked"].(map[string]any)
			return parked["blocked"] != nil && now["arrivals"] != nil
		})
	}
}

// What differs from run to run.
var changing = []struct{ pattern, name string }{
	{`\b[0-9a-f]{32}\b`, "TRACE"},
	{`\S+/\d+ has been told`, "REPLICA has been told"}, {`exec_[a-z2-7]+`, "ID"}, {`job_[a-z2-7]+`, "JOB"},
	{`, \d+ s\n`, ", SPAN\n"}, {`after [\d.]+ s\.`, "after SPAN."}, {`\d{4}-\d\d-\d\dT[0-9:.]+Z`, "TIME"},
	{`[^\s"]+/\d+/[^\s"]+`, "HOLDER"},
	{`"(heldFor|expiresIn|token)":\d+`, "$1"},
	{`sha256:[0-9a-f]+`, "HASH"}, {`(?m)^replica .*`, "replica"}, {`(?m)^held +\d+ +\S+`, "held"},
	{`127\.0\.0\.1:\d+`, "ADDRESS"}, {`\b\d+\.\d( |$)`, "RATE "},
	{`\b\d+(\.\d+)?(ms|s|m|h|d)(\d+[smh])?\b`, "SPAN"}, {`(?m)^(token|key|fingerprint|trace) +\S+`, "$1"}, {` +`, " "},
}

func steady(text string) string {
	for _, c := range changing {
		text = regexp.MustCompile(c.pattern).ReplaceAllString(text, c.name)
	}
	return text
}

func TestThePageOfTheCommandLineShowsWhatItPrints(t *testing.T) {
	t.Parallel()
	testkit.Program(t, "sh")
	page, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	h := tellTheStory(t)
	ids := map[string]string{} // of the page, and what they are called in this run
	parking := sync.OnceFunc(func() { goOnParking(t, h) })
	run := func(line string) string {
		if strings.Contains(line, "--parked") {
			parking()
		}
		if strings.Contains(line, "--dead-letters") {
			testkit.Until(t, "what was skipped to be a dead letter", func() bool {
				_, got := asked(t, h, "GET", "/v1/executions?parked=true&state=dead_letter", "", "")
				all, _ := got["executions"].([]any)
				return len(all) > 0
			})
		}
		c := exec.Command("sh", "-c", line)
		c.Dir = filepath.Dir(h.Config)
		c.Env = append(os.Environ(), "HOOKLOCK_ADMIN=http://"+h.Admin, "PATH="+filepath.Dir(hooklockProgram)+
			string(os.PathListSeparator)+os.Getenv("PATH"))
		out, _ := c.CombinedOutput() // its exit code is in the text
		if code := c.ProcessState.ExitCode(); code != 0 {
			out = fmt.Appendf(out, "[exit code %d]\n", code)
		}
		return strings.ReplaceAll(string(out), filepath.Dir(h.Config)+"/", "")
	}
	written := regexp.MustCompile("(?s)```console\n(.*?)```").ReplaceAllFunc(page, func(block []byte) []byte {
		body := strings.TrimSuffix(strings.TrimPrefix(string(block), "```console\n"), "```")
		var now bytes.Buffer
		for _, part := range strings.Split(body, "$ ")[1:] {
			line, shown, _ := strings.Cut(part, "\n")
			for page, real := range ids {
				line = strings.ReplaceAll(line, page, real)
			}
			got := run(line)
			if steady(got) != steady(shown) && !*update {
				t.Errorf("%s\nprints\n%s\nand the page shows\n%s", line, got, shown)
			}
			learn(ids, shown, got)
			fmt.Fprintf(&now, "$ %s\n%s", line, got)
		}
		return []byte("```console\n" + now.String() + "```")
	})
	if *update {
		if err := os.WriteFile(cliPage, written, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// learn pairs the IDs that the page shows with those that stand at the same places now.
func learn(ids map[string]string, shown, got string) {
	id := regexp.MustCompile(`exec_[a-z2-7]+`)
	real := id.FindAllString(got, -1)
	for i, page := range id.FindAllString(shown, -1) {
		if i < len(real) && ids[page] == "" {
			ids[page] = real[i]
		}
	}
}
