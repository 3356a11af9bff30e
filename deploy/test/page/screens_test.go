package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	permissions "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"hooklock/admin/client"
	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// busy is a desk on which something is on each screen, and the event of a long story. Beside it is
// a replica with another configuration.
func busy(t *testing.T) (d *desk, story string) {
	t.Helper()
	if chromium == "" {
		t.Skip("Chromium is not installed (apt-get install chromium)")
	}
	d = newDesk(t, fmt.Sprintf("{endpoints: [%q], request_timeout: 10s}", etcdtest.Start(t).Endpoint), "")
	configured, err := os.ReadFile(d.Config)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Serve(t, program, strings.Replace(string(configured), "release_delay: 10m", "release_delay: 9m", 1))
	story = d.start("/orders/acme?sleep", "evt_long", "RUNNING")
	for range 3 {
		d.deliver("/orders/acme?sleep", "evt_long") // copies of what runs
	}
	d.start("/waits/acme", "evt_waits", "PENDING")
	d.deliver("/orders/acme", "evt_refused")
	d.deliver("/orders/initech", "evt_1")
	d.deliver("/orders/initech", "evt_1")
	d.deliver("/orders/initech?other", "evt_1")
	d.deliver("/orders/globex?broken", "evt_broken")
	d.deliver("/cools/acme?broken", "evt_cools")
	d.deliver("/held/acme?status=202", "evt_held")
	for i := range 12 {
		d.deliver("/stripe/acme", fmt.Sprint(i))
	}
	d.deliver("/parked/acme?broken", "evt_parked")
	d.deliver("/parked/initech?status=500", "evt_letter")
	id := d.find("evt_held", "RUNNING")
	d.api("POST", "/v1/executions/"+id+"/cancel", `{"reason":"a customer called"}`, nil)
	d.api("POST", "/v1/executions/"+d.parked("evt_letter")+"/skip", `{"reason":"the shop is closed"}`, nil)
	testkit.Until(t, "there is a dead letter", func() bool {
		var page struct{ Executions []any }
		d.api("GET", "/v1/executions?parked=true&state=dead_letter", "", &page)
		return len(page.Executions) > 0
	})
	d.deliver("/parked/globex?status=500", "evt_again")
	again := d.parked("evt_again")
	d.job(`{"kind":"skip","executions":["` + again + `"],"reason":"the service is broken"}`)
	d.job(`{"kind":"rerun","executions":["` + again + `"],"reason":"the service is repaired"}`)
	for _, delay := range []string{"soon", "11m"} { // the first is refused
		changed := strings.Replace(string(configured), "release_delay: 10m", "release_delay: "+delay, 1)
		if err := os.WriteFile(d.Config, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		d.api("POST", "/v1/config/reload", "{}", nil)
	}
	testkit.Until(t, "the arrivals are written", func() bool {
		var page struct{ Executions []any }
		d.api("GET", "/v1/executions?decision=mismatch&since=1h", "", &page)
		return len(page.Executions) > 0
	})
	testkit.Until(t, "the deliveries are counted", func() bool {
		var list client.CountList
		d.api("GET", "/v1/routes/counts", "", &list)
		return slices.ContainsFunc(list.Routes, func(r client.RouteCounts) bool {
			return r.Route == "orders" && r.Total.Succeeded > 0
		})
	})
	return d, story
}

// parked waits until an event is parked, and no try of it is under way.
func (d *desk) parked(event string) (id string) {
	d.t.Helper()
	testkit.Until(d.t, event+" is parked", func() bool {
		var page struct {
			Executions []struct {
				ExecutionID, Status string
				Parked              *struct{ Failures int }
			}
		}
		d.api("GET", "/v1/executions?event="+event, "", &page)
		for _, x := range page.Executions {
			if x.Parked != nil {
				id = x.ExecutionID
			}
		}
		return id != ""
	})
	return id
}

// job starts a job, and waits until it has ended.
func (d *desk) job(request string) {
	d.t.Helper()
	var job client.Job
	if status := d.api("POST", "/v1/jobs", request, &job); status > 299 {
		d.t.Fatalf("a job %s: %d", request, status)
	}
	testkit.Until(d.t, "the job has ended", func() bool {
		d.api("GET", "/v1/jobs/"+job.JobID, "", &job)
		return job.State == client.JobDone
	})
}

// looks are how a screen is looked at.
var looks = []struct {
	name          string
	width, height int64
	phone         bool
	dark          bool
}{
	{"light", 1280, 900, false, false},
	{"dark", 1280, 900, false, true},
	{"phone", 390, 844, true, false},
	{"phone-dark", 390, 844, true, true},
	{"small", 320, 640, true, false},
}

func TestEachScreenInLightAndDarkOnADeskAndOnAPhone(t *testing.T) {
	d, story := busy(t)
	var jobs client.JobList
	d.api("GET", "/v1/jobs", "", &jobs)
	screens := []struct{ name, screen, title, says string }{
		{"now", "now", "Overview", "orders/acme"},
		{"find", "find?text=nowhere", "Events", "No event matches"},
		{"found", "find?prefix=orders%2F", "Events", "evt_long"},
		{"counted", "find?route=orders", "Events", "Succeeded 1"},
		{"story", "story?id=" + story, "Event", "Attempt 1 started"},
		{"needs", "needs", "Needs attention", "unknown outcome of orders/globex"},
		{"routes", "routes", "Routes", "Route stripe"},
		{"latency", "latency?route=orders", "Route over time", "Latency as a table"},
		{"audit", "audit", "Audit", "config.reload"},
		{"jobs", "jobs?job=" + jobs.Jobs[0].JobID, "Jobs", "the service is repaired"},
		{"suggestions", "suggestions", "Suggestions", "/parked/"},
		{"signatures", "signatures", "Bad signatures", "Stripe-Signature"},
	}
	for _, l := range looks {
		t.Run(l.name, func(t *testing.T) {
			b := open(t, d.Admin)
			scheme := "light"
			if l.dark {
				scheme = "dark"
			}
			b.run(
				emulation.SetDeviceMetricsOverride(l.width, l.height, 1, l.phone),
				emulation.SetTouchEmulationEnabled(l.phone),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
					Value: scheme}}))
			for _, s := range screens {
				b.visit(d.url, s.screen, s.title)
				b.says("#screen", s.says)
				b.readable(s.name)
				b.accessible(s.name)
				b.picture(s.name + "-" + l.name)
			}
			b.visit(d.url, "story?id="+story, "Event")
			b.click(`button[data-ask*="do=cancel"]`)
			b.says("#question", "Does nothing if it is no longer RUNNING by then.")
			b.run(chromedp.Evaluate(`document.querySelector("#question details").open = true`, nil))
			b.accessible("a question")
			b.picture("question-" + l.name)
		})
	}
}

