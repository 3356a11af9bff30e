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

// An operator who is woken up types one command, or two, and has the answer.
func TestATaskOfANightOnCallTakesTwoCommandsAtMost(t *testing.T) {
	t.Parallel()
	h := testkit.NewNight(t, hooklockProgram, fmt.Sprintf("{endpoints: [%q], prefix: %s, request_timeout: 10s}",
		shared.etcd.Endpoint, ownPrefix()))
	t.Cleanup(func() { leave(t, h.Process) })
	const zone = "Europe/Berlin"
	place, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	began := h.Began.In(place).Format("15:04")

	lock := func(out string) string {
		return strings.TrimSpace(strings.TrimPrefix(regexp.MustCompile(`(?m)^execution +\S+$`).FindString(out),
			"execution"))
	}
	for _, task := range []struct {
		name string
		do   func(run func(want string, args ...string) string)
	}{
		{"1 an event by its ID", func(run func(string, ...string) string) {
			run(`^The service answered 200 at \d{4}-`, "show", "evt_1QGood")
		}},
		{"2 a delivery by GitHub's GUID", func(run func(string, ...string) string) {
			run(`^The service answered 200 at `, "show", testkit.NightGUID)
		}},
		{"3 an event by the number of an order", func(run func(string, ...string) string) {
			run(`(?m)^The service answered 200 at (?s:.*)^event +evt_1QGood\n^label order +SO-cus_1$`, "show",
				"SO-cus_1")
			run(`(?m)^The service answered 500 at (?s:.*)^event +evt_1QFailed\n^label order +SO-broken$`, "show",
				"order:SO-broken")
		}},
		{"4 why a sender got 409 at that time", func(run func(string, ...string) string) {
			run(` evt_1QRefused +REFUSED +409 locked, busy with evt_1QSlow `, "events", "--decision", "locked",
				"--since", began)
		}},
		{"5 what is blocked behind what", func(run func(string, ...string) string) {
			run(
				`orders/acme +- +order-1 +blocked .*\norders/acme +1 +order-2 +waits .*\norders/acme +2 +order-3 +waits `, "queue")
		}},
		{"6 run one again", func(run func(string, ...string) string) {
			run(`^retrying as exec_\S+, last in the queue of mails/mail-1\n`, "retry", "mail-1", "--reason", "repaired")
		}},
		{"6 run many again", func(run func(string, ...string) string) {
			run(`match, nothing changed \(dry run\)`, "retry", "--dead-letters", "--since", began, "--dry-run")
			run(`of [1-3] ran: \d succeeded, \d failed`, "retry", "--dead-letters", "--since", began, "--reason",
				"repaired")
		}},
		{"7 cancel what runs", func(run func(string, ...string) string) {
			run(`is (CANCEL_REQUESTED: \S+/\d+ has been told to end it|ABORTED)\n`, "cancel", "evt_1QSlow", "--reason",
				"wrong account")
		}},
		{"8 pause workflows, and resume them", func(run func(string, ...string) string) {
			run(`^workflow:stripe/cus_\* is paused`, "pause", "stripe/cus_*", "--reason", "refunds run twice")
			run(`^workflow:stripe/cus_\* is resumed`, "resume", "stripe/cus_*")
		}},
		{"9 take a lock away", func(run func(string, ...string) string) {
			id := lock(run(`(?m)^state +held$`, "locks", "get", "assess/flow-7"))
			run(`^assess/flow-7 is released; `+id, "locks", "release", "assess/flow-7", "--execution", id, "--reason",
				"its machine is gone")
		}},
		{"10 the state of everything", func(run func(string, ...string) string) {
			run(
				`(?m)^attention +mails fails now: [^\n]*\n +1 unknown outcome of stripe [^\n]*\n +1 blocked queue of orders [^\n]*500: database is locked; [^\n]*hooklock events --blocked(?s:.*)3 dead letters of mails `, "status")
		}},
		{"12 a text and a link for a ticket", func(run func(string, ...string) string) {
			run("(?s)^\\*\\*`evt_1QFailed`\\*\\* FAILED\n\nThe service answered 500 at .*- Page: http://"+
				regexp.QuoteMeta(h.Admin), "show", "evt_1QFailed", "-o", "md")
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
	testkit.Receive(t, "the answer to what was cancelled", h.Slow)
}
