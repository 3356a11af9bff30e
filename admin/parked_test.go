package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
)

// keptRequests reads what these tests keep: "HEAD|BODY".
func keptRequests(o *Options) {
	o.Request = func(_ context.Context, _ idem.ExecutionID, kept []byte) (head, body []byte, err error) {
		h, b, ok := strings.Cut(string(kept), "|")
		if !ok {
			return nil, nil, errors.New("key k7 is missing")
		}
		return []byte(h), []byte(b), nil
	}
}

// park parks an event at the first process, and returns its execution.
func (f *fleet) park(workflow, event, kept string) string {
	f.t.Helper()
	l := lockOf(workflow, event)
	l.Labels = idem.Labels{{Name: "order", Value: "SO-" + event}}
	l.Parked = &idem.Parked{Since: time.Now(), On: idem.ParkLocked,
		Kept: &idem.StoredRequest{Value: []byte(kept), Bytes: int64(len(kept)), MaxAge: time.Hour}}
	var seen *idem.Obstacle
	err := f.applied(func(ctx context.Context) (err error) {
		_, seen, err = f.first.Enqueue(ctx, l, 0, 0)
		return err
	})
	if seen != nil || err != nil {
		f.t.Fatalf("park: %+v %v", seen, err)
	}
	return string(l.Execution)
}

// carry lets the first process carry the first parked execution of a workflow.
func (f *fleet) carry(workflow string) idem.RunningLock {
	f.t.Helper()
	for ctx := within(f.t); ; {
		scope, _, err := f.first.NextReady(ctx)
		if err != nil {
			f.t.Fatal(err)
		}
		if scope.Workflow != workflow {
			continue
		}
		taken, err := f.first.TakeParked(ctx, scope, func(string) bool { return true })
		switch {
		case err != nil:
			f.t.Fatal(err)
		case taken != nil:
			return taken.Running
		}
	}
}

// block lets a try fail, and the execution wait for a person.
func (f *fleet) block(h idem.RunningLock) {
	f.t.Helper()
	p := *h.Lock().Parked
	p.Tries, p.Trying = 1, true
	if err := h.BeginTry(within(f.t), p, h.Lock().CallbackHash); err != nil {
		f.t.Fatal(err)
	}
	p.Failures, p.Trying, p.Blocked = 1, false, "1 of 1 tries failed"
	p.Last = &idem.Evidence{Outcome: idem.Executed, Status: 503, Code: "upstream_status", Detail: "it said so",
		At: time.Now()}
	p.Failed = []idem.FailedAnswer{{At: p.Last.At, Status: 503, Text: "database is locked"}}
	if err := h.RecordTry(within(f.t), p); err != nil {
		f.t.Fatal(err)
	}
}

// deadLetter makes a dead letter.
func (f *fleet) deadLetter(h idem.RunningLock) {
	f.t.Helper()
	end := failure()
	end.FinishedAt, end.RequestKept = time.Now(), true
	if _, err := h.Settle(within(f.t), end); err != nil {
		f.t.Fatal(err)
	}
}

func member(a *reply, name string) map[string]any { m, _ := a.json[name].(map[string]any); return m }

