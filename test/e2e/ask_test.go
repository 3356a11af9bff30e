package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hooklock/test/testkit"
)

// shop is a service without any idempotency, which dies during some requests, before or after they
// have taken effect. Its orders can be asked for.
type shop struct {
	*testkit.Upstream
	mu      sync.Mutex
	effects map[string]int
	asked   map[string]int
	calls   map[string]int
}

// newShop starts one; what says for the n-th call of an event, from 1, whether it takes effect and
// whether an answer comes.
func newShop(t *testing.T, what func(event string, n int) (effect, answer bool)) *shop {
	s := &shop{effects: map[string]int{}, asked: map[string]int{}, calls: map[string]int{}}
	s.Upstream = testkit.NewUpstream(t, func(r *testkit.Received) string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if event, is := strings.CutPrefix(r.Target, "/orders/"); is && r.Method == "GET" {
			s.asked[event]++
			switch {
			case event == "odd":
				return testkit.Reply(500, "no idea")
			case s.effects[event] > 0:
				return testkit.OK(`{"data":{"state":"paid"}}`)
			}
			return testkit.Reply(404, "{}")
		}
		event := r.Header.Get("Idempotency-Key")
		s.calls[event]++
		effect, answer := what(event, s.calls[event])
		if effect {
			s.effects[event]++
		}
		if !answer {
			return ""
		}
		return testkit.OK("done")
	})
	return s
}

func (s *shop) took(event string) (effects, calls, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.effects[event], s.calls[event], s.asked[event]
}

const askingRoute = `
routes:
  - name: shop
    path: /hooks
    workflow: shop
    lock: {release_delay: 0s}
    idempotency: {on_unknown: ask}
    respond: {asked: 203}
    %s
    ask:
      url: /orders/{header.Idempotency-Key}
      executed: {status: 200, body: {data.state: paid}}
      not_executed: {status: 404}
      after: 0s
      attempts: 2
`

func TestTheServiceSaysWhatBecameOfAnEventOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	up := newShop(t, func(event string, n int) (effect, answer bool) { return event != "before" || n > 1, n > 1 })
	h := own(t, bare(up.URL, fmt.Sprintf(askingRoute, "")))
	deliver := func(event string) *testkit.Answer { return testkit.Post(t, h.Addr, "/hooks", "{}", key(event)) }
	broke := refused{502, "upstream_failed", "unknown", "upstream_failed"}

	first := deliver("after")
	broke.check(t, first)
	var last *testkit.Answer
	testkit.Until(t, "the event that was executed is settled", func() bool {
		last = deliver("after")
		return last.Status == 203
	})
	passed(t, last, 203, "", "replayed")
	broke.check(t, deliver("before"))
	testkit.Until(t, "the event that was not executed runs again", func() bool {
		last = deliver("before")
		return last.Decision() == "executed"
	})
	passed(t, last, 200, "done", "executed")
	odd := deliver("odd")
	broke.check(t, odd)
	h.Stderr.AwaitRecord(t, "execution.asked", func(r testkit.Record) bool {
		return r.Text("execution") == odd.Execution() && r.Text("outcome") == "unknown" &&
			strings.Contains(r.Text("reason"), "the service answered 500")
	})
	refused{409, "outcome_unknown", "unknown", "unknown"}.check(t, deliver("odd"))
	broke.check(t, deliver("another")) // the lock is free
	for event, want := range map[string][3]int{"after": {1, 1, 1}, "before": {1, 2, 1}, "odd": {1, 1, 2}} {
		if effects, calls, asked := up.took(event); [3]int{effects, calls, asked} != want {
			t.Errorf("%s: %d effects, %d calls, %d questions; want %v", event, effects, calls, asked, want)
		}
	}
	for event, want := range map[string]string{"after": "executed (200): a duplicate would be replayed",
		"never came": "not executed (404): it would run again"} {
		c := exec.CommandContext(t.Context(), hooklockProgram, "explain", "--config", h.Config, "--path", "/hooks",
			"-H", "Idempotency-Key: "+event, "--ask")
		text, err := c.CombinedOutput()
		if said := string(text); err != nil || !strings.Contains(said, want) ||
			!strings.Contains(said, "409 outcome_unknown") {
			t.Errorf("explain says\n%s", said)
		}
	}
	got := cli(t, h, "show", "after")
	if !strings.Contains(got, "The service was asked what became of it") || !strings.Contains(got, "executed (200)") {
		t.Errorf("show says\n%s", got)
	}
}

