package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// parkRoutes are routes that park, on one replica with the shared etcd.
const parkRoutes = `
park_store: {single_member: true}
routes:
  - {name: park, path: "/park/{w}", workflow: "park/{path.w}", lock: {release_delay: 0s}, park: {enabled: true, after: 60s}}
  - {name: park-slow, path: "/park-slow/{w}", workflow: "slow/{path.w}", lock: {release_delay: 0s}, park: {enabled: true, after: 300ms}}
  - {name: park-wait, path: "/park-wait/{w}", workflow: "pw/{path.w}", lock: {strategy: wait, wait_timeout: 30s}, park: {enabled: true, after: 300ms}}
  - {name: park-failed, path: "/park-failed/{w}", workflow: "pf/{path.w}", lock: {release_delay: 0s}, park: {enabled: true, on: [failed, locked], after: 60s}}
  - {name: park-now, path: "/park-now/{w}", workflow: "now/{path.w}", park: {enabled: true, after: 0s, answer: 204}}
  - {name: park-skip, path: "/park-skip/{w}", workflow: "ps/{path.w}", labels: {number: "{header.Idempotency-Key}"}, park: {enabled: true, after: 0s, on_failure: skip, attempts: 2}}
  - {name: park-hold, path: "/park-hold/{w}", workflow: "ph/{path.w}", park: {enabled: true, after: 0s, attempts: 1}}
`

func parkConfig(upstream, prefix string) string {
	return shared.head(upstream, prefix) + "shutdown_timeout: 5s\n" + parkRoutes
}

func parking(t *testing.T) *testkit.Hooklock {
	t.Helper()
	return own(t, parkConfig(shared.up.URL, ownPrefix()))
}

// acceptedAs checks the answer to a delivery that was parked, and returns its execution.
func acceptedAs(t *testing.T, a *testkit.Answer, status int) string {
	t.Helper()
	if a.Status != status || a.Decision() != "parked" || a.Execution() == "" {
		t.Fatalf("want %d parked, got %v", status, a)
	}
	if p := a.JSON(); status != 204 &&
		(p["status"] != "accepted" || p["executionId"] != a.Execution() || p["workflow"] == "") {
		t.Fatalf("body of %v", a)
	}
	return a.Execution()
}

// settles waits until a copy of the delivery gets this answer.
func settles(t *testing.T, addr, path, body, id string, status int, answer string) {
	t.Helper()
	var last *testkit.Answer
	testkit.Until(t, "the event to be settled", func() bool {
		last = testkit.Post(t, addr, path, body, key(id))
		return last.Decision() == "replayed"
	})
	passed(t, last, status, answer, "replayed")
}

func TestADeliveryBehindALockIsAcceptedAndRunsAfterItExactlyAsItCame(t *testing.T) {
	t.Parallel()
	h := parking(t)
	path := at(t, "park")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, h.Addr, path, "1", key("1"))
	work.await(t)
	request := testkit.Request(path, "second\r\n\x00body", key("2"), "X-odd:  spaced  ", "x-ODD: again")
	id := acceptedAs(t, testkit.Exchange(t, h.Addr, request), 202)
	if again := acceptedAs(t, testkit.Exchange(t, h.Addr, request), 202); again != id {
		t.Errorf("a copy was accepted as %s, and the first one as %s", again, id)
	}
	refused{422, "idempotency_key_reused", "no", "mismatch"}.check(t,
		testkit.Post(t, h.Addr, path, "another body", key("2")))
	work.answer <- testkit.OK("one")
	passed(t, testkit.Receive(t, "the first answer", first), 200, "one", "executed")
	got := work.await(t)
	if got.Body != "second\r\n\x00body" || !slices.Contains(got.Lines, "X-odd:  spaced  ") ||
		!slices.Contains(got.Lines, "x-ODD: again") || got.Header.Get("Hooklock-Execution") != id {
		t.Errorf("the parked delivery reached the upstream as %q", got.Raw)
	}
	work.answer <- testkit.Reply(201, "two", "X-Kept: yes")
	testkit.Until(t, "the second event to be settled",
		func() bool { return testkit.Exchange(t, h.Addr, request).Decision() == "replayed" })
	if a := testkit.Exchange(t, h.Addr, request); a.Status != 201 || string(a.Body) != "two" ||
		a.Header.Get("X-Kept") != "yes" {
		t.Errorf("a copy of the settled event gets %v", a)
	}
	reached(t, path, 2)
}

