package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hooklock/idem"

	"golang.org/x/net/http/httpguts"
)

func TestGuardNotesStepsAndSaysWhetherToGoOn(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("w", "1")
	if a := f.post(200, "", d, "guard",
		bodyOf(d, `,"step":"charge","plan":["charge","ship","mail"]`)); strings.TrimSpace(
		string(a.body)) != `{"proceed":true}` {
		t.Errorf("%s", a.body)
	}
	f.post(200, "", d, "guard", bodyOf(d, `,"step":"ship"`))
	f.post(200, "", d, "guard", bodyOf(d, ""))
	if got := stepWords(f.execution(d.id)); got != "charge done, ship running" {
		t.Errorf("steps: %s", got)
	}
	f.post(202, "", d, "cancel", `{"reason":"stop"}`)
	for _, step := range []string{"", `,"step":"mail"`} {
		if a := f.post(409, "", d, "guard",
			bodyOf(d, step)); strings.TrimSpace(string(a.body)) != `{"proceed":false,"status":"CANCEL_REQUESTED"}` {
			t.Errorf("%s", a.body)
		}
	}
	f.settle(d, failure())
	if got := stepWords(f.execution(d.id)); !strings.Contains(got, "mail skipped") {
		t.Errorf("steps: %s", got)
	}
	if a := f.post(409, "", d, "guard", bodyOf(d, "")); a.text("status") != "ABORTED" {
		t.Errorf("%s", a.body)
	}
}

func stepWords(a *reply) string {
	var words []string
	steps, _ := a.json["steps"].([]any)
	for _, s := range steps {
		step := s.(map[string]any)
		words = append(words, fmt.Sprint(step["name"], " ", step["status"]))
	}
	return strings.Join(words, ", ")
}

func TestCallbacksNeedTheExecutionsOwnKeyAndItsToken(t *testing.T) {
	f := newFleet(t, nil)
	d := f.hold("w", "1", time.Minute)
	other := f.hold("w2", "1", time.Minute)
	for what, more := range map[string]string{"guard": "", "heartbeat": "", "complete": `,"status":"SUCCESS"`} {
		path := "/v1/executions/" + d.id + "/" + what
		f.want(401, "unauthorized", "POST", path, "", bodyOf(d, more))
		f.want(401, "unauthorized", "POST", path, "QWERTZUIOPASDFGH", bodyOf(d, more))
		f.want(401, "unauthorized", "POST", path, opsToken, bodyOf(d, more))
		f.want(404, "execution_not_found", "POST", "/v1/executions/"+anID+"/"+what, callbackKey, bodyOf(d, more))
		stale := &delivery{id: d.id, token: d.token - 1}
		if a := f.post(412, "stale_token", stale, what, bodyOf(stale, more)); what != "complete" &&
			a.json["proceed"] != false {
			t.Errorf("%s", a.body)
		}
		f.post(400, "bad_request", d, what, "{"+strings.TrimPrefix(more, ",")+"}")
	}
	if a := f.execution(d.id); a.text("status") != "RUNNING" {
		t.Errorf("%s", a.body)
	}
	f.post(200, "", other, "complete", bodyOf(other, `,"status":"SUCCESS"`))
}

func TestAHoldIsExtendedAndCompleted(t *testing.T) {
	f := newFleet(t, nil)
	d := f.hold("w", "1", time.Minute)
	if a := f.want(200, "", "GET", "/v1/locks/w", opsToken, ""); a.json["held"] != true || a.number("expiresIn") > 60 ||
		a.number("expiresIn") < 30 {
		t.Errorf("%s", a.body)
	}
	list := string(f.want(200, "", "GET", "/v1/executions?status=RUNNING", opsToken, "").body)
	one := string(f.want(200, "", "GET", "/v1/executions/"+d.id, opsToken, "").body)
	if !strings.Contains(list, `"held":true`) || !strings.Contains(one, `"held":true`) {
		t.Errorf("neither tells it from one that is at the service:\n%s\n%s", list, one)
	}
	a := f.post(200, "", d, "heartbeat", bodyOf(d, `,"ttl":"10m"`))
	if a.number("expiresIn") < 500 || a.text("status") != "RUNNING" {
		t.Errorf("%s", a.body)
	}
	f.post(200, "", d, "heartbeat", bodyOf(d, ""))
	a = f.post(200, "", d, "complete",
		bodyOf(d,
			`,"status":"SUCCESS","response":{"status":201,"headers":{"Content-Type":"text/plain"},"body":"charged"}`))
	if a.text("status") != "SUCCESS" || a.text("outcome") != "executed" ||
		fmt.Sprint(a.json["response"]) != "map[bytes:7 kept:true status:201]" {
		t.Errorf("%s", a.body)
	}
	if a = f.want(200, "", "GET", "/v1/executions/"+d.id, opsToken, ""); a.json["held"] != nil {
		t.Errorf("it has ended: %s", a.body)
	}
	f.post(409, "already_finished", d, "complete", bodyOf(d, `,"status":"FAILED"`))
	if a := f.post(409, "already_finished", d, "heartbeat", bodyOf(d, "")); a.text("executionStatus") != "SUCCESS" ||
		a.json["proceed"] != false {
		t.Errorf("%s", a.body)
	}
	f.want(404, "lock_not_found", "GET", "/v1/locks/w", opsToken, "")
}