func TestAnAcceptedEventOfUnknownOutcomeIsTriedAgainOnlyIfTheServiceSaysThatItWasNotExecuted(t *testing.T) {
	t.Parallel()
	up := newShop(t, func(event string, n int) (effect, answer bool) { return event != "before" || n > 1, n > 1 })
	h := own(t, bare(up.URL, fmt.Sprintf(askingRoute, "park: {enabled: true, after: 0s, on: [locked]}")))
	for _, event := range []string{"after", "before"} {
		acceptedAs(t, testkit.Post(t, h.Addr, "/hooks", "{}", key(event)), 202)
	}
	for event, want := range map[string][3]int{"after": {1, 1, 1}, "before": {1, 2, 1}} {
		testkit.Until(t, event+" is settled", func() bool {
			a := testkit.Post(t, h.Addr, "/hooks", "{}", key(event))
			return a.Decision() == "replayed"
		})
		if effects, calls, asked := up.took(event); [3]int{effects, calls, asked} != want {
			t.Errorf("%s: %d effects, %d calls, %d questions; want %v", event, effects, calls, asked, want)
		}
	}
	odd := acceptedAs(t, testkit.Post(t, h.Addr, "/hooks", "{}", key("odd")), 202)
	testkit.Until(t, "an event of which nothing is said waits for a person", func() bool {
		return strings.Contains(cli(t, h, "show", odd), "It blocks its queue until a person decides")
	})
}

// TestWhatRunsAgainIsAskedAboutAsANewDeliveryIs: a settled event, and a dead letter.
func TestWhatRunsAgainIsAskedAboutAsANewDeliveryIs(t *testing.T) {
	t.Parallel()
	up := newShop(t, func(event string, n int) (effect, answer bool) {
		return true, event == "settled" && n == 1
	})
	h := own(t, bare(up.URL, fmt.Sprintf(askingRoute, "requests: {keep: 24h}\n"+
		"    park: {enabled: true, after: 0s, on: [locked], failed_answers: false}")+
		fmt.Sprintf("park_store: {dir: %q}\n", filepath.Join(t.TempDir(), "requests"))))
	settled := acceptedAs(t, testkit.Post(t, h.Addr, "/hooks", "{}", key("settled")), 202)
	testkit.Until(t, "the first is settled", func() bool { return execution(t, h, settled)["status"] == "SUCCESS" })
	isStored(t, h, settled)
	letter := acceptedAs(t, testkit.Post(t, h.Addr, "/hooks", "{}", key("odd")), 202)
	testkit.Until(t, "an event of which nothing is said waits for a person", func() bool {
		return strings.Contains(cli(t, h, "show", letter), "It blocks its queue until a person decides")
	})
	cli(t, h, "skip", letter, "--reason", "nothing is known of it")

	for _, args := range [][]string{{"rerun", settled, "--again"}, {"rerun", letter}} {
		said := cli(t, h, append(args, "--reason", "once more", "-o", "json")...)
		var next struct{ ExecutionID string }
		if err := json.Unmarshal([]byte(said[strings.Index(said, "{"):]), &next); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, args[1]+" runs again, until the service has said what became of it, or a person must", func() bool {
			x := execution(t, h, next.ExecutionID)
			parked, _ := x["parked"].(map[string]any)
			return x["status"] == "SUCCESS" || x["status"] == "FAILED" || parked["blocked"] != nil
		})
	}
	for event, want := range map[string][2]int{"settled": {2, 1}, "odd": {2, 4}} {
		if _, calls, asked := up.took(event); [2]int{calls, asked} != want {
			t.Errorf("%s: %d calls, %d questions; want %v", event, calls, asked, want)
		}
	}
	passed(t, testkit.Post(t, h.Addr, "/hooks", "{}", key("settled")), 203, "", "replayed")
}

func TestAnyReplicaAsksAboutWhatADeadOneHadCalled(t *testing.T) {
	t.Parallel()
	called := make(chan struct{})
	release := make(chan struct{})
	hanging := testkit.NewUpstream(t, func(r *testkit.Received) string {
		if r.Method == "GET" {
			return testkit.OK(`{"data":{"state":"paid"}}`)
		}
		close(called) // a second call would panic
		select {
		case <-release:
		case <-r.Context.Done():
		}
		return ""
	})
	defer close(release)
	config := strings.Replace(bare(hanging.URL, fmt.Sprintf(askingRoute, "")), "request_timeout: 10s",
		"request_timeout: 2s, session_ttl: 3s", 1)
	victim := testkit.Serve(t, hooklockProgram, config)
	testkit.GoPost(t, victim.Addr, "/hooks", "{}", key("1"))
	testkit.Receive(t, "the call", called)
	victim.Kill()
	h := own(t, config)
	var last *testkit.Answer
	testkit.Until(t, "the event is settled", func() bool {
		last = testkit.Post(t, h.Addr, "/hooks", "{}", key("1"))
		return last.Status == 203
	})
	passed(t, last, 203, "", "replayed")
}
