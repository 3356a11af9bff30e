package admin

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/test/testkit"
)

func TestAnExecutionIsReadableAtAnyReplicaWithAllItsFields(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("stripe/acme", "evt_1")
	a := f.execution(d.id)
	for name, want := range map[string]any{
		"executionId": d.id, "workflow": "stripe/acme", "route": "route", "eventId": "evt_1", "status": "RUNNING",
		"attempt": 1.0, "duplicates": 0.0, "token": float64(d.token), "traceId": "0af7651916cd43dd8448eb211c80319c",
		"idempotencyKey": string(d.Lock().Scope.Key), "fingerprint": d.Lock().Fingerprint.Hex(),
		"holder": d.Lock().Holder,
	} {
		if a.json[name] != want {
			t.Errorf("%s: got %v, want %v", name, a.json[name], want)
		}
	}
	for _, absent := range []string{
		"outcome", "finishedAt", "error", "abortedAt", "abortedBy", "abortReason", "response"} {
		if v, there := a.json[absent]; there {
			t.Errorf("a running execution has %s: %v", absent, v)
		}
	}
	f.settle(d, success())
	a = f.execution(d.id)
	if a.text("status") != "SUCCESS" || a.text("outcome") != "executed" || a.text("finishedAt") == "" {
		t.Errorf("%s", a.body)
	}
	if got := fmt.Sprint(a.json["response"]); got != "map[bytes:4 kept:true status:200]" {
		t.Errorf("response: %s", got)
	}
}

func TestFieldsComeInTheOrderOfTheDocumentation(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("w", "1")
	f.post(200, "", d, "guard", bodyOf(d, `,"step":"a"`))
	inOrder(t, string(f.execution(d.id).body), "executionId", "workflow", "route", "idempotencyKey", "eventId",
		"fingerprint", "status", "token", "holder", "attempt", "startedAt", "steps", "duplicates", "traceId")
	f.settle(d, failure())
	inOrder(t, string(f.execution(d.id).body), "executionId", "status", "outcome", "token", "finishedAt", "error",
		"steps", "duplicates", "traceId")
	held := f.hold("w", "2", time.Minute)
	inOrder(t, string(f.want(200, "", "GET", "/v1/locks/w", opsToken, "").body), "workflow", "executionId", "holder",
		"token", "lockedAt", "expiresAt", "heldFor", "expiresIn", "held", "waiting", "isStale")
	f.post(200, "", held, "complete", bodyOf(held, `,"status":"SUCCESS"`))
}

func inOrder(t *testing.T, body string, names ...string) {
	t.Helper()
	last := -1
	for _, name := range names {
		at := strings.Index(body, `"`+name+`":`)
		if at <= last {
			t.Errorf("%s is missing or not in order: %s", name, body)
		}
		last = at
	}
}

func TestAFailureAndAnAbortAreNeverConfused(t *testing.T) {
	f := newFleet(t, nil)
	failed := f.run("w/failed", "1")
	f.settle(failed, failure())
	a := f.execution(failed.id)
	if got := fmt.Sprint(a.json["error"]); a.text("status") != "FAILED" ||
		got != "map[code:upstream_timeout detail:no answer in 30s]" || a.json["abortedAt"] != nil {
		t.Errorf("%s", a.body)
	}
	aborted := f.run("w/aborted", "1")
	f.post(202, "", aborted, "cancel", `{"reason":"wrong amount"}`)
	f.stopped(aborted)
	f.settle(aborted, failure())
	a = f.execution(aborted.id)
	if a.text("status") != "ABORTED" || a.text("abortedBy") != "ops" || a.text("abortReason") != "wrong amount" ||
		a.text("abortedAt") == "" || a.json["error"] != nil || a.text("outcome") != "unknown" {
		t.Errorf("%s", a.body)
	}
}

