package e2e

import (
	"fmt"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

func TestTheFirstDeliveryIsExecutedAndGetsTheUpstreamsAnswerUnchanged(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	body := "\x00\r\n\xff raw"
	shared.on(t, path, answers(testkit.Reply(201, body, "Date: Thu, 01 Jan 2026 00:00:00 GMT", "X-Mixed-cAsE: 1",
		"Set-Cookie: a=1", "Set-Cookie: b=2", "ETag: \"x\"",
		"Hooklock-Decision: forged", "hooklock-other: forged")))
	a := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	passed(t, a, 201, body, "executed")
	if !strings.HasPrefix(a.Execution(), "exec_") || a.Header.Get("Idempotent-Replayed") != "" ||
		a.Header.Get("Hooklock-Recorded") != "" {
		t.Errorf("headers of %v", a)
	}
	for _, line := range []string{"Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n", "X-Mixed-cAsE: 1\r\n",
		"Set-Cookie: a=1\r\n", "Set-Cookie: b=2\r\n", "ETag: \"x\"\r\n"} {
		if strings.Count(a.Raw, line) != 1 {
			t.Errorf("no single %q in %v", line, a)
		}
	}
	if strings.Contains(a.Raw, "forged") || strings.Contains(a.Raw, "Content-Type") ||
		strings.Contains(a.Raw, "\r\nServer:") {
		t.Errorf("something is forged or invented in %v", a)
	}
}

func TestADuplicateGetsTheFirstAnswerAgainAndDoesNotRun(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	body := "\x00\r\n\xff raw"
	shared.on(t, path, answers(testkit.Reply(201, body, "Date: Thu, 01 Jan 2026 00:00:00 GMT",
		"Content-Type: text/weird", "Set-Cookie: s="+planted, "WWW-Authenticate: Basic",
		"Keep-Alive: timeout=5", "X-Twice: 1", "X-Twice: 2", "Content-Language: de")))
	first := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	second := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	passed(t, second, 201, body, "replayed")
	if second.Header.Get("Idempotent-Replayed") != "true" || second.Execution() != first.Execution() {
		t.Errorf("headers of %v", second)
	}
	if second.Header.Get("Content-Type") != "text/weird" || len(second.Header["X-Twice"]) != 2 ||
		second.Header.Get("Content-Language") != "de" {
		t.Errorf("the first headers are missing in %v", second)
	}
	for _, gone := range []string{"Set-Cookie", "Www-Authenticate", "Keep-Alive", "Connection"} {
		if second.Header.Get(gone) != "" {
			t.Errorf("%s is replayed: %v", gone, second)
		}
	}
	if strings.Contains(second.Raw, "01 Jan 2026") {
		t.Errorf("the first Date is replayed: %v", second)
	}
	reached(t, path, 1)
}

func TestADuplicateWithOtherCredentialsGetsTheFirstStatusAlone(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	shared.on(t, path, answers(testkit.Reply(201, "for the first one only", "X-Private: yes")))
	auth := func(who string) string { return "Authorization: Bearer " + planted + who }
	testkit.Post(t, shared.patient.Addr, path, "{}", key("1"), auth("a"))
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1"), auth("a")), 201, "for the first one only",
		"replayed")
	for name, lines := range map[string][]string{
		"another Authorization": {key("1"), auth("b")},
		"no Authorization":      {key("1")},
		"another Cookie":        {key("1"), auth("a"), "Cookie: s=" + planted},
		"an API key":            {key("1"), auth("a"), "X-Api-Key: " + planted},
		"somebody else's name":  {key("1"), auth("a"), "X-Forwarded-User: mallory"},
	} {
		a := testkit.Post(t, shared.patient.Addr, path, "{}", lines...)
		if a.Status != 201 || len(a.Body) != 0 || a.Header.Get("X-Private") != "" || a.Decision() != "replayed" ||
			a.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %v", name, a)
		}
	}
}

