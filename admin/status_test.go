package admin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
)

// process is one that has something to say of everything.
type process struct {
	problems []string
	err      error
	origin   bool
	changed  []string
	// reloading gets the life of each reload, which goes on as long as that; nil: it is over at
	// once.
	reloading chan context.Context
}

func (*process) Status() client.ReplicaStatus {
	at := client.Time{Time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	return client.ReplicaStatus{
		Replica: "host/1", Version: "1.0", StartedAt: at, At: at, NotReady: "shutting down",
		Session: client.SessionStatus{Name: "s", OpenedAt: at, TTL: 15, Remaining: 12.5, Reason: "etcd is away"},
		Etcd: client.EtcdStatus{Space: "4% of its quota",
			Members: []client.Contact{{Address: "http://etcd-0:2379", State: client.ContactFails, AnsweredAt: at,
				FailedAt: at, Failure: "UNAVAILABLE"}}},
		Upstream: client.Contact{Address: "http://127.0.0.1:8081", State: client.ContactNotAsked},
		Config: client.ConfigStatus{File: "sidecar.yaml", SHA256: "ab", LoadedAt: at, Stale: true,
			Refused: &client.Refusal{At: at, Problems: []string{"sidecar.yaml:8:5: no"}}},
		UpstreamReuse: client.UpstreamReuse{Setting: "auto", Server: "nginx", Known: "nginx drops it", Reused: 1,
			Ended: "closed the connection", EndedAt: at, RestsUntil: at},
		Running: client.Crowd{Count: 3, OldestAt: at},
		Parked: client.ParkedStatus{Count: 2, OldestAt: at, Bytes: 412, Blocked: 1, DeadLetters: 1,
			Routes:           []client.RouteCount{{Route: "gone", Count: 2}},
			DeadLetterRoutes: []client.RouteCount{{Route: "gone", Count: 1}},
			Unrouted:         []client.RouteCount{{Route: "gone", Count: 2}}}, RateSeconds: 300,
		Slots: []client.SlotCount{{Limit: "erp", Taken: 20, Waiting: 3}},
		Paused: []client.PauseStatus{{Scope: "route:stripe", By: "ops", Reason: "a migration", Since: at, Until: at,
			Parked: 7}},
		Routes: []client.RouteRate{{Route: "stripe", Mode: "enforce", Decisions: map[string]int64{"executed": 12},
			LastAt: at, Changes: true, Twins: 2,
			WrongEventID: &client.WrongEventID{EventID: "null", Why: client.IDPlaceholder,
				Deliveries: 1, At: at}}},
	}
}

func (*process) Routes() []client.RouteRules {
	return []client.RouteRules{{
		Route: "stripe", Mode: "enforce", Path: "/hooks/{account}", OnUnknown: "retry", Attempts: 20, SignatureAge: 300,
		Answers: []client.RouteAnswer{{Decision: "locked", Text: "409 workflow_locked"}},
		Sender: &client.RouteSender{Preset: "stripe", Patience: 20, RetriesOn: "every answer but 2xx",
			RetriesFor: 259200, GivesUp: "disabled", Limits: []client.SenderLimit{{Limit: "4_in_a_row", Ratio: 0.5}}},
	}}
}

func (p *process) Config(origin bool) (client.RunningConfig, error) {
	p.origin = origin
	return client.RunningConfig{File: "sidecar.yaml", SHA256: "ab", YAML: "routes: []\n"}, p.err
}

func (p *process) Reload(ctx context.Context) (client.Reloaded, []string, error) {
	if p.reloading != nil {
		p.reloading <- ctx
		<-ctx.Done()
		return client.Reloaded{}, nil, ctx.Err()
	}
	if p.err != nil || p.problems != nil {
		return client.Reloaded{}, p.problems, p.err
	}
	return client.Reloaded{SHA256: "cd", Changed: append([]string{}, p.changed...)}, nil, nil
}

func (p *process) TestNotify(context.Context) client.NotifyTest {
	return client.NotifyTest{Status: 404, Answer: "no hook", Problem: "the receiver answered 404: no hook"}
}

func newProcessRig(t *testing.T, p *process) *rig {
	t.Helper()
	return newRig(t, unreachable{}, func(o *Options) { o.Process = p })
}

func TestTheStatusIsSaidWhileEtcdIsAway(t *testing.T) {
	r := newProcessRig(t, &process{})
	a := r.ask("GET", "/v1/status", readToken1, "")
	if a.StatusCode != http.StatusOK || a.text("replica") != "host/1" || a.text("notReady") != "shutting down" {
		t.Errorf("%s", a.body)
	}
}

func TestWhatTheRoutesDoIsShown(t *testing.T) {
	r := newProcessRig(t, &process{})
	r.want(400, "bad_request", "GET", "/v1/routes?x=1", readToken1, "")
	a := r.want(200, "", "GET", "/v1/routes", readToken1, "")
	if !strings.Contains(string(a.body), "409 workflow_locked") {
		t.Errorf("%s", a.body)
	}
}

func TestTheConfigurationInForceIsShown(t *testing.T) {
	p := &process{}
	r := newProcessRig(t, p)
	if a := r.ask("GET", "/v1/config", readToken1, ""); a.StatusCode != http.StatusOK ||
		a.text("yaml") != "routes: []\n" || p.origin {
		t.Errorf("%s", a.body)
	}
	if r.ask("GET", "/v1/config?origin=true", readToken1, ""); !p.origin {
		t.Error("origin was not asked for")
	}
	r.want(400, "bad_request", "GET", "/v1/config?origin=perhaps", readToken1, "")
	r.want(400, "bad_request", "GET", "/v1/status?x=1", readToken1, "")
	r.want(400, "bad_request", "POST", "/v1/config/reload?x=1", opsToken, "")
}

func TestStatusAndConfigurationNeedATokenForAllWorkflows(t *testing.T) {
	r := newProcessRig(t, &process{})
	for _, path := range []string{"/v1/status", "/v1/routes", "/v1/config"} {
		r.want(401, "unauthorized", "GET", path, "", "")
		r.want(403, "forbidden", "GET", path, writeToken1, "")
		r.want(403, "forbidden", "GET", path, stripeToken, "") // it is over all workflows
	}
	r.want(401, "unauthorized", "POST", "/v1/config/reload", "", "")
	r.want(403, "forbidden", "POST", "/v1/config/reload", readToken1, "")
	r.want(403, "forbidden", "POST", "/v1/config/reload", stripeToken, "")
}

func TestAReloadSaysWhatChanged(t *testing.T) {
	p := &process{changed: []string{"route stripe: lock.strategy"}}
	r := newProcessRig(t, p)
	if a := r.want(200, "", "POST", "/v1/config/reload", opsToken, ""); a.text("sha256") != "cd" ||
		!strings.Contains(string(a.body), "route stripe: lock.strategy") {
		t.Errorf("%s", a.body)
	}
	if line := r.log.audit(t); line["who"] != "ops" || line["what"] != "config.reload" || line["result"] != "done" ||
		line["after"] != "route stripe: lock.strategy" {
		t.Errorf("%v", line)
	}
	p.changed = nil
	r.want(200, "", "POST", "/v1/config/reload", opsToken, "")
	if line := r.log.audit(t); line["result"] != "nothing to do" {
		t.Errorf("%v", line)
	}
}

func TestARefusedReloadReturnsTheErrors(t *testing.T) {
	p := &process{problems: []string{"sidecar.yaml:8:5: no", "sidecar.yaml:9:1: neither"}}
	r := newProcessRig(t, p)
	a := r.want(422, "config_refused", "POST", "/v1/config/reload", opsToken, "")
	if problems, _ := a.json["problems"].([]any); !slices.Equal(problems,
		[]any{"sidecar.yaml:8:5: no", "sidecar.yaml:9:1: neither"}) {
		t.Errorf("%s", a.body)
	}
	if line := r.log.audit(t); line["result"] != "refused" || line["code"] != "config_refused" || line["after"] == "" {
		t.Errorf("%v", line)
	}
	p.err = errors.New("nobody takes it")
	r.want(503, "overloaded", "POST", "/v1/config/reload", opsToken, "")
}

// A reload reads files: how long etcd may take to answer says nothing of that. The answer names the
// file that hangs, and the API can be closed meanwhile.
func TestAReloadHasTheTimeThatItTakesToReadAndEndsWithTheAPI(t *testing.T) {
	p := &process{reloading: make(chan context.Context, 1)}
	r := newRig(t, unreachable{}, func(o *Options) { o.Process, o.RequestTimeout = p, time.Second })
	answered := make(chan int)
	go func() {
		a := r.ask("POST", "/v1/config/reload", opsToken, "")
		answered <- a.StatusCode
	}()
	ctx := <-p.reloading
	if until, ok := ctx.Deadline(); !ok || time.Until(until) < 15*time.Second {
		t.Errorf("it has %v", time.Until(until))
	}
	r.api.Close()
	if status := <-answered; status != http.StatusServiceUnavailable {
		t.Errorf("%d", status)
	}
}

func TestReadyzTellsOfARefusedReload(t *testing.T) {
	stale := ""
	r := newRig(t, unreachable{}, func(o *Options) { o.Stale = func() string { return stale } })
	if a := r.ask("GET", "/readyz?verbose", "", ""); string(a.body) != "ok\n" {
		t.Errorf("%q", a.body)
	}
	stale = "the changed file was refused"
	if a := r.ask("GET", "/readyz?verbose", "", ""); a.StatusCode != 200 ||
		string(a.body) != "ok\nconfig: the changed file was refused\n" {
		t.Errorf("%q", a.body)
	}
	if a := r.ask("GET", "/readyz", "", ""); string(a.body) != "ok\n" {
		t.Errorf("%q", a.body)
	}
}

func TestATestMessageIsAuditedWithWhatCameOfIt(t *testing.T) {
	r := newProcessRig(t, &process{})
	r.want(401, "unauthorized", "POST", "/v1/notify/test", "", "")
	r.want(403, "forbidden", "POST", "/v1/notify/test", readToken1, "")
	r.want(403, "forbidden", "POST", "/v1/notify/test", stripeToken, "")
	a := r.want(200, "", "POST", "/v1/notify/test", opsToken, "")
	if a.text("problem") != "the receiver answered 404: no hook" || a.text("answer") != "no hook" {
		t.Errorf("%s", a.body)
	}
	if line := r.log.audit(t); line["what"] != "notify.test" || line["after"] != "the receiver answered 404: no hook" {
		t.Errorf("%v", line)
	}
}