func TestWhatIsParkedSaysSoUntilItEnds(t *testing.T) {
	f := newFleet(t, keptRequests)
	id := f.park("w", "1", "a|b")
	next := f.park("w", "2", "a|b")
	if a := f.execution(id); a.text("status") != "PENDING" || member(a, "parked")["on"] != "locked" ||
		member(a, "parked")["tries"] != 0.0 || a.json["requestKept"] != nil {
		t.Errorf("%s", a.body)
	}
	h := f.carry("w")
	if p := member(f.want(200, "", "GET", "/v1/locks/w", opsToken, ""), "parked"); p == nil || p["blocked"] != nil {
		t.Errorf("the lock: %v", p)
	}
	f.block(h)
	if p := member(f.want(200, "", "GET", "/v1/locks/w", opsToken, ""),
		"parked"); p["blocked"] != "1 of 1 tries failed" {
		t.Errorf("the lock: %v", p)
	}
	a := f.execution(id)
	p := member(a, "parked")
	last, _ := p["lastEvidence"].(map[string]any)
	if a.text("status") != "RUNNING" || p["blocked"] != "1 of 1 tries failed" || p["tries"] != 1.0 ||
		p["failures"] != 1.0 || last["status"] != 503.0 || last["outcome"] != "executed" {
		t.Errorf("%s", a.body)
	}
	for token, want := range map[string]any{seeingToken: "database is locked", readToken1: nil} {
		x := f.want(200, "", "GET", "/v1/executions/"+id, token, "").json
		if failed, _ := x["failedAnswers"].([]any); len(failed) != 1 || failed[0].(map[string]any)["text"] != want {
			t.Errorf("%v with a token that sees %v", failed, want)
		}
	}
	rest := *h.Lock().Parked
	rest.Blocked, rest.NextAttempt = "", time.Now().Add(time.Minute)
	if err := h.RecordTry(within(t), rest); err != nil {
		t.Fatal(err)
	}
	if p := member(f.execution(id), "parked"); p["nextAttempt"] == nil || p["blocked"] != nil {
		t.Errorf("%v", p)
	}
	f.deadLetter(h)
	if a := f.execution(id); a.json["parked"] != nil || a.json["requestKept"] != true || a.json["tries"] != 1.0 {
		t.Errorf("%s", a.body)
	}
	if a := f.execution(next); member(a, "parked") == nil {
		t.Errorf("%s", a.body)
	}
}