func TestASenderIsAnsweredWhenItsPatienceEndsAndTheCallGoesOn(t *testing.T) {
	t.Parallel()
	h := parking(t)
	path := at(t, "park-slow")
	work := shared.holds(t, path)
	began := time.Now()
	a := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	acceptedAs(t, testkit.Receive(t, "an answer", a), 202)
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("accepted after %v, and the sender waits for 300ms", took)
	}
	acceptedAs(t, testkit.Post(t, h.Addr, path, "{}", key("1")), 202)
	work.answer <- testkit.OK("the true answer")
	settles(t, h.Addr, path, "{}", "1", 200, "the true answer")
	reached(t, path, 1)
}

func TestADeliveryThatWasAnsweredBeforeTheServiceIsFoundByItsEvent(t *testing.T) {
	t.Parallel()
	h := parking(t)
	path := at(t, "park-slow")
	work := shared.holds(t, path)
	a := testkit.GoPost(t, h.Addr, path, "{}", key("evt_slow"))
	work.await(t)
	acceptedAs(t, testkit.Receive(t, "an answer", a), 202)
	testkit.Until(t, "the arrival is written", func() bool {
		list := cli(t, h, "executions", "list", "--decision", "parked", "--event", "evt_slow", "-o", "json")
		return strings.Contains(list, `"eventId":"evt_slow"`) && strings.Contains(list, `"from":"127.0.0.1"`)
	})
	work.answer <- testkit.OK("done")
	settles(t, h.Addr, path, "{}", "evt_slow", 200, "done")
}

func TestTheTimeOfAServiceThatIsTooSlowIsNotOurs(t *testing.T) {
	t.Parallel()
	h := own(t, strings.ReplaceAll(parkConfig(shared.up.URL, ownPrefix()), "after: 300ms", "after: 6s"))
	path := at(t, "park-slow")
	work := shared.holds(t, path)
	a := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	acceptedAs(t, testkit.Receive(t, "an answer", a), 202)
	shows(t, h, `hooklock_delivery_overhead_duration_seconds_count{route="park-slow"} 1`)
	shows(t, h, `hooklock_parked_accepted_total{on="slow",route="park-slow"} 1`)
	if page := h.Metrics(t); !strings.Contains(page, `hooklock_delivery_overhead_duration_seconds_bucket{route="park-slow",le="5"} 1`) {
		t.Errorf("what Hooklock itself took is in %s", regexp.MustCompile(`(?m)^hooklock_delivery_overhead.*park-slow.*$`).FindAllString(page, -1))
	}
	work.answer <- testkit.OK("done")
	settles(t, h.Addr, path, "{}", "1", 200, "done")
}

// Once the sender has its 2xx, nothing takes an answer that is too long to be read whole.
func TestALongAnswerBehindAnAcceptedEventIsItsEnd(t *testing.T) {
	t.Parallel()
	h := own(t, parkConfig(shared.up.URL, ownPrefix())+"limits: {response_body: 64KiB}\n")
	path := at(t, "park-slow")
	work := shared.holds(t, path)
	a := testkit.GoPost(t, h.Addr, path, "1", key("1"))
	got := work.await(t)
	acceptedAs(t, testkit.Receive(t, "an answer", a), 202)
	long := testkit.OK(strings.Repeat("x", 1<<20))
	if err := got.Conn.Say(long[:len(long)/2]); err != nil {
		t.Fatal(err)
	}
	work.answer <- "" // and hangs up
	if line := h.AwaitLine(t, h.Stderr, "execution.tried"); !strings.Contains(line, `"outcome":"unknown"`) {
		t.Errorf("an answer that was cut off is told as %s", line)
	}
	work.await(t)
	work.answer <- long
	settles(t, h.Addr, path, "1", "1", 200, "")
	a = testkit.GoPost(t, h.Addr, path, "2", key("2"))
	work.await(t)
	acceptedAs(t, testkit.Receive(t, "an answer", a), 202)
	work.answer <- long
	settles(t, h.Addr, path, "2", "2", 200, "")
}

