package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// books is a service that books orders. Until it is mended it books refunds as payments, and
// answers 200 all the same.
type books struct {
	mu     sync.Mutex
	mended bool
	booked map[string]int      // what it last booked of each order
	again  map[string][]string // the refunds that it booked since it is mended, by account
}

type order struct {
	ID      string `json:"id"`
	Account string `json:"account"`
	Kind    string `json:"kind"`
	Amount  int    `json:"amount"`
}

// right is what an order comes to.
func (o *order) right() int {
	if o.Kind == "refund" {
		return -o.Amount
	}
	return o.Amount
}

func (b *books) mend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mended = true
}

func (b *books) book(r *testkit.Received) string {
	var o order
	if err := json.Unmarshal([]byte(r.Body), &o); err != nil {
		return testkit.Reply(400, err.Error())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.mended {
		b.booked[o.ID] = o.Amount
		return testkit.OK("wrong " + o.ID)
	}
	if o.Kind == "refund" {
		b.again[o.Account] = append(b.again[o.Account], o.ID)
	}
	b.booked[o.ID] = o.right()
	return testkit.OK("right " + o.ID)
}

// TestEventsThatTheServiceGotWrongAreRunAgain is a service that is mended, and whose wrong events
// run again beside new ones: then its books are those of a service that was always right.
func TestEventsThatTheServiceGotWrongAreRunAgain(t *testing.T) {
	t.Parallel()
	const accounts, each = 8, 25
	b := &books{booked: map[string]int{}, again: map[string][]string{}}
	up := testkit.NewUpstream(t, b.book)
	h := own(t, bare(up.URL, fmt.Sprintf(`
park_store: {dir: %q}
routes:
  - name: books
    path: /books/{account}
    workflow: "books/{path.account}"
    event_id: "{header.Idempotency-Key}"
    labels: {kind: "{body.kind}"}
    lock: {strategy: wait}
    requests: {keep: 24h}
`, filepath.Join(t.TempDir(), "requests"))))
	var mu sync.Mutex
	var refunds []string // their executions
	all, wrong := map[string]order{}, map[string][]string{}
	deliver := func(account, prefix string, n int) {
		for i := range n {
			o := order{ID: fmt.Sprintf("%s-%s-%d", prefix, account, i), Account: account, Kind: "payment",
				Amount: i + 1}
			if prefix == "old" && i%3 == 0 {
				o.Kind = "refund"
			}
			text, _ := json.Marshal(o)
			a := testkit.Post(t, h.Addr, "/books/"+account, string(text), key(o.ID))
			if a.Status != 200 {
				t.Errorf("%s: %v", o.ID, a)
			}
			mu.Lock()
			if all[o.ID] = o; o.Kind == "refund" {
				refunds, wrong[account] = append(refunds, a.Execution()), append(wrong[account], o.ID)
			}
			mu.Unlock()
		}
	}
	forEach := func(prefix string, n int) (wait func()) {
		var senders sync.WaitGroup
		for i := range accounts {
			senders.Go(func() { deliver(fmt.Sprint("a", i), prefix, n) })
		}
		return senders.Wait
	}
	forEach("old", each)()
	for _, id := range refunds {
		isStored(t, h, id)
	}
	b.mend()
	said := cli(t, h, "rerun", "--again", "--route", "books", "--label", "kind=refund", "--dry-run")
	if !strings.Contains(said, fmt.Sprintf("%d match, of which the first 10 are shown", len(refunds))) ||
		len(b.again) > 0 {
		t.Errorf("a dry run says\n%s", said)
	}
	wait := forEach("new", each)
	said = cli(t, h, "rerun", "--again", "--route", "books", "--label", "kind=refund", "--rate", "500", "--reason",
		"they were booked as payments")
	wait()
	if want := fmt.Sprintf("%d of %d ran: %d succeeded, 0 failed", len(refunds), len(refunds),
		len(refunds)); !strings.Contains(said, want) {
		t.Errorf("want %q, got\n%s", want, said)
	}
	for id, o := range all {
		if b.booked[id] != o.right() {
			t.Errorf("%s is booked as %d, not %d", id, b.booked[id], o.right())
		}
	}
	for account, ids := range wrong {
		if !slices.Equal(b.again[account], ids) {
			t.Errorf("account %s: ran again %v, had run %v", account, b.again[account], ids)
		}
		if n := up.MostAtOnce("books/" + account); n != 1 {
			t.Errorf("account %s: %d at once", account, n)
		}
		o := all[ids[0]]
		text, _ := json.Marshal(o)
		passed(t, testkit.Post(t, h.Addr, "/books/"+account, string(text), key(o.ID)), 200, "right "+o.ID, "replayed")
	}
}

// TestAnEventRunsAgainWithANewSignatureWhereItsRouteRenewsThem; where it does not, the service sees
// the old one, and the command says so.
func TestAnEventRunsAgainWithANewSignatureWhereItsRouteRenewsThem(t *testing.T) {
	t.Parallel()
	const tolerance = 3 * time.Minute // the service's; that of Hooklock is 5 min
	secret := filepath.Join(t.TempDir(), "stripe.secret")
	write(t, secret, "whsec_"+planted)
	var late atomic.Bool // the tolerance is over for what was signed when it came
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		text, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Stripe-Signature"), "t="), ",")
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil || verifyStripe("whsec_"+planted, r.Header, r.Body) != nil ||
			late.Load() && time.Since(time.Unix(at, 0)) > tolerance {
			return testkit.Reply(400, "timestamp outside the tolerance zone")
		}
		return testkit.OK("done")
	})
	h := own(t, bare(up.URL, fmt.Sprintf(`
park_store: {dir: %q}
routes:
  - {name: renewed, path: /renewed, preset: stripe, workflow: renewed, verify: {secret_file: %[2]s}, requests: {keep: 24h}, park: {signature: renew}}
  - {name: as-it-came, path: /kept, preset: stripe, workflow: kept, verify: {secret_file: %[2]s}, requests: {keep: 24h}}
`, filepath.Join(t.TempDir(), "requests"), secret)))
	signed := strconv.FormatInt(time.Now().Add(-4*time.Minute).Unix(), 10)
	for path, renews := range map[string]bool{"/renewed": true, "/kept": false} {
		late.Store(false)
		body := fmt.Sprintf(`{"id":"evt%s","object":"event","created":%s,"type":"a"}`,
			strings.ReplaceAll(path, "/", "_"), signed)
		a := testkit.Post(t, h.Addr, path, body, "Stripe-Signature: "+signStripe("whsec_"+planted, signed, body))
		passed(t, a, 200, "done", "executed")
		isStored(t, h, a.Execution())
		late.Store(true)
		said := cli(t, h, "rerun", a.Execution(), "--again", "--reason", "it was wrong")
		if strings.Contains(said, "park.signature: renew makes new ones") == renews {
			t.Errorf("%s: %s", path, said)
		}
		again := up.AwaitReceived(t, path, 2)[1]
		if renewed := again.Header.Get("Hooklock-Signature-Renewed") != ""; renewed != renews ||
			strings.Contains(again.Header.Get("Stripe-Signature"), signed) == renews || again.Body != body {
			t.Errorf("%s: the service got\n%s", path, again.Raw)
		}
		if renews {
			testkit.Until(t, "it is settled again", func() bool {
				x := execution(t, h, a.Execution())
				return x["code"] == nil && strings.Contains(cli(t, h, "show", fmt.Sprint(x["eventId"])),
					"attempt         2")
			})
		}
	}
}
