package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// combination is one choice of the settings that decide whether an event runs.
type combination struct {
	strategy, park, limit, inFlight, idempotency, order, mode string
}

// combinations are all choices that validate takes, but for order: its three values go round over
// those of the rest.
func combinations() []combination {
	var all []combination
	n := 0
	for _, strategy := range []string{"fail_fast", "wait", "skip", "latest", "none"} {
		for _, park := range []string{"", "0s", "300ms"} {
			for _, limit := range []string{"1", "2"} {
				if limit == "2" && (strategy == "none" || strategy == "latest") || strategy == "skip" && park != "" {
					continue // validate refuses these
				}
				for _, inFlight := range []string{"conflict", "attach"} {
					for _, idempotency := range []string{"true", "false"} {
						for _, mode := range []string{"enforce", "observe"} {
							order := []string{"", "skip", "reject"}[n%3]
							if strategy == "none" {
								order = ""
							}
							all = append(all, combination{strategy, park, limit, inFlight, idempotency, order, mode})
							n++
						}
					}
				}
			}
		}
	}
	return all
}

// route is the route of the combination, under a name of its own.
func (c *combination) route(n int, path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  - {name: c%d, path: %s, workflow: %s, mode: %s, lock: {strategy: %s, limit: %s", n, path, path,
		c.mode, c.strategy, c.limit)
	if c.strategy == "wait" || c.strategy == "latest" {
		b.WriteString(", wait_timeout: 300ms")
	}
	fmt.Fprintf(&b, "}, idempotency: {enabled: %s", c.idempotency)
	if c.idempotency == "true" {
		fmt.Fprintf(&b, ", in_flight: %s", c.inFlight)
	}
	b.WriteString("}")
	if c.park != "" {
		fmt.Fprintf(&b, ", park: {enabled: true, after: %s}", c.park)
	}
	if c.order != "" {
		fmt.Fprintf(&b, `, order: {by: "{body.at}", on_stale: %s}`, c.order)
	}
	return b.String() + "}\n"
}

// most is how many events of the workflow may run at a time.
func (c *combination) most() int {
	switch {
	case c.mode == "observe" || c.strategy == "none":
		return 3
	case c.limit == "2":
		return 2
	}
	return 1
}

// life is what became of three deliveries: an event, a copy of it that comes while it runs, and a
// newer event.
type life struct {
	answers []*testkit.Answer // the first is that of the newer event
	ran     []*testkit.Received
}

// judge says what the service must have seen, given what the senders were told: in mode observe
// each delivery, else each execution that was executed or accepted, once. One that was accepted may
// have been replaced, where the route says so.
func (c *combination) judge(l *life) (faults []string) {
	if c.mode == "observe" {
		if len(l.ran) != len(l.answers) {
			faults = append(faults, fmt.Sprintf("%d deliveries were forwarded, want %d", len(l.ran), len(l.answers)))
		}
		return faults
	}
	runs := map[string]int{}
	for _, r := range l.ran {
		runs[r.Header.Get("Hooklock-Execution")]++
	}
	promised := map[string]bool{}
	for i, a := range l.answers {
		switch d := a.Decision(); {
		case d == "executed" || d == "attached" || d == "parked" && !c.replaces(i == 0):
			promised[a.Execution()] = true
			if runs[a.Execution()] != 1 {
				faults = append(faults, fmt.Sprintf("%s was %s and ran %d times", a.Execution(), d,
					runs[a.Execution()]))
			}
		case d == "parked":
			promised[a.Execution()] = true
		case d == "stale_event" && c.order == "reject": // the newer one had gone through
		case !slices.Contains([]string{"in_flight", "locked", "wait_timeout", "skipped", "superseded", "replayed"}, d):
			faults = append(faults, fmt.Sprintf("the answer is %d %s", a.Status, d))
		}
	}
	for id, n := range runs {
		if !promised[id] || n != 1 {
			faults = append(faults, fmt.Sprintf("%s ran %d times; its sender was promised that it runs: %v", id, n,
				promised[id]))
		}
	}
	return faults
}

// replaces reports whether an event that was accepted need not run, because another one takes its
// place: the last one to come under latest, and by the order any other than the newest.
func (c *combination) replaces(newest bool) bool {
	return c.strategy == "latest" || c.order != "" && !newest
}

// shared is an execution that two deliveries were promised although the route knows no copies; "" =
// there is none.
func (c *combination) shared(l *life) string {
	promised := map[string]bool{}
	for _, a := range l.answers {
		if d := a.Decision(); c.idempotency == "true" || c.mode == "observe" || d != "executed" && d != "parked" {
			continue
		}
		if promised[a.Execution()] {
			return a.Execution()
		}
		promised[a.Execution()] = true
	}
	return ""
}

// settled reports whether the service has seen all that it must see of the life.
func (c *combination) settled(l *life) bool { return len(c.judge(l)) == 0 }

func TestEveryCombinationOfSettingsRunsWhatItPromisesOnce(t *testing.T) {
	t.Parallel()
	all, prefix := combinations(), ownPrefix()
	path := func(n int) string { return fmt.Sprintf("%s/%d", prefix, n) }
	var routes strings.Builder
	for n := range all {
		routes.WriteString(all[n].route(n, path(n)))
	}
	h := own(t, shared.head(shared.up.URL, prefix)+"park_store: {single_member: true}\nshutdown_timeout: 5s\nroutes:\n"+
		routes.String())
	for n := range all {
		c := all[n]
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			c.live(t, h.Addr, path(n))
		})
	}
}

// live lives one life: the first event works until the newer one has its answer, so that they meet.
func (c *combination) live(t *testing.T, addr, path string) {
	work := newHeld(t)
	first := make(chan struct{}, 1)
	first <- struct{}{}
	shared.on(t, path, func(r *testkit.Received) string {
		select {
		case <-first:
			return work.handle(r)
		default:
			return testkit.OK("done")
		}
	})
	one := testkit.GoPost(t, addr, path, `{"at":1}`, key("1"))
	work.await(t)
	again := testkit.GoPost(t, addr, path, `{"at":1}`, key("1"))
	newer := testkit.Post(t, addr, path, `{"at":2}`, key("2"))
	work.answer <- testkit.OK("done")
	l := &life{answers: []*testkit.Answer{newer, testkit.Receive(t, "the first answer", one),
		testkit.Receive(t, "the copy's answer", again)}}
	for _, a := range l.answers {
		if a == nil {
			t.Fatal("a delivery got no answer")
		}
	}
	if id := c.shared(l); id != "" {
		t.Fatalf("two deliveries were promised that %s runs, and each is an event of its own", id)
	}
	defer func() {
		if t.Failed() {
			t.Log(c.judge(l))
		}
	}()
	testkit.Until(t, "what was promised to run", func() bool {
		l.ran = shared.up.Received(path)
		return c.settled(l) || t.Context().Err() != nil
	})
	for _, fault := range c.judge(l) {
		t.Error(fault)
	}
	if most := shared.up.MostAtOnce(path); most > c.most() {
		t.Errorf("%d ran at a time, want %d at most", most, c.most())
	}
}