func TestARequestThatCannotBeReadIsNoTry(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "requests")
	h := own(t, strings.Replace(parkConfig(shared.up.URL, ownPrefix()), "single_member: true",
		fmt.Sprintf("single_member: true, dir: %q", dir), 1))
	path := at(t, "park")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, h.Addr, path, "1", key("1"))
	work.await(t)
	acceptedAs(t, testkit.Post(t, h.Addr, path, strings.Repeat("2", 48<<10), key("2")), 202)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	work.answer <- testkit.OK("one")
	passed(t, testkit.Receive(t, "the first answer", first), 200, "one", "executed")
	h.AwaitLine(t, h.Stderr, "requests.failed")
	h.AwaitLine(t, h.Stderr, "execution.retry")
	if log := h.Stderr.String(); strings.Contains(log, "execution.tried") {
		t.Errorf("the service was not called, and the log says %s", log)
	}
	if page := h.Metrics(t); regexp.MustCompile(`(?m)^hooklock_parked_tries_total.*(result=""| [1-9][0-9]*$)`).MatchString(page) {
		t.Errorf("the service was not called, and the metrics say %s", page)
	}
}

func TestAnAnswerInTimeIsTheUpstreams(t *testing.T) {
	t.Parallel()
	h := own(t, strings.ReplaceAll(parkConfig(shared.up.URL, ownPrefix()), "after: 300ms", "after: 60s"))
	for _, route := range []string{"park", "park-slow", "park-wait", "park-failed"} {
		passed(t, testkit.Post(t, h.Addr, at(t, route), "{}", key("1")), 200, "done", "executed")
		passed(t, testkit.Post(t, h.Addr, at(t, route), "{}", key("1")), 200, "done", "replayed")
	}
}

func TestWaitersParkInTheirOrder(t *testing.T) {
	t.Parallel()
	h := parking(t)
	path := at(t, "park-wait")
	work := shared.holds(t, path)
	acceptedAs(t, testkit.Receive(t, "the first is slow", testkit.GoPost(t, h.Addr, path, "1", key("1"))), 202)
	work.await(t)
	for i := 2; i < 6; i++ {
		acceptedAs(t, testkit.Post(t, h.Addr, path, strconv.Itoa(i), key(strconv.Itoa(i))), 202)
	}
	for i := 1; i < 5; i++ {
		work.answer <- testkit.OK("done")
		if got := work.await(t).Body; got != strconv.Itoa(i+1) {
			t.Fatalf("%s runs after %d", got, i)
		}
	}
	work.answer <- testkit.OK("done")
	if n := shared.up.MostAtOnce("pw/" + path[strings.LastIndex(path, "/")+1:]); n != 1 {
		t.Errorf("%d events of the workflow ran at once", n)
	}
}

func TestWhatTheUpstreamFailsIsTriedAgainWithALargerToken(t *testing.T) {
	t.Parallel()
	h := parking(t)
	for name, c := range map[string]struct {
		route, first string
		status       float64 // of the only answer that said failure; 0: there was none
	}{
		"a 503":     {"park-failed", testkit.Reply(503, "not now"), 503},
		"a 409":     {"park-failed", testkit.Reply(409, "something is in the way"), 409},
		"a 423":     {"park-failed", testkit.Reply(423, "a row is locked"), 423},
		"a 425":     {"park-failed", testkit.Reply(425, "too early"), 425},
		"no answer": {"park", "", 0},
		"cut":       {"park", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := at(t, c.route)
			var mu sync.Mutex
			calls := 0
			shared.on(t, path, func(*testkit.Received) string {
				mu.Lock()
				defer mu.Unlock()
				if calls++; calls == 1 {
					if strings.Contains(c.first, "half") {
						return ""
					}
					return c.first
				}
				return testkit.OK("at last")
			})
			id := acceptedAs(t, testkit.Post(t, h.Addr, path, "{}", key("1")), 202)
			settles(t, h.Addr, path, "{}", "1", 200, "at last")
			got := shared.up.Received(path)
			if len(got) != 2 {
				t.Fatalf("called %d times", len(got))
			}
			var tokens [2]int
			for i, r := range got {
				tokens[i], _ = strconv.Atoi(r.Header.Get("Hooklock-Fencing-Token"))
				if r.Header.Get("Hooklock-Execution") != id {
					t.Errorf("try %d is of execution %s, not %s", i+1, r.Header.Get("Hooklock-Execution"), id)
				}
			}
			if tokens[1] <= tokens[0] {
				t.Errorf("tokens %v: the second try has no larger one", tokens)
			}
			if failed, _ := execution(t, h, id)["failedAnswers"].([]any); c.status != 0 &&
				(len(failed) != 1 || failed[0].(map[string]any)["status"] != c.status) {
				t.Errorf("answers that said failure: %v, want one %v", failed, c.status)
			}
		})
	}
}

