package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// fleet is two processes on one etcd, with one keyspace.
func fleet(t *testing.T, prefix string) [2]*testkit.Hooklock {
	t.Helper()
	return [2]*testkit.Hooklock{own(t, shared.config(prefix, "")), own(t, shared.config(prefix, ""))}
}

func TestFiftyDuplicatesOfOneEventOverTwoProcessesRunOnce(t *testing.T) {
	t.Parallel()
	const copies = 50
	both := fleet(t, "copies")
	path := at(t, "plain")
	work := shared.holds(t, path)
	answers := make(chan *testkit.Answer, copies)
	for i := range copies {
		one := testkit.GoPost(t, both[i%2].Addr, path, `{"n":1}`, key("1"))
		go func() { answers <- <-one }()
	}
	holder := work.await(t).Header.Get("Hooklock-Execution")
	for range copies - 1 {
		a := testkit.Receive(t, "the answer of a copy", answers)
		refused{409, "execution_in_flight", "no", "in_flight"}.check(t, a)
		conflict(t, a, holder, strings.TrimPrefix(path, "/"))
	}
	work.answer <- testkit.OK("once")
	passed(t, testkit.Receive(t, "the answer of the first", answers), 200, "once", "executed")
	for _, h := range both {
		passed(t, testkit.Post(t, h.Addr, path, `{"n":1}`, key("1")), 200, "once", "replayed")
	}
	reached(t, path, 1)
}

func TestSixtyEventsOfOneWorkflowOverTwoProcessesNeverOverlap(t *testing.T) {
	t.Parallel()
	const events = 60
	both := fleet(t, "events")
	path := at(t, "plain")
	shared.on(t, path, func(r *testkit.Received) string { return testkit.OK(r.Header.Get("Idempotency-Key")) })
	done := make(chan error, events)
	for i := range events {
		go func() { done <- deliver(t, both[i%2].Addr, path, fmt.Sprint(i)) }()
	}
	for range events {
		if err := testkit.Receive(t, "the end of an event", done); err != nil {
			t.Error(err)
		}
	}
	if most := shared.up.MostAtOnce(strings.TrimPrefix(path, "/")); most != 1 {
		t.Errorf("%d ran at once", most)
	}
	seen := map[string]bool{}
	last := int64(0)
	for _, r := range shared.up.Received(path) {
		id := r.Header.Get("Idempotency-Key")
		if seen[id] {
			t.Errorf("event %s ran twice", id)
		}
		seen[id] = true
		var token int64
		if _, err := fmt.Sscan(r.Header.Get("Hooklock-Fencing-Token"), &token); err != nil || token <= last {
			t.Errorf("fencing token %d after %d (%v)", token, last, err)
		}
		last = token
	}
	if len(seen) != events {
		t.Errorf("%d of %d events ran", len(seen), events)
	}
}

// deliver does what senders do: it delivers an event again until it is told that it ran.
func deliver(t *testing.T, addr, path, id string) error {
	c := testkit.Dial(t, addr)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		c.Say(testkit.Request(path, "{}", key(id)))
		a, err := c.TryAnswer("POST")
		switch {
		case err != nil:
			return err
		case a.Status == 200 && string(a.Body) == id:
			return nil
		case !undecided(a):
			return fmt.Errorf("event %s: %v", id, a)
		}
		select {
		case <-again.C:
		case <-t.Context().Done():
			return t.Context().Err()
		}
	}
}

func TestWhatOneProcessSettledAnotherReplaysOnceItRunsNothingOfThatWorkflow(t *testing.T) {
	t.Parallel()
	both := fleet(t, "elsewhere")
	path := at(t, "plain")
	testkit.Post(t, both[0].Addr, path, "{}", key("1"))
	work := shared.holds(t, path)
	second := testkit.GoPost(t, both[1].Addr, path, "{}", key("2"))
	work.await(t)
	// A conflict in one process is decided without etcd (docs/limits.md): it does not see here what
	// others have settled.
	if got := testkit.Post(t, both[1].Addr, path, "{}", key("1")); got.Status != 409 ||
		got.Header.Get("Hooklock-Decision") != "locked" {
		t.Errorf("while another event runs here: %+v", got)
	}
	work.answer <- testkit.OK("")
	testkit.Receive(t, "the second answer", second)
	passed(t, testkit.Post(t, both[1].Addr, path, "{}", key("1")), 200, "done", "replayed")
}
