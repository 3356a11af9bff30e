package e2e

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// controlled is a Hooklock with the token that steers it.
type controlled struct {
	*testkit.Hooklock
	token string
}

// controlledFleet is two processes on one etcd.
func controlledFleet(t *testing.T, prefix string) (both [2]controlled) {
	t.Helper()
	for i, h := range fleet(t, prefix) {
		both[i] = controlled{h, localToken(t, h)}
	}
	return both
}

// cancel asks for the end of an execution at h.
func (h controlled) cancel(t *testing.T, execution, body string, status int) map[string]any {
	t.Helper()
	got, a := asked(t, h.Hooklock, "POST", "/v1/executions/"+execution+"/cancel", h.token, body)
	if got != status {
		t.Fatalf("cancel: %d %v", got, a)
	}
	return a
}

// shows waits until h says that an execution has this status, and returns all that it says.
func (h controlled) shows(t *testing.T, execution, status string) (a map[string]any) {
	t.Helper()
	testkit.Until(t, execution+" is "+status, func() bool {
		_, a = asked(t, h.Hooklock, "GET", "/v1/executions/"+execution+"?wait=1s", "", "")
		return a["status"] == status
	})
	return a
}

// upstream is what the upstream of an execution has to speak for it.
type upstream struct{ execution, token, key string }

func upstreamOf(r *testkit.Received) upstream {
	return upstream{r.Header.Get("Hooklock-Execution"), r.Header.Get("Hooklock-Fencing-Token"),
		r.Header.Get("Hooklock-Callback-Key")}
}

// says calls back at h; more is JSON members after the token.
func (u upstream) says(t *testing.T, h controlled, what, more string) (int, map[string]any) {
	t.Helper()
	body := "{" + strings.TrimPrefix(more, ",") + "}"
	if u.token != "" {
		body = `{"token":` + u.token + more + "}"
	}
	return asked(t, h.Hooklock, "POST", "/v1/executions/"+u.execution+"/"+what, u.key, body)
}

func (u upstream) mustSay(t *testing.T, h controlled, what, more string, status int) map[string]any {
	t.Helper()
	got, a := u.says(t, h, what, more)
	if got != status {
		t.Fatalf("%s: %d %v", what, got, a)
	}
	return a
}

// holding delivers an event that the upstream answers with a hold.
func holding(t *testing.T, h controlled, path, hold string) upstream {
	t.Helper()
	arrived := make(chan *testkit.Received, 100)
	next := answers(asks(hold), testkit.OK("next"))
	shared.on(t, path, func(r *testkit.Received) string {
		arrived <- r
		return next(r)
	})
	passed(t, testkit.Post(t, h.Addr, path, "{}", key("1")), 200, "later", "executed")
	return upstreamOf(testkit.Receive(t, "the event at the upstream", arrived))
}

// closing is an upstream that works on the first event until its call is closed, and answers the
// others.
func closing(t *testing.T, path string) (arrived <-chan string, closed <-chan time.Time) {
	t.Helper()
	begun, over := make(chan string, 100), make(chan time.Time, 1)
	var first sync.Once
	shared.on(t, path, func(r *testkit.Received) string {
		answer := testkit.OK("next")
		first.Do(func() {
			begun <- r.Header.Get("Hooklock-Execution")
			_, _ = r.Conn.Read(make([]byte, 1))
			over <- time.Now()
			answer = ""
		})
		return answer
	})
	return begun, over
}