func TestTheRoutesScreenShowsHowNearASenderIsToGivingUpAndWhatWasStale(t *testing.T) {
	d := newDesk(t, embedded, "")
	for _, at := range []string{"2", "1"} {
		if got := d.deliver("/ordered/acme?at="+at, "evt_"+at); got != 200 {
			t.Fatal(got)
		}
	}
	for _, id := range []string{"1", "2"} {
		if got := d.deliver("/gitlab/acme?status=500", id, "X-Gitlab-Token", "a-plain-token", "Idempotency-Key",
			id); got != 500 {
			t.Fatal(got)
		}
	}
	b := open(t, d.Admin)
	b.visit(d.url, "routes", "Routes")
	b.says("#route-gitlab", "50% of 4 in a row")
	b.click("#route-stripe summary")
	b.says("#route-stripe", "retries for")
	b.says("#route-stripe", "workflow_locked")
	b.says(`#report tr[data-row="ordered"] td[data-head="Stale"]`, "1")
	b.says("#examples", "stale")
}

// unreadable is what of a screen one cannot read: columns and texts that are cut, texts of pictures
// that are cut or overlap, and, where the rows of a table are cards, values that are not beside
// their names.
const unreadable = `(() => {
  const all = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility()), bad = [];
  if (document.documentElement.scrollWidth > innerWidth) bad.push("it is " + (document.documentElement.scrollWidth - innerWidth) + " pixels too wide");
  const wide = (e) => e.scrollWidth > e.clientWidth + 1;
  for (const e of all(".scroll").filter(wide)) bad.push("columns of " + e.getAttribute("aria-label") + " are off the screen");
  for (const e of all("td").filter(wide)) {
    if (!e.querySelector(":not(time)[title]") || e.querySelector("button")) bad.push(e.dataset.head + " is cut: " + e.innerText);
  }
  const pen = document.createElement("canvas").getContext("2d");
  for (const e of all("input[placeholder]")) {
    const style = getComputedStyle(e);
    pen.font = style.font;
    if (pen.measureText(e.placeholder).width > e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - (e.type === "search" ? 20 : 0)) bad.push("the placeholder is cut: " + e.placeholder);
  }
  for (const e of all("td").filter((e) => getComputedStyle(e.closest("table").tHead).position === "absolute")) {
    const of = document.createRange();
    of.selectNodeContents(e);
    const first = of.getClientRects()[0];
    if (first && first.left < e.getBoundingClientRect().left + 90) bad.push(e.dataset.head + " has its value below its name: " + e.innerText);
  }
  for (const picture of all("svg")) {
    const to = picture.getBoundingClientRect().right;
    const texts = [...picture.querySelectorAll("text")].filter((e) => e.checkVisibility()).map((e) => [e.textContent, e.getBoundingClientRect()]);
    texts.forEach(([text, at], n) => {
      if (at.right > to + 1) bad.push("cut in a picture: " + text);
      const under = texts.slice(n + 1).find(([, other]) => at.left < other.right && other.left < at.right && at.top + 3 < other.bottom && other.top + 3 < at.bottom);
      if (under) bad.push("in a picture, " + text + " and " + under[0] + " overlap");
    });
  }
  return bad.slice(0, 5).join("\n");
})()`