func TestAWrongAPIKeyDoesNotGetTheFirstAnswer(t *testing.T) {
	t.Parallel()
	path := at(t, "named-credentials")
	shared.on(t, path, answers(testkit.OK("for the first one only")))
	first := []string{key("1"), "X-Api-Key: " + planted, "X-Tenant: acme"}
	passed(t, testkit.Post(t, shared.patient.Addr, path+"?token=a", "{}", first...), 200, "for the first one only",
		"executed")
	retry := append([]string{"Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"X-Signature: other", "X-Request-Id: 2"}, first...)
	passed(t, testkit.Post(t, shared.patient.Addr, path+"?token=a", "{}", retry...), 200, "for the first one only",
		"replayed")
	for name, lines := range map[string][]string{
		"a wrong key":    {key("1"), "X-Api-Key: wrong", "X-Tenant: acme"},
		"no key":         {key("1"), "X-Tenant: acme"},
		"another tenant": {key("1"), "X-Api-Key: " + planted, "X-Tenant: other"},
	} {
		if a := testkit.Post(t, shared.patient.Addr, path+"?token=a", "{}", lines...); a.Status != 200 ||
			len(a.Body) != 0 || a.Decision() != "replayed" {
			t.Errorf("%s: %v", name, a)
		}
	}
	if a := testkit.Post(t, shared.patient.Addr, path+"?token=b", "{}", first...); a.Status != 200 ||
		len(a.Body) != 0 || a.Decision() != "replayed" {
		t.Errorf("another token in the query: %v", a)
	}
}

func TestALongerBodyThanReplayBodyIsNotKept(t *testing.T) {
	t.Parallel()
	path := at(t, "small")
	long := strings.Repeat("x", 17)
	shared.on(t, path, answers(testkit.Reply(202, long, "X-A: 1")))
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 202, long, "executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 202, "", "replayed")
	shared.on(t, path, answers(testkit.OK(long[1:])))
	testkit.Post(t, shared.patient.Addr, path, "{}", key("2"))
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("2")), 200, long[1:], "replayed")
}

// conflict checks the fields that callers of the older in-application locks read.
func conflict(t *testing.T, a *testkit.Answer, holder, workflow string) {
	t.Helper()
	p := a.JSON()
	if p["success"] != false || p["error"] != "Workflow currently executing" ||
		p["details"] != "Only one execution can run at a time. Currently executing: "+holder ||
		p["existingExecutionId"] != holder ||
		p["executionId"] != holder || p["workflow"] != workflow || a.Execution() != holder {
		t.Errorf("holder %s of %s: %v", holder, workflow, a)
	}
}

func TestADuplicateOfARunningEventIsInFlightAndAnotherEventIsLocked(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	workflow := strings.TrimPrefix(path, "/")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, shared.patient.Addr, path, "{}", key("1"))
	holder := work.await(t).Header.Get("Hooklock-Execution")

	copied := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	refused{409, "execution_in_flight", "no", "in_flight"}.check(t, copied)
	conflict(t, copied, holder, workflow)
	other := testkit.Post(t, shared.patient.Addr, path, "{}", key("2"))
	refused{409, "workflow_locked", "no", "locked"}.check(t, other)
	conflict(t, other, holder, workflow)
	changed := testkit.Post(t, shared.patient.Addr, path, `{"a":1}`, key("1"))
	refused{422, "idempotency_key_reused", "no", "mismatch"}.check(t, changed)

	work.answer <- testkit.OK("first")
	passed(t, testkit.Receive(t, "the first answer", first), 200, "first", "executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 200, "first", "replayed")

	work.answer <- testkit.OK("second")
	// being refused burned nothing
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("2")), 200, "second", "executed")
	reached(t, path, 2)
}

func TestADuplicateIsReplayedWhileAnotherEventHoldsTheLock(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	work := shared.holds(t, path)
	second := testkit.GoPost(t, shared.patient.Addr, path, "{}", key("2"))
	work.await(t)
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 200, "done", "replayed")
	refused{422, "idempotency_key_reused", "no", "mismatch"}.check(t,
		testkit.Post(t, shared.patient.Addr, path, "other", key("1")))
	work.answer <- testkit.OK("")
	testkit.Receive(t, "the second answer", second)
}

func TestMismatchRejectRefusesAChangedPayloadAndASpentKeyOnAnotherQuery(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	for name, request := range map[string]string{
		"body":   testkit.Request(path, "{ }", key("1")),
		"query":  testkit.Request(path+"?a=1", "{}", key("1")),
		"method": testkit.RequestWith("PUT", path, "{}", key("1")),
		"host":   strings.Replace(testkit.Request(path, "{}", key("1")), "hooks.example.com", "other.example.com", 1),
	} {
		t.Run(name, func(t *testing.T) {
			a := testkit.Exchange(t, shared.patient.Addr, request)
			refused{422, "idempotency_key_reused", "no", "mismatch"}.check(t, a)
			if !strings.Contains(string(a.Body), `"detail":"this event ID came before with another `+name+
				`; nothing was executed"`) || !strings.Contains(string(a.Body), `"differs":["`+name+`"]`) {
				t.Errorf("it does not say what differs: %s", a.Body)
			}
			stranger := testkit.Exchange(t, shared.patient.Addr,
				strings.Replace(request, "\r\n", "\r\nAuthorization: Bearer x\r\n", 1))
			refused{422, "idempotency_key_reused", "no", "mismatch"}.check(t, stranger)
			if strings.Contains(string(stranger.Body), "differs") {
				t.Errorf("somebody else is told what differs: %s", stranger.Body)
			}
		})
	}
}

