package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// mostCommands is how many commands a task of a night on call may take.
const mostCommands = 2

// nightRoutes are those of a night on call.
const nightRoutes = `
routes:
  - {name: stripe, path: "/stripe/{account}", workflow: "stripe/{path.account}", event_id: "{body.id}", labels: {order: "{body.order}"}, lock: {strategy: fail_fast, release_delay: 0s}}
  - {name: github, path: /github, workflow: github, event_id: "{header.X-GitHub-Hook-ID}/{header.X-GitHub-Delivery}"}
  - {name: orders, path: "/orders/{shop}", workflow: "orders/{path.shop}", park: {enabled: true, after: 0s, attempts: 1}}
  - {name: mails, path: "/mails/{to}", workflow: "mails/{path.to}", park: {enabled: true, after: 0s, attempts: 1, on_failure: skip}}
  - {name: assess, path: "/assess/{flow}", workflow: "assess/{path.flow}", hold: {on_status: [202]}}
`

// An operator who is woken up types one command, or two, and has the answer.
func TestATaskOfANightOnCallTakesTwoCommandsAtMost(t *testing.T) {
	t.Parallel()
	slow := newHeld(t)
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		switch {
		case strings.Contains(r.Target, "slow"):
			return slow.handle(r)
		case strings.HasPrefix(r.Target, "/orders/"), strings.HasPrefix(r.Target, "/mails/"), strings.HasSuffix(r.Target, "/broken"):
			return testkit.Reply(500, "database is locked")
		case strings.HasPrefix(r.Target, "/assess/"):
			return testkit.Reply(202, "taken")
		}
		return testkit.OK("charged")
	})
	h := own(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\nupstream: %s\netcd: {endpoints: [%q], prefix: %s, request_timeout: 10s}\nshutdown_timeout: 1s\npark_store: {single_member: true}\n%s",
		up.URL, shared.etcd.Endpoint, ownPrefix(), nightRoutes))
	const guid = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
	stripe := func(account, event string) *testkit.Answer {
		return testkit.Post(t, h.Addr, "/stripe/"+account, `{"id":"`+event+`","order":"SO-`+account+`"}`)
	}
	stripe("cus_1", "evt_1QGood")
	stripe("broken", "evt_1QFailed")
	testkit.Post(t, h.Addr, "/github", "{}", "X-GitHub-Hook-ID: 477210923", "X-GitHub-Delivery: "+guid)
	holder := testkit.GoPost(t, h.Addr, "/stripe/cus_slow", `{"id":"evt_1QSlow"}`)
	slow.await(t)
	refused{409, "workflow_locked", "no", "locked"}.check(t, stripe("cus_slow", "evt_1QRefused"))
	testkit.Post(t, h.Addr, "/assess/flow-7", "{}", key("onboarding-7"))
	for _, order := range []string{"order-1", "order-2", "order-3"} {
		acceptedAs(t, testkit.Post(t, h.Addr, "/orders/acme", "{}", key(order)), 202)
	}
	for _, mail := range []string{"mail-1", "mail-2", "mail-3"} {
		acceptedAs(t, testkit.Post(t, h.Addr, "/mails/"+mail, "{}", key(mail)), 202)
	}
	has := func(what, path string, n int) {
		testkit.Until(t, what, func() bool {
			_, got := asked(t, h, "GET", "/v1/executions?"+path, "", "")
			all, _ := got["executions"].([]any)
			return len(all) == n
		})
	}
	has("a queue is blocked", "parked=true&state=blocked", 1)
	has("three dead letters", "parked=true&state=dead_letter", 3)
	has("the refusal is written", "decision=locked", 1)
	const zone = "Europe/Berlin"
	place, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	minuteAgo := time.Now().In(place).Add(-time.Minute).Format("15:04")

	lock := func(out string) string {
		return strings.TrimSpace(strings.TrimPrefix(regexp.MustCompile(`(?m)^execution +\S+$`).FindString(out), "execution"))
	}
	for _, task := range []struct {
		name string
		do   func(run func(want string, args ...string) string)
	}{
		{"1 an event by its ID", func(run func(string, ...string) string) {
			run(`^The service answered 200 at \d{4}-`, "show", "evt_1QGood")
		}},
		{"2 a delivery by GitHub's GUID", func(run func(string, ...string) string) {
			run(`^The service answered 200 at `, "show", guid)
		}},
		{"3 an event by the number of an order", func(run func(string, ...string) string) {
			run(`(?m)^The service answered 200 at (?s:.*)^event +evt_1QGood\n^label order +SO-cus_1$`, "show", "SO-cus_1")
			run(`(?m)^It did not run: refused with 409 (?s:.*)^event +evt_1QRefused\n^label order +SO-cus_slow$`, "show", "order:SO-cus_slow")
		}},
		{"4 why a sender got 409 at that time", func(run func(string, ...string) string) {
			run(` evt_1QRefused +REFUSED +409 locked, busy with evt_1QSlow `, "events", "--decision", "locked", "--since", minuteAgo)
		}},
		{"5 what is blocked behind what", func(run func(string, ...string) string) {
			run(`orders/acme +- +order-1 +blocked .*\norders/acme +1 +order-2 +waits .*\norders/acme +2 +order-3 +waits `, "queue")
		}},
		{"6 run one again", func(run func(string, ...string) string) {
			run(`^retrying as exec_\S+, last in the queue of mails/mail-1\n`, "retry", "mail-1", "--reason", "repaired")
		}},
		{"6 run many again", func(run func(string, ...string) string) {
			run(`match, nothing changed \(dry run\)`, "retry", "--dead-letters", "--since", minuteAgo, "--dry-run")
			run(`match, [1-3] done, 0 refused`, "retry", "--dead-letters", "--since", minuteAgo, "--reason", "repaired")
		}},
		{"7 cancel what runs", func(run func(string, ...string) string) {
			run(`is (CANCEL_REQUESTED: \S+/\d+ has been told to end it|ABORTED)\n`, "cancel", "evt_1QSlow", "--reason", "wrong account")
		}},
		{"8 pause workflows, and resume them", func(run func(string, ...string) string) {
			run(`^workflow:stripe/cus_\* is paused`, "pause", "stripe/cus_*", "--reason", "refunds run twice")
			run(`^workflow:stripe/cus_\* is resumed`, "resume", "stripe/cus_*")
		}},
		{"9 take a lock away", func(run func(string, ...string) string) {
			id := lock(run(`(?m)^state +held$`, "locks", "get", "assess/flow-7"))
			run(`^assess/flow-7 is released; `+id, "locks", "release", "assess/flow-7", "--execution", id, "--reason", "its machine is gone")
		}},
		{"10 the state of everything", func(run func(string, ...string) string) {
			run(`(?m)^attention +1 queue is blocked: hooklock queue\n(?s:.*)stripe: 1 failed, `, "status")
		}},
		{"12 a text and a link for a ticket", func(run func(string, ...string) string) {
			run("(?s)^\\*\\*`evt_1QFailed`\\*\\* FAILED\n\nThe service answered 500 at .*- Page: http://"+regexp.QuoteMeta(h.Admin), "show", "evt_1QFailed", "-o", "md")
			run(`^http://`+regexp.QuoteMeta(h.Admin)+`/#story\?`, "show", "evt_1QFailed", "--web")
		}},
	} {
		commands := 0
		task.do(func(want string, args ...string) string {
			commands++
			c := exec.CommandContext(t.Context(), hooklockProgram, args...)
			c.Dir, c.Env = filepath.Dir(h.Config), append(os.Environ(), "HOOKLOCK_ADMIN=http://"+h.Admin, "TZ="+zone)
			out, err := c.CombinedOutput()
			if err != nil || !regexp.MustCompile(want).Match(out) {
				t.Errorf("%s: hooklock %s: %v, no %s in\n%s", task.name, strings.Join(args, " "), err, want, out)
			}
			return string(out)
		})
		if commands > mostCommands {
			t.Errorf("%s takes %d commands", task.name, commands)
		}
	}
	testkit.Receive(t, "the answer to what was cancelled", holder)
}