func TestCancelReachesTheOwnerAtAnotherReplica(t *testing.T) {
	f := newFleet(t, nil)
	l := lockOf("w", "1")
	l.Labels = idem.Labels{{Name: "order", Value: "1042"}}
	d := f.start(l, 0)
	a := f.post(202, "", d, "cancel", `{"reason":"wrong amount"}`)
	for _, shown := range []*reply{a, f.want(200, "", "GET", "/v1/locks/w", opsToken, "")} {
		if labels, _ := shown.json["labels"].(map[string]any); labels["order"] != "1042" {
			t.Errorf("%s", shown.body)
		}
	}
	if a.text("status") != "CANCEL_REQUESTED" || a.json["success"] != true || a.text("message") == "" {
		t.Errorf("%s", a.body)
	}
	if cause := f.stopped(d); !errors.Is(cause, idem.ErrCancelled) {
		t.Errorf("told to stop: %v", cause)
	}
	for _, asked := range []*reply{a, f.execution(d.id)} {
		if asked.text("abortedBy") != "ops" || asked.text("abortReason") != "wrong amount" ||
			asked.text("abortedAt") == "" {
			t.Errorf("%s", asked.body)
		}
	}
	again := f.post(200, "", d, "cancel", `{"reason":"twice"}`)
	if again.text("status") != "CANCEL_REQUESTED" || again.json["success"] != true {
		t.Errorf("%s", again.body)
	}
	says502 := failure()
	says502.Answer = &idem.Answer{Status: 502, Bytes: 11}
	f.settle(d, says502)
	if a := f.post(200, "", d, "cancel", `{"reason":"it has been carried out"}`); a.text("status") != "ABORTED" || fmt.Sprint(a.json["response"]) != "map[bytes:11 kept:false status:502]" {
		t.Errorf("%s", a.body)
	}
	f.post(400, "already_finished", d, "cancel", `{"reason":"but that was not final","final":true}`)
}

func TestCancelOfWhatHasEndedIsRefused(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("w", "1")
	f.settle(d, success())
	a := f.post(400, "already_finished", d, "cancel", `{"reason":"too late"}`)
	if a.json["success"] != false || a.text("message") == "" || a.text("executionId") != d.id {
		t.Errorf("%s", a.body)
	}
	if got := f.execution(d.id).text("status"); got != "SUCCESS" {
		t.Errorf("it is %s now", got)
	}
	f.want(404, "execution_not_found", "POST", "/v1/executions/"+anID+"/cancel", opsToken, `{"reason":"r"}`)
}

func TestWhatWaitsIsAbortedAtOnce(t *testing.T) {
	f := newFleet(t, nil)
	f.run("w", "1")
	l := lockOf("w", "2")
	place, seen, err := f.enqueue(l, 0)
	if err == nil && place == nil && seen != nil && seen.Lock != nil {
		place, seen, err = f.enqueue(l, seen.Lock.Token)
	}
	if err != nil || place == nil {
		t.Fatalf("enqueue: %+v %v", seen, err)
	}
	id := string(l.Execution)
	if a := f.execution(id); a.text("status") != "PENDING" || a.json["token"] != nil {
		t.Errorf("%s", a.body)
	}
	if a := f.want(200, "", "GET", "/v1/locks/w", opsToken, ""); a.number("waiting") != 1 {
		t.Errorf("%s", a.body)
	}
	a := f.want(202, "", "POST", "/v1/executions/"+id+"/cancel", opsToken, `{"reason":"not needed any more","final":true}`)
	if a.text("status") != "ABORTED" || a.text("outcome") != "not_executed" || a.json["success"] != true {
		t.Errorf("%s", a.body)
	}
	if x := f.execution(id); x.json["final"] != true || f.log.audit(t)["after"] != "ABORTED for good" {
		t.Errorf("nothing says that its event never runs again: %s", x.body)
	}
	f.want(200, "", "POST", "/v1/executions/"+id+"/cancel", opsToken, `{"reason":"twice","final":true}`)
}

func TestWaitAnswersOnChangeAndAtOnceWhenEnded(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("w", "1")
	answers := make(chan *reply)
	go func() { answers <- f.ask("GET", "/v1/executions/"+d.id+"?wait=1m", readToken1, "") }()
	f.awaitWaiting(1)
	f.settle(d, success())
	select {
	case a := <-answers:
		if a.text("status") != "SUCCESS" {
			t.Errorf("%s", a.body)
		}
	case <-within(t).Done():
		t.Fatal("no answer")
	}
	began := time.Now()
	f.want(200, "", "GET", "/v1/executions/"+d.id+"?wait=1m", readToken1, "")
	if took := time.Since(began); took > patience {
		t.Errorf("an ended one took %v", took)
	}
}

