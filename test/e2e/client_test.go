package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
	"hooklock/test/testkit"
)

// served starts a hooklock whose upstream takes each delivery with a 202 and goes on, and a client
// of its admin API.
func served(t *testing.T) (*testkit.Hooklock, *testkit.Upstream, *client.Client) {
	t.Helper()
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.Reply(202, "taken") })
	data := t.TempDir()
	h := own(t, bare(up.URL, "data_dir: "+data+`
routes:
  - {name: hold, path: "/hold/{w}", workflow: "hold/{path.w}", hold: {on_status: [202], ttl: 30m}}
`))
	c, err := client.New(client.Options{URL: "http://" + h.Admin,
		Token: client.TokenFile(filepath.Join(data, "admin.token"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return h, up, c
}

// refusal is the code of a problem; "" for any other error.
func refusal(err error) string {
	if p, ok := errors.AsType[*client.Problem](err); ok {
		return p.Code
	}
	return ""
}

func TestAnUpstreamSpeaksOfItsExecutionThroughTheGoClient(t *testing.T) {
	t.Parallel()
	h, up, c := served(t)
	ctx := t.Context()
	begin := func(w string) client.Callback {
		testkit.Post(t, h.Addr, "/hold/"+w, "{}", key("evt"))
		cb, err := client.CallbackFrom(up.AwaitReceived(t, "/hold/"+w, 1)[0].Header)
		if err != nil {
			t.Fatal(err)
		}
		return cb
	}

	// To the end.
	me := begin("a")
	for _, step := range []string{"charge", "mail", ""} {
		var plan []string
		if step != "" {
			plan = []string{"charge", "mail"}
		}
		if v, err := c.Guard(ctx, me, step, plan); err != nil || !v.Proceed {
			t.Errorf("guard %q: %+v %v", step, v, err)
		}
	}
	v, err := c.Heartbeat(ctx, me, time.Hour)
	if err != nil || !v.Proceed || v.Status != client.Running || v.ExpiresIn < 3500 ||
		time.Until(v.ExpiresAt) < 50*time.Minute {
		t.Errorf("heartbeat: %+v %v", v, err)
	}
	stranger := me
	stranger.Key = strings.Repeat("x", len(me.Key))
	if _, err := c.Guard(ctx, stranger, "", nil); refusal(err) != client.CodeUnauthorized {
		t.Errorf("a wrong callback key: %v", err)
	}
	late := me
	late.Token--
	if _, err := c.Guard(ctx, late, "", nil); refusal(err) != client.CodeStaleToken {
		t.Errorf("an old token: %v", err)
	}
	x, err := c.Complete(ctx, me, client.Final{Status: client.Success,
		Answer: &client.Answer{Status: 201, Header: map[string]string{"X-Receipt": "7"}, Body: []byte("receipt 7")}})
	if err != nil || x.Status != client.Success || len(x.Steps) != 2 || x.Steps[1].Status != "done" {
		t.Errorf("complete: %+v %v", x, err)
	}
	if a := testkit.Post(t, h.Addr, "/hold/a", "{}", key("evt")); a.Status != 201 || a.Header.Get("X-Receipt") != "7" ||
		string(a.Body) != "receipt 7" {
		t.Errorf("a duplicate gets %v", a)
	}
	if _, err := c.Complete(ctx, me, client.Final{Status: client.Success}); refusal(err) != client.CodeAlreadyFinished {
		t.Errorf("complete twice: %v", err)
	}

	// Cancelled on the way.
	me = begin("b")
	if v, err := c.Guard(ctx, me, "charge", []string{"charge", "mail"}); err != nil || !v.Proceed {
		t.Errorf("%+v %v", v, err)
	}
	for _, before := range []bool{false, true} {
		r, err := c.Cancel(ctx, me.ExecutionID, "wrong account", false)
		if err != nil || !r.Success || r.Before != before || r.Status != client.CancelRequested {
			t.Errorf("cancel: %+v %v", r, err)
		}
	}
	if v, err := c.Guard(ctx, me, "mail", nil); err != nil || v.Proceed || v.Status != client.CancelRequested {
		t.Errorf("guard after a cancel: %+v %v", v, err)
	}
	if v, err := c.Heartbeat(ctx, me, 0); err != nil || v.Proceed || v.Status != client.CancelRequested {
		t.Errorf("heartbeat after a cancel: %+v %v", v, err)
	}
	if _, err := c.Forget(ctx, me.ExecutionID, "no"); refusal(err) != client.CodeInFlight {
		t.Errorf("forget what lives: %v", err)
	}
	if x, err = c.ForceRelease(ctx, "hold/b", me.ExecutionID, "enough"); err != nil || x.Status != client.Aborted {
		t.Errorf("force release: %+v %v", x, err)
	}
	if x, err = c.AwaitExecution(ctx, me.ExecutionID, time.Minute); err != nil || x.Status != client.Aborted ||
		x.AbortedBy == "" {
		t.Errorf("after the end: %+v %v", x, err)
	}
}

func TestAJobLocksThroughTheGoClient(t *testing.T) {
	t.Parallel()
	_, _, c := served(t)
	ctx := t.Context()
	for _, workflow := range []string{"nightly", "a/b:ä ?#%", "..", "."} {
		l, err := c.Acquire(ctx, workflow, client.AcquireRequest{Holder: "cron@db-1", TTL: time.Minute})
		if err != nil || l.Workflow != workflow || l.Holder != "cron@db-1" || !l.Held || l.Token == 0 ||
			l.CallbackKey == "" {
			t.Fatalf("%s: %+v %v", workflow, l, err)
		}
		_, err = c.Acquire(ctx, workflow, client.AcquireRequest{Holder: "cron@db-2", TTL: time.Minute})
		var p *client.Problem
		if !errors.As(err, &p) || p.Code != client.CodeWorkflowLocked || p.ExistingExecutionID != l.ExecutionID ||
			p.RetryAfter == 0 {
			t.Errorf("%s is taken: %+v %v", workflow, p, err)
		}
		if _, err = c.Acquire(ctx, workflow, client.AcquireRequest{Holder: "cron@db-2", TTL: time.Minute,
			Wait: 50 * time.Millisecond}); refusal(err) != client.CodeLockWaitTimeout {
			t.Errorf("%s: after a wait: %v", workflow, err)
		}
		renewed, err := c.Renew(ctx, workflow, l.ExecutionID, l.Token, time.Hour)
		if err != nil || renewed.ExpiresIn == nil || *renewed.ExpiresIn < 3500 {
			t.Errorf("%s: renew: %+v %v", workflow, renewed, err)
		}
		if v, err := c.Guard(ctx, l.Callback(), "", nil); err != nil || !v.Proceed {
			t.Errorf("%s: guard: %+v %v", workflow, v, err)
		}
		if seen, err := c.Lock(ctx, workflow); err != nil || seen.ExecutionID != l.ExecutionID {
			t.Errorf("%s: get: %+v %v", workflow, seen, err)
		}
		if err := c.Release(ctx, workflow, l.ExecutionID, l.Token); err != nil {
			t.Errorf("%s: release: %v", workflow, err)
		}
		if _, err := c.Lock(ctx, workflow); refusal(err) != client.CodeLockNotFound {
			t.Errorf("%s: after release: %v", workflow, err)
		}
		if _, err := c.Renew(ctx, workflow, l.ExecutionID, l.Token, 0); refusal(err) == "" {
			t.Errorf("%s: renew after release: %v", workflow, err)
		}
	}
	waited := make(chan error, 1)
	l, err := c.Acquire(ctx, "next", client.AcquireRequest{Holder: "a", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := c.Acquire(ctx, "next", client.AcquireRequest{Holder: "b", TTL: time.Minute, Wait: 20 * time.Second})
		waited <- err
	}()
	testkit.Until(t, "b waits", func() bool {
		seen, err := c.Lock(ctx, "next")
		return err == nil && seen.Waiting == 1
	})
	if err := c.Release(ctx, "next", l.ExecutionID, l.Token); err != nil {
		t.Error(err)
	}
	if err := testkit.Receive(t, "the lock", waited); err != nil {
		t.Error(err)
	}
}

func TestTheGoClientListsAllPagesAndReadsTheRest(t *testing.T) {
	t.Parallel()
	_, _, c := served(t)
	ctx := t.Context()
	const n = 25
	for i := range n {
		if _, err := c.Acquire(ctx, fmt.Sprintf("many/%d", i),
			client.AcquireRequest{Holder: "me", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	locks, executions := map[string]bool{}, map[string]bool{}
	for l, err := range c.Locks(ctx, client.LockQuery{Prefix: "many/", Limit: 4}) {
		if err != nil {
			t.Fatal(err)
		}
		locks[l.Workflow] = true
	}
	for x, err := range c.Executions(ctx, client.ExecutionQuery{Status: client.Running, Limit: 4}) {
		if err != nil {
			t.Fatal(err)
		}
		executions[x.Workflow] = true
	}
	if len(locks) != n || len(executions) != n {
		t.Errorf("%d locks, %d executions", len(locks), len(executions))
	}
	if err := errors.Join(c.Live(ctx), c.Ready(ctx)); err != nil {
		t.Error(err)
	}
	if text, err := c.OpenAPI(ctx); err != nil || !strings.Contains(string(text), `"openapi"`) {
		t.Errorf("%.80s %v", text, err)
	}
	if text, err := c.Metrics(ctx); err != nil || !strings.Contains(string(text), "hooklock_") {
		t.Errorf("%.80s %v", text, err)
	}
}
