package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// scripted answers each request as a test says, and remembers it.
type scripted struct {
	url    string
	client *Client

	mu      sync.Mutex
	answers []answer
	got     []got
}

type answer struct {
	status int
	body   string
	header map[string]string
}

type got struct{ line, body, authorization, agent, contentType, host string }

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, got{
		r.Method + " " + r.RequestURI, string(body), r.Header.Get("Authorization"), r.UserAgent(),
		r.Header.Get("Content-Type"), r.Host,
	})
	a := answer{status: http.StatusInternalServerError}
	if len(s.answers) > 0 {
		a, s.answers = s.answers[0], s.answers[1:]
	}
	w.Header().Set("Content-Type", "application/json")
	if a.status >= 400 {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// last is the last request that came.
func (s *scripted) last() got {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[len(s.got)-1]
}

func script(t *testing.T, answers ...answer) *scripted {
	t.Helper()
	s := &scripted{answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	c, err := New(Options{URL: s.url, Token: Token("t0ken"), UserAgent: "tester/1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s.client = c
	return s
}

const (
	aLock = `{"workflow":"stripe/acme","executionId":"exec_a","holder":"host/1/s","token":9007199254740993,"lockedAt":"2026-11-21T10:00:00.123Z",
		"expiresAt":"2026-11-21T11:00:00.123Z","heldFor":12.5,"expiresIn":3587.5,"held":true,"waiting":2,"isStale":true,"cooling":true,"later":1}`
	anExecution = `{"executionId":"exec_a","workflow":"stripe/acme","route":"stripe","idempotencyKey":"k","eventId":"evt_1","fingerprint":"f","status":"ABORTED",
		"outcome":"unknown","token":7,"holder":"h","attempt":2,"startedAt":"2026-11-21T10:00:00.000Z","finishedAt":"2026-11-21T10:00:01.500Z","error":{"code":"c","detail":"d"},
		"abortedAt":"2026-11-21T10:00:01.000Z","abortedBy":"ops","abortReason":"why","steps":[{"name":"a","status":"done","startedAt":"2026-11-21T10:00:00.100Z","finishedAt":"2026-11-21T10:00:00.200Z"},{"name":"b","status":"skipped"}],
		"response":{"status":200,"bytes":31,"kept":true},"duplicates":3,"traceId":"t","success":true,"message":"asked","later":1}`
)

func TestEveryCallAsksAsTheContractSays(t *testing.T) {
	cb := Callback{ExecutionID: "exec_a", Token: 7, Key: "secret"}
	for _, c := range []struct {
		name   string
		answer answer
		do     func(context.Context, *Client) error
		line   string
		body   string
		bearer string
	}{
		{"list locks", answer{200, `{"locks":[],"nextCursor":""}`, nil},
			func(ctx context.Context, c *Client) error {
				_, err := c.LockPage(ctx, LockQuery{"stripe/ä", 5, "c=1"})
				return err
			},
			"GET /v1/locks?cursor=c%3D1&limit=5&prefix=stripe%2F%C3%A4", "", "t0ken"},
		{"get lock", answer{200, aLock, nil},
			func(ctx context.Context, c *Client) error { _, err := c.Lock(ctx, "stripe/acme:ä ?#%"); return err },
			"GET /v1/locks/stripe%2Facme:%C3%A4%20%3F%23%25", "", "t0ken"},
		{"a workflow that looks like a way up", answer{200, aLock, nil},
			func(ctx context.Context, c *Client) error { _, err := c.Lock(ctx, ".."); return err },
			"GET /v1/locks/%2E%2E", "", "t0ken"},
		{"force release", answer{200, anExecution, nil},
			func(ctx context.Context, c *Client) error {
				_, err := c.ForceRelease(ctx, "a/b", "exec_a", "it & that")
				return err
			},
			"DELETE /v1/locks/a%2Fb?execution=exec_a&reason=it+%26+that", "", "t0ken"},
		{"acquire", answer{201, aLock, nil},
			func(ctx context.Context, c *Client) error {
				_, err := c.Acquire(ctx, "w", AcquireRequest{"cron", 30 * time.Minute, 0})
				return err
			},
			"POST /v1/locks/w/acquire", `{"holder":"cron","ttl":"30m0s","wait":"0s"}`, "t0ken"},
		{"renew", answer{200, aLock, nil}, func(ctx context.Context, c *Client) error {
			_, err := c.Renew(ctx, "w", "exec_a", 7, time.Minute)
			return err
		},
			"POST /v1/locks/w/renew", `{"executionId":"exec_a","token":7,"ttl":"1m0s"}`, "t0ken"},
		{"renew as before", answer{200, aLock, nil},
			func(ctx context.Context, c *Client) error { _, err := c.Renew(ctx, "w", "exec_a", 7, 0); return err },
			"POST /v1/locks/w/renew", `{"executionId":"exec_a","token":7}`, "t0ken"},
		{"release", answer{204, "", nil},
			func(ctx context.Context, c *Client) error { return c.Release(ctx, "w", "exec_a", 7) },
			"POST /v1/locks/w/release", `{"executionId":"exec_a","token":7}`, "t0ken"},
		{"list executions", answer{200, `{"executions":[],"nextCursor":""}`, nil},
			func(ctx context.Context, c *Client) error {
				_, err := c.ExecutionPage(ctx,
					ExecutionQuery{Workflow: "w", Status: CancelRequested, Limit: 5, Cursor: "c"})
				return err
			},
			"GET /v1/executions?cursor=c&limit=5&status=CANCEL_REQUESTED&workflow=w", "", "t0ken"},
		{"get", answer{200, anExecution, nil},
			func(ctx context.Context, c *Client) error { _, err := c.Execution(ctx, "exec_a"); return err },
			"GET /v1/executions/exec_a", "", "t0ken"},
		{"wait", answer{200, anExecution, nil}, func(ctx context.Context, c *Client) error {
			_, err := c.AwaitExecution(ctx, "exec_a", 30*time.Second)
			return err
		},
			"GET /v1/executions/exec_a?wait=30s", "", "t0ken"},
		{"cancel", answer{202, anExecution, nil},
			func(ctx context.Context, c *Client) error { _, err := c.Cancel(ctx, "exec_a", "why", true); return err },
			"POST /v1/executions/exec_a/cancel", `{"reason":"why","final":true}`, "t0ken"},
		{"forget", answer{200, anExecution, nil},
			func(ctx context.Context, c *Client) error { _, err := c.Forget(ctx, "exec_a", "why"); return err },
			"DELETE /v1/executions/exec_a?reason=why", "", "t0ken"},
		{"guard", answer{200, `{"proceed":true}`, nil}, func(ctx context.Context, c *Client) error {
			_, err := c.Guard(ctx, cb, "pay", []string{"pay", "mail"})
			return err
		},
			"POST /v1/executions/exec_a/guard", `{"token":7,"step":"pay","plan":["pay","mail"]}`, "secret"},
		{"guard without a step", answer{200, `{"proceed":true}`, nil}, func(ctx context.Context, c *Client) error { _, err := c.Guard(ctx, cb, "", nil); return err },
			"POST /v1/executions/exec_a/guard", `{"token":7}`, "secret"},
		{"heartbeat", answer{200, `{"executionId":"exec_a","status":"RUNNING","expiresIn":60}`, nil}, func(ctx context.Context, c *Client) error { _, err := c.Heartbeat(ctx, cb, time.Hour); return err },
			"POST /v1/executions/exec_a/heartbeat", `{"token":7,"ttl":"1h0m0s"}`, "secret"},
		{"complete", answer{200, anExecution, nil},
			func(ctx context.Context, c *Client) error {
				_, err := c.Complete(ctx, cb,
					Final{Status: Success,
						Answer: &Answer{Status: 201, Header: map[string]string{"X-A": "b"}, Body: []byte("done")}})
				return err
			},
			"POST /v1/executions/exec_a/complete", `{"token":7,"status":"SUCCESS","response":{"status":201,"headers":{"X-A":"b"},"body":"done"}}`, "secret"},
		{"complete with bytes", answer{200, anExecution, nil},
			func(ctx context.Context, c *Client) error {
				_, err := c.Complete(ctx, cb,
					Final{Status: Success, Answer: &Answer{Status: 200, Body: []byte{0xff, 0}}})
				return err
			},
			"POST /v1/executions/exec_a/complete", `{"token":7,"status":"SUCCESS","response":{"status":200,"bodyBase64":"/wA="}}`, "secret"},
		{"fail", answer{200, anExecution, nil},
			func(ctx context.Context, c *Client) error {
				_, err := c.Complete(ctx, cb, Final{Status: Failed, Error: &Failure{"no_money", "empty"}})
				return err
			},
			"POST /v1/executions/exec_a/complete", `{"token":7,"status":"FAILED","error":{"code":"no_money","detail":"empty"}}`, "secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := script(t, c.answer)
			if err := c.do(t.Context(), s.client); err != nil {
				t.Fatal(err)
			}
			got := s.last()
			if got.line != c.line || got.body != c.body || got.authorization != "Bearer "+c.bearer ||
				got.agent != "tester/1" {
				t.Errorf("got %+v", got)
			}
			if (got.contentType == "application/json") != (c.body != "") {
				t.Errorf("Content-Type %q with body %q", got.contentType, c.body)
			}
		})
	}
}

func TestAnswersAreReadWhole(t *testing.T) {
	s := script(t, answer{200, aLock, nil}, answer{200, anExecution, nil}, answer{202, anExecution, nil},
		answer{200, anExecution, nil},
		answer{201, strings.Replace(aLock, "{", `{"callbackKey":"ck",`, 1), nil})
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	l, err := s.client.Lock(t.Context(), "w")
	if err != nil || l.Token != 9007199254740993 || l.Waiting != 2 || !l.IsStale || !l.Cooling || !l.Held ||
		l.HeldFor != 12.5 || l.ExpiresIn == nil || *l.ExpiresIn != 3587.5 ||
		!l.LockedAt.Equal(at.Add(123*time.Millisecond)) || !l.ExpiresAt.Equal(at.Add(time.Hour+123*time.Millisecond)) ||
		l.Holder != "host/1/s" || l.ExecutionID != "exec_a" {
		t.Errorf("%v %+v", err, l)
	}
	if string(l.RawJSON()) != aLock {
		t.Errorf("raw: %s", l.RawJSON())
	}
	x, err := s.client.Execution(t.Context(), "exec_a")
	if err != nil || x.Status != Aborted || x.Outcome != Unknown || x.Attempt != 2 || x.Duplicates != 3 ||
		*x.Response != (Response{Status: 200, Bytes: 31, Kept: true}) ||
		*x.Error != (Failure{"c", "d"}) || x.AbortedBy != "ops" || x.AbortReason != "why" ||
		!x.AbortedAt.Equal(at.Add(time.Second)) ||
		!x.FinishedAt.Equal(at.Add(1500*time.Millisecond)) || len(x.Steps) != 2 ||
		x.Steps[1] != (Step{Name: "b", Status: "skipped"}) || x.TraceID != "t" {
		t.Errorf("%v %+v", err, x)
	}
	for _, before := range []bool{false, true} {
		c, err := s.client.Cancel(t.Context(), "exec_a", "why", false)
		if err != nil || !c.Success || c.Message != "asked" || c.Before != before || c.ExecutionID != "exec_a" {
			t.Errorf("%v %+v", err, c)
		}
	}
	a, err := s.client.Acquire(t.Context(), "w", AcquireRequest{Holder: "h", TTL: time.Minute})
	if err != nil || a.Callback() != (Callback{"exec_a", 9007199254740993, "ck"}) || a.Workflow != "stripe/acme" {
		t.Errorf("%v %+v", err, a)
	}
}

func TestAListKeepsTheTextOfTheServer(t *testing.T) {
	const text = `{"pauses":[],"of a later release":1}`
	s := script(t, answer{200, text, nil})
	list, err := s.client.Pauses(t.Context())
	if err != nil || string(list.RawJSON()) != text {
		t.Errorf("%v %s", err, list.RawJSON())
	}
}

func TestWhatIsRefusedIsAProblem(t *testing.T) {
	const problem = `{"type":"urn:hooklock:problem:workflow_locked","title":"Locked","status":409,"detail":"held","code":"workflow_locked","executionId":"exec_b",
		"workflow":"w","success":false,"error":"Workflow currently executing","details":"…","existingExecutionId":"exec_b","retryAfter":7}`
	s := script(t, answer{409, problem, map[string]string{"Retry-After": "7"}})
	_, err := s.client.Acquire(t.Context(), "w", AcquireRequest{Holder: "h", TTL: time.Minute})
	var p *Problem
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	want := Problem{
		Type: "urn:hooklock:problem:workflow_locked", Title: "Locked", Status: 409, Detail: "held",
		Code: CodeWorkflowLocked, ExecutionID: "exec_b", Workflow: "w", ExistingExecutionID: "exec_b",
		RetryAfter: 7 * time.Second,
	}
	if !reflect.DeepEqual(*p, want) || p.Error() != "workflow_locked: held" {
		t.Errorf("got %+v: %v", p, p)
	}
}

func TestAnAnswerOfAnotherProgramIsAProblemWithoutACode(t *testing.T) {
	for name, a := range map[string]answer{
		"a page":      {404, "<html>", map[string]string{"Content-Type": "text/html"}},
		"other JSON":  {404, `{"code":5,"message":"no such key"}`, nil},
		"a list":      {500, `[1]`, nil},
		"nothing":     {502, "", nil},
		"a redirect":  {302, "", map[string]string{"Location": "http://evil.example/"}},
		"half a body": {400, `{"code":"bad_request`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := script(t, a)
			_, err := s.client.Lock(t.Context(), "w")
			var p *Problem
			if !errors.As(err, &p) || p.Code != "" || p.Status != a.status ||
				!strings.Contains(p.Error(), "does not come from Hooklock") {
				t.Errorf("got %+v", err)
			}
			if len(s.got) != 1 {
				t.Errorf("%d requests", len(s.got))
			}
		})
	}
	for name, body := range map[string]string{"a page": "<html>", "a cut one": `{"workflow":"w"`} {
		s := script(t, answer{200, body, nil})
		if l, err := s.client.Lock(t.Context(), "w"); err == nil ||
			!strings.Contains(err.Error(), "not an answer of Hooklock") {
			t.Errorf("%s: got %+v, %v", name, l, err)
		}
	}
}

// A service that answers {} to everything is no empty Hooklock: a caller would take an event for
// one that never came, and a pause that nobody has made for one that holds.
func TestNoCallTakesTheAnswerOfAnotherServiceForHooklocks(t *testing.T) {
	cb := Callback{"exec_a", 7, "secret"}
	for name, do := range map[string]func(context.Context, *Client) (any, error){
		"locks": func(ctx context.Context, c *Client) (any, error) { return c.LockPage(ctx, LockQuery{}) },
		"lock":  func(ctx context.Context, c *Client) (any, error) { return c.Lock(ctx, "w") },
		"acquire": func(ctx context.Context, c *Client) (any, error) {
			return c.Acquire(ctx, "w", AcquireRequest{})
		},
		"release": func(ctx context.Context, c *Client) (any, error) {
			return nil, c.Release(ctx, "w", "exec_a", 7)
		},
		"slots": func(ctx context.Context, c *Client) (any, error) { return c.SlotPage(ctx, LockQuery{}) },
		"turns": func(ctx context.Context, c *Client) (any, error) { return c.TurnPage(ctx, LockQuery{}) },
		"executions": func(ctx context.Context, c *Client) (any, error) {
			return c.ExecutionPage(ctx, ExecutionQuery{})
		},
		"parked": func(ctx context.Context, c *Client) (any, error) {
			return c.ExecutionPage(ctx, ExecutionQuery{Parked: true})
		},
		"execution": func(ctx context.Context, c *Client) (any, error) { return c.Execution(ctx, "exec_a") },
		"answer":    func(ctx context.Context, c *Client) (any, error) { return c.KeptAnswer(ctx, "exec_a") },
		"request": func(ctx context.Context, c *Client) (any, error) {
			return nil, c.Request(ctx, "exec_a", io.Discard)
		},
		"cancel": func(ctx context.Context, c *Client) (any, error) { return c.Cancel(ctx, "exec_a", "why", false) },
		"forget": func(ctx context.Context, c *Client) (any, error) { return c.Forget(ctx, "exec_a", "why") },
		"rerun":  func(ctx context.Context, c *Client) (any, error) { return c.Act(ctx, Rerun, "exec_a", "why") },
		"bulk": func(ctx context.Context, c *Client) (any, error) {
			for part, err := range c.Bulk(ctx, Run, Bulk{DryRun: true}) {
				return part, err
			}
			return nil, nil
		},
		"guard":     func(ctx context.Context, c *Client) (any, error) { return c.Guard(ctx, cb, "", nil) },
		"heartbeat": func(ctx context.Context, c *Client) (any, error) { return c.Heartbeat(ctx, cb, 0) },
		"complete": func(ctx context.Context, c *Client) (any, error) {
			return c.Complete(ctx, cb, Final{Status: Success})
		},
		"pauses": func(ctx context.Context, c *Client) (any, error) { return c.Pauses(ctx) },
		"pause":  func(ctx context.Context, c *Client) (any, error) { return c.Pause(ctx, "route:a") },
		"begin": func(ctx context.Context, c *Client) (any, error) {
			return c.BeginPause(ctx, "route:a", "why", 0)
		},
		"resume": func(ctx context.Context, c *Client) (any, error) { return c.Resume(ctx, "route:a", "why") },
		"seen":   func(ctx context.Context, c *Client) (any, error) { return c.Seen(ctx) },
		"mark": func(ctx context.Context, c *Client) (any, error) {
			return c.MarkSeen(ctx, "unknown:a", "", "why")
		},
		"unmark": func(ctx context.Context, c *Client) (any, error) { return c.UnmarkSeen(ctx, "unknown:a", "why") },
		"audit":  func(ctx context.Context, c *Client) (any, error) { return c.AuditPage(ctx, AuditQuery{}) },
		"report": func(ctx context.Context, c *Client) (any, error) { return c.Report(ctx, "") },
		"routes": func(ctx context.Context, c *Client) (any, error) { return c.Routes(ctx) },
		"status": func(ctx context.Context, c *Client) (any, error) { return c.Status(ctx) },
		"config": func(ctx context.Context, c *Client) (any, error) { return c.Config(ctx, false) },
		"reload": func(ctx context.Context, c *Client) (any, error) { return c.Reload(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			got, err := do(t.Context(), script(t, answer{200, `{}`, nil}).client)
			var p *Problem
			if !errors.As(err, &p) || p.Code != "" ||
				!strings.Contains(p.Error(), "the answer 200 OK does not come from Hooklock's admin API") {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestGuardThatSaysNoIsNoError(t *testing.T) {
	cb := Callback{"exec_a", 7, "secret"}
	for _, body := range []string{
		`{"proceed":false,"status":"CANCEL_REQUESTED"}`,
		`{"type":"t","status":409,"code":"cancel_requested","proceed":false,"executionStatus":"CANCEL_REQUESTED"}`,
	} {
		s := script(t, answer{409, body, nil})
		v, err := s.client.Guard(t.Context(), cb, "pay", nil)
		if err != nil || *v != (Verdict{Status: CancelRequested}) {
			t.Errorf("got %+v, %v", v, err)
		}
	}
	s := script(t, answer{200, `{"executionId":"exec_a","status":"RUNNING","expiresAt":"2026-11-21T10:30:00.000Z","expiresIn":1800}`, nil},
		answer{409, `{"proceed":false,"status":"SUCCESS"}`, nil})
	if v, err := s.client.Heartbeat(t.Context(), cb, 0); err != nil || !v.Proceed || v.ExpiresIn != 1800 ||
		v.ExpiresAt.Hour() != 10 {
		t.Errorf("got %+v, %v", v, err)
	}
	if v, err := s.client.Heartbeat(t.Context(), cb, 0); err != nil || *v != (Verdict{Status: Success}) {
		t.Errorf("got %+v, %v", v, err)
	}
	s = script(t, answer{412, `{"code":"stale_token","detail":"another has it"}`, nil}, answer{409, `{"code":"already_finished","detail":"ended"}`, nil})
	for _, code := range []string{CodeStaleToken, CodeAlreadyFinished} {
		_, err := s.client.Guard(t.Context(), cb, "pay", nil)
		var p *Problem
		if !errors.As(err, &p) || p.Code != code {
			t.Errorf("got %v", err)
		}
	}
}

func TestAListGoesThroughAllPagesAndNoneTwice(t *testing.T) {
	lock := func(name string) string { return strings.Replace(aLock, "stripe/acme", name, 1) }
	s := script(t,
		answer{200, `{"locks":[` + lock("a") + "," + lock("b") + `],"nextCursor":"1"}`, nil},
		answer{200, `{"locks":[],"nextCursor":"2"}`, nil}, // a short page is not the end
		answer{200, `{"locks":[` + lock("c") + `],"nextCursor":""}`, nil})
	var names []string
	for l, err := range s.client.Locks(t.Context(), LockQuery{Prefix: "p"}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, l.Workflow)
	}
	if strings.Join(names, "") != "abc" || len(s.got) != 3 || s.got[2].line != "GET /v1/locks?cursor=2&prefix=p" {
		t.Errorf("%v %+v", names, s.got)
	}
	s = script(t, answer{200, `{"executions":[` + anExecution + `],"nextCursor":"1"}`, nil}, answer{503, `{"code":"store_unavailable"}`, nil})
	n := 0
	var last error
	for _, err := range s.client.Executions(t.Context(), ExecutionQuery{}) {
		if last = err; err == nil {
			n++
		}
	}
	var p *Problem
	if n != 1 || !errors.As(last, &p) || p.Code != CodeStoreUnavailable {
		t.Errorf("%d %v", n, last)
	}
	s = script(t, answer{200, `{"locks":[],"nextCursor":"1"}`, nil}, answer{200, `{"locks":[],"nextCursor":"1"}`, nil})
	for _, err := range s.client.Locks(t.Context(), LockQuery{}) {
		last = err
	}
	if last == nil || len(s.got) != 2 {
		t.Errorf("a server that turns in a circle: %v after %d requests", last, len(s.got))
	}
}

func TestACallAboutNothingIsNotSent(t *testing.T) {
	s := script(t)
	ctx := t.Context()
	for name, do := range map[string]func() error{
		"lock":      func() error { _, err := s.client.Lock(ctx, ""); return err },
		"force":     func() error { _, err := s.client.ForceRelease(ctx, "", "exec_a", "r"); return err },
		"acquire":   func() error { _, err := s.client.Acquire(ctx, "", AcquireRequest{}); return err },
		"renew":     func() error { _, err := s.client.Renew(ctx, "", "exec_a", 1, 0); return err },
		"release":   func() error { return s.client.Release(ctx, "", "exec_a", 1) },
		"execution": func() error { _, err := s.client.Execution(ctx, ""); return err },
		"cancel":    func() error { _, err := s.client.Cancel(ctx, "", "r", false); return err },
		"forget":    func() error { _, err := s.client.Forget(ctx, "", "r"); return err },
		"guard":     func() error { _, err := s.client.Guard(ctx, Callback{Key: "k"}, "", nil); return err },
		"no key":    func() error { _, err := s.client.Heartbeat(ctx, Callback{ExecutionID: "exec_a"}, 0); return err },
	} {
		if do() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if len(s.got) != 0 {
		t.Errorf("sent %+v", s.got)
	}
}

func TestACallEndsWithItsContextAndByItself(t *testing.T) {
	arrived, over := make(chan struct{}, 2), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	defer server.Close()
	defer close(over)
	c, err := New(Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := c.AwaitExecution(ctx, "exec_a", time.Hour); ended <- err }()
	<-arrived
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if c, err = New(Options{URL: server.URL, Timeout: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Execution(t.Context(), "exec_a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestReadySaysWhyNot(t *testing.T) {
	text := map[string]string{"Content-Type": "text/plain"}
	s := script(t, answer{200, "ok\n", text}, answer{503, "not ready: no session: connection refused\n", text},
		answer{503, "full", text}, answer{200, "ok\n", text})
	if err := s.client.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	err := s.client.Ready(t.Context())
	var p *Problem
	if !errors.As(err, &p) || p.Code != CodeNotReady || p.Detail != "no session: connection refused" {
		t.Errorf("got %+v", err)
	}
	if err := s.client.Ready(t.Context()); !errors.As(err, &p) || p.Code != "" {
		t.Errorf("got %+v", err)
	}
	if err := s.client.Live(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheUpstreamFindsItsRightInTheHeadersOfTheDelivery(t *testing.T) {
	h := http.Header{}
	h.Set("Hooklock-Execution", "exec_a")
	h.Set("Hooklock-Fencing-Token", "12")
	if _, err := CallbackFrom(h); err == nil {
		t.Error("a key is needed")
	}
	h.Set("Hooklock-Callback-Key", "k")
	if cb, err := CallbackFrom(h); err != nil || cb != (Callback{"exec_a", 12, "k"}) {
		t.Errorf("%+v %v", cb, err)
	}
	h.Set("Hooklock-Fencing-Token", "x")
	if _, err := CallbackFrom(h); err == nil {
		t.Error("a token is a number")
	}
	// As a delivery has them of a route whose lock covers the event alone: with lock.strategy none,
	// or a lock.limit above one.
	h.Del("Hooklock-Fencing-Token")
	if cb, err := CallbackFrom(h); err != nil || cb != (Callback{"exec_a", 0, "k"}) {
		t.Errorf("without a token: %+v %v", cb, err)
	}
}

func FuzzNoAnswerBreaksTheClient(f *testing.F) {
	for _, text := range []string{aLock, anExecution, `{"proceed":false,"status":"CANCEL_REQUESTED"}`, `{"code":"x","status":"y"}`, `null`, `{}`, `[]`, `{"status":{}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := newProblem(&http.Response{
			StatusCode: 409, Header: http.Header{"Content-Type": {"application/problem+json"}}}, text)
		if p.Status != 409 || p.Error() == "" {
			t.Errorf("%+v", p)
		}
		new(Verdict).readRefusal(409, text)
		for _, v := range []any{
			new(Lock), new(Execution), new(Acquired), new(Cancelled), new(LockPage), new(ExecutionPage)} {
			_ = json.Unmarshal(text, v)
		}
	})
}