// service is an upstream on a port of its own that goes away and comes back.
type service struct {
	addr string

	mu   sync.Mutex
	got  []string
	srv  *http.Server
	most map[string]int
	runs map[string]int
	work func(r *http.Request)
}

func newService(t *testing.T) *service {
	s := &service{addr: testkit.FreePort(t), most: map[string]int{}, runs: map[string]int{}}
	t.Cleanup(func() { s.down(t) })
	return s
}

func (s *service) up(t *testing.T) {
	t.Helper()
	var lc net.ListenConfig
	var ln net.Listener
	testkit.Until(t, "the service's port", func() (ok bool) {
		var err error
		ln, err = lc.Listen(t.Context(), "tcp", s.addr)
		return err == nil
	})
	s.srv = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.srv.Serve(ln) }()
}

func (s *service) down(t *testing.T) {
	t.Helper()
	if s.srv != nil {
		if err := s.srv.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		s.srv = nil
	}
}

// ServeHTTP notes what came, in its order.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	workflow := r.Header.Get("Hooklock-Workflow")
	s.mu.Lock()
	s.got = append(s.got, workflow+" "+string(body))
	s.runs[workflow]++
	s.most[workflow] = max(s.most[workflow], s.runs[workflow])
	work := s.work
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs[workflow]--
	}()
	if work != nil {
		work(r)
	}
	fmt.Fprintf(w, "did %s", body)
}

func (s *service) received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func TestEventsOfAnOutageRunInOrderWhenTheUpstreamIsBack(t *testing.T) {
	t.Parallel()
	up := newService(t)
	h := own(t, parkConfig("http://"+up.addr, ownPrefix()))
	const workflows, events = 5, 6
	for i := range events {
		for w := range workflows {
			acceptedAs(t, testkit.Post(t, h.Addr, fmt.Sprintf("/park/w%d", w), strconv.Itoa(i),
				key(fmt.Sprint(w, "-", i))), 202)
		}
	}
	up.up(t)
	testkit.Until(t, "all to run", func() bool { return len(up.received()) >= workflows*events })
	next := map[string]int{}
	for _, line := range up.received() {
		workflow, n, _ := strings.Cut(line, " ")
		if n != strconv.Itoa(next[workflow]) {
			t.Fatalf("event %s of %s runs, and %d is next", n, workflow, next[workflow])
		}
		next[workflow]++
	}
	for w := range workflows {
		settles(t, h.Addr, fmt.Sprintf("/park/w%d", w), "5", fmt.Sprint(w, "-5"), 200, "did 5")
	}
	for workflow, n := range up.most {
		if n > 1 {
			t.Errorf("%d events of %s at once", n, workflow)
		}
	}
}

func TestADuplicateIsTheSameWhetherItsRouteAcceptsAtOnceOrNot(t *testing.T) {
	t.Parallel()
	h := parking(t)
	for _, route := range []string{"park", "park-now"} {
		path := at(t, route)
		shared.on(t, path, func(*testkit.Received) string {
			return testkit.Reply(201, "the true answer", "X-Kept: yes")
		})
		testkit.Post(t, h.Addr, path, "{}", key("1"))
		settles(t, h.Addr, path, "{}", "1", 201, "the true answer")
		id := testkit.Post(t, h.Addr, path, "{}", key("1")).Execution()
		duplicates := func() (n int) {
			_, rest, _ := strings.Cut(cli(t, h, "show", id, "-o", "json"), `"duplicates": `)
			n, _ = strconv.Atoi(rest[:strings.IndexAny(rest+",", ",\n}")])
			return n
		}
		before := duplicates()
		for range 3 {
			testkit.Post(t, h.Addr, path, "{}", key("1"))
		}
		if n := duplicates(); n != before+3 {
			t.Errorf("%s: three more duplicates are %d", route, n-before)
		}
	}
}

