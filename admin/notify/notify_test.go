package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

// memory is a ledger of one key. Its writers are told apart by their names.
type memory struct {
	kept     idem.Notices
	dead     string // the writer that has died
	unclear  bool   // writes are applied, and their answers are lost
	silent   bool   // nothing is read or written
	full     bool   // nothing is written
	writes   int
	revision int64
}

// of is the ledger as one process sees it.
type of struct {
	*memory
	writer string
}

var errSilent = errors.New("no answer")

func (o of) Notices(context.Context) (idem.Notices, error) {
	if o.silent {
		return idem.Notices{}, errSilent
	}
	n := o.kept
	n.Self, n.Revision = n.Writer == o.writer, o.revision
	n.Alive = n.Writer != "" && n.Writer != o.dead
	return n, nil
}

func (o of) StoreNotices(_ context.Context, says json.RawMessage, since int64) (int64, error) {
	if o.silent || o.full {
		return 0, errSilent
	}
	if since != o.revision {
		return 0, nil
	}
	o.writes++
	o.revision++
	o.memory.kept = idem.Notices{Writer: o.writer, Says: says}
	if o.unclear {
		return 0, errSilent
	}
	return o.revision, nil
}

// receiver takes messages, unless it is down.
type receiver struct {
	texts []string
	tries int
	down  bool
}