func TestACancelAtAnotherReplicaClosesTheCallAndTellsTheSender(t *testing.T) {
	t.Parallel()
	both := controlledFleet(t, "cancelled")
	path := at(t, "plain")
	arrived, closed := closing(t, path)
	sender := testkit.GoPost(t, both[0].Addr, path, "{}", key("1"))
	id := testkit.Receive(t, "the event at the upstream", arrived)
	asked := time.Now()
	if a := both[1].cancel(t, id, `{"reason":"wrong customer"}`, 202); a["success"] != true {
		t.Errorf("%v", a)
	}
	t.Logf("the call was closed after %s", testkit.Receive(t, "the end of the call", closed).Sub(asked))
	a := testkit.Receive(t, "the answer", sender)
	refused{503, "execution_aborted", "unknown", "aborted"}.check(t, a)
	ended := both[1].shows(t, id, "ABORTED")
	if ended["outcome"] != "unknown" || ended["abortedBy"] != "admin" || ended["abortReason"] != "wrong customer" ||
		ended["abortedAt"] == nil || ended["error"] != nil {
		t.Errorf("%v", ended)
	}
	both[0].Stderr.AwaitRecord(t, "execution.cancelled", func(r testkit.Record) bool {
		return r.Text("execution") == id && r.Text("by") == "admin"
	})
	if a := both[0].cancel(t, id, `{"reason":"twice"}`, 200); a["abortReason"] != "wrong customer" {
		t.Errorf("%v", a)
	}
	again := testkit.Post(t, both[1].Addr, path, "{}", key("1"))
	passed(t, again, 200, "next", "executed")
	if a := both[0].cancel(t, again.Execution(), `{"reason":"too late"}`, 400); a["code"] != "already_finished" {
		t.Errorf("%v", a)
	}
}

func TestAnEventThatIsCancelledInTheQueueNeverReachesTheUpstream(t *testing.T) {
	t.Parallel()
	both := controlledFleet(t, "dequeued")
	path := at(t, "wait")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, both[0].Addr, path, "{}", key("1"))
	work.await(t)
	second := testkit.GoPost(t, both[0].Addr, path, "{}", key("2"))
	testkit.Until(t, "it waits", func() bool { return queued(t, "/dequeued") == 1 })
	id := testkit.Post(t, both[1].Addr, path, "{}", key("2")).Execution()
	both[1].cancel(t, id, `{"reason":"not needed","final":true}`, 202)
	a := testkit.Receive(t, "the answer of the one that waited", second)
	refused{503, "execution_aborted", "no", "aborted"}.check(t, a)
	if a.Execution() != id {
		t.Errorf("names %s, not %s", a.Execution(), id)
	}
	if ended := both[1].shows(t, id, "ABORTED"); ended["outcome"] != "not_executed" {
		t.Errorf("%v", ended)
	}
	work.answer <- testkit.OK("")
	testkit.Receive(t, "the first answer", first)
	for _, h := range both { // for good
		refused{503, "execution_aborted", "no", "aborted"}.check(t, testkit.Post(t, h.Addr, path, "{}", key("2")))
	}
	reached(t, path, 1)
}

func TestALockThatIsReleasedByForceClosesItsCall(t *testing.T) {
	t.Parallel()
	both := controlledFleet(t, "forced")
	path := at(t, "plain")
	arrived, closed := closing(t, path)
	sender := testkit.GoPost(t, both[0].Addr, path, "{}", key("1"))
	id := testkit.Receive(t, "the event at the upstream", arrived)
	lock := "/v1/locks/" + url.PathEscape(strings.TrimPrefix(path, "/"))
	if status, a := asked(t, both[1].Hooklock, "DELETE", lock+"?execution="+id+"&reason=stuck", both[1].token,
		""); status != 200 {
		t.Fatalf("%d %v", status, a)
	}
	testkit.Receive(t, "the end of the call", closed)
	refused{503, "lock_lost", "unknown", "lock_lost"}.check(t, testkit.Receive(t, "the answer", sender))
	if ended := both[0].shows(t, id, "ABORTED"); ended["abortedBy"] != "admin" {
		t.Errorf("%v", ended)
	}
	passed(t, testkit.Post(t, both[1].Addr, path, "{}", key("2")), 200, "next", "executed")
}

