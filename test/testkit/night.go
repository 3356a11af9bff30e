package testkit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Night is a hooklock during a night on call: on its routes, some of which check signatures, an
// event has ended in each way.
//
//	stripe  evt_1QGood succeeded and came twice more, evt_1QFailed got 500, evt_1QUnknown got no answer, evt_1QSlow runs, evt_1QRefused met it; 12 wrong signatures.
//	        The label order is SO- and the account.
//	github  one delivery, with the ID NightGUID
//	orders  order-1 of acme is blocked, order-2 and order-3 wait behind it
//	mails   mail-1, mail-2 and mail-3 are dead letters
//	assess  onboarding-7 is held
type Night struct {
	*Hooklock
	// Slow gets the answer to evt_1QSlow, which runs until it is cancelled. A test may not end
	// before it came.
	Slow <-chan *Answer
	// Began is when nothing had been sent yet.
	Began time.Time

	mu    sync.Mutex
	truth map[string]Counts
}

// Counts is what became of the deliveries of a route, as their sender and the service saw it.
type Counts struct{ Succeeded, Failed, Errors, Parked, Copies, Locked, BadSignatures, Dead int }

// Truth returns the counts of each route.
func (n *Night) Truth() map[string]Counts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.truth)
}

// count counts one delivery of the route of a target.
func (n *Night) count(target string, change func(c *Counts)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	route, _, _ := strings.Cut(target[1:], "/")
	c := n.truth[route]
	change(&c)
	n.truth[route] = c
}

// NightGUID is what GitHub calls the delivery of a Night.
const NightGUID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"

const nightSecret = "a-secret-of-the-night"

const nightConfig = `
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {url: %q, timeout: 10m}
etcd: %s
shutdown_timeout: 1s
park_store: {single_member: true}
routes:
  - {name: stripe, path: "/stripe/{account}", preset: stripe, workflow: "stripe/{path.account}", verify: {secret_file: %q}, labels: {order: "{body.order}"},
     lock: {strategy: fail_fast, release_delay: 0s}}
  - {name: github, path: /github, preset: github, workflow: github, verify: {secret_file: %[3]q}}
  - {name: orders, path: "/orders/{shop}", workflow: "orders/{path.shop}", park: {enabled: true, after: 0s, attempts: 1}}
  - {name: mails, path: "/mails/{to}", workflow: "mails/{path.to}", park: {enabled: true, after: 0s, attempts: 1, on_failure: skip}}
  - {name: assess, path: "/assess/{flow}", workflow: "assess/{path.flow}", hold: {on_status: [202]}}
`

// NewNight starts program with the setting etcd, sends the deliveries, and waits until everything
// is there.
func NewNight(tb testing.TB, program, etcd string) *Night {
	tb.Helper()
	secret := filepath.Join(tb.TempDir(), "night.secret")
	if err := os.WriteFile(secret, []byte(nightSecret), 0o600); err != nil {
		tb.Fatal(err)
	}
	n := &Night{Began: time.Now(), truth: map[string]Counts{}}
	up := NewUpstream(tb, n.answer)
	n.Hooklock = Serve(tb, program, fmt.Sprintf(nightConfig, up.URL, etcd, secret))
	n.stripe(tb, "cus_1", "evt_1QGood", 200)
	for range 2 {
		n.stripe(tb, "cus_1", "evt_1QGood", 200)
		n.count("/stripe", func(c *Counts) { c.Copies++ })
	}
	n.stripe(tb, "broken", "evt_1QFailed", 500)
	n.stripe(tb, "closed", "evt_1QUnknown", 502)
	for i := range 12 {
		n.post(tb, 401, "/stripe/cus_1", fmt.Sprintf(`{"id":"evt_forged_%d"}`, i), "Stripe-Signature: t=1,v1=00")
	}
	n.post(tb, 200, "/github", "{}", "X-GitHub-Hook-ID: 477210923", "X-GitHub-Event: ping", "X-GitHub-Delivery: "+
		NightGUID, "X-Hub-Signature-256: sha256="+nightMAC("{}"))
	body, signature := nightEvent("cus_slow", "evt_1QSlow")
	n.Slow = GoPost(tb, n.Addr, "/stripe/cus_slow", body, signature)
	up.AwaitReceived(tb, "/stripe/cus_slow", 1)
	n.stripe(tb, "cus_slow", "evt_1QRefused", 409)
	n.post(tb, 202, "/assess/flow-7", "{}", "Idempotency-Key: onboarding-7")
	for i := 1; i <= 3; i++ {
		n.post(tb, 202, "/orders/acme", "{}", fmt.Sprintf("Idempotency-Key: order-%d", i))
		n.post(tb, 202, fmt.Sprintf("/mails/mail-%d", i), "{}", fmt.Sprintf("Idempotency-Key: mail-%d", i))
	}
	n.await(tb, "parked=true&state=blocked", 1)
	n.await(tb, "parked=true&state=dead_letter", 3)
	n.await(tb, "decision=locked", 1)
	n.awaitCounts(tb)
	return n
}