func TestASenderThatDoesNotWaitIsAnsweredAtOnceAlways(t *testing.T) {
	t.Parallel()
	h := parking(t)
	path := at(t, "park-now")
	work := shared.holds(t, path)
	acceptedAs(t, testkit.Post(t, h.Addr, path, "{}", key("1")), 204)
	work.await(t)
	work.answer <- testkit.OK("behind the sender's back")
	settles(t, h.Addr, path, "{}", "1", 200, "behind the sender's back")
}

func TestAnotherReplicaTakesOverWhatADeadOneHadAccepted(t *testing.T) {
	t.Parallel()
	prefix := ownPrefix()
	config := strings.Replace(parkConfig(shared.up.URL, prefix), "request_timeout: 10s",
		"request_timeout: 2s, session_ttl: 3s", 1)
	path := at(t, "park-slow")
	work, stuck := newHeld(t), newHeld(t)
	var calls atomic.Int32
	shared.on(t, path, func(r *testkit.Received) string {
		if calls.Add(1) == 1 { // of the one that dies
			return stuck.handle(r)
		}
		return work.handle(r)
	})
	victim := testkit.Serve(t, hooklockProgram, config)
	id := acceptedAs(t, testkit.Post(t, victim.Addr, path, "1", key("1")), 202)
	first := stuck.await(t)
	for i := 2; i < 5; i++ {
		acceptedAs(t, testkit.Post(t, victim.Addr, path, strconv.Itoa(i), key(strconv.Itoa(i))), 202)
	}
	victim.Kill()
	h := own(t, config)
	again := work.await(t) // its outcome is unknown, so it is tried again, before all others
	if again.Body != "1" || again.Header.Get("Hooklock-Execution") != id {
		t.Fatalf("the survivor tries %q of %s first", again.Body, again.Header.Get("Hooklock-Execution"))
	}
	if number(t, again) <= number(t, first) {
		t.Errorf("token %d after %d", number(t, again), number(t, first))
	}
	for i := 1; i < 5; i++ {
		work.answer <- testkit.OK("done " + strconv.Itoa(i))
		if i < 4 {
			if got := work.await(t).Body; got != strconv.Itoa(i+1) {
				t.Fatalf("%s runs after %d", got, i)
			}
		}
	}
	settles(t, h.Addr, path, "4", "4", 200, "done 4")
}

func number(t *testing.T, r *testkit.Received) int {
	t.Helper()
	n, err := strconv.Atoi(r.Header.Get("Hooklock-Fencing-Token"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAProcessThatEndsParksWhatWaits(t *testing.T) {
	t.Parallel()
	prefix := ownPrefix()
	config := strings.Replace(parkConfig(shared.up.URL, prefix), "after: 300ms", "after: 50s", 2)
	path := at(t, "park-wait")
	work := shared.holds(t, path)
	h := testkit.Serve(t, hooklockProgram, config)
	first := testkit.GoPost(t, h.Addr, path, "1", key("1"))
	work.await(t)
	second := testkit.GoPost(t, h.Addr, path, "2", key("2"))
	testkit.Until(t, "the second to wait", func() bool { return queued(t, prefix) == 1 })
	h.Signal(t, syscall.SIGTERM)
	acceptedAs(t, testkit.Receive(t, "an answer to the second", second), 202)
	work.answer <- testkit.OK("one")
	passed(t, testkit.Receive(t, "an answer to the first", first), 200, "one", "executed")
	if code := h.ExitCode(t); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	next := own(t, config)
	work.await(t)
	work.answer <- testkit.OK("two")
	settles(t, next.Addr, path, "2", "2", 200, "two")
}

func TestADeadLetterLetsTheNextOneRun(t *testing.T) {
	t.Parallel()
	h := parking(t)
	for name, poison := range map[string]int{"a refusal": 422, "a redirect, which is not followed": 308} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			poisoned(t, h, at(t, "park-skip"), poison)
		})
	}
}