func TestAHeldExecutionThatFailsSaysWhyAndMayRunAgain(t *testing.T) {
	f := newFleet(t, nil)
	d := f.hold("w", "1", time.Minute)
	a := f.post(200, "", d, "complete",
		bodyOf(d, `,"status":"FAILED","error":{"code":"no_money","detail":"the account is empty"}`))
	if a.text("status") != "FAILED" || fmt.Sprint(a.json["error"]) != "map[code:no_money detail:the account is empty]" {
		t.Errorf("%s", a.body)
	}
}

func TestACancelOfAHoldIsReportedAtTheNextHeartbeat(t *testing.T) {
	f := newFleet(t, nil)
	d := f.hold("w", "1", time.Minute)
	f.post(202, "", d, "cancel", `{"reason":"stop"}`)
	if a := f.post(409, "cancel_requested", d, "heartbeat",
		bodyOf(d, "")); a.text("executionStatus") != "CANCEL_REQUESTED" || a.json["proceed"] != false {
		t.Errorf("%s", a.body)
	}
	if a := f.post(200, "", d, "complete", bodyOf(d, `,"status":"SUCCESS"`)); a.text("status") != "SUCCESS" {
		t.Errorf("%s", a.body)
	}
}

func TestCallbacksAboutALockThatWasReleasedByForce(t *testing.T) {
	f := newFleet(t, nil)
	d := f.hold("w", "1", time.Minute)
	a := f.want(200, "", "DELETE", "/v1/locks/w?execution="+d.id+"&reason=stuck", opsToken, "")
	if a.text("status") != "ABORTED" || a.text("abortedBy") != "ops" || a.text("abortReason") != "stuck" ||
		a.text("outcome") != "unknown" {
		t.Errorf("%s", a.body)
	}
	for what, more := range map[string]string{"guard": "", "heartbeat": "", "complete": `,"status":"SUCCESS"`} {
		f.post(412, "lock_lost", d, what, bodyOf(d, more))
	}
}

func TestAHeartbeatOfWhatStillRunsExtendsNothing(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("w", "1")
	if a := f.post(200, "", d, "heartbeat", bodyOf(d, `,"ttl":"10m"`)); a.text("status") != "RUNNING" ||
		a.number("expiresIn") < 3000 { // max_duration
		t.Errorf("%s", a.body)
	}
	if line := f.log.audit(t); line["after"] != "running" || line["result"] != "nothing to do" {
		t.Errorf("%v", line)
	}
}

func FuzzReplayable(f *testing.F) {
	f.Add(`{"A":"b","connection":"A","Set-Cookie":["x"],"X":["1","2"]}`)
	f.Add(`{"hooklock-x":"y","a\u0000":"b"}`)
	f.Add(`{"A":"b\r\nX: y"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var headers map[string]any
		if json.Unmarshal([]byte(text), &headers) != nil {
			return
		}
		kept, err := replayableHeaders(headers)
		if err != nil {
			return
		}
		for _, h := range kept {
			lower := strings.ToLower(h.Name)
			if !httpguts.ValidHeaderFieldName(h.Name) || strings.ContainsAny(h.Value, "\r\n\x00") ||
				strings.HasPrefix(lower, "hooklock-") ||
				lower == "set-cookie" || lower == "transfer-encoding" {
				t.Fatalf("%q: %q", text, h)
			}
		}
	})
}

func TestTheAuditLineOfACallbackShowsNoKey(t *testing.T) {
	f := newFleet(t, nil)
	d := f.hold("w", "1", time.Minute)
	f.post(200, "", d, "guard", bodyOf(d, `,"step":"a"`))
	if line := f.log.audit(t); line["what"] != "execution.guard" || line["who"] != "callback of "+d.id ||
		line["after"] != "step a" || line["workflow"] != "w" {
		t.Errorf("%v", line)
	}
	f.post(200, "", d, "heartbeat", bodyOf(d, ""))
	if line := f.log.audit(t); line["what"] != "execution.heartbeat" ||
		!strings.HasPrefix(fmt.Sprint(line["after"]), "held until ") {
		t.Errorf("%v", line)
	}
	before := strings.Count(f.log.String(), "admin.audit")
	f.post(200, "", d, "guard", bodyOf(d, "")) // a question, no change
	if after := strings.Count(f.log.String(), "admin.audit"); after != before {
		t.Error("a guard without a step left an audit line")
	}
	f.post(200, "", d, "complete", bodyOf(d, `,"status":"SUCCESS","response":{"status":200,"body":"private"}`))
	if line := f.log.audit(t); line["what"] != "execution.complete" || line["before"] != "RUNNING" ||
		line["after"] != "SUCCESS" {
		t.Errorf("%v", line)
	}
	for _, secret := range []string{callbackKey, opsToken, "private"} {
		if strings.Contains(f.log.String(), secret) {
			t.Errorf("the log has %s", secret)
		}
	}
}

func TestStepsHaveABound(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("w", "1")
	name := strings.Repeat("x", maxWord-4)
	for i := range 2000 {
		a := f.ask("POST", "/v1/executions/"+d.id+"/guard", callbackKey,
			bodyOf(d, fmt.Sprintf(`,"step":"%s%04d"`, name, i)))
		if a.StatusCode == 422 {
			if a.code() != "too_many_steps" || i < 10 {
				t.Errorf("step %d: %s", i, a.body)
			}
			f.settle(d, idem.End{Status: idem.Success, Outcome: idem.Executed})
			return
		}
		if a.StatusCode != 200 {
			t.Fatalf("step %d: %d %s", i, a.StatusCode, a.body)
		}
	}
	t.Error("there is no bound")
}