func TestAHeldExecutionIsRenewedAndCompletedAtAnotherReplica(t *testing.T) {
	t.Parallel()
	both := controlledFleet(t, "completed")
	path := at(t, "hold")
	up := holding(t, both[0], path, "10s")
	for _, h := range both {
		up.mustSay(t, h, "heartbeat", `,"ttl":"50s"`, 200)
		isHeld(t, h.Hooklock, path, up.execution, 40, 50)
		if a := up.mustSay(t, h, "guard", `,"step":"charge","plan":["charge","ship"]`, 200); a["proceed"] != true {
			t.Errorf("%v", a)
		}
	}
	both[0].Kill()
	up.mustSay(t, both[1], "complete",
		`,"status":"SUCCESS","response":{"status":201,"headers":{"X-Result":"7"},"body":"shipped"}`, 200)
	r := both[1].Stderr.AwaitRecord(t, "lock.released", func(r testkit.Record) bool {
		return r.Text("execution") == up.execution
	})
	if r.Number("held_ms") <= 0 || r.Text("outcome") != "executed" || r.Text("trace_id") == "" {
		t.Errorf("%v", r)
	}
	a := testkit.Post(t, both[1].Addr, path, "{}", key("1"))
	passed(t, a, 201, "shipped", "replayed")
	if a.Header.Get("X-Result") != "7" || a.Execution() != up.execution {
		t.Errorf("%v", a)
	}
	if ended := both[1].shows(t, up.execution, "SUCCESS"); ended["outcome"] != "executed" {
		t.Errorf("%v", ended)
	}
	passed(t, testkit.Post(t, both[1].Addr, path, "{}", key("2")), 200, "next", "executed")
}

func TestADuplicateThatIsAttachedToAHeldExecutionGetsItsFinalAnswer(t *testing.T) {
	t.Parallel()
	both := controlledFleet(t, "attached-held")
	path := at(t, "hold-attach")
	up := holding(t, both[0], path, "40s")
	attached := testkit.GoPost(t, both[1].Addr, path, "{}", key("1"))
	testkit.Until(t, "it is attached", func() bool { return waiting(t, both[1].Hooklock) == 1 })
	up.mustSay(t, both[0], "complete", `,"status":"SUCCESS","response":{"status":200,"body":"shipped"}`, 200)
	passed(t, testkit.Receive(t, "the answer of the copy", attached), 200, "shipped", "attached")
}

func TestAFailedHoldLetsItsEventRunAgain(t *testing.T) {
	t.Parallel()
	both := controlledFleet(t, "failed-hold")
	path := at(t, "hold")
	up := holding(t, both[0], path, "40s")
	up.mustSay(t, both[1], "complete", `,"status":"FAILED","error":{"code":"no_stock"}`, 200)
	if ended := both[0].shows(t, up.execution, "FAILED"); ended["error"].(map[string]any)["code"] != "no_stock" {
		t.Errorf("%v", ended)
	}
	passed(t, testkit.Post(t, both[0].Addr, path, "{}", key("1")), 200, "next", "executed")
}

func TestTheUpstreamOfAHeldExecutionIsToldOfACancel(t *testing.T) {
	t.Parallel()
	both := controlledFleet(t, "held-cancelled")
	path := at(t, "hold")
	up := holding(t, both[0], path, "8s")
	up.mustSay(t, both[0], "guard", `,"step":"charge","plan":["charge","ship"]`, 200)
	both[1].cancel(t, up.execution, `{"reason":"wrong customer"}`, 202)
	both[0].cancel(t, up.execution, `{"reason":"twice"}`, 200)
	for _, h := range both {
		if a := up.mustSay(t, h, "guard", `,"step":"ship"`, 409); a["proceed"] != false ||
			a["status"] != "CANCEL_REQUESTED" {
			t.Errorf("%v", a)
		}
		up.mustSay(t, h, "heartbeat", "", 409)
	}
	ended := both[1].shows(t, up.execution, "ABORTED") // when the hold runs out
	if ended["outcome"] != "unknown" || ended["abortReason"] != "wrong customer" ||
		!strings.Contains(fmt.Sprint(ended["steps"]), "skipped") {
		t.Errorf("%v", ended)
	}
	refused{409, "outcome_unknown", "unknown", "unknown"}.check(t, testkit.Post(t, both[0].Addr, path, "{}", key("1")))
}