func TestWaitOutlivesTheTimeoutsOfItsListener(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("w", "1")
	const short = 2 * time.Second
	hasty := httptest.NewUnstartedServer(f.api)
	hasty.Config.ReadTimeout, hasty.Config.WriteTimeout = short, short
	hasty.Start()
	defer hasty.Close()
	f.rig.http = hasty
	began := time.Now()
	if a := f.want(200, "", "GET", "/v1/executions/"+d.id+"?wait=3s", readToken1, ""); a.text("status") != "RUNNING" ||
		time.Since(began) < 3*time.Second {
		t.Errorf("after %v: %s", time.Since(began), a.body)
	}
	path, _, _ := f.take("lock", `{"ttl":"1m"}`)
	began = time.Now()
	if f.want(409, "lock_wait_timeout", "POST", path+"/acquire", opsToken, `{"ttl":"1m","wait":"3s"}`); time.Since(began) < 3*time.Second {
		t.Errorf("after %v", time.Since(began))
	}
}

func TestWaitAnswersAsItIsWhenTimeIsOver(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("w", "1")
	if a := f.want(200, "", "GET", "/v1/executions/"+d.id+"?wait=50ms", readToken1, ""); a.text("status") != "RUNNING" {
		t.Errorf("%s", a.body)
	}
}

func TestWaitingRequestsEndWithTheAPI(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("w", "1")
	answers := make(chan *reply)
	go func() { answers <- f.ask("GET", "/v1/executions/"+d.id+"?wait=5m", readToken1, "") }()
	f.awaitWaiting(1)
	f.api.Close()
	select {
	case a := <-answers:
		if a.StatusCode != 200 || a.text("status") != "RUNNING" {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	case <-within(t).Done():
		t.Fatal("no answer")
	}
}

// awaitWaiting waits until so many requests wait for something.
func (r *rig) awaitWaiting(n int) {
	r.t.Helper()
	r.until(fmt.Sprintf("%d requests wait", n), func() bool { return r.api.polls.taken() == n })
}

// until asks check again and again until it says yes: for what has no event to wait for.
func (r *rig) until(what string, check func() bool) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !check(); <-tick.C {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain until %s", what)
		}
	}
}

func TestForgetLetsAnEventRunAgain(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("w", "1")
	f.want(409, "execution_in_flight", "DELETE", "/v1/executions/"+d.id+"?reason=again", opsToken, "")
	f.settle(d, success())
	a := f.want(200, "", "DELETE", "/v1/executions/"+d.id+"?reason="+url.QueryEscape("lost at the bank"), opsToken, "")
	if a.text("status") != "SUCCESS" {
		t.Errorf("%s", a.body)
	}
	line := f.log.audit(t)
	if line["who"] != "ops" || line["what"] != "execution.forget" || line["why"] != "lost at the bank" ||
		line["before"] != "SUCCESS" || line["after"] != "forgotten" || line["result"] != "done" {
		t.Errorf("%v", line)
	}
	f.want(404, "execution_not_found", "GET", "/v1/executions/"+d.id, opsToken, "")
	f.want(404, "execution_not_found", "DELETE", "/v1/executions/"+d.id+"?reason=again", opsToken, "")
	f.run("w", "1")
}

func TestAnEarlierAttemptIsShownInShortAndCannotBeForgottenAlone(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("stripe/w", "1")
	rec := f.settle(d, failure())
	second := lockOf("stripe/w", "1")
	second.Attempt, second.Earlier = 2, []idem.Attempt{rec.AsAttempt()}
	f.settle(f.start(second, rec.Revision), success())
	a := f.execution(d.id)
	if a.text("status") != "FAILED" || a.text("outcome") != "unknown" || a.text("workflow") != "stripe/w" {
		t.Errorf("%s", a.body)
	}
	if b := f.execution(string(second.Execution)); a.text("route") == "" || a.text("route") != b.text("route") ||
		a.text("eventId") == "" || a.text("eventId") != b.text("eventId") {
		t.Errorf("of another event than the second attempt: %s\n%s", a.body, b.body)
	}
	if why, _ := a.json["error"].(map[string]any); why["code"] != rec.Error.Code || why["detail"] != rec.Error.Detail ||
		a.text("traceId") == "" {
		t.Errorf("%s", a.body)
	}
	attempts, _ := a.json["attempts"].([]any)
	if b := f.execution(string(second.Execution)); len(attempts) != 2 ||
		fmt.Sprint(b.json["attempts"]) != fmt.Sprint(attempts) {
		t.Errorf("the chain is another one of the second attempt: %s", b.body)
	}
	f.want(200, "", "GET", "/v1/executions/"+d.id, stripeToken, "")
	f.want(409, "execution_superseded", "DELETE", "/v1/executions/"+d.id+"?reason=r", opsToken, "")
}