func (b *tab) readable(screen string) {
	b.t.Helper()
	if bad := eval[string](b, unreadable); bad != "" {
		b.t.Errorf("%s: %s", screen, bad)
	}
}

// accessible fails for each finding of axe-core.
func (b *tab) accessible(screen string) {
	b.t.Helper()
	if axe == "" {
		b.t.Logf("axe-core was not asked: %s", noAxe)
		return
	}
	b.run(chromedp.Evaluate(axe+"; 0", nil))
	found := eval[string](b,
		`axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html + " " + n.failureSummary)])))`)
	var violations []any
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range violations {
		b.t.Errorf("%s: %v", screen, v)
	}
}

// neutral replaces what only one machine has.
const neutral = `(() => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const t = walk.currentNode;
    t.data = t.data.replace(/\/\S*\/sidecar\.yaml/, "/etc/hooklock/sidecar.yaml").replace(/^[A-Za-z][\w.-]*\/\d+(?=[,/])/, "web-1/7").replace("(devel)", "1.0");
  }
})()`

// picture keeps what is seen, and all of the screen, where pictures are asked for.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("PICTURES")
	if dir == "" {
		return
	}
	b.run(chromedp.Evaluate(neutral, nil)) // a picture is not of the machine that made it
	var text []byte
	b.run(chromedp.CaptureScreenshot(&text))
	if err := os.WriteFile(filepath.Join(dir, "page-"+name+".png"), text, 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.run(chromedp.FullScreenshot(&text, 100))
	if err := os.WriteFile(filepath.Join(dir, "whole-"+name+".png"), text, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func TestTheStoryTellsEachDeliveryAndWhyItGotItsAnswer(t *testing.T) {
	d, story := busy(t)
	b := open(t, d.Admin)
	b.run(permissions.GrantPermissions([]permissions.PermissionType{permissions.PermissionTypeClipboardReadWrite,
		permissions.PermissionTypeClipboardSanitizedWrite}).WithOrigin(strings.TrimSuffix(d.url, "/")))
	b.visit(d.url, "find?text=evt_refused", "Event") // one hit opens itself
	b.says("#screen", "REFUSED")
	b.says("#event .lead", "It did not run: refused with 409 at ")
	b.says("#event .lead", ", because the workflow was busy with another event: evt_long had the lock since ")
	b.says("#event .lead", "If the running event is stuck, cancel it.")
	b.says("#screen", "Delivery received: locked, the sender got 409")
	b.until("the picture has its neighbour",
		`document.querySelector("#axis .timeline").textContent.includes("evt_long")`)
	b.click(`[data-copy="ticket"]`)
	b.says("#event", "Copied")
	ticket := eval[string](b, `navigator.clipboard.readText()`)
	for _, want := range []string{"**`evt_refused`** REFUSED\n\nIt did not run: refused with 409 at 20",
		" UTC), because the workflow was busy", "- Page: " + d.url + "#story?key="} {
		if !strings.Contains(ticket, want) {
			t.Errorf("no %q in the ticket:\n%s", want, ticket)
		}
	}
	b.run(chromedp.Evaluate(`document.querySelector("#axis details").open = true`, nil))
	b.click(`#axis table a[href="#story?id=` + story + `"]`)
	b.says("#screen", "evt_long")
	b.says("#screen", "Delivery received: in flight, the sender got 409")
	b.says("#screen", "Has the lock of its workflow")
	b.says("#screen", "1 waiting")
	b.visit(d.url, "find?text=evt_held", "Event")
	b.says("#screen", "a customer called")
	b.says("#screen", "admin asked for execution.cancel: done")
	b.visit(d.url, "find?text=evt_1+route:orders", "Event")
	b.says("#screen", "What differs: query")
}

func TestTimesAreInOneZoneThatIsNamedAndTheTabCountsWhatNeedsAttention(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	d := newDesk(t, embedded, "")
	d.deliver("/orders/acme?broken", "evt_broken")
	b := open(t, d.Admin)
	b.run(emulation.SetTimezoneOverride(berlin.String()))
	b.visit(d.url, "now", "Overview")
	b.until("the tab has the number", `document.title === "(1) Overview · Hooklock"`)
	b.until("the zone is named", `/ (CES?T|GMT\+[12])$/.test(document.querySelector("#state-text").innerText)`)
	b.click("#zone")
	b.until("the zone is UTC", `document.querySelector("#state-text").innerText.endsWith(" UTC")`)
	b.click("#zone")

	now := time.Now().In(berlin)
	since := time.Date(now.Year(), now.Month(), now.Day(), 2, 13, 0, 0, berlin)
	if since.After(now) {
		since = since.AddDate(0, 0, -1)
	}
	b.run(chromedp.SetValue("#quick-text", "since:02:13 route:orders", chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector("#quick").requestSubmit()`, nil))
	b.says("h1", "Events")
	b.until("the address has the time", `decodeURIComponent(location.hash).includes("since:`+
		since.UTC().Format(time.RFC3339)+`")`)
	b.says("#found", "evt_broken")
}

func TestWhatWasLookedAtLeavesThePageUntilSomethingNewOfItComes(t *testing.T) {
	d := newDesk(t, embedded, "")
	d.deliver("/orders/acme?broken", "evt_broken")
	b := signedIn(d)
	titled := func(title string) {
		t.Helper()
		b.until("the tab is titled "+title, fmt.Sprintf(`document.title === %q`, title))
	}
	b.visit(d.url, "needs", "Needs attention")
	titled("(1) Needs attention · Hooklock")
	b.ask("seen&kind=unknown")
	b.says("#question", "1 unknown outcome of orders/acme, up to ")
	b.confirm("TICKET-42")
	b.says("#result", "unknown:orders is marked as looked at")
	b.closed()
	b.says("#attention", "Besides what was looked at: nothing")
	b.says("#seen", "TICKET-42")
	titled("Needs attention · Hooklock")
	b.accessible("what was looked at")
	b.visit(d.url, "now", "Overview")
	b.says("#attention", "1 looked at")

	d.deliver("/orders/globex?broken", "evt_newer")
	b.visit(d.url, "needs", "Needs attention")
	titled("(1) Needs attention · Hooklock")
	b.says("#attention", "orders/globex")
	if eval[bool](b, `document.querySelector("#attention").innerText.includes("orders/acme")`) {
		t.Error("what was looked at is shown again")
	}
	b.ask("unseen")
	b.confirm("it was not the cause")
	b.says("#result", "unknown:orders is shown again")
	b.closed()
	b.says("#attention", "2 unknown outcomes of orders")
	titled("(1) Needs attention · Hooklock")
	b.until("nothing is looked at", `!document.querySelector("#seen").checkVisibility()`)
}

func TestEverythingIsReachedByKeyboardAlone(t *testing.T) {
	d := newDesk(t, embedded, "")
	id := d.start("/orders/acme?sleep", "evt_keys", "RUNNING")
	b := open(t, d.Admin)
	b.visit(d.url, "now", "Overview")
	press := func(keys string) { t.Helper(); b.run(chromedp.KeyEvent(keys)) }
	focused := func(what, test string) {
		t.Helper()
		for range 60 {
			if eval[bool](b, `(e => `+test+`)(document.activeElement)`) {
				return
			}
			press("\t")
		}
		t.Fatalf("%s is not reached by Tab", what)
	}
	for key, title := range map[string]string{"2": "Events", "3": "Needs attention", "4": "Routes", "5": "Audit",
		"1": "Overview"} {
		press(key)
		b.says("h1", title)
	}
	press("/")
	b.until("the field has the focus", `document.activeElement.id === "quick-text"`)
	// the protocol types what a browser does not, once the page has taken the key
	b.run(chromedp.Evaluate(`document.activeElement.value = ""`, nil))
	press("evt_keys\r")
	b.says("#screen", "RUNNING")
	b.says("#screen", "Attempt 1 started")
	focused("the button", `e.dataset.ask?.includes("do=cancel") === true`)
	press("\r")
	b.until("the reason has the focus", `document.activeElement.id === "reason"`)
	if !eval[bool](b, `(e => getComputedStyle(e).outlineStyle !== "none")(document.activeElement)`) {
		t.Error("one does not see where the focus is")
	}
	press("\x1b")
	b.until("Esc closes it", `!document.querySelector("#question").open`)
	if d.status(id) != "RUNNING" {
		t.Error("Esc did something")
	}
	focused("the button again", `e.dataset.ask?.includes("do=cancel") === true`)
	press("\r")
	b.until("the reason has the focus", `document.activeElement.id === "reason"`)
	press("by keyboard\r")
	b.until("a token is asked for", `document.querySelector("#token").open`)
	press(d.token + "\r")
	testkit.Until(t, "it is cancelled", func() bool { return d.status(id) == "ABORTED" })
	press("\x1b")
	press("f")
	b.says("#state", "Frozen")
	press("f")
	b.until("it goes on", `!document.querySelector("#state").innerText.includes("Frozen")`)
	if strings.Contains(eval[string](b, `location.href`), "token") {
		t.Error("the token is in the URL")
	}
}

// The first screen that is seen after signing in has the bar.
func TestWhatIsPausedStandsAboveTheFirstScreenAfterSigningIn(t *testing.T) {
	d := newDesk(t, embedded, "")
	if status := d.api("POST", "/v1/pauses", `{"scope":"route:orders","reason":"migration"}`, nil); status > 299 {
		t.Fatalf("pause: %d", status)
	}
	b := open(t, d.Admin)
	b.run(chromedp.Navigate(d.url + "nothing"))
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`addEventListener("DOMContentLoaded", () => {
			new MutationObserver(() => {
				if (document.querySelector("#screen .screen")) window.firstBar ??= document.querySelector("#bar").innerText;
			}).observe(document.body, {childList: true, subtree: true});
		})`).Do(ctx)
		return err
	}))
	b.visit(d.url, "now", "Overview")
	if got := eval[string](b, `window.firstBar`); !strings.Contains(got, "PAUSED route:orders by admin") {
		t.Errorf("above the first screen stands %q", got)
	}
}

