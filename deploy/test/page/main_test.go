package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"hooklock/admin"
	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

const patience = 30 * time.Second

// What is made once per run: the program, the browser, and the rules of axe-core; "" with a reason
// where there are none.
var (
	program, chromium, axe, noAxe string
	browser                       context.Context
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
			break
		}
	}
	if chromium == "" {
		return m.Run() // each test says why it is skipped
	}
	dir, err := os.MkdirTemp("", "hooklock-page-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program, err = kit.BuildHooklock(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if axe, err = rules(dir); err != nil {
		noAxe = err.Error()
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium),
		chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("lang", "en-GB"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Run(browser); err != nil {
		fmt.Fprintln(os.Stderr, "start Chromium:", err)
		return 1
	}
	return m.Run()
}

// rules are the text of axe-core, which npm brings.
func rules(dir string) (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", errors.New("npm is not installed")
	}
	install := exec.Command(npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", dir,
		"axe-core@4.10.3")
	if said, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install axe-core: %w: %s", err, said)
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(text), err
}

// desk is a hooklock and the service behind it.
type desk struct {
	*testkit.Hooklock
	t     *testing.T
	url   string // of the page
	token string
}

// config is of a hooklock with what the screens show; more is further lines.
const config = `
listen: 127.0.0.1:0
data_dir: data
upstream: {url: %s, timeout: 10m}
etcd: %s
admin: %s
park_store: {single_member: true}
routes:
  - {name: orders, path: "/orders/{account}", workflow: "orders/{path.account}", event_id: "{body.id}", idempotency: {on_unknown: retry}}
  - {name: waits, path: "/waits/{account}", workflow: "orders/{path.account}", event_id: "{body.id}", lock: {strategy: wait, wait_timeout: 5m}}
  - {name: cools, path: "/cools/{account}", workflow: "cools/{path.account}", event_id: "{body.id}", lock: {release_delay: 10m}}
  - {name: held, path: "/held/{account}", workflow: "held/{path.account}", event_id: "{body.id}", hold: {on_status: [202], ttl: 10m}}
  - {name: parked, path: "/parked/{account}", workflow: "parked/{path.account}", event_id: "{body.id}", park: {enabled: true, on: [locked, unknown, failed, unreachable], attempts: 1}}
  - {name: ordered, path: "/ordered/{account}", workflow: "ordered/{path.account}", event_id: "{body.id}", order: {by: "{query.at}", on_stale: skip}}
  - {name: gitlab, path: "/gitlab/{account}", preset: gitlab, workflow: "gitlab/{path.account}", verify: {secret_file: %[4]s}}
  - {name: stripe, path: "/stripe/{account}", preset: stripe, workflow: "stripe/{path.account}", verify: {secret_file: %[4]s}}
`

func newDesk(t *testing.T, etcd, access string, env ...string) *desk {
	t.Helper()
	if chromium == "" {
		t.Skip("Chromium is not installed (apt-get install chromium)")
	}
	up := &service{life: t.Context(), free: map[string]chan struct{}{}}
	server := &http.Server{Handler: up, ReadHeaderTimeout: time.Minute}
	listener := listen(t)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { _ = server.Close(); serving.Wait() })
	if access == "" {
		access = `{listen: "127.0.0.1:0"}`
	}
	secret := filepath.Join(t.TempDir(), "stripe.secret")
	if err := os.WriteFile(secret, []byte("a-plain-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := testkit.Serve(t, program, fmt.Sprintf(config, "http://"+listener.Addr().String(), etcd, access, secret),
		env...)
	d := &desk{Hooklock: h, t: t, url: "http://" + h.Admin + "/"}
	if text, err := os.ReadFile(filepath.Join(filepath.Dir(h.Config), "data", admin.TokenFile)); err == nil {
		d.token = strings.TrimSpace(string(text))
	}
	return d
}

// embedded is the setting for an etcd in the process.
const embedded = "{embedded: {single_replica: true}, request_timeout: 10s}"

