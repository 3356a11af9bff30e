package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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
	truth := h.Truth()
	equal := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, and the driver counted %v", what, got, want)
		}
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
		{"13 how often an event came", func(run func(string, ...string) string) {
			run(fmt.Sprintf(`(?m)^duplicates +%d\b`, truth["stripe"].Copies), "show", "evt_1QGood")
		}},
		{"14 the numbers of each route", func(run func(string, ...string) string) {
			out := run(`(?m)^ROUTE +MODE +A MINUTE +SUCCEEDED +FAILED +ERRORS +PARKED +DUPLICATES +BUSY +REFUSED +DEAD `, "status")
			for route, c := range truth {
				row := strings.Fields(regexp.MustCompile(`(?m)^` + route + ` +enforce .*$`).FindString(out))
				if len(row) < 14 {
					t.Fatalf("no row of %s in\n%s", route, out)
				}
				equal(route, append(row[3:11:11], row[13]), []int{c.Succeeded, c.Failed, c.Errors, c.Parked, c.Copies,
					c.Locked, 0, c.Dead, c.BadSignatures})
			}
		}},
		{"15 what runs, and with which configuration", func(run func(string, ...string) string) {
			run(`(?s)^replica +\S+/\d+, .*\nconfig +\S+ sha256:[0-9a-f]+, loaded `, "status")
		}},
		{"16 which signatures were not valid, and why", func(run func(string, ...string) string) {
			out := run(`Stripe-Signature`, "signatures", "--route", "stripe", "--since", began)
			n := 0 // of many at once few are listed, and MORE counts the others
			for _, row := range regexp.MustCompile(` evt_forged_\d+ +401 +(\S+) `).FindAllStringSubmatch(out, -1) {
				more, _ := strconv.Atoi(row[1])
				n += 1 + more
			}
			equal("bad signatures", n, truth["stripe"].BadSignatures)
		}},
		{"17 how full etcd is", func(run func(string, ...string) string) {
			run(` MiB, \S+ MiB of it in use, of a quota of `, "status")
		}},
		{"18 all that failed, for a spreadsheet", func(run func(string, ...string) string) {
			out := run(`^time,event,`, "events", "--status", "FAILED", "--since", began, "-o", "csv")
			equal("failed events", strings.Count(out, ",FAILED,"),
				truth["stripe"].Failed+truth["stripe"].Errors+truth["mails"].Dead)
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
				`(?m)^attention +mails fails now: [^\n]*\n +1 unknown outcome of stripe[^\n]*\n +1 blocked queue of orders[^\n]*500: database is locked; [^\n]*hooklock events --blocked(?s:.*)3 dead letters of mails `, "status")
		}},
		{"19 who changed what, and why", func(run func(string, ...string) string) {
			run(` pause .*refunds run twice`, "audit", "list", "--since", began)
		}},
		{"20 what became of a job", func(run func(string, ...string) string) {
			run(` done +rerun +\S+ +([1-3]) +[1-3] .* repaired`, "jobs")
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