func TestAnExecutionIsFoundByTheBeginningOfItsIDAndChangedByTheWholeAlone(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("stripe/w", "1")
	f.settle(d, success())
	other := f.run("stripe/w", "2") // the IDs of a workflow begin alike
	if a := f.want(200, "", "GET", "/v1/executions/"+d.id[:36], stripeToken, ""); a.text("executionId") != d.id {
		t.Errorf("%s", a.body)
	}
	f.want(400, "bad_request", "GET", "/v1/executions/"+d.id[:17], stripeToken, "")
	f.want(404, "execution_not_found", "DELETE", "/v1/executions/"+d.id[:36]+"?reason=r", opsToken, "")
	f.want(404, "execution_not_found", "GET", "/v1/executions/exec_none", opsToken, "")
	hidden := f.run("github/w", "1")
	f.want(404, "execution_not_found", "GET", "/v1/executions/"+hidden.id[:36], stripeToken, "")
	for query, want := range map[string]string{
		"id=" + d.id[:36]: d.id, "event=1&workflow=stripe%2Fw": d.id, "prefix=stripe&status=RUNNING": other.id,
		"outcome=executed": d.id, "since=1h&status=SUCCESS": d.id,
	} {
		if got := f.all(opsToken, "executions", query); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	for _, query := range []string{
		"status=x", "outcome=x", "decision=x", "since=yesterday", "until=x", "since=10m&until=1h"} {
		f.want(400, "bad_request", "GET", "/v1/executions?"+query, opsToken, "")
	}
}

func TestTheKeptAnswerIsForTokensThatMaySeeBodies(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("stripe/w", "1")
	path := "/v1/executions/" + d.id + "/answer"
	f.want(404, "answer_not_kept", "GET", path, bodiesToken, "")
	end := success()
	end.Answer.Header = []idem.HeaderField{{Name: "A", Value: "b"}}
	f.settle(d, end)
	f.want(403, "forbidden", "GET", path, stripeToken, "")
	a := f.want(200, "", "GET", path, bodiesToken, "")
	want := end.Answer
	if a.json["status"] != float64(want.Status) ||
		a.text("bodyBase64") != base64.StdEncoding.EncodeToString(want.Body) ||
		a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s", a.body)
	}
	long := success()
	long.Answer.Body = bytes.Repeat([]byte("a"), 100)
	apart := f.run("stripe/w", "3")
	f.settle(apart, long)
	path = "/v1/executions/" + apart.id
	if a = f.want(200, "", "GET", path+"/answer", bodiesToken,
		""); a.text("bodyBase64") != base64.StdEncoding.EncodeToString(long.Answer.Body) {
		t.Errorf("%s", a.body)
	}
	f.etcd.Expire(t, "/hooklock/v1/answers/")
	f.want(404, "answer_not_kept", "GET", path+"/answer", bodiesToken, "")
	response := f.want(200, "", "GET", path, opsToken, "").json["response"].(map[string]any)
	if sum := sha256.Sum256(long.Answer.Body); response["kept"] != true ||
		response["hash"] != hex.EncodeToString(sum[:16]) {
		t.Errorf("%v", response)
	}
	failed := f.run("stripe/w", "2")
	f.settle(failed, idem.End{ // with in_flight: attach the answer of any status is there for those who were attached
		Status: idem.Failed, Outcome: idem.Executed, Error: &idem.Failure{Code: "upstream_status"},
		Answer: &idem.Answer{Status: 500, Bytes: 4, Whole: true, Body: []byte("oops")},
	})
	f.want(404, "answer_not_kept", "GET", "/v1/executions/"+failed.id+"/answer", bodiesToken, "")
}