func TestTheListOfWhatIsParkedIsByState(t *testing.T) {
	f := newFleet(t, keptRequests)
	dead := f.park("stripe/dead", "1", "a|b")
	f.deadLetter(f.carry("stripe/dead"))
	blocked := f.park("stripe/blocked", "1", "a|b")
	f.block(f.carry("stripe/blocked"))
	waiting := f.park("w", "1", "a|b")
	f.run("running", "1")
	for query, want := range map[string][]string{
		"parked=true": {dead, blocked, waiting}, "parked=true&state=blocked": {blocked},
		"parked=true&state=dead_letter": {dead}, "parked=true&state=parked": {waiting},
		"parked=true&workflow=w": {waiting}, "parked=true&workflow=w&state=blocked": nil,
		// All filters that are given have to hold, here as for all executions.
		"parked=true&prefix=stripe/": {dead, blocked}, "parked=true&prefix=stripe/&state=dead_letter": {dead},
		"parked=true&route=nobody": nil,
		"parked=true&event=2":      nil, "parked=true&key=0000000000000000": nil, "parked=true&id=exec_zzzz": nil,
		"parked=true&id=" + waiting[:12]:                     {waiting},
		"parked=true&trace=00000000000000000000000000000001": nil, "parked=true&outcome=unknown": {dead},
		"parked=true&outcome=executed": nil, "parked=true&until=1h": nil,
		"parked=true&limit=1&route=nobody": nil,
	} {
		a := f.want(200, "", "GET", "/v1/executions?"+query, readToken1, "")
		all, _ := a.json["executions"].([]any)
		for _, id := range want {
			if !strings.Contains(string(a.body), id) {
				t.Errorf("%s lacks %s: %s", query, id, a.body)
			}
		}
		if len(all) != len(want) {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	if a := f.want(200, "", "GET", "/v1/executions?parked=true", stripeToken, ""); strings.Contains(string(a.body),
		waiting) || !strings.Contains(string(a.body), dead) {
		t.Errorf("%s", a.body)
	}
	seen, cursor := 0, ""
	for range 4 {
		a := f.want(200, "", "GET", "/v1/executions?parked=true&limit=1&cursor="+cursor, readToken1, "")
		all, _ := a.json["executions"].([]any)
		seen += len(all)
		if cursor = a.text("nextCursor"); cursor == "" {
			break
		}
	}
	if seen != 3 {
		t.Errorf("%d in parts", seen)
	}
	for _, query := range []string{"parked=yes", "state=blocked", "parked=true&state=dead",
		"parked=true&status=PENDING", "parked=true&decision=locked"} {
		f.want(400, "bad_request", "GET", "/v1/executions?"+query, readToken1, "")
	}
}

func (f *fleet) does(status int, code, id, what string) *reply {
	f.t.Helper()
	return f.want(status, code, "POST", "/v1/executions/"+id+"/"+what, opsToken, `{"reason":"a person says so"}`)
}

func TestABlockedExecutionRunsWhenAnOperatorSaysSo(t *testing.T) {
	f := newFleet(t, keptRequests)
	id := f.park("w", "1", "a|b")
	h := f.carry("w")
	f.block(h)
	if a := f.does(200, "", id, "run"); member(a, "parked")["blocked"] != nil {
		t.Errorf("%s", a.body)
	}
	if line := f.log.audit(t); line["what"] != "execution.run" || line["who"] != "ops" ||
		line["why"] != "a person says so" || line["result"] != "done" || line["workflow"] != "w" {
		t.Errorf("%v", line)
	}
	running := f.run("other", "1")
	f.does(409, "not_parked", running.id, "run")
	f.does(409, "not_parked", running.id, "skip")
	if line := f.log.audit(t); line["result"] != "refused" || line["code"] != "not_parked" {
		t.Errorf("%v", line)
	}
	f.settle(running, success())
	f.does(409, "already_finished", running.id, "run")
	f.does(409, "already_finished", running.id, "skip")
	f.does(404, "request_not_kept", running.id, "rerun")
	for _, what := range []string{"run", "skip", "rerun"} {
		f.does(404, "execution_not_found", anID, what)
		f.want(403, "forbidden", "POST", "/v1/executions/"+id+"/"+what, readToken1, `{"reason":"r"}`)
		if line := f.log.audit(t); line["what"] != "execution."+what || line["who"] != "reader" ||
			line["result"] != "refused" {
			t.Errorf("%v", line)
		}
		f.want(404, "execution_not_found", "POST", "/v1/executions/"+id+"/"+what, stripeToken, `{"reason":"r"}`)
		f.want(400, "bad_request", "POST", "/v1/executions/"+id+"/"+what, opsToken, `{}`)
	}
	f.post(202, "", &delivery{id: id}, "cancel", `{"reason":"wrong shop"}`)
	f.does(409, "cancel_requested", id, "run")
	f.settle(&delivery{RunningLock: h}, failure())
	if a := f.post(200, "", &delivery{id: id}, "cancel", `{"reason":"twice"}`); a.text("status") != "ABORTED" ||
		a.json["tries"] != 1.0 || a.json["parked"] != nil {
		t.Errorf("%s", a.body)
	}
}

func TestASkippedExecutionIsADeadLetterThatRunsAgain(t *testing.T) {
	f := newFleet(t, keptRequests)
	id := f.park("w", "1", "a|b")
	if a := f.does(200, "", id, "skip"); a.text("status") != "FAILED" || a.json["requestKept"] != true ||
		member(a, "error")["code"] != "skipped" {
		t.Errorf("%s", a.body)
	}
	f.does(200, "", id, "skip")
	if line := f.log.audit(t); line["result"] != "nothing to do" {
		t.Errorf("%v", line)
	}
	a := f.does(201, "", id, "rerun")
	again := a.text("executionId")
	if again == id || a.text("status") != "PENDING" || a.json["attempt"] != 2.0 {
		t.Errorf("%s", a.body)
	}
	if line := f.log.audit(t); line["after"] != "PENDING as "+again {
		t.Errorf("%v", line)
	}
	f.does(409, "execution_in_flight", id, "rerun")
	h := f.carry("w")
	p := *h.Lock().Parked
	p.Tries, p.Trying = 1, true
	if err := h.BeginTry(within(t), p, "hash"); err != nil {
		t.Fatal(err)
	}
	if a := f.does(202, "", again, "skip"); a.text("status") != "CANCEL_REQUESTED" {
		t.Errorf("%s", a.body)
	}
	f.deadLetter(h)
	f.does(409, "execution_superseded", id, "rerun")
	final := f.park("final", "1", "a|b")
	f.does(200, "", final, "skip")
	f.want(400, "already_finished", "POST", "/v1/executions/"+final+"/cancel", opsToken,
		`{"reason":"for good","final":true}`)
}

func TestARequestIsShownToATokenWithTheScopeForIt(t *testing.T) {
	f := newFleet(t, keptRequests)
	id := f.park("w", "1", "POST / HTTP/1.1\r\nX-odd:  1 \r\n\r\n|\x00body")
	path := "/v1/executions/" + id + "/request"
	a := f.want(200, "", "GET", path, opsToken, "")
	if string(a.body) != "POST / HTTP/1.1\r\nX-odd:  1 \r\n\r\n\x00body" {
		t.Errorf("%q", a.body)
	}
	if line := f.log.audit(t); line["what"] != "execution.request" || line["who"] != "ops" || line["execution"] != id ||
		line["result"] != "done" {
		t.Errorf("%v", line)
	}
	for _, token := range []string{readToken1, writeToken1, stripeToken} {
		f.want(403, "forbidden", "GET", path, token, "")
		if line := f.log.audit(t); line["what"] != "execution.request" || line["result"] != "refused" {
			t.Errorf("%v", line)
		}
	}
	f.want(404, "execution_not_found", "GET", "/v1/executions/"+anID+"/request", opsToken, "")
	f.want(404, "request_not_kept", "GET", "/v1/executions/"+f.run("other", "1").id+"/request", opsToken, "")
	f.want(400, "bad_request", "GET", path+"?x=1", opsToken, "")
	sealed := f.park("sealed", "1", "sealed with a key that is gone")
	f.want(503, "request_unavailable", "GET", "/v1/executions/"+sealed+"/request", opsToken, "")
	if text := f.log.String(); strings.Contains(text, "body") || !strings.Contains(text, "key k7 is missing") {
		t.Errorf("%s", text)
	}
}

func TestABulkChangeKeepsTheOrderOfTheQueue(t *testing.T) {
	f := newFleet(t, keptRequests)
	var ids []string
	for i := range 4 {
		ids = append(ids, f.park("w", fmt.Sprint(i), "a|b"))
	}
	for range ids {
		f.deadLetter(f.carry("w"))
	}
	other := f.park("stripe/other", "1", "a|b")
	f.deadLetter(f.carry("stripe/other"))
	path := "/v1/executions/rerun"
	for _, bad := range []string{
		`{"reason":"r","filter":{}}`, `{"reason":"r","filter":{"state":"blocked"}}`,
		`{"reason":"r","filter":{"state":"x"}}`, `{"filter":{"workflow":"w"}}`,
		`{"reason":"r","filter":{"workflow":"w"},"rate":0}`, `{"reason":"r","filter":{"workflow":"w"},"limit":1001}`,
		`{"reason":"r","filter":{"workflow":"w"},"cursor":"x"}`,
		// A variable that is not set would let it be done with more than was meant.
		`{"reason":"r","filter":{"workflow":"","state":"dead_letter"}}`,
		`{"reason":"r","filter":{"route":"","workflow":"w"}}`,
		`{"reason":"r","filter":{"state":"","workflow":"w"}}`, `{"reason":"r","filter":{"since":""}}`,
		`{"reason":"r","filter":{"until":"soon"}}`,
		`{"reason":"r","filter":{"since":"1m","until":"1h"}}`, `{"reason":"r","filter":{"label":""}}`,
		`{"reason":"r","filter":{"label":"order="}}`,
	} {
		f.want(400, "bad_request", "POST", path, opsToken, bad)
	}
	a := f.want(200, "", "POST", path, opsToken, `{"reason":"repaired","filter":{"workflow":"w"},"dryRun":true}`)
	if a.json["matched"] != 4.0 || a.json["done"] != 0.0 || !strings.Contains(string(a.body), `"result":"would"`) ||
		a.text("nextCursor") != "" {
		t.Errorf("%s", a.body)
	}
	inOrderOf(t, a, ids)
	inOrderOf(t, f.want(200, "", "POST", path, opsToken,
		`{"filter":{"workflow":"w","since":"1h","until":"0s"},"dryRun":true}`), ids)
	if a = f.want(200, "", "POST", path, opsToken,
		`{"filter":{"workflow":"w","until":"1h"},"dryRun":true}`); a.json["matched"] != 0.0 {
		t.Errorf("what ended later is matched: %s", a.body)
	}
	for filter, want := range map[string][]string{
		`"label":"order=SO-2"`: {ids[2]}, `"label":"SO-3","workflow":"w"`: {ids[3]}, `"label":"shop=SO-2"`: nil,
		`"label":"order=SO-1","since":"1h"`: {ids[1], other},
		`"label":"order=SO-2","until":"1h"`: nil,
	} {
		inOrderOf(t, f.want(200, "", "POST", path, opsToken, `{"filter":{`+filter+`},"dryRun":true}`), want)
	}
	a = f.want(200, "", "POST", path, opsToken, `{"reason":"repaired","filter":{"workflow":"w"},"limit":3,"rate":1000}`)
	if a.json["matched"] != 4.0 || a.json["done"] != 3.0 || a.text("nextCursor") == "" {
		t.Errorf("%s", a.body)
	}
	inOrderOf(t, a, ids[:3])
	if text := f.log.String(); strings.Count(text, `"what":"execution.rerun"`) != 3 ||
		strings.Count(text, `"what":"executions.rerun","result":"done"`) != 1 {
		t.Errorf("%s", text)
	}
	a = f.want(200, "", "POST", path, opsToken, `{"reason":"repaired","filter":{"workflow":"w"},"cursor":"`+
		a.text("nextCursor")+`"}`)
	if a.json["done"] != 1.0 || a.text("nextCursor") != "" {
		t.Errorf("%s", a.body)
	}
	for i := range ids {
		h := f.carry("w")
		if got := h.Lock().EventID; got != fmt.Sprint(i) {
			t.Fatalf("%s runs as number %d", got, i)
		}
		f.block(h)
		if _, err := h.Settle(within(t), success()); err != nil {
			t.Fatal(err)
		}
	}
	a = f.want(200, "", "POST", path, stripeToken,
		`{"reason":"r","filter":{"route":"route","state":"dead_letter"},"dryRun":true}`)
	inOrderOf(t, a, []string{other})
	for what, state := range map[string]string{"run": "parked", "skip": "blocked"} {
		f.want(200, "", "POST", "/v1/executions/"+what, opsToken, `{"reason":"r","filter":{"state":"`+state+`"}}`)
		f.want(400, "bad_request", "POST", "/v1/executions/"+what, opsToken,
			`{"reason":"r","filter":{"state":"dead_letter"}}`)
		f.want(403, "forbidden", "POST", "/v1/executions/"+what, readToken1, `{"reason":"r","filter":{"state":"`+state+
			`"}}`)
	}
}

func inOrderOf(t *testing.T, a *reply, ids []string) {
	t.Helper()
	all, _ := a.json["executions"].([]any)
	if len(all) != len(ids) {
		t.Fatalf("%s", a.body)
	}
	for i, x := range all {
		if x.(map[string]any)["executionId"] != ids[i] {
			t.Errorf("number %d is not %s: %s", i, ids[i], a.body)
		}
	}
}

// refusing lets nothing run again.
type refusing struct{ Ledger }

func (refusing) Rerun(context.Context, idem.ExecutionID, *idem.Audit) (*idem.Found, error) {
	return nil, idem.ErrNoRequest
}

// failing is a store that goes away while many are done.
type failing struct {
	Ledger
	left int
}

func (l *failing) Rerun(ctx context.Context, id idem.ExecutionID, a *idem.Audit) (*idem.Found, error) {
	if l.left--; l.left < 0 {
		return nil, idem.ErrStoreUnavailable
	}
	return l.Ledger.Rerun(ctx, id, a)
}

func TestManyGoOnBehindWhatIsRefusedAndStopWhereTheStoreDoes(t *testing.T) {
	f := newFleet(t, keptRequests)
	var ids []string
	for i := range 3 {
		w := fmt.Sprint("w", i)
		ids = append(ids, f.park(w, "1", "a|b"))
		f.deadLetter(f.carry(w))
	}
	body := `{"reason":"r","filter":{"state":"dead_letter"},"rate":1000`
	f.api.options.Ledger = refusing{f.second}
	a := f.want(200, "", "POST", "/v1/executions/rerun", opsToken, body+`}`)
	if a.json["refused"] != 3.0 || !strings.Contains(string(a.body), `"code":"request_not_kept"`) ||
		!strings.Contains(string(a.body), `"message":"`) {
		t.Errorf("%s", a.body)
	}
	f.api.options.Ledger = &failing{f.second, 2}
	a = f.want(200, "", "POST", "/v1/executions/rerun", opsToken, body+`}`)
	if a.json["done"] != 2.0 || a.text("nextCursor") == "" || !strings.Contains(string(a.body), `"newId":"exec_`) ||
		!strings.Contains(string(a.body), `"status":"PENDING"`) {
		t.Errorf("%s", a.body)
	}
	inOrderOf(t, a, ids[:2])
	f.want(503, "store_unavailable", "POST", "/v1/executions/rerun", opsToken, body+`,"cursor":"`+a.text("nextCursor")+
		`"}`)
	f.api.options.Ledger = f.second
	a = f.want(200, "", "POST", "/v1/executions/rerun", opsToken, body+`,"cursor":"`+a.text("nextCursor")+`"}`)
	inOrderOf(t, a, ids[2:])
}

// A store of requests has its own request_timeout, and a long body takes time; how long etcd may
// take to answer says nothing of either.
func TestARequestIsReadForLongerThanEtcdIsAsked(t *testing.T) {
	var has time.Duration
	f := newFleet(t, func(o *Options) {
		o.Request = func(ctx context.Context, _ idem.ExecutionID, _ []byte) (head, body []byte, err error) {
			if until, ok := ctx.Deadline(); ok {
				has = time.Until(until)
			}
			return nil, nil, nil
		}
	})
	id := f.park("w", "1", "a|b")
	f.rig = newRig(t, f.first.Control, func(o *Options) {
		o.Request, o.RequestTimeout = f.rig.api.options.Request, 5*time.Second
	})
	f.want(200, "", "GET", "/v1/executions/"+id+"/request", opsToken, "")
	if has < 15*time.Second {
		t.Errorf("it has %v", has)
	}
}

// It is no fault of etcd's, asking again does not help, and those behind it have nothing to do with
// it.
func TestADeadLetterWhoseRequestCannotBeReadSaysSoAndHoldsUpNoOther(t *testing.T) {
	f := newFleet(t, keptRequests)
	sealed := f.park("w", "1", "sealed")
	f.deadLetter(f.carry("w"))
	fine := f.park("w", "2", "a|b")
	f.deadLetter(f.carry("w"))
	f.does(503, "request_unavailable", sealed, "rerun")
	if line := f.log.audit(t); line["result"] != "refused" || line["code"] != "request_unavailable" {
		t.Errorf("%v", line)
	}
	a := f.want(200, "", "POST", "/v1/executions/rerun", opsToken, `{"filter":{"state":"dead_letter"},"reason":"r"}`)
	all, _ := a.json["executions"].([]any)
	if len(all) != 2 || a.number("done") != 1 || a.number("refused") != 1 {
		t.Fatalf("%s", a.body)
	}
	for i, want := range []map[string]any{{"executionId": sealed, "result": "refused", "code": "request_unavailable"},
		{"executionId": fine, "result": "done"}} {
		for name, value := range want {
			if got, _ := all[i].(map[string]any); got[name] != value {
				t.Errorf("%d: %s is %v, want %v", i, name, got[name], value)
			}
		}
	}
}