func TestMismatchReplayLetsTheEventIDAloneDecide(t *testing.T) {
	t.Parallel()
	path := at(t, "mismatch-replay")
	testkit.Post(t, shared.patient.Addr, path, `{"attempt":1}`, key("1"))
	passed(t, testkit.Post(t, shared.patient.Addr, path, `{"attempt":2}`, key("1")), 200, "done", "replayed")
}

func TestMismatchExecuteRunsAndRemembersEachPayload(t *testing.T) {
	t.Parallel()
	path := at(t, "mismatch-execute")
	shared.on(t, path, answers(testkit.OK("one"), testkit.OK("two")))
	passed(t, testkit.Post(t, shared.patient.Addr, path, "a", key("1")), 200, "one", "executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "b", key("1")), 200, "two", "executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "b", key("1")), 200, "two", "replayed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "a", key("1")), 200, "one", "replayed")
	reached(t, path, 2)
}

func TestAnAnswerThatIsNotKeptIsPassedOnAndTheEventMayRunAgain(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	shared.on(t, path, answers(testkit.Reply(500, "oops"), testkit.Reply(404, "what?"),
		testkit.Reply(302, "", "Location: /x"), testkit.OK("fine")))
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 500, "oops", "executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 404, "what?", "executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 302, "", "executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 200, "fine", "executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 200, "fine", "replayed")
	for i, r := range shared.up.Received(path) {
		if want := string(rune('1' + i)); r.Header.Get("Hooklock-Attempt") != want {
			t.Errorf("attempt %s, want %s", r.Header.Get("Hooklock-Attempt"), want)
		}
	}
}

func TestKeepSaysWhichAnswersSettleAndUnknownWhichSayNothing(t *testing.T) {
	t.Parallel()
	path := at(t, "keep")
	shared.on(t, path, answers(testkit.Reply(502, "gateway"), testkit.Reply(404, "gone")))
	a := testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
	passed(t, a, 502, "gateway", "executed")
	shared.patient.Stderr.AwaitRecord(t, "execution.unknown", func(r testkit.Record) bool {
		return r.Text("execution") == a.Execution()
	})
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 404, "gone", "executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 404, "gone", "replayed")
}

func TestWithoutIdempotencyEveryDeliveryIsItsOwnEventAndTheLockStillHolds(t *testing.T) {
	t.Parallel()
	path := at(t, "off")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, shared.patient.Addr, path, "{}", key("1"))
	work.await(t)
	refused{409, "workflow_locked", "no", "locked"}.check(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")))
	work.answer <- testkit.OK("a")
	passed(t, testkit.Receive(t, "the first answer", first), 200, "a", "executed")
	work.answer <- testkit.OK("b")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 200, "b", "executed")
}

func TestWithoutAnEventIDThePayloadIsTheKey(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	passed(t, testkit.Post(t, shared.patient.Addr, path, `{"a":1}`), 200, "done", "executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, `{"a":1}`), 200, "done", "replayed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, `{"a":2}`), 200, "done", "executed")
}

func TestWithoutAnEventIDARouteMayRejectOrPass(t *testing.T) {
	t.Parallel()
	path := at(t, "needs-id")
	refused{400, "event_id_missing", "no", "rejected"}.check(t, testkit.Post(t, shared.patient.Addr, path, "{}"))
	reached(t, path, 0)
	path = at(t, "pass-id")
	for range 2 {
		a := testkit.Post(t, shared.patient.Addr, path, "{}")
		if a.Status != 200 || !strings.HasPrefix(a.Decision(), "bypassed; would=") {
			t.Errorf("%v", a)
		}
	}
	reached(t, path, 2)
}

func TestTheEventIDMayComeFromTheBody(t *testing.T) {
	t.Parallel()
	path := at(t, "body-id")
	passed(t, testkit.Post(t, shared.patient.Addr, path, `{"event":{"id":12345678901234567890}}`), 200, "done",
		"executed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, `{"event":{"id":12345678901234567890}}`), 200, "done",
		"replayed")
	passed(t, testkit.Post(t, shared.patient.Addr, path, `{"event":{"id":12345678901234567891}}`), 200, "done",
		"executed")
	refused{400, "event_id_ambiguous", "no", "rejected"}.check(t,
		testkit.Post(t, shared.patient.Addr, path, `{"event":{"id":1,"id":2}}`))
}

