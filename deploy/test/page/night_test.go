package page

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	permissions "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"hooklock/admin"
	"hooklock/test/testkit"
)

// mostSteps is how many steps a task of a night on call may take, from the overview on.
const mostSteps = 2

// operator counts what a person does: a search is a step, and a click is one, with the question
// that it asks.
type operator struct {
	*tab
	searches, clicks int
}

// search types into the field at the top.
func (o *operator) search(text string) {
	o.t.Helper()
	o.searches++
	o.run(chromedp.KeyEvent("/"))
	o.until("the field has the focus", `document.activeElement.id === "quick-text"`)
	o.run(chromedp.Evaluate(`document.activeElement.value = ""`, nil), chromedp.KeyEvent(text+"\r"))
}

// press clicks on something that is seen, as soon as it is there.
func (o *operator) press(selector string) {
	o.t.Helper()
	o.clicks++
	o.until(selector+" is there",
		fmt.Sprintf(`(e => e?.checkVisibility() === true && (e.click(), true))(document.querySelector(%q))`, selector))
}

// do clicks on the button of an action, answers its question by keyboard, and waits for its result.
func (o *operator) do(selector, result string) {
	o.t.Helper()
	o.press(selector)
	o.until("the reason has the focus", `document.activeElement.id === "reason"`)
	o.run(chromedp.KeyEvent("of the night\r"))
	o.says("#result", result)
}

// saysAsStatus waits until each number that both "hooklock status" and the overview show is the
// same on both.
func (o *operator) saysAsStatus(n *testkit.Night) {
	o.t.Helper()
	c := exec.CommandContext(o.t.Context(), program, "status")
	c.Dir, c.Env = filepath.Dir(n.Config), append(os.Environ(), "HOOKLOCK_ADMIN=http://"+n.Admin)
	out, err := c.Output()
	if err != nil {
		o.t.Fatalf("hooklock status: %v\n%s", err, out)
	}
	same := func(what, status, page string) {
		o.t.Helper()
		if status == "0" { // of which the page shows nothing
			status = ""
		}
		o.until(fmt.Sprintf("%s is %s, as in\n%s", what, status, out), fmt.Sprintf(
			`(%s ?? "").replace(/^0$/, "").replaceAll(" ", "") === %q`, page, status))
	}
	_, table, _ := strings.Cut(string(out), "\nROUTE ")
	lines := strings.Split(strings.TrimSpace("ROUTE "+table), "\n")
	// column returns what stands below a head of the table of routes.
	column := func(line, head string) string {
		at := strings.Index(lines[0], "  "+head+"  ") + 2
		if at < 2 {
			o.t.Fatalf("no column %s in\n%s", head, out)
		}
		below, _, _ := strings.Cut(line[at:], "  ")
		return below
	}
	if len(lines) != 1+len(n.Truth()) {
		o.t.Fatalf("not each route is in\n%s", out)
	}
	for _, line := range lines[1:] {
		route, _, _ := strings.Cut(line, " ")
		cell := func(head string) string {
			return fmt.Sprintf(`document.querySelector('#rates tr[data-row=%q] td[data-head=%q]')?.innerText`, route,
				head)
		}
		for head, there := range map[string]string{"A MINUTE": "per min", "SUCCEEDED": "Succeeded", "FAILED": "Failed",
			"ERRORS": "Errors", "PARKED": "Accepted", "DUPLICATES": "Duplicates", "BUSY": "Busy",
			"BAD-SIG": "Bad signature", "REFUSED": "Refused", "DEAD": "Dead letters"} {
			same(there+" of "+route, column(line, head), cell(there))
		}
		if p50 := column(line, "P50"); p50 != "" {
			same("p50 / p95 of "+route, p50+"/"+column(line, "P95"), cell("p50 / p95"))
		}
	}
	for what, there := range map[string]string{"running": "running, this replica", "waiting": "waiting, this replica",
		"held": "held, all replicas", "parked": "accepted, waiting, all replicas"} {
		numbers := regexp.MustCompile(`(?m)^` + what +
			` +(\d+).*?(?:(\d+) blocked, (\d+) dead letters)?$`).FindStringSubmatch(string(out))
		if numbers == nil {
			o.t.Fatalf("not how many are %s in\n%s", what, out)
		}
		fact := fmt.Sprintf(
			`[...document.querySelectorAll("#process dl div")].find(e => e.querySelector("dt").textContent === %q)?.querySelector("dd").textContent`, there)
		same(what, numbers[1], `/^\d+/.exec(`+fact+`)?.[0]`)
		if numbers[2] != "" {
			same("blocked", numbers[2], `/(\d+) blocked/.exec(`+fact+`)?.[1]`)
			same("dead letters", numbers[3], `/(\d+) dead letter/.exec(`+fact+`)?.[1]`)
		}
	}
	for _, item := range eval[[]string](o.tab,
		`[...document.querySelectorAll('#attention td[data-head="What"]')].map(e => e.innerText)`) {
		if !strings.Contains(string(out), item) {
			o.t.Errorf("no %q in\n%s", item, out)
		}
	}
}