// answer is the service.
func (n *Night) answer(r *Received) string {
	switch {
	case strings.HasSuffix(r.Target, "/cus_slow"):
		<-r.Context.Done()
		return ""
	case strings.HasSuffix(r.Target, "/closed"):
		n.count(r.Target, func(c *Counts) { c.Errors++ })
		return ""
	case strings.HasPrefix(r.Target, "/mails/"):
		n.count(r.Target, func(c *Counts) { c.Failed++; c.Dead++ })
		return Reply(500, "database is locked")
	case strings.HasPrefix(r.Target, "/orders/"), strings.HasSuffix(r.Target, "/broken"):
		n.count(r.Target, func(c *Counts) { c.Failed++ })
		return Reply(500, "database is locked")
	}
	n.count(r.Target, func(c *Counts) { c.Succeeded++ })
	if strings.HasPrefix(r.Target, "/assess/") {
		return Reply(202, "taken")
	}
	return OK("charged")
}

func (n *Night) stripe(tb testing.TB, account, event string, want int) {
	tb.Helper()
	body, signature := nightEvent(account, event)
	n.post(tb, want, "/stripe/"+account, body, signature)
}

func (n *Night) post(tb testing.TB, want int, target, body string, lines ...string) {
	tb.Helper()
	if a := Post(tb, n.Addr, target, body, lines...); a.Status != want {
		tb.Fatalf("%s %s: want %d, got %v", target, body, want, a)
	}
	n.count(target, func(c *Counts) {
		switch {
		case want == 401:
			c.BadSignatures++
		case want == 409:
			c.Locked++
		case want == 202 && !strings.HasPrefix(target, "/assess/"):
			c.Parked++
		}
	})
}

// await waits until the API lists so many executions.
func (n *Night) await(tb testing.TB, query string, want int) {
	tb.Helper()
	Until(tb, fmt.Sprintf("%d executions of %s", want, query), func() bool {
		var page struct{ Executions []any }
		return n.get("executions?"+query, &page) && len(page.Executions) == want
	})
}

// awaitCounts waits until what commits nothing is stored: duplicates, and bad signatures.
func (n *Night) awaitCounts(tb testing.TB) {
	tb.Helper()
	var want Counts
	for _, c := range n.Truth() {
		want.Copies, want.BadSignatures = want.Copies+c.Copies, want.BadSignatures+c.BadSignatures
	}
	Until(tb, "duplicates and bad signatures are stored", func() bool {
		var counts struct {
			Routes []struct {
				Total struct{ Duplicates, BadSignatures int }
			}
		}
		var page struct{ BadSignatures []struct{ More int } }
		if !n.get("routes/counts", &counts) || !n.get("signatures", &page) {
			return false
		}
		copies, counted, listed := 0, 0, 0
		for _, r := range counts.Routes {
			copies, counted = copies+r.Total.Duplicates, counted+r.Total.BadSignatures
		}
		for _, one := range page.BadSignatures {
			listed += 1 + one.More
		}
		return copies == want.Copies && counted == want.BadSignatures && listed == want.BadSignatures
	})
}

// get asks the API.
func (n *Night) get(path string, into any) bool {
	res, err := http.Get("http://" + n.Admin + "/v1/" + path)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return err == nil && json.Unmarshal(text, into) == nil
}

// nightEvent is an event of Stripe, and the line of its signature.
func nightEvent(account, event string) (body, signature string) {
	at := fmt.Sprint(time.Now().Unix())
	body = `{"id":"` + event + `","order":"SO-` + account + `"}`
	return body, "Stripe-Signature: t=" + at + ",v1=" + nightMAC(at+"."+body)
}

func nightMAC(text string) string {
	h := hmac.New(sha256.New, []byte(nightSecret))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}
