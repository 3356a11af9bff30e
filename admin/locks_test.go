package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// take acquires a lock over the API.
func (f *fleet) take(workflow, body string) (path, claim string, a *reply) {
	f.t.Helper()
	path = "/v1/locks/" + url.PathEscape(workflow)
	a = f.want(201, "", "POST", path+"/acquire", opsToken, body)
	return path, fmt.Sprintf(`{"executionId":%q,"token":%d}`, a.text("executionId"), a.number("token")), a
}

func TestALockOverTheAPI(t *testing.T) {
	f := newFleet(t, nil)
	for _, workflow := range []string{"backup", "assess/flow-7:readiness", "100%", "ä/ö ü", "%2F", "..", "a?b#c;d+e",
		"acquire", "日本/語"} {
		path, claim, a := f.take(workflow, `{"holder":"cron@db-1","ttl":"1m"}`)
		if a.text("workflow") != workflow || a.text("holder") != "cron@db-1" || a.number("token") == 0 ||
			a.text("callbackKey") == "" || a.json["held"] != true {
			t.Errorf("%s", a.body)
		}
		if a.Header.Get("Location") != path {
			t.Errorf("Location: %s, want %s", a.Header.Get("Location"), path)
		}
		if got := f.want(200, "", "GET", path, opsToken, ""); got.text("executionId") != a.text("executionId") ||
			got.text("callbackKey") != "" {
			t.Errorf("%s", got.body)
		}
		held := f.want(409, "workflow_locked", "POST", path+"/acquire", opsToken, `{"holder":"other","ttl":"1m"}`)
		if held.json["success"] != false || held.text("error") != "Workflow currently executing" ||
			held.text("existingExecutionId") != a.text("executionId") ||
			held.text("details") != "Only one execution can run at a time. Currently executing: "+
				a.text("executionId") || held.Header.Get("Retry-After") == "" {
			t.Errorf("%s", held.body)
		}
		if got := f.want(200, "", "POST", path+"/renew", opsToken, strings.TrimSuffix(claim, "}")+
			`,"ttl":"10m"}`); got.number("expiresIn") < 500 {
			t.Errorf("%s", got.body)
		}
		f.want(200, "", "POST", path+"/renew", opsToken, claim)
		f.want(412, "stale_token", "POST", path+"/renew", opsToken,
			fmt.Sprintf(`{"executionId":%q,"token":1}`, a.text("executionId")))
		f.want(412, "stale_token", "POST", path+"/release", opsToken,
			fmt.Sprintf(`{"executionId":%q,"token":1}`, a.text("executionId")))
		if got := f.want(204, "", "POST", path+"/release", opsToken, claim); len(got.body) > 0 {
			t.Errorf("%s", got.body)
		}
		f.want(404, "lock_not_found", "GET", path, opsToken, "")
		f.want(412, "lock_lost", "POST", path+"/release", opsToken, claim)
		f.want(412, "lock_lost", "POST", path+"/renew", opsToken, claim)
	}
}

