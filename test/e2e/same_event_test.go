package e2e

import (
	"fmt"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// sameEvents is two processes on one etcd that take twins for one event, in front of an upstream of
// this test's own.
func sameEvents(t *testing.T, handle testkit.Handler, rest string) (both [2]*testkit.Hooklock, up *testkit.Upstream) {
	t.Helper()
	up = testkit.NewUpstream(t, handle)
	config := bare(up.URL, `
routes:
  - name: shop
    path: /shop
    workflow: "shop/{body.order}"
    event_id: "{body.id}"
    ignore: [body.at]
    twins: same_event
    lock: {release_delay: 0s}
`+rest)
	return [2]*testkit.Hooklock{own(t, config), own(t, config)}, up
}

func sale(id string, n int) string { return fmt.Sprintf(`{"id":%q,"order":%d,"at":"%s"}`, id, n, id) }

// same fails the test where a is not the answer of a duplicate of first, an event with that ID.
func same(t *testing.T, a, first *testkit.Answer, id string) {
	t.Helper()
	passed(t, a, first.Status, string(first.Body), "replayed")
	if a.Execution() != first.Execution() || a.Header.Get("Hooklock-Twin-Of") != id ||
		a.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("not as a duplicate of %s: %v", id, a)
	}
}

func TestTwinsThatAreOneEventRunOnceOverTwoProcesses(t *testing.T) {
	t.Parallel()
	work := newHeld(t)
	both, up := sameEvents(t, work.handle, "")
	const twins = 20
	answers := make(chan *testkit.Answer, twins)
	for i := range twins {
		one := testkit.GoPost(t, both[i%2].Addr, "/shop", sale(fmt.Sprint("e", i), 1))
		go func() { answers <- <-one }()
	}
	holder := work.await(t).Header.Get("Hooklock-Execution")
	for range twins - 1 {
		a := testkit.Receive(t, "the answer of a twin", answers)
		refused{409, "execution_in_flight", "no", "in_flight"}.check(t, a)
		if a.Execution() != holder {
			t.Errorf("another execution: %v", a)
		}
	}
	work.answer <- testkit.OK("once")
	passed(t, testkit.Receive(t, "the answer of the first", answers), 200, "once", "executed")
	replayed := 0
	for i := range twins {
		a := testkit.Post(t, both[i%2].Addr, "/shop", sale(fmt.Sprint("e", i), 1))
		passed(t, a, 200, "once", "replayed")
		if a.Header.Get("Hooklock-Twin-Of") != "" {
			replayed++
		}
	}
	if n := len(up.Received("/shop")); n != 1 || replayed != twins-1 {
		t.Errorf("%d ran, %d name the first one", n, replayed)
	}
	twinsCounted := 0
	for _, h := range both {
		var n int
		_, rest, _ := strings.Cut(h.Metrics(t), `hooklock_events_twins_total{route="shop"} `)
		_, _ = fmt.Sscan(rest, &n)
		twinsCounted += n
	}
	if twinsCounted != twins-1 {
		t.Errorf("%d twins are counted, not %d", twinsCounted, twins-1)
	}
}

// A retry of the second ID after the window is still a duplicate, also after a restart. A third ID
// is a new event then.
func TestATwinIsTheFirstEventForAsLongAsThatIsRemembered(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, answers(testkit.OK("first"), testkit.OK("later")))
	config := bare(up.URL, `
routes:
  - {name: shop, path: /shop, event_id: "{header.X-Id}", twins: {mode: same_event, window: 1s}}
`)
	both := [2]*testkit.Hooklock{own(t, config), testkit.Serve(t, hooklockProgram, config)}
	send := func(h *testkit.Hooklock, id string) *testkit.Answer {
		t.Helper()
		return testkit.Post(t, h.Addr, "/shop", `{"order":1}`, "X-Id: "+id)
	}
	first := send(both[0], "a")
	passed(t, first, 200, "first", "executed")
	same(t, send(both[1], "b"), first, "a")
	n := 0
	testkit.Until(t, "the window ends", func() bool {
		n++
		return send(both[0], fmt.Sprint("c", n)).Decision() == "executed"
	})
	both[1].Kill()
	for _, h := range []*testkit.Hooklock{both[0], own(t, config)} {
		same(t, send(h, "b"), first, "a")
		passed(t, send(h, "a"), 200, "first", "replayed")
		passed(t, send(h, fmt.Sprint("c", n)), 200, "later", "replayed")
	}
	if n := len(up.Received("/shop")); n != 2 {
		t.Errorf("%d ran", n)
	}
}