func (r *receiver) RoundTrip(request *http.Request) (*http.Response, error) {
	r.tries++
	if r.down {
		return nil, errors.New("connection refused")
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	var message map[string]string
	if err := json.Unmarshal(body, &message); err != nil || len(message) != 1 {
		return nil, errors.New("not a text alone: " + string(body))
	}
	r.texts = append(r.texts, message["text"])
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok"))}, nil
}

// world is a receiver, a ledger and what is wrong.
type world struct {
	receiver
	memory
	list    client.Attention
	log     bytes.Buffer
	running []*Notifier
	now     time.Time
}

// replica is one with a Notifier, which runs until it is stopped.
func (w *world) replica(t *testing.T, name string) (n *Notifier, stop func()) {
	t.Helper()
	n = New(&Options{Ledger: of{&w.memory, name}, Attention: func(context.Context) client.Attention {
		return w.list
	}, Replica: name, Log: slog.New(slog.NewTextHandler(&w.log, nil)), Now: func() time.Time { return w.now }})
	n.client = &http.Client{Transport: &w.receiver}
	n.SetSettings(Settings{URL: "https://chat.example.com/hooks/secret", Every: time.Hour})
	w.running = append(w.running, n)
	return n, func() { w.running = slices.DeleteFunc(w.running, func(one *Notifier) bool { return one == n }) }
}

// pass lets time pass, in which each replica that runs looks, one after the other.
func (w *world) pass(d time.Duration) {
	for ; d > 0; d -= lookEvery {
		w.now = w.now.Add(lookEvery)
		for _, n := range w.running {
			n.lookOnce(context.Background())
		}
	}
}

func items(texts ...string) (all []client.AttentionItem) {
	for _, text := range texts {
		all = append(all, client.AttentionItem{ID: text, Kind: client.AttentionHeld, Text: text})
	}
	return all
}

// inOrder fails unless each message has its part, and there are no others.
func (w *world) inOrder(t *testing.T, parts ...string) {
	t.Helper()
	for i, text := range w.texts {
		if i >= len(parts) || !strings.Contains(text, parts[i]) {
			t.Errorf("message %d: %q, not of %q", i, text, parts)
		}
	}
	if len(w.texts) < len(parts) {
		t.Errorf("messages %q, not %q", w.texts, parts)
	}
}

func TestAnItemIsToldWhenItBeginsWhileItLastsAndWhenItIsOver(t *testing.T) {
	w := &world{}
	_, stop := w.replica(t, "a")
	defer stop()
	w.pass(time.Minute)
	w.inOrder(t)
	w.list.Items = []client.AttentionItem{{
		ID: "x", Kind: client.AttentionRouteFails, Bad: true, Route: "shopify", Text: "shopify fails now: 60 of 60",
		Cause: "the service says 500", Said: "database of Ann is locked",
		Next: "Shopify deletes it", SinceAt: client.Time{Time: time.Date(2026, 3, 4, 1, 12, 0, 0, time.UTC)},
		Command: "hooklock events",
	}}
	w.pass(90 * time.Minute)
	w.list.Items = nil
	w.pass(time.Hour)
	w.inOrder(t,
		"Hooklock at a: 1 new\n• New, urgent: shopify fails now: 60 of 60, since 2026-03-04 01:12 UTC. The service says 500. Shopify deletes it. hooklock events",
		"1 lasting\n• Still: shopify fails now", "1 over\n• Over: shopify fails no more, after less than a minute")
	if strings.Contains(strings.Join(w.texts, ""), "Ann") {
		t.Error("what the service said is told")
	}
}

func TestNothingIsToldTwiceAfterARestartOrATakeOver(t *testing.T) {
	w := &world{list: client.Attention{Items: items("one")}}
	_, stop := w.replica(t, "a")
	w.pass(20 * time.Second)
	stop()
	w.dead = "a"
	_, stopB := w.replica(t, "b")
	w.pass(time.Minute)
	_, stopC := w.replica(t, "c")
	defer stopC()
	w.list.Items = items("one", "two")
	w.pass(time.Minute)
	stopB()
	w.dead = "b"
	w.pass(time.Minute)
	w.list.Items = items("two")
	w.pass(5 * time.Minute)
	w.inOrder(t, "New: one", "New: two", "Over: one")
	if w.kept.Writer != "c" {
		t.Errorf("%s tells", w.kept.Writer)
	}
}

func TestADeadReceiverIsTriedWithGrowingPausesAndLoggedOnce(t *testing.T) {
	w := &world{list: client.Attention{Items: items("one")}, receiver: receiver{down: true}}
	_, stop := w.replica(t, "a")
	defer stop()
	w.pass(4 * time.Hour)
	if w.tries > 25 {
		t.Errorf("%d tries in four hours", w.tries)
	}
	before := w.tries
	w.pass(longestPause)
	if n := w.tries - before; n > 2 {
		t.Errorf("%d tries in the longest pause: the pauses do not grow", n)
	}
	if n := strings.Count(w.log.String(), "notify.failed"); n != 1 || strings.Contains(w.log.String(), "hooks/secret") {
		t.Errorf("%d lines: %s", n, &w.log)
	}
	w.down = false
	w.pass(30 * time.Minute)
	w.inOrder(t, "New: one")
	if !strings.Contains(w.log.String(), "notify.recovered") {
		t.Errorf("the end is not logged: %s", &w.log)
	}
}

func TestWhatAReceiverDidNotTakeIsToldByTheProcessThatTakesOver(t *testing.T) {
	w := &world{list: client.Attention{Items: items("one")}, receiver: receiver{down: true}}
	_, stop := w.replica(t, "a")
	w.pass(time.Minute)
	stop()
	w.dead, w.down = "a", false
	_, stop = w.replica(t, "b")
	defer stop()
	w.pass(time.Minute)
	w.inOrder(t, "New: one")
}

func TestWhatComesAndGoesIsOneThingAndWhatIsNotKnownIsNotOver(t *testing.T) {
	w := &world{list: client.Attention{Items: items("one")}}
	_, stop := w.replica(t, "a")
	defer stop()
	for range 10 {
		w.pass(time.Minute)
		w.list.Items = nil
		w.pass(time.Minute)
		w.list.Items = items("one")
	}
	w.list.Items, w.list.NotKnown = nil, []string{"executions: etcd does not answer"}
	w.pass(30 * time.Minute)
	w.inOrder(t, "New: one")
	w.list.NotKnown = nil
	w.pass(10 * time.Minute)
	w.inOrder(t, "New: one", "Over: one")
}

func TestAWriteWithoutAnswerIsToldOnce(t *testing.T) {
	w := &world{list: client.Attention{Items: items("one")}}
	_, stop := w.replica(t, "a")
	defer stop()
	w.unclear = true
	w.pass(15 * time.Second)
	w.inOrder(t)
	w.unclear = false
	w.pass(10 * time.Minute)
	w.inOrder(t, "New: one")
}

func TestAFullEtcdIsToldThoughItTakesNoWrites(t *testing.T) {
	w := &world{list: client.Attention{Items: items("one")}}
	_, stop := w.replica(t, "a")
	defer stop()
	w.pass(time.Minute)
	w.full = true
	w.list.Items = append(items("one", "two"),
		client.AttentionItem{ID: "f", Kind: client.AttentionEtcdFull, Text: "etcd http://m1:2379 is 100% full"})
	w.pass(10 * time.Minute)
	w.inOrder(t, "New: one", "New: etcd http://m1:2379 is 100% full")
	w.full = false
	w.pass(time.Minute)
	w.list.Items = items("one", "two")
	w.pass(10 * time.Minute)
	w.inOrder(t, "New: one", "New: etcd", "New: two", "Over: etcd")
}

func TestWithoutAWorkingEtcdTheOneThatToldLastSaysSo(t *testing.T) {
	w := &world{}
	_, stop := w.replica(t, "a")
	defer stop()
	_, stopB := w.replica(t, "b")
	defer stopB()
	w.pass(time.Minute)
	w.silent = true
	w.list = client.Attention{NotKnown: []string{"replicas"},
		Items: []client.AttentionItem{{ID: client.AttentionEtcdDown, Kind: client.AttentionEtcdDown,
			Text: "etcd does not answer this replica"}}}
	w.pass(10 * time.Minute)
	w.inOrder(t, "New: etcd does not answer")
	w.silent, w.list = false, client.Attention{}
	w.pass(10 * time.Minute)
	w.inOrder(t, "New: etcd does not answer", "Over: etcd does not answer")
}

func TestRoutesLimitWhatIsTold(t *testing.T) {
	w := &world{list: client.Attention{Items: []client.AttentionItem{{ID: "1", Route: "a", Text: "of a"},
		{ID: "2", Route: "b", Text: "of b"}, {ID: "3", Text: "of none"}}}}
	n, stop := w.replica(t, "a")
	defer stop()
	n.SetSettings(Settings{URL: "https://chat.example.com", Routes: []string{"b"}})
	w.pass(48 * time.Hour)
	w.inOrder(t, "2 new\n• New: of b\n• New: of none")
}

func TestAMessageIsBoundedAndWhatStrangersNamedIsTextAlone(t *testing.T) {
	list := client.Attention{}
	for range 400 {
		list.Items = append(list.Items, client.AttentionItem{ID: strings.Repeat("x", len(list.Items)),
			Text: "workflow <!channel> @all [a](https://evil.example)\n" + strings.Repeat("w", 5000)})
	}
	p := planner{gone: map[string]time.Time{}}
	plan := p.makePlan(&list, nil)
	text := plan.messageText("host")
	if len(text) > 4000 || !strings.HasSuffix(text, " more: hooklock status") || len(plan.next) != mostTold {
		t.Errorf("%d bytes, %d told: %s", len(text), len(plan.next), text)
	}
	for _, bad := range []string{"<", "@", "https://", "](", "\n[a]"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q in %s", bad, text)
		}
	}
	kept, err := json.Marshal(&state{Told: plan.next})
	if err != nil || len(kept) > 256<<10 {
		t.Errorf("%d bytes are kept, %v", len(kept), err)
	}
	if again := p.makePlan(&list, plan.next); len(again.lines) != 0 {
		t.Errorf("then %d lines", len(again.lines))
	}
}