func TestListsAreFilteredAndPaged(t *testing.T) {
	f := newFleet(t, nil)
	running := f.run("stripe/a", "1")
	others := f.run("github/a", "1")
	for i := range 5 {
		f.settle(f.run(fmt.Sprintf("stripe/%d", i), "e"), success())
		f.settle(f.run(fmt.Sprintf("github/%d", i), "e"), failure())
	}
	for query, want := range map[string]int{
		"": 12, "workflow=stripe%2Fa": 1, "status=RUNNING": 2, "status=FAILED": 5, "status=SUCCESS": 5,
		"status=ABORTED": 0, "workflow=stripe%2F0&status=SUCCESS": 1,
		"workflow=none": 0,
	} {
		if got := f.all(opsToken, "executions", query+"&limit=2"); len(got) != want {
			t.Errorf("%s: %d, want %d: %v", query, len(got), want, got)
		}
	}
	if got := f.all(stripeToken, "executions", "limit=3"); len(got) != 6 {
		t.Errorf("a token for stripe/* sees %v", got)
	}
	if a := f.want(200, "", "GET", "/v1/executions?limit=1&status=FAILED", stripeToken,
		""); len(a.json["executions"].([]any)) != 0 || a.text("nextCursor") != "" {
		t.Errorf("pages of others are asked for one by one: %s", a.body)
	}
	if got := f.all(stripeToken, "executions", "workflow=github%2F1"); len(got) != 0 {
		t.Errorf("a token for stripe/* sees %v", got)
	}
	if got := f.all(stripeToken, "locks", ""); len(got) != 1 || got[0] != running.id {
		t.Errorf("a token for stripe/* sees the locks %v", got)
	}
	f.settle(others, success())
	if got := f.all(opsToken, "locks", ""); len(got) != 1 || got[0] != running.id {
		t.Errorf("locks: %v", got)
	}
	if got := f.all(opsToken, "locks", "prefix=github%2F"); len(got) != 0 {
		t.Errorf("locks of github: %v", got)
	}
	f.want(400, "bad_request", "GET", "/v1/executions?cursor=nonsense", opsToken, "")
	f.want(400, "bad_request", "GET", "/v1/locks?cursor=nonsense", opsToken, "")
	f.want(400, "bad_request", "GET", "/v1/locks?cursor=nonsense", stripeToken, "")
}

// all reads a whole list, page by page.
func (f *fleet) all(token, list, query string) (ids []string) {
	f.t.Helper()
	cursor := ""
	for range 100 {
		a := f.want(200, "", "GET", "/v1/"+list+"?"+strings.Trim(query, "&")+"&cursor="+url.QueryEscape(cursor), token,
			"")
		page, _ := a.json[list].([]any)
		for _, one := range page {
			ids = append(ids, one.(map[string]any)["executionId"].(string))
		}
		if cursor = a.text("nextCursor"); cursor == "" {
			return ids
		}
		if strings.Contains(token, "stripe") && strings.Contains(cursor, "github") {
			f.t.Errorf("the cursor tells of others: %s", cursor)
		}
	}
	f.t.Fatal("the list does not end")
	return nil
}