func TestBackReturnsToTheRowAndTheKeysAreShown(t *testing.T) {
	d := newDesk(t, embedded, "")
	for i := range 40 {
		d.start(fmt.Sprintf("/orders/back-%d", i), fmt.Sprintf("evt_back_%d", i), "SUCCESS")
	}
	b := open(t, d.Admin)
	b.visit(d.url, "find", "Events")
	const row = `[...document.querySelectorAll("#screen tbody tr")][30]`
	b.until("the rows are there", row+` !== undefined`)
	text := eval[string](b, row+`.querySelector("a").getAttribute("href")`)
	b.run(chromedp.Evaluate(row+`.querySelector("a").click()`, nil))
	b.until("the event is open", `document.querySelector("h1").innerText !== "Events"`)
	b.run(chromedp.Evaluate(`history.back()`, nil))
	b.says("h1", "Events")
	back := fmt.Sprintf(`document.querySelector("#screen tbody a[href=\"" + CSS.escape(%q) + "\"]")`, text)
	b.until("the row is in view and marked",
		`(a => a && a.closest("tr").classList.contains("left") && a.getBoundingClientRect().top > 0 && a.getBoundingClientRect().bottom < innerHeight)(`+back+`)`)
	if !eval[bool](b, back+` === document.activeElement`) {
		t.Error("one that opened it by keyboard does not have the focus there")
	}
	b.run(chromedp.KeyEvent("?"))
	b.until("the keys are shown",
		`document.querySelector("#keys").open && document.querySelector("#keys").innerText.includes("next row")`)
	b.run(chromedp.KeyEvent("2"))
	b.run(chromedp.KeyEvent("\x1b"))
	b.until("Esc closes them", `!document.querySelector("#keys").open`)
}
