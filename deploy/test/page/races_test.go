package page

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

// ask opens the question of a button that a screen has.
func (b *tab) ask(do string) {
	b.t.Helper()
	selector := fmt.Sprintf(`#screen button[data-ask*="do=%s"]`, do)
	b.until("the button "+do+" is there", fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
	b.run(chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).click()`, selector), nil))
	b.until("the question is there", `document.querySelector("#question").open`)
}

// confirm gives the reason and goes on.
func (b *tab) confirm(reason string) {
	b.t.Helper()
	if reason != "" {
		b.run(chromedp.SetValue("#reason", reason, chromedp.ByQuery))
	}
	b.until("there is something to go on with",
		`document.querySelector("#question button.go")?.checkVisibility() === true`)
	b.run(chromedp.Click("#question button.go", chromedp.ByQuery))
}

func (b *tab) closed() {
	b.t.Helper()
	b.run(chromedp.Evaluate(`document.querySelector("#question").close()`, nil))
}

// signedIn is a tab that has the token.
func signedIn(d *desk) *tab {
	b := open(d.t, d.Admin)
	b.visit(d.url, "now", "Overview")
	b.run(chromedp.Evaluate(fmt.Sprintf(`sessionStorage.setItem("hooklock-token", %q)`, d.token), nil))
	return b
}

// race is a desk, and the tab of somebody who is about to do something on it.
type race struct {
	*desk
	b *tab
}

// inState are the executions whose requests are kept, and where they stand.
func (r *race) inState(state string) (ids []string) {
	r.t.Helper()
	var list struct {
		Executions []struct{ ExecutionID string }
	}
	r.api("GET", "/v1/executions?parked=true&state="+state, "", &list)
	for _, x := range list.Executions {
		ids = append(ids, x.ExecutionID)
	}
	return ids
}

func (r *race) story(id string) {
	r.t.Helper()
	r.b.visit(r.url, "story?id="+id, "Event")
}

func (r *race) is(id, status string) {
	r.t.Helper()
	testkit.Until(r.t, id+" is "+status, func() bool { return r.status(id) == status })
}

// elsewhere is what somebody else does meanwhile.
func (r *race) elsewhere(id, do string) {
	r.t.Helper()
	r.api("POST", "/v1/executions/"+id+"/"+do, `{"reason":"elsewhere"}`, nil)
}

func TestEachButtonDoesWhatItSaysAndNothingAfterARace(t *testing.T) {
	d := newDesk(t, embedded, "")
	r := &race{d, signedIn(d)}
	for _, step := range []struct {
		name string
		do   func(*race)
	}{
		{"cancel", (*race).cancel}, {"release", (*race).release}, {"forget", (*race).forget},
		{"run, skip and rerun", (*race).parkedOnes}, {"all of a filter", (*race).all},
		{"pause and resume", (*race).pause},
		{"reload", (*race).reload},
	} {
		t.Run(step.name, func(t *testing.T) {
			r.t, r.b.t = t, t
			step.do(r)
		})
		r.t, r.b.t = t, t
	}
	r.b.visit(d.url, "audit", "Audit")
	for _, want := range []string{"sent by mistake", "refused: status_changed", "refused: lock_lost",
		"skip of state blocked, at most 10 a second", "2 of 2 skipped", "config.reload"} {
		r.b.says("#screen", want)
	}
}

func (r *race) cancel() {
	first := r.start("/orders/cancel?sleep", "c1", "RUNNING")
	waits := r.start("/waits/cancel?sleep", "c2", "PENDING")
	r.story(waits)
	r.b.ask("cancel")
	r.b.says("#question", "It waits for the lock; nothing was sent to the service.")
	r.elsewhere(first, "cancel") // and so what waits runs before anybody confirms
	r.is(waits, "RUNNING")
	r.b.confirm("sent by mistake")
	r.b.says("#result", "status_changed")
	r.is(waits, "RUNNING")
	r.b.closed()
	r.story(waits)
	r.b.ask("cancel")
	r.b.says("#question", "is closed within 200 ms")
	r.b.confirm(`it's "stuck" & <b>`)
	r.b.says("#result", "is CANCEL_REQUESTED")
	r.is(waits, "ABORTED")
	r.b.closed()
	r.b.says("#screen", `it's "stuck" & <b>`)
}

func (r *race) release() {
	first := r.start("/orders/release?sleep", "r1", "RUNNING")
	r.b.visit(r.url, "now?prefix=orders%2Frelease", "Overview")
	r.b.ask("release")
	r.b.says("#question", "becomes stale")
	r.elsewhere(first, "cancel")
	r.is(first, "ABORTED")
	second := r.start("/waits/release?sleep", "r2", "RUNNING")
	r.b.confirm("stuck")
	r.b.says("#result", "lock_lost")
	r.is(second, "RUNNING")
	r.b.closed()
	r.b.until("the screen shows who has it now", `document.querySelector('#screen button[data-ask*="`+second+
		`"]') !== null`)
	r.b.ask("release")
	r.b.confirm("stuck")
	r.b.says("#result", "is ABORTED")
	r.is(second, "ABORTED")
	r.b.closed()
}

func (r *race) forget() {
	r.deliver("/orders/forget?broken", "f1")
	id := r.find("f1", "FAILED")
	r.story(id)
	r.b.ask("forget")
	r.b.says("#question", "Its outcome is unknown")
	testkit.Until(r.t, "it has run again: the question was about the attempt before", func() bool {
		return r.deliver("/orders/forget?broken", "f1") == http.StatusBadGateway
	})
	r.b.confirm("looked at the bank")
	r.b.says("#result", "execution_superseded")
	last := r.find("f1", "FAILED")
	r.b.closed()
	r.story(last)
	r.b.ask("forget")
	r.b.confirm("looked at the bank")
	r.b.says("#result", "is FAILED")
	testkit.Until(r.t, "it is forgotten", func() bool { return r.find("f1", "FAILED") == "" })
	r.b.closed()
}

func (r *race) parkedOnes() {
	r.deliver("/parked/run?broken", "p1")
	id := r.parked("p1")
	r.story(id)
	r.b.ask("run&") // now
	r.b.says("#question", "whole max_age again")
	r.elsewhere(id, "cancel")
	r.is(id, "ABORTED")
	r.b.confirm("repaired")
	r.b.says("#result", "refused")
	r.b.closed()
	r.deliver("/parked/skip?status=500", "p2")
	id = r.parked("p2")
	r.story(id)
	r.b.ask("skip")
	r.b.confirm("the shop is closed")
	r.b.says("#result", " is ")
	testkit.Until(r.t, "it is a dead letter", func() bool { return slices.Contains(r.inState("dead_letter"), id) })
	r.b.closed()
	r.story(id)
	r.b.ask("rerun")
	r.b.says("#question", "the end of its queue")
	r.api("POST", "/v1/executions/"+id+"/rerun", `{"reason":"elsewhere"}`, nil)
	r.b.confirm("open again")
	r.b.says("#result", "refused")
	r.b.closed()
}

func (r *race) all() {
	for i := range 5 {
		r.start(fmt.Sprintf("/orders/all%d?sleep", i), fmt.Sprintf("all-%d", i), "RUNNING")
	}
	r.b.visit(r.url, "find?prefix=orders%2Fall&status=RUNNING", "Events")
	r.b.ask("all-cancel")
	r.b.says("#question h2", "Cancel 5 events")
	r.elsewhere(r.find("all-3", "RUNNING"), "cancel")
	testkit.Until(r.t, "one has ended", func() bool { return r.find("all-3", "ABORTED") != "" })
	r.b.confirm("the account is closed")
	r.b.says("#result", "The job has begun")
	r.b.closed()
	testkit.Until(r.t, "all have ended", func() bool {
		return r.find("all-0", "RUNNING") == "" && r.find("all-4", "RUNNING") == ""
	})
	for i := range 3 {
		r.start(fmt.Sprintf("/orders/pick%d?sleep", i), fmt.Sprintf("pick-%d", i), "RUNNING")
	}
	r.b.visit(r.url, "find?text=prefix:orders/pick+status:running", "Events")
	r.b.until("nothing is offered for an empty selection",
		`document.querySelector("[data-picked]").checkVisibility() === false`)
	r.b.run(
		chromedp.Evaluate(
			`for (const box of [...document.querySelectorAll("#screen input[data-can]")].slice(0, 2)) box.click()`,
			nil))
	r.b.says("[data-picked]", "2 selected:")
	r.b.accessible("a selection")
	if got := eval[string](r.b,
		`fetch("page/export?format=csv&text=prefix:orders/pick", {headers: {Authorization: "Bearer " + sessionStorage.getItem("hooklock-token")}}).then(a => a.text())`); strings.Count(got, "\n") != 4 || !strings.Contains(got, "pick-2,orders,orders/pick2,RUNNING") {
		r.t.Errorf("exported\n%s", got)
	}
	r.b.click(`[data-pick="cancel"]`)
	r.b.says("#question h2", "Cancel 2 events")
	r.b.confirm("two of three")
	r.b.says("#result", "The job has begun")
	r.b.closed()
	r.deliver("/parked/many?status=500", "many")
	id := r.parked("many")
	testkit.Until(r.t, "it waits for a person", func() bool { return slices.Contains(r.inState("blocked"), id) })
	r.b.visit(r.url, "find?state=blocked", "Events")
	r.b.ask("all-skip")
	r.b.says("#question h2", "Skip ")
	r.b.confirm("the account is closed")
	r.b.says("#result", "The job has begun")
	r.b.closed()
}

func (r *race) pause() {
	r.b.visit(r.url, "routes", "Routes")
	r.b.ask("pause&scope=route%3Aorders")
	r.b.says("#question", "No event of it starts, on any replica, until it is resumed.")
	r.b.run(chromedp.SetValue("#period", "30m", chromedp.ByQuery))
	r.b.confirm("migration")
	r.b.says("#result", "route:orders is paused")
	r.b.closed()
	r.b.says("#bar", "PAUSED route:orders by admin")
	r.b.says("#bar", "migration")
	r.b.accessible("a pause")
	if got := r.deliver("/orders/pause", "paused"); got != http.StatusServiceUnavailable {
		r.t.Errorf("a paused route answered %d", got)
	}
	r.b.run(chromedp.Evaluate(`document.querySelector('#bar button[data-ask*="do=resume"]').click()`, nil))
	r.b.says("#question", "by admin: migration")
	r.b.confirm("done")
	r.b.says("#result", "route:orders is resumed")
	r.b.closed()
	r.b.until("the bar is empty again", `document.querySelector("#bar").innerText === ""`)
	if got := r.deliver("/orders/pause", "paused"); got != http.StatusOK {
		r.t.Errorf("a resumed route answered %d", got)
	}
}

func (r *race) reload() {
	r.b.visit(r.url, "now", "Overview")
	r.b.ask("reload")
	r.b.confirm("")
	r.b.says("#result", "nothing has changed")
	r.b.closed()
	text, err := os.ReadFile(r.Config)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.Config,
		[]byte(strings.Replace(string(text), "release_delay: 10m", "release_delay: soon", 1)), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.b.ask("reload")
	r.b.confirm("")
	r.b.says("#result", "config_refused")
	r.b.closed()
	r.b.says("#bar", "STALE")
}

// A browser tells that a dialog was closed when it gets to it, and what is asked next may be there
// before.
func TestAQuestionThatIsAskedWhileTheOneBeforeClosesStays(t *testing.T) {
	d := newDesk(t, embedded, "")
	b := signedIn(d)
	b.visit(d.url, "now", "Overview")
	b.ask("reload")
	eval[any](b, `(async () => {
		const real = fetch, answer = await real("page/ask?do=reload", {headers: {Authorization: "Bearer " + sessionStorage.getItem("hooklock-token")}}), text = await answer.text();
		window.fetch = async (path, options) => path.includes("do=reload") ? {ok: true, status: 200, text: async () => text} : real(path, options);
		const closed = new Promise(told => document.querySelector("#question").addEventListener("close", told));
		document.querySelector("#question").close();
		document.querySelector("#screen button[data-ask*=\"do=reload\"]").click();
		await closed;
		window.fetch = real;
	})()`)
	b.confirm("")
	b.says("#result", "nothing has changed")
}

func TestAThousandLocksAreLiveAndNothingMovesUnderThePointer(t *testing.T) {
	d := newDesk(t, embedded, "")
	const locks = 1000
	turns := make(chan struct{}, 16)
	got := make(chan int, locks)
	for i := range locks {
		turns <- struct{}{}
		go func() {
			got <- d.api("POST", fmt.Sprintf("/v1/locks/job%04d/acquire", i), `{"holder":"cron","ttl":"1h"}`, nil)
			<-turns
		}()
	}
	for range locks {
		if status := <-got; status != http.StatusCreated {
			t.Fatalf("acquire: %d", status)
		}
	}
	release := func(workflow string) {
		t.Helper()
		var l struct{ ExecutionID string }
		d.api("GET", "/v1/locks/"+workflow, "", &l)
		if status := d.api("DELETE", "/v1/locks/"+workflow+"?reason=test&execution="+l.ExecutionID, "",
			nil); status != http.StatusOK {
			t.Fatalf("release: %d", status)
		}
	}
	b := signedIn(d)
	b.visit(d.url, "now", "Overview")
	rows := `document.querySelectorAll("table[data-live] tbody tr").length`
	b.until("all are there", rows+` === 1000`)
	name := func(n int) string {
		return eval[string](b,
			fmt.Sprintf(`document.querySelectorAll("table[data-live] tbody tr")[%d].cells[0].innerText`, n))
	}
	first, second, tenth := name(0), name(1), name(10)
	release(first)
	b.until("one has gone", rows+` === 999`)

	// With the pointer over the list, what goes is marked and what comes waits.
	b.run(
		chromedp.Evaluate(`document.querySelectorAll("table[data-live] tbody tr")[9].scrollIntoView({block: "center"})`,
			nil))
	place := func() string {
		return eval[string](b,
			fmt.Sprintf(
				`JSON.stringify([...document.querySelectorAll("table[data-live] tbody tr")].find(r => r.cells[0].innerText === %q).getBoundingClientRect())`, tenth))
	}
	var at struct{ X, Y float64 }
	at.X, at.Y = eval[float64](b,
		`document.querySelectorAll("table[data-live] tbody tr")[9].getBoundingClientRect().x + 40`),
		eval[float64](b, `document.querySelectorAll("table[data-live] tbody tr")[9].getBoundingClientRect().y + 8`)
	b.run(input.DispatchMouseEvent(input.MouseMoved, at.X, at.Y))
	before := place()
	release(second)
	d.api("POST", "/v1/locks/aaa-new/acquire", `{"holder":"cron","ttl":"1h"}`, nil)
	b.says("#waiting", "1 new, 1 gone")
	if after := place(); after != before {
		t.Errorf("the row under the pointer went from %s to %s", before, after)
	}
	b.run(input.DispatchMouseEvent(input.MouseMoved, 5, 5))
	b.until("what waited is shown when the pointer leaves",
		`document.querySelector("#waiting").innerText === "" && [...document.querySelectorAll("table[data-live] td:first-child")].some(c => c.innerText === "aaa-new")`)

	b.run(chromedp.Click("#freeze", chromedp.ByQuery))
	b.says("#state", "Frozen")
	release("aaa-new")
	b.run(chromedp.Sleep(3 * time.Second)) // two looks, were it not paused
	if !eval[bool](b,
		`[...document.querySelectorAll("table[data-live] td:first-child")].some(c => c.innerText === "aaa-new")`) {
		t.Error("something changed while it was paused")
	}
	b.run(chromedp.Click("#freeze", chromedp.ByQuery), chromedp.Evaluate(`document.activeElement.blur()`, nil))
	b.until("it goes on", rows+` === 998`)
	b.accessible("a thousand locks")
	b.picture("thousand")
}

func TestWhileEtcdIsAwayThePageSaysWhatItKnowsAndSinceWhen(t *testing.T) {
	if chromium == "" {
		t.Skip("Chromium is not installed (apt-get install chromium)")
	}
	etcd := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, etcd.Endpoint)
	d := newDesk(t, fmt.Sprintf("{endpoints: [%q], session_ttl: 30s, request_timeout: 1s}", wire.Endpoint), "")
	d.start("/orders/acme?sleep", "evt_away", "RUNNING")
	b := signedIn(d)
	b.visit(d.url, "now", "Overview")
	b.says("#screen", "evt_away")
	wire.Blackhole(true)
	b.says("#state", "etcd does not answer. Since ")
	b.says("#screen", "evt_away") // from before
	b.says("#bar", "fails: ")
	b.picture("away")
	late := open(t, d.Admin) // somebody who comes while it is away
	late.visit(d.url, "now", "Overview")
	late.says("#screen", "The locks are not known: etcd does not answer.")
	late.click("#process summary")
	late.says("#screen", "running, this replica")
	for screen, title := range map[string]string{"find": "Events", "needs": "Needs attention", "audit": "Audit"} {
		late.visit(d.url, screen, title)
		late.says("#screen", "etcd does not answer")
	}
	wire.Blackhole(false)
	wire.Reset()
	b.run(page.BringToFront()) // a tab that nobody sees asks for nothing
	b.until("it is as of now again", `document.querySelector("#state").innerText.startsWith("Live")`)
	b.says("#screen", "evt_away")
}