// What becomes of a twin is what becomes of a duplicate: after a failure it is the next attempt,
// after a refusal it runs, and with another body it is refused.
func TestATwinIsDecidedAsADuplicate(t *testing.T) {
	t.Parallel()
	both, up := sameEvents(t, answers(testkit.Reply(500, "broken"), testkit.OK("done")), "")
	if a := testkit.Post(t, both[0].Addr, "/shop", sale("a", 1)); a.Status != 500 {
		t.Fatal(a)
	}
	second := testkit.Post(t, both[1].Addr, "/shop", sale("b", 1))
	passed(t, second, 200, "done", "executed")
	if got := up.Received("/shop"); len(got) != 2 || got[1].Header.Get("Hooklock-Attempt") != "2" {
		t.Errorf("%d ran, or not as the second attempt", len(got))
	}
	first := testkit.Post(t, both[0].Addr, "/shop", sale("a", 1))
	passed(t, first, 200, "done", "replayed")
	if first.Header.Get("Hooklock-Twin-Of") != "" {
		t.Errorf("the first event is no twin: %v", first)
	}
	changed := strings.Replace(sale("b", 1), `"at"`, `"amount":2,"at"`, 1)
	refused{422, "idempotency_key_reused", "no", "mismatch"}.check(t,
		testkit.Post(t, both[0].Addr, "/shop", changed))
	if n := len(up.Received("/shop")); n != 2 {
		t.Errorf("%d ran", n)
	}
	// both IDs lead to one story, which says how the second one came
	id := second.Execution()
	for _, event := range []string{"a", "b"} {
		testkit.Until(t, "the story of "+event, func() bool {
			shown := cli(t, both[1], "show", event)
			return strings.Contains(shown, id) && strings.Contains(shown, "mismatch") && strings.Contains(shown, "as b")
		})
	}
	cli(t, both[0], "forget", id, "--reason", "again")
	testkit.Until(t, "it runs again", func() bool {
		return testkit.Post(t, both[0].Addr, "/shop", sale("b", 1)).Decision() == "executed"
	})
	passed(t, testkit.Post(t, both[1].Addr, "/shop", sale("a", 1)), 200, "done", "replayed")
	if n := len(up.Received("/shop")); n != 3 {
		t.Errorf("%d ran after the forget", n)
	}
}

// The process that runs the first event is killed: its outcome is unknown, for its twin, too.
func TestATwinOfAnEventOfUnknownOutcomeIsBlockedAsThat(t *testing.T) {
	t.Parallel()
	work := newHeld(t)
	up := testkit.NewUpstream(t, work.handle)
	config := strings.Replace(bare(up.URL, `
routes:
  - name: shop
    path: /shop
    event_id: "{body.id}"
    workflow: "shop/{body.order}"
    ignore: [body.at]
    twins: same_event
    lock: {release_delay: 0s}
    idempotency: {on_unknown: block}
`), "request_timeout: 10s", "request_timeout: 2s, session_ttl: 3s", 1)
	dies, lives := testkit.Serve(t, hooklockProgram, config), own(t, config)
	gone := testkit.Dial(t, dies.Addr)
	gone.Say(testkit.Request("/shop", sale("a", 1)))
	work.await(t)
	dies.Kill()
	testkit.Until(t, "the outcome is unknown", func() bool {
		return testkit.Post(t, lives.Addr, "/shop", sale("b", 1)).Decision() == "unknown"
	})
	for _, id := range []string{"a", "b"} {
		refused{409, "outcome_unknown", "unknown", "unknown"}.check(t,
			testkit.Post(t, lives.Addr, "/shop", sale(id, 1)))
	}
	if n := len(up.Received("/shop")); n != 1 {
		t.Errorf("%d ran", n)
	}
}