func TestAForgottenEventRunsAgainAtEveryReplica(t *testing.T) {
	t.Parallel()
	both := controlledFleet(t, "forgotten")
	path := at(t, "block")
	shared.on(t, path, answers("", testkit.OK("again")))
	first := testkit.Post(t, both[0].Addr, path, "{}", key("1"))
	for _, h := range both { // each remembers
		refused{409, "outcome_unknown", "unknown", "unknown"}.check(t, testkit.Post(t, h.Addr, path, "{}", key("1")))
	}
	if status, a := asked(t, both[1].Hooklock, "DELETE", "/v1/executions/"+first.Execution()+"?reason=looked",
		both[1].token, ""); status >= 300 {
		t.Fatalf("%d %v", status, a)
	}
	since := time.Now()
	var a *testkit.Answer
	testkit.Until(t, "the event runs at the other one", func() bool {
		a = testkit.Post(t, both[0].Addr, path, "{}", key("1"))
		return !undecided(a)
	})
	if took := time.Since(since); took > 30*time.Second { // a replica that is not told remembers for a minute
		t.Errorf("it took %s", took)
	}
	passed(t, a, 200, "again", "executed")
}

func TestWithoutALockTheUpstreamSpeaksForItsEventWithoutAToken(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("tokenless", ""))
	by := controlled{h, localToken(t, h)}
	up := holding(t, by, at(t, "none"), "40s")
	if up.token != "" {
		t.Fatalf("a token that fences nothing: %s", up.token)
	}
	up.mustSay(t, by, "heartbeat", "", 200)
	up.mustSay(t, by, "guard", `,"step":"one"`, 200)
	up.mustSay(t, by, "complete", `,"status":"SUCCESS","response":{"status":200,"body":"shipped"}`, 200)
	passed(t, testkit.Post(t, h.Addr, at(t, "none"), "{}", key("1")), 200, "shipped", "replayed")
}

// TestAKillLeavesOneClearEnd kills a replica that holds an execution and is being told of a cancel,
// of its end, or of both; the other one has to show one end, which is what the dying one said as
// far as it said anything, and to stand by it.
func TestAKillLeavesOneClearEnd(t *testing.T) {
	t.Parallel()
	config := shared.config("killed", "")
	survivor := own(t, config)
	other := controlled{survivor, localToken(t, survivor)}
	for _, what := range []string{"", "cancel", "complete", "cancel complete"} {
		for _, when := range []string{"sent", "answered"} {
			t.Run(strings.TrimSpace(what+" "+when), func(t *testing.T) {
				t.Parallel()
				h := testkit.Serve(t, hooklockProgram, config)
				dying := controlled{h, localToken(t, h)}
				up := holding(t, dying, at(t, "hold"), "3s")
				said := tellAndKill(t, dying, up, strings.Fields(what), when)
				oneEnd(t, other, up, said)
			})
		}
	}
}

// tellAndKill asks for things at once, and kills the process when they are sent or answered. It
// returns the status of each answer that came.
func tellAndKill(t *testing.T, h controlled, up upstream, what []string, when string) map[string]int {
	t.Helper()
	type answer struct {
		what   string
		status int
	}
	sent, answered := make(chan struct{}, len(what)), make(chan answer, len(what))
	for _, w := range what {
		go func() {
			body, token := `{"token":`+up.token+`,"status":"SUCCESS"}`, up.key
			if w == "cancel" {
				body, token = `{"reason":"kill"}`, h.token
			}
			answered <- answer{w, tell(h.Admin, "/v1/executions/"+up.execution+"/"+w, token, body, sent)}
		}()
	}
	for range what {
		testkit.Receive(t, "the request", sent)
	}
	said := map[string]int{}
	collect := func() {
		for range what {
			a := testkit.Receive(t, "an answer, or the end of the connection", answered)
			said[a.what] = a.status
		}
	}
	if when == "sent" {
		h.Kill()
		collect()
	} else {
		collect()
		h.Kill()
	}
	return said
}