func TestObserveForwardsEverythingAndSaysWhatItWouldHaveDone(t *testing.T) {
	t.Parallel()
	path := at(t, "observe")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, shared.patient.Addr, path, "{}", key("1"))
	work.await(t)
	shared.on(t, path, answers(testkit.OK("forwarded")))
	for would, request := range map[string]string{
		"in_flight": testkit.Request(path, "{}", key("1")),
		"locked":    testkit.Request(path, "{}", key("2")),
		"mismatch":  testkit.Request(path, "changed", key("1")),
	} {
		passed(t, testkit.Exchange(t, shared.patient.Addr, request), 200, "forwarded", "bypassed; would="+would)
	}
	work.answer <- testkit.OK("first")
	if a := testkit.Receive(t, "the first answer", first); a.Status != 200 || string(a.Body) != "first" ||
		!strings.HasPrefix(a.Decision(), "bypassed") {
		t.Errorf("%v", a)
	}
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1")), 200, "forwarded", "bypassed; would=replayed")
}

func TestObserveForwardsWhatCannotBeNamed(t *testing.T) {
	t.Parallel()
	path := at(t, "observe")
	passed(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("1"), key("2")), 200, "done",
		"bypassed; would=rejected")
}

func TestRespondReplacesTheStatusOfARefusal(t *testing.T) {
	t.Parallel()
	path := at(t, "respond")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, shared.patient.Addr, path, "{}", key("1"))
	work.await(t)
	refused{503, "workflow_locked", "no", "locked"}.check(t, testkit.Post(t, shared.patient.Addr, path, "{}", key("2")))
	refused{425, "execution_in_flight", "no", "in_flight"}.check(t,
		testkit.Post(t, shared.patient.Addr, path, "{}", key("1")))
	refused{409, "idempotency_key_reused", "no", "mismatch"}.check(t,
		testkit.Post(t, shared.patient.Addr, path, "x", key("1")))
	refused{422, "event_id_ambiguous", "no", "rejected"}.check(t,
		testkit.Post(t, shared.patient.Addr, path, "x", key("1"), key("2")))
	work.answer <- ""
	refused{503, "upstream_failed", "unknown", "upstream_failed"}.check(t,
		testkit.Receive(t, "the first answer", first))
}