func TestThePageWorksBelowAPathPrefix(t *testing.T) {
	d := newDesk(t, embedded, "")
	id := d.start("/orders/acme?sleep", "evt_prefix", "RUNNING")
	target, err := url.Parse("http://" + d.Admin)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	l := listen(t)
	server := &http.Server{Handler: http.StripPrefix("/ops/hooklock", proxy), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	b := open(t, l.Addr().String())
	b.visit("http://"+l.Addr().String()+"/ops/hooklock/", "now", "Overview")
	b.says("#screen", "evt_prefix")
	b.ask("cancel")
	b.run(chromedp.Evaluate(`document.querySelector("#question details").open = true`, nil))
	b.says("#question .command", "--admin http://"+l.Addr().String()+"/ops/hooklock/")
	b.confirm("through a proxy")
	b.useToken(d.token)
	testkit.Until(t, "it is cancelled", func() bool { return d.status(id) == "ABORTED" })
}

func TestATokenIsForItsTabAndForItsWorkflows(t *testing.T) {
	d := newDesk(t, embedded,
		`{listen: "127.0.0.1:0", tokens: [{name: ops, token_env: OPS_TOKEN, scopes: [read, write]}, {name: shop, token_env: SHOP_TOKEN, scopes: [read], workflows: ["orders/shop*"]}]}`,
		"OPS_TOKEN=ops-token-ops-token-ops-token", "SHOP_TOKEN=shop-token-shop-token-shop-to")
	d.token = "ops-token-ops-token-ops-token"
	d.start("/orders/shop1?sleep", "evt_own", "RUNNING")
	secret := d.start("/orders/secret?sleep", "evt_secret", "RUNNING")
	d.api("POST", "/v1/executions/"+secret+"/cancel", `{"reason":"secret reason"}`, nil)
	b := open(t, d.Admin)
	b.run(chromedp.Navigate(d.url))
	b.useToken("wrong")
	b.says("#token", "the token is not known here")
	b.useToken("shop-token-shop-token-shop-to")
	b.says("#screen", "evt_own")
	for screen, title := range map[string]string{"now": "Overview", "find": "Events", "find?text=evt_secret": "Events",
		"needs": "Needs attention", "routes": "Routes", "audit": "Audit"} {
		b.visit(d.url, screen, title)
		if text := eval[string](b, `document.documentElement.outerHTML`); strings.Contains(strings.ReplaceAll(text,
			"evt_secret", ""), "secret") { // what was typed in is there
			t.Errorf("%s shows another's workflow", screen)
		}
	}
	b.run(chromedp.Navigate(d.url + "#now"))
	b.ask("cancel")
	b.confirm("may I")
	b.says("#result", "forbidden")
	if n := eval[int](b, `document.cookie.length + localStorage.length`); n != 0 {
		t.Error("something is kept beyond the tab")
	}
	other := open(t, d.Admin)
	other.run(chromedp.Navigate(d.url))
	other.until("another tab has no token", `document.querySelector("#token").open`)
}

// hostilePage tries all that a page may try, and says what it got.
const hostilePage = `<!doctype html><title>hostile</title><body><script>
const admin = "%s", id = "%s", got = {};
const note = (name, what) => { got[name] = String(what); };
const tries = [
  ["read", () => fetch(admin + "v1/locks").then(r => r.text())],
  ["read the page", () => fetch(admin + "page/now").then(r => r.text())],
  ["read without cors", () => fetch(admin + "v1/locks", {mode: "no-cors"}).then(r => r.text()).then(t => { if (t) throw "read: " + t; throw "opaque"; })],
  ["cancel", () => fetch(admin + "v1/executions/" + id + "/cancel", {method: "POST", mode: "no-cors", headers: {"Content-Type": "text/plain"}, body: '{"reason":"x"}'}).then(() => { throw "sent"; })],
  ["cancel with json", () => fetch(admin + "v1/executions/" + id + "/cancel", {method: "POST", headers: {"Content-Type": "application/json", "Authorization": "Bearer x"}, body: '{"reason":"x"}'}).then(r => r.text())],
  ["stream", () => new Promise((yes, no) => { const s = new EventSource(admin + "page/live"); s.onmessage = s.onopen = yes; s.addEventListener("change", yes); s.onerror = () => { s.close(); no("refused"); }; })],
  ["script", () => new Promise((yes, no) => { const s = document.createElement("script"); s.src = admin + "page/page.js"; s.onload = yes; s.onerror = () => no("refused"); document.body.append(s); })],
  ["frame", () => new Promise((yes, no) => { const f = document.createElement("iframe"); f.src = admin; f.onload = () => { try { yes(f.contentDocument.body.innerText); } catch (e) { no("closed"); } }; document.body.append(f); })],
  ["window", () => new Promise((yes, no) => { const w = open(admin); setTimeout(() => { try { yes(w.document.body.innerText || no("empty")); } catch (e) { no("closed"); } }, 1500); })],
  ["form", () => new Promise((yes, no) => { const f = document.createElement("form"); f.method = "post"; f.action = admin + "v1/executions/" + id + "/cancel"; f.enctype = "text/plain"; f.target = "sink"; f.innerHTML = "<input name='{\"reason\":\"' value='x\"}'>"; const i = document.createElement("iframe"); i.name = "sink"; document.body.append(i, f); f.submit(); setTimeout(() => no("sent"), 1000); })],
];
Promise.all(tries.map(([name, go]) => go().then(v => note(name, "GOT " + v), e => note(name, "no: " + e)))).then(() => { window.result = got; });
</script>`

func TestAPageOfAnotherOriginCanReadAndChangeNothing(t *testing.T) {
	d := newDesk(t, embedded, "")
	id := d.start("/orders/acme?sleep", "evt_guarded", "RUNNING")
	signedIn(d) // the browser has the page open, with its token
	l := listen(t)
	_, port, _ := strings.Cut(d.Admin, ":")
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, hostilePage, "http://"+r.URL.Query().Get("at")+":"+port+"/", id)
		})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	for _, at := range []string{"127.0.0.1", "localhost"} { // of the same site, and of another one
		hostile := open(t, l.Addr().String())
		hostile.hostile = true
		hostile.run(chromedp.Navigate("http://" + l.Addr().String() + "/?at=" + at))
		hostile.until("it has tried everything", `window.result !== undefined`)
		for name, got := range eval[map[string]string](hostile, `window.result`) {
			if strings.HasPrefix(got, "GOT") {
				t.Errorf("from %s: %s: %s", at, name, got)
			}
		}
	}
	if status := d.status(id); status != "RUNNING" {
		t.Errorf("it is %s", status)
	}
	var audit struct{ Audits []any }
	d.api("GET", "/v1/audit", "", &audit)
	if len(audit.Audits) != 0 {
		t.Errorf("%v", audit.Audits)
	}
}
