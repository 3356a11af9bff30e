package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"hooklock/test/testkit"
)

// waiting is how many deliveries wait in h.
func waiting(t *testing.T, h *testkit.Hooklock) (n int) {
	t.Helper()
	for line := range strings.Lines(h.Metrics(t)) {
		if rest, ok := strings.CutPrefix(line, "hooklock_lock_waiting "); ok {
			if _, err := fmt.Sscan(rest, &n); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// queued is how many deliveries have a place in a queue in etcd.
func queued(t *testing.T, prefix string) int {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{shared.etcd.Endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.Get(t.Context(), prefix+"/v1/queue/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return int(got.Count)
}

func TestWaitersOverTwoProcessesRunInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	both := fleet(t, "waiters")
	path := at(t, "wait")
	work := shared.holds(t, path)
	const events = 6
	var got []<-chan *testkit.Answer
	for i := range events {
		got = append(got, testkit.GoPost(t, both[i%2].Addr, path, "{}", key(fmt.Sprint(i))))
		if i == 0 {
			work.await(t)
		} else {
			testkit.Until(t, "a place in the queue", func() bool { return queued(t, "/waiters") == i })
		}
	}
	for i := range events {
		work.answer <- testkit.OK(fmt.Sprint("answer ", i))
		passed(t, testkit.Receive(t, "the answer", got[i]), 200, fmt.Sprint("answer ", i), "executed")
		if i+1 < events {
			if id := work.await(t).Header.Get("Idempotency-Key"); id != fmt.Sprint(i+1) {
				t.Fatalf("event %s ran as number %d", id, i+1)
			}
		}
	}
}

func TestAWaiterIsRefusedWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	path := at(t, "wait-short")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, shared.patient.Addr, path, "{}", key("1"))
	work.await(t)
	refused{409, "lock_wait_timeout", "no", "wait_timeout"}.check(t,
		testkit.Post(t, shared.patient.Addr, path, "{}", key("2")))
	work.answer <- testkit.OK("")
	testkit.Receive(t, "the first answer", first)
}

func TestAWaiterIsRefusedWhenTheRoomIsUp(t *testing.T) {
	t.Parallel()
	prefix := ownPrefix()
	h := own(t, strings.Replace(shared.config(prefix[1:], ""), "max_waiting: 8", "max_waiting: 1", 1))
	path := at(t, "wait")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	second := testkit.GoPost(t, h.Addr, path, "{}", key("2"))
	testkit.Until(t, "somebody waits", func() bool { return queued(t, prefix) == 1 })
	refused{429, "too_many_waiting", "no", "queue_full"}.check(t, testkit.Post(t, h.Addr, path, "{}", key("3")))
	for _, answer := range []<-chan *testkit.Answer{first, second} {
		work.answer <- testkit.OK("done")
		passed(t, testkit.Receive(t, "an answer", answer), 200, "done", "executed")
	}
}

func TestSkipDropsWithASuccess(t *testing.T) {
	t.Parallel()
	path := at(t, "skip")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, shared.patient.Addr, path, "{}", key("1"))
	holder := work.await(t).Header.Get("Hooklock-Execution")
	for _, event := range []string{"1", "2"} {
		a := testkit.Post(t, shared.patient.Addr, path, "{}", key(event))
		var body map[string]string
		if err := json.Unmarshal(a.Body, &body); err != nil || a.Status != 200 ||
			a.Header.Get("Content-Type") != "application/json" ||
			body["status"] != "already_running" || body["executionId"] != holder || body["workflow"] == "" {
			t.Errorf("event %s: %+v, %v", event, a, err)
		}
	}
	work.answer <- testkit.OK("")
	testkit.Receive(t, "the first answer", first)
}

func TestWithoutALockEventsOverlapAndDuplicatesMeet(t *testing.T) {
	t.Parallel()
	path := at(t, "none")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, shared.patient.Addr, path, "{}", key("1"))
	second := testkit.GoPost(t, shared.patient.Addr, path, "{}", key("2"))
	for range 2 {
		if r := work.await(t); r.Header.Get("Hooklock-Fencing-Token") != "" ||
			r.Header.Get("Hooklock-Execution") == "" {
			t.Errorf("header %v", r.Header)
		}
	}
	refused{409, "execution_in_flight", "no", "in_flight"}.check(t,
		testkit.Post(t, shared.patient.Addr, path, "{}", key("1")))
	work.answer <- testkit.OK("")
	work.answer <- testkit.OK("")
	testkit.Receive(t, "the first answer", first)
	testkit.Receive(t, "the second answer", second)
}

func TestDuplicatesAtAnyReplicaAreAttachedToTheFirstOne(t *testing.T) {
	t.Parallel()
	both := fleet(t, "attached")
	for name, answer := range map[string]string{"kept": testkit.OK("once"),
		"not kept": "HTTP/1.1 500 Broken\r\nContent-Length: 4\r\n\r\nonce"} {
		path := at(t, "attach") + map[bool]string{true: "-k", false: "-n"}[name == "kept"]
		work := shared.holds(t, path)
		first := testkit.GoPost(t, both[0].Addr, path, "{}", key("1"))
		work.await(t)
		var copies []<-chan *testkit.Answer
		for _, h := range both {
			copies = append(copies, testkit.GoPost(t, h.Addr, path, "{}", key("1")))
		}
		testkit.Until(t, "both copies are attached", func() bool {
			return waiting(t, both[0]) == 1 && waiting(t, both[1]) == 1
		})
		work.answer <- answer
		want := testkit.Receive(t, "the first answer", first)
		for _, c := range copies {
			got := testkit.Receive(t, "the answer of a copy", c)
			if got.Status != want.Status || string(got.Body) != string(want.Body) ||
				got.Header.Get("Hooklock-Decision") != "attached" {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
		if n := len(shared.up.Received(path)); n != 1 {
			t.Errorf("%s: the upstream got %d requests", name, n)
		}
		checkAnsweredLast(t, both[0], want.Header.Get("Hooklock-Execution"), len(copies))
	}
}

// checkAnsweredLast fails unless so many deliveries of an event are known to have come while it ran
// and to have been answered behind its end.
func checkAnsweredLast(t *testing.T, h *testkit.Hooklock, id string, copies int) {
	t.Helper()
	testkit.Until(t, "the copies to be known, with when they came and were answered", func() bool {
		x := execution(t, h, id)
		ended, _ := x["finishedAt"].(string)
		arrivals, _ := x["arrivals"].(map[string]any)
		newest, _ := arrivals["newest"].([]any)
		for _, one := range newest {
			a, _ := one.(map[string]any)
			answered, _ := a["answeredAt"].(string)
			if came, _ := a["at"].(string); came >= ended || answered < ended { // all in UTC, to the ms
				return false
			}
		}
		return len(newest) == copies
	})
}
