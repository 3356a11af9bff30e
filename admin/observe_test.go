package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"hooklock/admin/report"
	"hooklock/idem"
)

// newReportRig is an API whose process has found one thing of each kind.
func newReportRig(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	tally := report.New("host/1", nil, nil)
	tally.SetRoutes([]report.Route{{Name: "stripe", Mode: "observe"}, {Name: "github", Mode: "enforce"}})
	for _, d := range []idem.Decision{
		idem.DecisionExecuted, idem.DecisionReplayed, idem.DecisionLocked, idem.DecisionMismatch,
		idem.DecisionUnverified, idem.DecisionRejected,
	} {
		tally.Note(&report.Delivery{
			Route: "stripe", Decision: d, MissingID: d == idem.DecisionRejected, Workflow: "stripe/acme",
			Key: "0123456789abcdef", Execution: anID,
			Code: "workflow_missing", Signature: "mismatch", TraceID: "0af7651916cd43dd8448eb211c80319c", Status: 200,
		})
	}
	for attempt := range uint64(2) {
		tally.Note(&report.Delivery{Route: "github", Decision: idem.DecisionMismatch, Key: "k",
			Members: []idem.Member{{Path: "body.attempt", Sum: attempt}}})
	}
	tally.Note(&report.Delivery{Route: "github", Decision: idem.DecisionReplayed, Carried: true, EventID: "$ID",
		Placeholder: true, Changed: true, Differs: []string{"body"}})
	tally.Note(&report.Delivery{Route: "github", Decision: idem.DecisionExecuted, Carried: true, TwinOf: "k"})
	return newRig(t, unreachable{}, func(o *Options) {
		o.Report = tally.Report
		if change != nil {
			change(o)
		}
	})
}

func TestTheReportSaysWhatEachRouteFound(t *testing.T) {
	r := newReportRig(t, nil)
	a := r.ask("GET", "/v1/report?since=24h", readToken1, "")
	if a.StatusCode != 200 {
		t.Fatalf("%s", a.body)
	}
	var routes struct {
		Routes []map[string]json.RawMessage `json:"routes"`
	}
	if err := json.Unmarshal(a.body, &routes); err != nil {
		t.Fatal(err)
	}
	stripe := routes.Routes[0]
	for _, kind := range []string{"duplicates", "overlaps", "mismatches", "missingEventIds", "forged", "unnamed"} {
		var f struct {
			Count    int
			Examples []map[string]any
		}
		if err := json.Unmarshal(stripe[kind], &f); err != nil || f.Count != 1 || len(f.Examples) != 1 ||
			f.Examples[0]["key"] != "0123456789abcdef" {
			t.Errorf("%s: %s %v", kind, stripe[kind], err)
		}
	}
	if string(stripe["deliveries"]) != "6" || string(stripe["mode"]) != `"observe"` || a.text("replica") != "host/1" {
		t.Errorf("%s", a.body)
	}
}

func TestTheReportNeedsATokenForAllWorkflows(t *testing.T) {
	r := newReportRig(t, nil)
	r.want(401, "unauthorized", "GET", "/v1/report", "", "")
	r.want(401, "unauthorized", "GET", "/v1/report", "guess", "")
	r.want(403, "forbidden", "GET", "/v1/report", writeToken1, "")
	r.want(403, "forbidden", "GET", "/v1/report", stripeToken, "") // it is over all workflows
	if a := r.ask("GET", "/v1/report", opsToken, ""); a.StatusCode != 200 {
		t.Errorf("%s", a.body)
	}
}

func TestSinceIsATimeOrHowLongAgo(t *testing.T) {
	r := newReportRig(t, nil)
	now := time.Now()
	for text, count := range map[string]string{
		"": "6", "24h": "6", "0s": "6", now.Add(-time.Hour).UTC().Format(time.RFC3339): "6",
		now.Add(time.Hour).UTC().Format(time.RFC3339): "0",
	} {
		a := r.ask("GET", "/v1/report?since="+text, opsToken, "")
		if !strings.Contains(string(a.body), `"deliveries":`+count+`,`) {
			t.Errorf("since=%s: %s", text, a.body)
		}
	}
	for _, text := range []string{"yesterday", "-5m", "24", "2026-01-31"} {
		r.want(400, "bad_request", "GET", "/v1/report?since="+text, opsToken, "")
	}
	r.want(400, "bad_request", "GET", "/v1/report?until=1h", opsToken, "")
}

func TestProfilesAreOffUnlessTheyAreSwitchedOn(t *testing.T) {
	r := newReportRig(t, nil)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1"} {
		r.want(404, "not_found", "GET", path, opsToken, "")
	}
}

func TestProfilesAreForTokensThatMayWrite(t *testing.T) {
	r := newReportRig(t, func(o *Options) { o.Profiling = true })
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine?debug=2",
		"/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=1"} {
		r.want(401, "unauthorized", "GET", path, "", "")
		r.want(401, "unauthorized", "GET", path, "guess", "")
		r.want(403, "forbidden", "GET", path, readToken1, "")
		if a := r.ask("GET", path, writeToken1, ""); a.StatusCode != 200 || len(a.body) == 0 {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
}

func TestProfilesAreNotForReadersOfAnOpenListener(t *testing.T) {
	r := newReportRig(t, func(o *Options) { o.Profiling, o.Access = true, Access{Open: true} })
	r.want(401, "unauthorized", "GET", "/debug/pprof/heap", "", "")
}

func TestABadProfileRequestSaysWhatIsWrong(t *testing.T) {
	r := newReportRig(t, func(o *Options) { o.Profiling = true })
	for _, path := range []string{"/debug/pprof/nothing", "/debug/pprof/cmdline", "/debug/pprof/symbol"} {
		r.want(404, "not_found", "GET", path, opsToken, "")
	}
	r.want(400, "bad_request", "GET", "/debug/pprof/profile?seconds=0", opsToken, "")
	r.want(400, "bad_request", "GET", "/debug/pprof/profile?seconds=x", opsToken, "")
	r.want(400, "bad_request", "GET", "/debug/pprof/heap?debug=x", opsToken, "")
	r.want(405, "method_not_allowed", "POST", "/debug/pprof/heap", opsToken, "")
}

func TestOneProfileOfAKindIsRecordedAtATime(t *testing.T) {
	r := newReportRig(t, func(o *Options) { o.Profiling = true })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	first, err := http.NewRequestWithContext(ctx, "GET", r.http.URL+"/debug/pprof/trace?seconds=300", nil)
	if err != nil {
		t.Fatal(err)
	}
	first.Header.Set("Authorization", "Bearer "+opsToken)
	answer, err := http.DefaultClient.Do(first) // its first bytes come at once
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	r.want(503, "overloaded", "GET", "/debug/pprof/trace?seconds=1", opsToken, "")
	stop()
	for r.ask("GET", "/debug/pprof/trace?seconds=1", opsToken, "").StatusCode != 200 { //nolint:revive // the first one ends when its caller has gone
	}
}