func TestAcquireWaitsForItsTurn(t *testing.T) {
	f := newFleet(t, nil)
	path, claim, _ := f.take("w", `{"ttl":"1m"}`)
	f.want(409, "lock_wait_timeout", "POST", path+"/acquire", opsToken, `{"holder":"late","ttl":"1m","wait":"50ms"}`)
	answers := make(chan *reply)
	go func() {
		answers <- f.ask("POST", path+"/acquire", opsToken, `{"holder":"second","ttl":"1m","wait":"1m"}`)
	}()
	f.awaitWaiting(1)
	f.want(204, "", "POST", path+"/release", opsToken, claim)
	select {
	case a := <-answers:
		if a.StatusCode != 201 || a.text("holder") != "second" {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	case <-within(t).Done():
		t.Fatal("no answer")
	}
}

func TestAClientThatHangsUpLeavesTheQueue(t *testing.T) {
	f := newFleet(t, nil)
	path, claim, _ := f.take("w", `{"ttl":"1m"}`)
	c, err := net.Dial("tcp", f.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"holder":"impatient","ttl":"1m","wait":"1m"}`
	fmt.Fprintf(c,
		"POST %s/acquire HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", path,
		opsToken, len(body), body)
	f.until("it waits", func() bool { return f.want(200, "", "GET", path, opsToken, "").number("waiting") == 1 })
	_ = c.Close()
	f.until("it has left", func() bool { return f.want(200, "", "GET", path, opsToken, "").number("waiting") == 0 })
	f.want(204, "", "POST", path+"/release", opsToken, claim)
	f.take("w", `{"ttl":"1m"}`)
}

// late is a ledger that answers an acquire when the client has gone.
type late struct {
	Ledger
	gone chan struct{}
}

func (l *late) AcquireLock(ctx context.Context, r idem.AcquireRequest) (*idem.Acquired, error) {
	<-l.gone
	<-ctx.Done()
	return l.Ledger.AcquireLock(context.WithoutCancel(ctx), r)
}

func TestALockWhoseClientHasGoneIsGivenBack(t *testing.T) {
	f := newFleet(t, nil)
	l := &late{f.second, make(chan struct{})}
	f.rig = newRig(t, l, nil)
	c, err := net.Dial("tcp", f.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"holder":"impatient","ttl":"1m","wait":"1m"}`
	fmt.Fprintf(c,
		"POST /v1/locks/w/acquire HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", opsToken, len(body), body)
	f.awaitWaiting(1)
	_ = c.Close()
	close(l.gone)
	f.until("the audit line", func() bool { return strings.Contains(f.log.String(), "lock.acquire") })
	f.want(404, "lock_not_found", "GET", "/v1/locks/w", opsToken, "")
}

func TestAWaitForALockCanBeCancelled(t *testing.T) {
	f := newFleet(t, nil)
	path, _, _ := f.take("w", `{"ttl":"1m"}`)
	answers := make(chan *reply)
	go func() {
		answers <- f.ask("POST", path+"/acquire", opsToken, `{"holder":"second","ttl":"1m","wait":"1m"}`)
	}()
	var waiting []string
	f.until("somebody waits", func() bool {
		waiting = f.all(opsToken, "executions", "status=PENDING")
		return len(waiting) == 1
	})
	f.want(202, "", "POST", "/v1/executions/"+waiting[0]+"/cancel", opsToken, `{"reason":"not today"}`)
	select {
	case a := <-answers:
		if a.StatusCode != 503 || a.code() != "execution_aborted" {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	case <-within(t).Done():
		t.Fatal("no answer")
	}
}

func TestALockThatIsNotRenewedRunsOut(t *testing.T) {
	f := newFleet(t, nil)
	path, claim, a := f.take("w", `{"holder":"h","ttl":"1s"}`)
	got := f.ask("POST", path+"/acquire", opsToken, `{"holder":"next","ttl":"1m","wait":"1m"}`)
	if got.StatusCode != 201 || got.number("token") <= a.number("token") {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}
	if x := f.execution(a.text("executionId")); x.text("status") != "FAILED" ||
		!strings.Contains(string(x.body), "hold_expired") || x.json["fingerprint"] != nil {
		t.Errorf("%s", x.body)
	}
	if late := f.ask("POST", path+"/renew", opsToken, claim); late.StatusCode != 412 {
		t.Errorf("%d %s", late.StatusCode, late.body)
	}
}

func TestAForceReleaseNeedsTheExecutionThatHoldsTheLock(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("stripe/acme", "1")
	path := "/v1/locks/stripe%2Facme"
	a := f.want(412, "lock_lost", "DELETE", path+"?reason=stuck&execution="+anID, opsToken, "")
	if a.text("executionId") != d.id {
		t.Errorf("%s", a.body)
	}
	a = f.want(200, "", "DELETE", path+"?reason=stuck&execution="+d.id, stripeToken, "")
	if a.text("status") != "ABORTED" || a.text("abortedBy") != "stripe" || a.text("abortReason") != "stuck" {
		t.Errorf("%s", a.body)
	}
	if cause := f.stopped(d); !errors.Is(cause, idem.ErrLockLost) {
		t.Errorf("told to stop: %v", cause)
	}
	f.want(404, "lock_not_found", "DELETE", path+"?reason=stuck&execution="+d.id, opsToken, "")
	line := f.log.audit(t)
	if line["result"] != "refused" || line["code"] != "lock_not_found" {
		t.Errorf("%v", line)
	}
}

func TestALockThatCoolsDownIsShownAsThat(t *testing.T) {
	f := newFleet(t, nil)
	l := lockOf("w", "1")
	l.ReleaseDelay = time.Minute
	d := f.start(l, 0)
	f.settle(d, failure())
	a := f.want(200, "", "GET", "/v1/locks/w", opsToken, "")
	if a.json["cooling"] != true || a.text("executionId") != d.id || a.number("expiresIn") < 30 ||
		a.number("expiresIn") > 60 {
		t.Errorf("%s", a.body)
	}
	if held := f.want(409, "workflow_locked", "POST", "/v1/locks/w/acquire", opsToken,
		`{"ttl":"1m"}`); held.number("retryAfter") < 30 ||
		strings.Contains(string(held.body), "Currently executing") || !strings.Contains(held.text("details"),
		d.id+" has ended") || !strings.Contains(held.text("detail"), " closed until 20") {
		t.Errorf("%s", held.body)
	}
	f.want(200, "", "DELETE", "/v1/locks/w?reason=the+upstream+is+dead&execution="+d.id, opsToken, "")
	f.take("w", `{"ttl":"1m"}`)
}

func TestEveryChangeLeavesAnAuditLineAlsoARefusedOne(t *testing.T) {
	f := newFleet(t, nil)
	path, claim, a := f.take("w", `{"holder":"cron","ttl":"1m"}`)
	check := func(want map[string]any) {
		t.Helper()
		line := f.log.audit(t)
		for name, v := range want {
			if line[name] != v {
				t.Errorf("%s: got %v, want %v in %v", name, line[name], v, line)
			}
		}
	}
	id := a.text("executionId")
	check(map[string]any{"who": "ops", "what": "lock.acquire", "why": "holder cron", "workflow": "w", "execution": id,
		"before": "free", "result": "done"})
	f.want(409, "workflow_locked", "POST", path+"/acquire", opsToken, `{"holder":"b","ttl":"1m"}`)
	check(map[string]any{"what": "lock.acquire", "before": "locked by " + id, "after": "locked by " + id,
		"result": "refused", "code": "workflow_locked", "status": 409.0})
	f.want(403, "forbidden", "POST", path+"/release", readToken1, claim)
	check(map[string]any{"who": "reader", "what": "lock.release", "result": "refused", "code": "forbidden"})
	f.want(401, "unauthorized", "POST", path+"/release", "", claim)
	check(map[string]any{"who": "unknown", "what": "lock.release", "result": "refused", "code": "unauthorized"})
	f.want(400, "bad_request", "POST", path+"/release", opsToken, "{")
	check(map[string]any{"who": "ops", "what": "lock.release", "result": "refused", "code": "bad_request"})
	f.want(204, "", "POST", path+"/release", opsToken, claim)
	check(map[string]any{"who": "ops", "what": "lock.release", "before": "locked by " + id, "after": "free",
		"result": "done"})
	d := f.run("w", "1")
	f.post(202, "", d, "cancel", `{"reason":"because \"of\" it\n"}`)
	check(map[string]any{"who": "ops", "what": "execution.cancel", "why": "because \"of\" it\n", "before": "RUNNING",
		"after": "CANCEL_REQUESTED", "result": "done", "execution": d.id, "workflow": "w"})
	f.post(200, "", d, "cancel", `{"reason":"again"}`)
	check(map[string]any{"what": "execution.cancel", "before": "CANCEL_REQUESTED", "after": "CANCEL_REQUESTED",
		"result": "nothing to do"})
	if n := strings.Count(f.log.String(), "admin.audit"); n != 8 {
		t.Errorf("%d audit lines", n)
	}
	f.execution(d.id)
	if n := strings.Count(f.log.String(), "admin.audit"); n != 8 {
		t.Error("a read left an audit line")
	}
}

func TestTheAuditLogDoesNotDependOnTheLevelOfTheLog(t *testing.T) {
	r := newRig(t, unreachable{}, nil)
	quiet := newRig(t, unreachable{}, func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelError})).With("room", "admin")
	})
	quiet.want(503, "store_unavailable", "POST", "/v1/executions/"+anID+"/cancel", opsToken, `{"reason":"r"}`)
	if line := r.log.audit(t); line["who"] != "ops" || line["result"] != "unknown" || line["room"] != "admin" {
		t.Errorf("%v", line)
	}
}