// service is what is behind the hooklock: ?sleep=NAME waits until NAME is freed, ?status=202
// answers so, ?broken breaks off.
type service struct {
	life context.Context
	mu   sync.Mutex
	free map[string]chan struct{}
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Has("sleep") {
		select {
		case <-s.life.Done():
		case <-r.Context().Done():
		}
		return
	}
	if q.Has("broken") {
		panic(http.ErrAbortHandler)
	}
	if q.Get("status") == "202" {
		w.WriteHeader(http.StatusAccepted)
	}
	if q.Get("status") == "500" {
		w.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = w.Write([]byte("done\n"))
}

// deliver sends an event and waits for its answer.
func (d *desk) deliver(path, event string, headers ...string) int {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, "http://"+d.Addr+path,
		strings.NewReader(`{"id":`+fmt.Sprintf("%q", event)+`}`))
	if err != nil {
		d.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// start sends an event that goes on, and waits until it has that status.
func (d *desk) start(path, event, status string) (id string) {
	d.t.Helper()
	ctx := d.t.Context()
	go func() {
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.Addr+path,
			strings.NewReader(`{"id":`+fmt.Sprintf("%q", event)+`}`))
		if res, err := http.DefaultClient.Do(r); err == nil {
			_ = res.Body.Close()
		}
	}()
	testkit.Until(d.t, event+" is "+status, func() bool {
		id = d.find(event, status)
		return id != ""
	})
	return id
}

// find is the execution of an event with that status; "" = there is none.
func (d *desk) find(event, status string) string {
	var page struct {
		Executions []struct{ ExecutionID, Status string }
	}
	d.api("GET", "/v1/executions?event="+url.QueryEscape(event), "", &page)
	for _, x := range page.Executions {
		if x.Status == status {
			return x.ExecutionID
		}
	}
	return ""
}

// api asks the API as somebody else than the page.
func (d *desk) api(method, path, body string, into any) int {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, "http://"+d.Admin+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	if into != nil {
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			d.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return res.StatusCode
}

func (d *desk) status(id string) string {
	d.t.Helper()
	var x struct{ Status string }
	d.api("GET", "/v1/executions/"+id, "", &x)
	return x.Status
}

// tab is a tab of the browser, with nothing in common with another one.
type tab struct {
	t   *testing.T
	ctx context.Context
	own string // host:port of the page

	hostile bool // its faults are what is tested

	mu     sync.Mutex
	faults []string
}

// open opens a tab. What it asks of another host than the page's, what the policy of the page
// refuses, and what its script does wrong, fails the test.
func open(t *testing.T, own string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	ctx, late := context.WithTimeout(ctx, 8*time.Minute)
	b := &tab{t: t, ctx: ctx, own: own}
	fault := func(format string, args ...any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.faults = append(b.faults, fmt.Sprintf(format, args...))
	}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" && u.Scheme != "about" &&
				u.Host != own {
				fault("asked another host: %s", e.Request.URL)
			}
			if strings.Contains(fmt.Sprint(e.Request.Headers), "Cookie") {
				fault("sent a cookie")
			}
		case *log.EventEntryAdded:
			if e.Entry.Source == log.SourceSecurity || strings.Contains(e.Entry.Text, "Content Security Policy") {
				fault("security: %s", e.Entry.Text)
			}
		case *runtime.EventExceptionThrown:
			fault("script: %s", e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			for _, a := range e.Args {
				if strings.Contains(string(a.Value), "Content Security Policy") {
					fault("console: %s", a.Value)
				}
			}
		}
	})
	t.Cleanup(func() {
		late()
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.faults {
			if !b.hostile {
				t.Error(f)
			}
		}
	})
	b.run(network.Enable(), log.Enable(), runtime.Enable())
	return b
}

func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		var text string
		_ = chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText.slice(0, 3000)`, &text))
		b.t.Fatalf("%v; the page says\n%s", err, text)
	}
}

// eval is what a script of the test's own finds in the page.
func eval[T any](b *tab, script string) (v T) {
	b.t.Helper()
	b.run(chromedp.Evaluate(script, &v, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
		return p.WithAwaitPromise(true)
	}))
	return v
}

// until waits until a script of the test's own is true in the page, which may go to another one
// meanwhile.
func (b *tab) until(what, script string) {
	b.t.Helper()
	late := time.Now().Add(patience)
	for is := false; ; {
		err := chromedp.Run(b.ctx, chromedp.Evaluate(script, &is))
		switch {
		case err == nil && is:
			return
		case b.ctx.Err() != nil, time.Now().After(late):
			var text string
			_ = chromedp.Run(b.ctx, chromedp.Evaluate(`location.href + "\n" + document.body.innerText.slice(0, 3000)`,
				&text))
			b.t.Fatalf("in vain waited for: %s: %v; the page says\n%s", what, err, text)
		}
		_ = chromedp.Run(b.ctx, chromedp.Sleep(20*time.Millisecond))
	}
}

// says waits until a text is in a part of the page.
func (b *tab) says(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("%s says %q", selector, text),
		fmt.Sprintf(`[...document.querySelectorAll(%q)].some(e => e.innerText.includes(%q))`, selector, text))
}

// visit opens a screen.
func (b *tab) visit(address, screen, title string) {
	b.t.Helper()
	b.run(chromedp.Navigate("about:blank"), chromedp.Navigate(address+"#"+screen))
	b.says("h1", title)
	b.until("the screen is there", `document.querySelector("#screen .screen section") !== null`)
}

// useToken gives the page its token, as a person pastes it.
func (b *tab) useToken(token string) {
	b.t.Helper()
	b.until("a token is asked for", `document.querySelector("#token").open`)
	b.run(chromedp.SetValue("#token-text", token, chromedp.ByQuery),
		chromedp.Click("#token-form button[type=submit]", chromedp.ByQuery))
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).scrollIntoView({block: "center"})`, selector), nil),
		chromedp.Click(selector, chromedp.ByQuery))
}