func TestTheAddressOfAReceiverIsInNoError(t *testing.T) {
	const path = "/services/T0/B0/s3cr3t"
	quotes := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("moved") {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "no hook\nat "+r.URL.Path+strings.Repeat("x", 1<<20))
	}))
	defer quotes.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for to, want := range map[string]string{
		quotes.URL + path:                "the receiver answered 404: no hook at …xxx",
		quotes.URL + path + "?moved=yes": "the receiver answered 302",
		gone.URL + path:                  "connection refused",
		"https://user:s3cr3t@h\x7f/":     "the URL of the receiver is none",
	} {
		_, err := postMessage(context.Background(), newClient(), to, "x")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") ||
			len(err.Error()) > 400 {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	New(&Options{}).Run(ctx)
}

func TestATestMessageSaysWhatTheReceiverAnswered(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Header.Get("Content-Type"), string(body))
		_, _ = io.WriteString(w, "ok")
	}))
	defer s.Close()
	n := New(&Options{Replica: "host/1"})
	if _, err := n.Test(context.Background()); !errors.Is(err, ErrNoReceiver) {
		t.Errorf("without a receiver: %v", err)
	}
	n.SetSettings(Settings{URL: s.URL})
	if a, err := n.Test(context.Background()); err != nil || a != (Answer{200, "ok"}) {
		t.Errorf("%+v, %v", a, err)
	}
	if !slices.Equal(got, []string{"application/json",
		`{"text":"Hooklock at host/1: this is a test. What needs attention will be told here."}`}) {
		t.Errorf("%q", got)
	}
}