func TestWhenEtcdDoesNotAnswerNothingIsClaimed(t *testing.T) {
	f := newFleet(t, nil)
	d := f.run("w", "1")
	cable := etcdtest.NewWire(t, f.etcd.Endpoint)
	store := f.openAt(t, "cut off", cable.Endpoint)
	f.rig = newRig(t, store, func(o *Options) { o.RequestTimeout = 300 * time.Millisecond })
	f.until("etcd answers in the time it has here", func() bool {
		return f.ask("GET", "/v1/executions/"+d.id, opsToken, "").StatusCode == 200
	})
	cable.Blackhole(true)
	for _, q := range requests {
		if asksNoLedger(q.path) {
			continue
		}
		token := opsToken
		if strings.HasSuffix(q.path, "guard") || strings.HasSuffix(q.path, "heartbeat") ||
			strings.HasSuffix(q.path, "complete") {
			token = callbackKey
		}
		if strings.HasSuffix(q.path, "answer") {
			token = bodiesToken
		}
		began := time.Now()
		a := f.want(503, "store_unavailable", q.method, strings.ReplaceAll(q.path, anID, d.id), token,
			strings.ReplaceAll(q.body, anID, d.id))
		if took := time.Since(began); took > 30*time.Second || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s took %v", q.method, q.path, took)
		}
	}
	if line := f.log.audit(t); line["result"] != "unknown" || line["code"] != "store_unavailable" {
		t.Errorf("%v", line)
	}
	cable.Blackhole(false)
	f.until("etcd answers", func() bool { return f.ask("GET", "/v1/executions/"+d.id, opsToken, "").StatusCode == 200 })
}