func TestASenderThatHangsUpChangesNothing(t *testing.T) {
	t.Parallel()
	path := at(t, "plain")
	work := shared.holds(t, path)
	c := testkit.Dial(t, shared.patient.Addr)
	c.Say(testkit.Request(path, "{}", key("1")))
	work.await(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	refused{409, "execution_in_flight", "no", "in_flight"}.check(t,
		testkit.Post(t, shared.patient.Addr, path, "{}", key("1")))
	work.answer <- testkit.OK("kept")
	var a *testkit.Answer
	testkit.Until(t, "the execution has ended", func() bool {
		a = testkit.Post(t, shared.patient.Addr, path, "{}", key("1"))
		return !undecided(a)
	})
	passed(t, a, 200, "kept", "replayed")
}

func TestARefusalOfAFullWorkflowNamesTheOldestThatRuns(t *testing.T) {
	t.Parallel()
	slow := newHeld(t)
	up := testkit.NewUpstream(t, slow.handle)
	h := own(t, bare(up.URL, `
routes:
  - {name: fails, path: /fails, workflow: w, lock: {limit: 2, strategy: fail_fast}}
  - {name: skips, path: /skips, workflow: w, lock: {limit: 2, strategy: skip}}
  - {name: waits, path: /waits, workflow: w, lock: {limit: 2, strategy: wait, wait_timeout: 300ms}}
`))
	var running []<-chan *testkit.Answer
	for _, event := range []string{"1", "2"} {
		running = append(running, testkit.GoPost(t, h.Addr, "/fails", "{}", key(event)))
		slow.await(t)
	}
	refused := testkit.Post(t, h.Addr, "/fails", "{}", key("3"))
	oldest, _ := refused.JSON()["existingExecutionId"].(string)
	if refused.Status != 409 || !strings.Contains(fmt.Sprint(refused.JSON()),
		"2 events of this workflow may run at a time, and 2 do") {
		t.Errorf("%v", refused)
	}
	if details, _ := refused.JSON()["details"].(string); details != "2 events of this workflow may run at a time, and 2 do. The oldest: "+oldest {
		t.Errorf("%v", refused)
	}
	if x := execution(t, h, oldest); x["eventId"] != "1" {
		t.Errorf("%v is the oldest: %v", x["eventId"], refused)
	}
	full := "2 events of this workflow may run at a time, and 2 do"
	if a := testkit.Post(t, h.Addr, "/skips", "{}", key("4")); a.Status != 200 || a.JSON()["executionId"] != oldest ||
		!strings.Contains(fmt.Sprint(a.JSON()["detail"]), full) {
		t.Errorf("%v", a)
	}
	if a := testkit.Post(t, h.Addr, "/waits", "{}", key("5")); a.Status != 409 ||
		a.JSON()["existingExecutionId"] != oldest || !strings.Contains(fmt.Sprint(a.JSON()["detail"]), full) {
		t.Errorf("%v", a)
	}
	if a := testkit.Post(t, h.Addr, "/fails", "{}", key("1")); a.Decision() != "in_flight" ||
		strings.Contains(fmt.Sprint(a.JSON()), "run at a time, and") {
		t.Errorf("a copy of what runs: %v", a)
	}
	for _, answer := range running {
		slow.answer <- testkit.OK("done")
		testkit.Receive(t, "the answer", answer)
	}
}

func TestARefusalForASharedLimitSpeaksOfTheLimitAndOfNoHolder(t *testing.T) {
	t.Parallel()
	slow := newHeld(t)
	up := testkit.NewUpstream(t, slow.handle)
	h := own(t, bare(up.URL, `
limits: {shared: {erp: 1}}
routes:
  - {name: runs, path: /runs, workflow: "{route}", uses: [erp]}
  - {name: waits, path: /waits, workflow: "{route}", uses: [erp], lock: {strategy: wait, wait_timeout: 300ms}}
`))
	running := testkit.GoPost(t, h.Addr, "/runs", "{}", key("1"))
	slow.await(t)
	a := testkit.Post(t, h.Addr, "/waits", "{}", key("2"))
	refused{409, "lock_wait_timeout", "no", "wait_timeout"}.check(t, a)
	full := "as many events run as a limit of this route lets"
	if p := a.JSON(); p["details"] != full || !strings.Contains(fmt.Sprint(p["detail"]), full) ||
		p["existingExecutionId"] != "" {
		t.Errorf("%v", a)
	}
	slow.answer <- testkit.OK("done")
	testkit.Receive(t, "the answer", running)
}

func TestASlotCanBeTakenAwayFromWhatHasIt(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.Reply(202, "working") })
	h := own(t, bare(up.URL, `
routes:
  - {name: held, path: /held, workflow: w, lock: {limit: 2}, hold: {on_status: [202], ttl: 10m}}
`))
	first := testkit.Post(t, h.Addr, "/held", "{}", key("1")).Execution()
	second := testkit.Post(t, h.Addr, "/held", "{}", key("2")).Execution()
	if got := cli(t, h, "locks", "get", "w"); !strings.Contains(got, "2 of 2 taken, by "+first+", "+second) {
		t.Errorf("locks get says\n%s", got)
	}
	if list := cli(t, h, "locks", "list", "-o", "json"); !strings.Contains(list, first) ||
		!strings.Contains(list, second) {
		t.Errorf("locks list says\n%s", list)
	}
	if got := cli(t, h, "locks", "get", "w", "--execution", second); !strings.Contains(got, second) ||
		strings.Contains(got, first) {
		t.Errorf("locks get says\n%s", got)
	}
	if got := cli(t, h, "executions", "get", second); !strings.Contains(got, "held, until ") {
		t.Errorf("executions get says\n%s", got)
	}
	if a := testkit.Post(t, h.Addr, "/held", "{}", key("3")); a.Status != 409 {
		t.Fatalf("%v", a)
	}
	if got := cli(t, h, "executions", "cancel", second, "--reason", "it hangs"); !strings.Contains(got,
		"has its lock and its slots until then") {
		t.Errorf("cancel says\n%s", got)
	}
	cli(t, h, "locks", "release", "w", "--execution", second, "--reason", "its service is gone")
	if x := execution(t, h, second); x["status"] != "ABORTED" || x["outcome"] != "unknown" {
		t.Errorf("%v", x)
	}
	passed(t, testkit.Post(t, h.Addr, "/held", "{}", key("3")), 202, "working", "executed")
}