func TestOtherPeoplesWorkflowsAreNotThere(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("github/acme", "1")
	for _, q := range []struct{ method, path, body, code string }{
		{"GET", "/v1/executions/" + d.id, "", "execution_not_found"},
		{"POST", "/v1/executions/" + d.id + "/cancel", `{"reason":"r"}`, "execution_not_found"},
		{"DELETE", "/v1/executions/" + d.id + "?reason=r", "", "execution_not_found"},
		{"GET", "/v1/locks/github%2Facme", "", "lock_not_found"},
		{"DELETE", "/v1/locks/github%2Facme?reason=r&execution=" + d.id, "", "lock_not_found"},
		{"POST", "/v1/locks/github%2Facme/acquire", `{"holder":"h","ttl":"1m"}`, "not_found"},
	} {
		a := f.want(404, q.code, q.method, q.path, stripeToken, q.body)
		if strings.Contains(string(a.body), "github") {
			t.Errorf("%s %s tells of it: %s", q.method, q.path, a.body)
		}
		nothing := strings.NewReplacer(d.id, anID, "github%2Facme", "github%2Fnone").Replace(q.path)
		if b := f.want(404, q.code, q.method, nothing, stripeToken, q.body); string(a.body) != string(b.body) {
			t.Errorf("%s %s: %s, and where there is nothing: %s", q.method, q.path, a.body, b.body)
		}
	}
	_, foreign, held := f.take("github/held", `{"ttl":"1m"}`)
	for _, what := range []string{"renew", "release"} {
		f.want(412, "lock_lost", "POST", "/v1/locks/stripe%2Fmine/"+what, stripeToken, foreign)
		body := fmt.Sprintf(`{"executionId":%q,"token":%d}`, d.id, d.token)
		f.want(412, "lock_lost", "POST", "/v1/locks/github%2Facme/"+what, stripeToken, body)
		f.want(412, "lock_lost", "POST", "/v1/locks/stripe%2Fmine/"+what, stripeToken, body)
	}
	if a := f.execution(d.id); a.text("status") != "RUNNING" {
		t.Errorf("%s", a.body)
	}
	if a := f.want(200, "", "GET", "/v1/locks/github%2Fheld", opsToken,
		""); a.text("expiresAt") != held.text("expiresAt") {
		t.Errorf("%s, and when it was taken %s", a.body, held.body)
	}
}

// checkNumbers checks how many each query lists.
func checkNumbers(t *testing.T, listed func(query string) int, want map[string]int) {
	t.Helper()
	for query, n := range want {
		if got := listed(query); got != n {
			t.Errorf("%s lists %d, want %d", query, got, n)
		}
	}
}

// A value alone that has a colon looks like a name and its value, of which nothing would be found.
func TestALabelWithAColonIsToldItsForm(t *testing.T) {
	f := newFleet(t, nil)
	for _, label := range []string{"order%3A1042", "or%3Ader%3D1042"} {
		said := f.want(400, "bad_request", "GET", "/v1/executions?label="+label, opsToken, "")
		if !strings.Contains(said.text("detail"), "NAME=VALUE") {
			t.Errorf("%s: %s", label, said.body)
		}
	}
	f.want(200, "", "GET", "/v1/executions?label=order%3D10%3A42", opsToken, "")
}

func TestWhatWasRefusedBehindAnotherEventSaysWhichAndSinceWhen(t *testing.T) {
	f := newFleet(t, nil)
	holder := f.start(lockOf("stripe/w", "evt_holder"), 0)
	refused := lockOf("stripe/w", "evt_1")
	f.first.NoteArrival(refused.Scope, "route", refused.EventID, idem.Arrival{
		At: time.Now(), Decision: idem.DecisionLocked, Status: 409, Execution: holder.Lock().Execution}, time.Hour)
	met := func() (b map[string]any) {
		a := f.want(200, "", "GET", "/v1/executions?workflow=stripe/w&status=REFUSED", stripeToken, "")
		for _, found := range a.json["executions"].([]any) {
			newest := found.(map[string]any)["arrivals"].(map[string]any)["newest"].([]any)
			b, _ = newest[0].(map[string]any)["behind"].(map[string]any)
		}
		return b
	}
	testkit.Until(t, "what had the lock is shown",
		func() bool { return met()["eventId"] == "evt_holder" && met()["finishedAt"] == nil })
	f.settle(holder, success())
	if b := met(); b["startedAt"] == nil || b["finishedAt"] == nil {
		t.Errorf("after its end: %v", b)
	}
}