// tell sends a change, and returns the status of the answer; 0 = none came.
func tell(addr, path, token, body string, sent chan<- struct{}) int {
	c, err := net.DialTimeout("tcp", addr, testkit.Patience)
	if err != nil {
		sent <- struct{}{}
		return 0
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testkit.Patience))
	fmt.Fprintf(c,
		"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", path, token, len(body), body)
	sent <- struct{}{}
	var version string
	var status int
	_, _ = fmt.Fscan(c, &version, &status)
	return status
}

// oneEnd says that an execution has ended once: in the way that was said, if anything was, and for
// ever.
func oneEnd(t *testing.T, h controlled, up upstream, said map[string]int) {
	t.Helper()
	var end map[string]any
	testkit.Until(t, "an end", func() bool {
		_, end = asked(t, h.Hooklock, "GET", "/v1/executions/"+up.execution+"?wait=1s", "", "")
		return end["outcome"] != nil
	})
	t.Logf("said %v, ended as %v, %v", said, end["status"], end["outcome"])
	switch {
	case said["complete"] == 200 && end["status"] != "SUCCESS",
		said["cancel"] == 202 && said["complete"] != 200 && end["status"] == "FAILED":
		t.Errorf("said %v, ended as %v", said, end["status"])
	}
	for what, more := range map[string]string{"complete": `,"status":"FAILED"`, "heartbeat": "",
		"guard": `,"step":"late"`} {
		if status, a := up.says(t, h, what, more); status != 409 && status != 412 {
			t.Errorf("%s: %d %v", what, status, a)
		}
	}
	if _, again := asked(t, h.Hooklock, "GET", "/v1/executions/"+up.execution, "",
		""); again["status"] != end["status"] || again["outcome"] != end["outcome"] {
		t.Errorf("first %v, then %v", end, again)
	}
}

func TestACancelCutsAnAnswerThatIsStreamed(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("streamed", "limits: {response_body: 64KiB}"))
	by := controlled{h, localToken(t, h)}
	path := at(t, "plain")
	arrived := make(chan string, 1)
	shared.on(t, path, func(r *testkit.Received) string {
		_ = r.Conn.Say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", long,
			strings.Repeat("a", long/2)))
		arrived <- r.Header.Get("Hooklock-Execution")
		_, _ = r.Conn.Read(make([]byte, 1))
		return ""
	})
	c := testkit.Dial(t, h.Addr)
	c.Say(testkit.Request(path, "{}", key("1")))
	if line, err := c.Reader().ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
		t.Fatalf("%q %v", line, err)
	}
	id := testkit.Receive(t, "the event at the upstream", arrived)
	by.cancel(t, id, `{"reason":"wrong customer"}`, 202)
	if rest, err := io.ReadAll(c.Reader()); err != nil || len(rest) > long {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
	if ended := by.shows(t, id, "ABORTED"); ended["outcome"] != "unknown" {
		t.Errorf("%v", ended)
	}
	h.Stderr.AwaitRecord(t, "delivery", func(r testkit.Record) bool {
		return r.Text("execution") == id && r.Text("decision") == "aborted"
	})
}

func TestATokenThatIsRolledIsTakenOverByASignal(t *testing.T) {
	t.Parallel()
	const first, second = planted + "-the-first-token", planted + "-the-second-token"
	file := filepath.Join(t.TempDir(), "ops.token")
	write(t, file, first)
	h := own(t, apiConfig("rolled", fmt.Sprintf(`{listen: "127.0.0.1:0", tokens: [{name: ops, token_file: %q}]}`,
		file)))
	if status, _ := asked(t, h, "GET", "/v1/locks", first, ""); status != 200 {
		t.Fatalf("the first token: %d", status)
	}
	write(t, file, second+"\n")
	h.Signal(t, syscall.SIGHUP)
	if r := h.Stderr.AwaitRecord(t, "config.reloaded", func(testkit.Record) bool {
		return true
	}); !strings.Contains(fmt.Sprint(r), "token ops: changed") {
		t.Errorf("%v", r)
	}
	for token, want := range map[string]int{first: 401, second: 200} {
		if status, _ := asked(t, h, "GET", "/v1/locks", token, ""); status != want {
			t.Errorf("%d instead of %d", status, want)
		}
	}
}