// poisoned lets the service answer the first of two events with status, and checks that it becomes
// a dead letter and the second one runs.
func poisoned(t *testing.T, h *testkit.Hooklock, path string, status int) {
	t.Helper()
	shared.on(t, path, func(r *testkit.Received) string {
		if r.Body == "poison" {
			return testkit.Reply(status, "never")
		}
		return testkit.OK("fine")
	})
	id := acceptedAs(t, testkit.Post(t, h.Addr, path, "poison", key("1")), 202)
	acceptedAs(t, testkit.Post(t, h.Addr, path, "good", key("2")), 202)
	settles(t, h.Addr, path, "good", "2", 200, "fine")
	testkit.Until(t, "the poison to be a dead letter", func() bool { return execution(t, h, id)["status"] == "FAILED" })
	if got := execution(t, h, id); got["requestKept"] != true {
		t.Errorf("its request is not kept: %v", got)
	}
	if got := execution(t, h, id); got["parkedOn"] != "locked" ||
		!strings.Contains(fmt.Sprint(got["error"]), fmt.Sprintf("the upstream answered %d", status)) {
		t.Errorf("it does not say why: %v", got)
	}
	if n := len(shared.up.Received(path)); n != 2 {
		t.Errorf("%d calls", n)
	}
}

func TestWhatIsParkedRunsWhereTheRouteOfTheEventBeforeItIsGone(t *testing.T) {
	t.Parallel()
	const first = `  - {name: park-now, path: "/park-now/{w}", workflow: "now/{path.w}", park: {enabled: true, after: 0s, answer: 204}}` + "\n"
	config := parkConfig(shared.up.URL, ownPrefix()) + strings.ReplaceAll(first, "park-now", "park-then")
	h := own(t, config)
	path, then := at(t, "park-now"), at(t, "park-then")
	work := shared.holds(t, path)
	shared.on(t, then, answers(testkit.OK("then")))
	acceptedAs(t, testkit.Post(t, h.Addr, path, "1", key("1")), 204)
	work.await(t)
	acceptedAs(t, testkit.Post(t, h.Addr, then, "2", key("2")), 204)
	write(t, h.Config, strings.Replace(config, first, "", 1))
	h.Stderr.AwaitRecord(t, "config.reloaded", nil)
	work.answer <- testkit.OK("one")
	settles(t, h.Addr, then, "2", "2", 200, "then")
}

func TestABlockedEventKeepsItsWorkflowsOrder(t *testing.T) {
	t.Parallel()
	h := parking(t)
	path := at(t, "park-hold")
	shared.on(t, path, answers(testkit.Reply(500, "broken"), testkit.OK("repaired")))
	id := acceptedAs(t, testkit.Post(t, h.Addr, path, "1", key("1")), 202)
	next := acceptedAs(t, testkit.Post(t, h.Addr, path, "2", key("2")), 202)
	testkit.Until(t, "the first to wait for a person", func() bool {
		parked, _ := execution(t, h, id)["parked"].(map[string]any)
		return parked["blocked"] != nil
	})
	if got := execution(t, h, next); got["status"] != "PENDING" {
		t.Errorf("the next one is %v", got["status"])
	}
	if n := len(shared.up.Received(path)); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// execution is what the admin API says of it.
func execution(t *testing.T, h *testkit.Hooklock, id string) map[string]any {
	t.Helper()
	_, got := asked(t, h, http.MethodGet, "/v1/executions/"+id, "", "")
	return got
}

func TestNothingIsAcceptedThatIsNotCommitted(t *testing.T) {
	t.Parallel()
	members := testkit.StartEtcd(t, etcdProgram, 1)
	config := strings.NewReplacer(shared.etcd.Endpoint, members[0].Endpoint, "request_timeout: 10s",
		"request_timeout: 1s").Replace(parkConfig(shared.up.URL, ownPrefix()))
	h := testkit.Serve(t, hooklockProgram, config)
	t.Cleanup(h.Kill)
	path := at(t, "park")
	work := shared.holds(t, path)
	_ = testkit.GoPost(t, h.Addr, path, "1", key("1"))
	work.await(t)
	members[0].Freeze(t)
	a := testkit.Post(t, h.Addr, path, "2", key("2"))
	members[0].Thaw(t)
	if a.Status < 400 || a.Decision() == "parked" {
		t.Errorf("accepted while etcd stood still: %v", a)
	}
}