func TestATaskOfANightOnCallTakesTwoStepsOnThePage(t *testing.T) {
	if chromium == "" {
		t.Skip("Chromium is not installed (apt-get install chromium)")
	}
	n := testkit.NewNight(t, program, embedded)
	token, err := os.ReadFile(filepath.Join(filepath.Dir(n.Config), "hooklock-data", admin.TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + n.Admin + "/"
	o := &operator{tab: open(t, n.Admin)}
	clipboard := []permissions.PermissionType{permissions.PermissionTypeClipboardReadWrite,
		permissions.PermissionTypeClipboardSanitizedWrite}
	o.run(permissions.GrantPermissions(clipboard).WithOrigin("http://"+n.Admin), emulation.SetTimezoneOverride("UTC"))
	o.visit(address, "now", "Overview")
	o.run(chromedp.Evaluate(fmt.Sprintf(`sessionStorage.setItem("hooklock-token", %q)`,
		strings.TrimSpace(string(token))), nil))

	o.saysAsStatus(n)
	truth := n.Truth()
	for _, task := range []struct {
		name string
		do   func()
	}{
		{"1 an event by its ID", func() {
			o.search("evt_1QGood")
			o.says("#event .lead", "The service answered 200 at ")
		}},
		{"2 a delivery by GitHub's GUID", func() {
			o.search(testkit.NightGUID)
			o.says("#event", testkit.NightGUID)
			o.says("#event .lead", "The service answered 200 at ")
		}},
		{"3 an event by the number of an order", func() {
			o.search("SO-broken")
			o.says("#event", "evt_1QFailed")
			o.says("#event", "SO-broken")
		}},
		{"4 why a sender got 409 at that time", func() {
			o.search("got:locked since:" + n.Began.UTC().Format("15:04"))
			o.says("#found", "409 locked, busy with evt_1QSlow")
		}},
		{"5 what is blocked behind what", func() {
			o.says(`#locks tr[data-row$=" orders/acme"]`, "order-1")
			o.says(`#locks tr[data-row$=" orders/acme"] td[data-head="State"]`, "blocked")
			o.press(`#locks tr[data-row$=" orders/acme"] td[data-head="Waiting"] a`)
			o.until("the queue is shown in its order",
				`/Queue of orders.acme, the next event first[^]*order-2[^]*order-3/.test(document.querySelector("#found")?.innerText ?? "")`)
		}},
		{"13 how often an event came", func() {
			o.search("evt_1QGood")
			o.says("#event", fmt.Sprintf("%d duplicates", truth["stripe"].Copies))
		}},
		{"14 the numbers of each route", func() {
			for route, c := range truth {
				for head, want := range map[string]int{"Succeeded": c.Succeeded, "Failed": c.Failed, "Errors": c.Errors,
					"Accepted": c.Parked, "Busy": c.Locked, "Bad signature": c.BadSignatures, "Duplicates": c.Copies,
					"Dead letters": c.Dead} {
					o.until(fmt.Sprintf("%s of %s is %d", head, route, want), fmt.Sprintf(
						`+(document.querySelector('#rates tr[data-row=%q] td[data-head=%q]')?.innerText ?? "") === %d`,
						route, head, want))
				}
			}
		}},
		{"15 what runs, and with which configuration", func() {
			o.says(`#replicas td[data-head="State"]`, "live, this one")
			o.until("it has a configuration",
				`/^[0-9a-f]{12}$/.test(document.querySelector('#replicas td[data-head="Configuration"]')?.innerText)`)
		}},
		{"16 which signatures were not valid, and why", func() {
			o.press(`#rates tr[data-row="stripe"] td[data-head="Bad signature"] a`)
			o.says("#signatures", "Stripe-Signature")
			o.until("each of them is listed, or counted",
				fmt.Sprintf(`[...document.querySelectorAll("#signatures tbody tr")].reduce(
				(n, row) => n + 1 + +(row.querySelector('td[data-head="And more"]')?.innerText ?? ""), 0) === %d`,
					truth["stripe"].BadSignatures))
		}},
		{"17 how full etcd is", func() {
			o.press("#process summary")
			o.says("#process", "of a quota of")
		}},
		{"18 all that failed", func() {
			o.search("status:failed")
			o.until("each of them is there", fmt.Sprintf(`document.querySelectorAll("#found tbody tr").length === %d`,
				truth["stripe"].Failed+truth["stripe"].Errors+truth["mails"].Dead))
		}},
		{"6 run one again", func() {
			o.search("mail-1")
			o.do(`#event button[data-ask*="do=rerun"]`, "exec_")
		}},
		{"6 run many again", func() {
			o.do(`#attention button[data-ask*="do=all-rerun"]`, "The job has begun")
		}},
		{"7 cancel what runs", func() {
			o.do(`#locks tr[data-row$=" stripe/cus_slow"] button[data-ask*="do=cancel"]`, " is ")
		}},
		{"8 pause a workflow", func() {
			o.search("evt_1QGood")
			o.do(`#event button[data-ask*="do=pause"]`, "workflow:stripe/cus_1 is paused")
		}},
		{"8 resume it", func() {
			o.do(`#bar button[data-ask*="do=resume"]`, "workflow:stripe/cus_1 is resumed")
		}},
		{"9 take a lock away", func() {
			o.do(`#locks tr[data-row$=" assess/flow-7"] button[data-ask*="do=release"]`,
				"The lock of assess/flow-7 is released")
		}},
		{"10 the state of everything", func() {
			o.says("#attention", "1 blocked queue of orders/acme")
			o.says("#attention", "1 unknown outcome of stripe/closed")
			o.says("#attention", "12 bad signatures on stripe")
			o.says("#attention", "the service says 500: database is locked")
			o.says("#process", "replica")
		}},
		{"11 the last hour by route, with failures", func() {
			o.press(`#rates a[href$="range=1h"]`)
			o.says("#rates", "last hour")
			o.says(`#rates tr[data-row="stripe"] td[data-head="Failed"]`, "1")
			o.says(`#rates tr[data-row="stripe"] td[data-head="Bad signature"]`, "12")
		}},
		{"19 who changed what, and why", func() {
			o.press(`nav a[href="#audit"]`)
			o.says("#audits", "workflow:stripe/cus_1")
			o.says("#audits", "of the night")
		}},
		{"20 what became of a job", func() {
			o.press(`nav a[href="#jobs"]`)
			o.says("#jobs", " ran: ")
		}},
		{"12 a text and a link for a ticket", func() {
			o.search("evt_1QFailed")
			o.press(`[data-copy="ticket"]`)
			testkit.Until(t, "the ticket is on the clipboard", func() bool {
				ticket := eval[string](o.tab, `navigator.clipboard.readText()`)
				return strings.Contains(ticket, "The service answered 500 at ") &&
					strings.Contains(ticket, "- Page: "+address+"#story?id=exec_")
			})
		}},
	} {
		o.searches, o.clicks = 0, 0
		o.visit(address, "now", "Overview")
		task.do()
		t.Logf("%s: %d searches, %d clicks", task.name, o.searches, o.clicks)
		if o.searches+o.clicks > mostSteps {
			t.Errorf("%s takes too many steps", task.name)
		}
	}
	testkit.Receive(t, "the answer to what was cancelled", n.Slow)
}