func TestWhatWasRefusedIsShownWithItsEvent(t *testing.T) {
	f := newFleet(t, nil)
	l := lockOf("stripe/w", "evt_1")
	l.Labels = idem.Labels{{Name: "order", Value: "10%2542"}}
	arrive := func(a idem.Arrival) {
		a.Labels = l.Labels
		f.first.NoteArrival(l.Scope, "route", l.EventID, a, time.Hour)
	}
	arrive(idem.Arrival{
		At: time.Now(), Decision: idem.DecisionUpstreamUnreachable, Status: 502, Execution: l.Execution,
		From: "192.0.2.1", TraceID: "0af7651916cd43dd8448eb211c80319c",
	})
	arrive(idem.Arrival{At: time.Now(), Decision: idem.DecisionBypassed, Would: idem.DecisionMismatch, Status: 200,
		EventID: "twin", Differs: []string{"body"}, Detail: "why", Took: time.Second})
	list := func(token, query string) (found []any) {
		a := f.want(200, "", "GET", "/v1/executions?"+query, token, "")
		found, _ = a.json["executions"].([]any)
		return found
	}
	testkit.Until(t, "the arrivals are written",
		func() bool { return len(list(stripeToken, "decision=upstream_unreachable&since=10m")) == 1 })
	checkNumbers(t, func(query string) int { return len(list(stripeToken, query)) }, map[string]int{
		"since=10m": 1, "route=route": 1, "route=route&since=10m": 1, "route=route&until=10m": 0,
		"route=other&since=10m": 0, "since=10m&outcome=executed": 0,
	})
	x, _ := list(stripeToken, "decision=mismatch")[0].(map[string]any)
	arrivals, _ := x["arrivals"].(map[string]any)
	if x["status"] != "REFUSED" || x["executionId"] != "" || x["eventId"] != "evt_1" || x["route"] != "route" ||
		len(arrivals["newest"].([]any)) != 2 || arrivals["newest"].([]any)[0].(map[string]any)["detail"] != "why" ||
		arrivals["newest"].([]any)[0].(map[string]any)["eventId"] != "twin" {
		t.Errorf("%v", x)
	}
	if labels, _ := x["labels"].(map[string]any); labels["order"] != "10%2542" {
		t.Errorf("%v", x)
	}
	f.want(400, "bad_request", "GET", "/v1/executions?label=order%3D", opsToken, "")
	for query, want := range map[string]int{
		"event=evt_1": 1, "label=order%3D10%252542": 1, "label=10%2542": 1, "label=shop%3D1": 0, "status=REFUSED": 1,
		"decision=locked": 0, "decision=mismatch&until=1h": 0, "": 0} {
		if found := list(opsToken, query); len(found) != want {
			t.Errorf("%s: %v", query, found)
		}
	}
	// It runs in the end, and shows both what was refused and the attempt that a person ended.
	first := f.start(l, 0)
	rec, err := first.Settle(within(t), idem.End{
		Status: idem.Aborted, Outcome: idem.NotExecuted, FinishedAt: time.Now(),
		Abort: &idem.Cancel{By: "ops", Reason: "wrong account", At: time.Now()},
	})
	if err != nil {
		t.Fatal(err)
	}
	second := lockOf("stripe/w", "evt_1")
	before := rec.AsAttempt()
	before.Tries, before.NextDiffers = 3, []string{"body"}
	second.Attempt, second.Earlier = 2, []idem.Attempt{before}
	f.settle(f.start(second, rec.Revision), success())
	x, _ = list(opsToken, "decision=mismatch")[0].(map[string]any)
	if x["status"] != "SUCCESS" || x["executionId"] != string(second.Execution) {
		t.Errorf("%v", x)
	}
	a := f.execution(string(second.Execution))
	attempts, _ := a.json["attempts"].([]any)
	if a.json["arrivals"] == nil || len(attempts) != 2 ||
		attempts[0].(map[string]any)["abortReason"] != "wrong account" ||
		attempts[0].(map[string]any)["tries"] != float64(3) ||
		fmt.Sprint(attempts[1].(map[string]any)["differs"]) != "[body]" {
		t.Errorf("%s", a.body)
	}
	f.want(400, "bad_request", "GET", "/v1/executions/"+string(second.Execution)+"/answer?x=1", bodiesToken, "")
	f.want(200, "", "DELETE", "/v1/executions/"+string(second.Execution)+"?reason=again", opsToken, "")
	testkit.Until(t, "what was forgotten is shown", func() bool {
		found := list(opsToken, "event=evt_1")
		if len(found) != 1 {
			return false
		}
		x, _ := found[0].(map[string]any)
		released, _ := x["released"].(map[string]any)
		return x["status"] == "RELEASED" && released["executionId"] == string(second.Execution) &&
			released["reason"] == "again" && released["status"] == "SUCCESS"
	})
}
