package telemetry

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a Telemetry with two routes and what it wrote.
type rig struct {
	*Telemetry
	log *lines
}

// lines is what was logged. The SDK's goroutines log when they like.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.Buffer.String() }

func (l *lines) Reset() { l.mu.Lock(); defer l.mu.Unlock(); l.Buffer.Reset() }

// open makes one in an environment of name, value, ....
func open(tb testing.TB, env ...string) *rig {
	tb.Helper()
	for i := 0; i < len(env); i += 2 {
		if t, ok := tb.(interface{ Setenv(name, value string) }); ok {
			t.Setenv(env[i], env[i+1])
		}
	}
	r := &rig{log: new(lines)}
	var err error
	r.Telemetry, err = Open(tb.Context(), Options{
		Log: slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug - 8})), Setenv: os.Setenv, //nolint:usetesting // what the program does; the test has set, and so restores, each variable before
		Version: "1.2.3", Instance: "host/1", UpstreamHost: "upstream.example", UpstreamPort: "8081",
		Env: func(name string) string {
			for i := len(env) - 2; i >= 0; i -= 2 {
				if env[i] == name {
					return env[i+1]
				}
			}
			return ""
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = r.Close(ctx)
	})
	r.SetRoutes([]*proxy.Route{route(tb, "plain"), route(tb, "observe")})
	r.SetEventIDs(true)
	return r
}

func route(tb testing.TB, name string) *proxy.Route {
	tb.Helper()
	pattern, err := proxy.ParsePattern("/" + name + "/{account}")
	if err != nil {
		tb.Fatal(err)
	}
	keys, err := naming.NewKeys(naming.KeySpec{Route: name, Workflow: "{path.account}",
		EventID: "{header.Idempotency-Key}"})
	if err != nil {
		tb.Fatal(err)
	}
	return &proxy.Route{Name: name, Pattern: pattern, Keys: keys, Observe: name == "observe",
		Policy: idem.Policy{Route: name, Idempotency: true, Park: &idem.ParkPolicy{}}}
}

// page is the metrics as Prometheus reads them.
func (r *rig) page(tb testing.TB, accept string) string {
	tb.Helper()
	w := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", accept)
	r.Page().ServeHTTP(w, request)
	return w.Body.String()
}

// wants fails for each line that is not on the page.
func (r *rig) wants(tb testing.TB, lines ...string) {
	tb.Helper()
	page := strings.Split(r.page(tb, ""), "\n")
	for _, line := range lines {
		if !slices.Contains(page, line) {
			tb.Errorf("%s is not in\n%s", line, strings.Join(page, "\n"))
		}
	}
}

var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// executed is a delivery that ran.
func executed() *proxy.Report {
	return &proxy.Report{
		Route: "plain", Decision: idem.DecisionExecuted, Gate: idem.DecisionExecuted, Status: 200, Method: "POST",
		Keyed: true, Locks: true,
		WorkflowPart: proxy.PartOK, EventIDPart: proxy.PartOK, Workflow: "acme", Key: "0123456789abcdef",
		Execution: "exec_1", Attempt: 1,
		Outcome: idem.Executed, Recorded: true, RecordSize: 700, TraceID: "0af7651916cd43dd8448eb211c80319c",
		Started: began, Total: 12 * time.Millisecond, UpstreamFrom: began.Add(time.Millisecond),
		Upstream: 10 * time.Millisecond, UpstreamStatus: 200,
		Held: 11 * time.Millisecond,
		Stages: proxy.Stages{
			Key:    proxy.Stretch{From: began, For: 5 * time.Microsecond},
			Claim:  proxy.Stretch{From: began.Add(100 * time.Microsecond), For: 900 * time.Microsecond},
			Settle: proxy.Stretch{From: began.Add(11 * time.Millisecond), For: time.Millisecond},
		},
	}
}

// met is a delivery that did not run because of the execution of executed.
func met(decision idem.Decision, status int) *proxy.Report {
	r := executed()
	r.Decision, r.Gate, r.Status, r.Attempt, r.Outcome, r.Recorded, r.RecordSize, r.Held = decision, decision, status,
		0, "", false, 0, 0
	r.UpstreamFrom, r.Upstream, r.UpstreamStatus, r.Stages.Settle = time.Time{}, 0, 0, proxy.Stretch{}
	return r
}

// watched returns w with functions that see nothing in place of those that it lacks.
func watched(w Watched) Watched {
	if w.Parked == nil {
		w.Parked = func() (none idem.ParkedCount) { return none }
	}
	if w.Kept == nil {
		w.Kept = func() (none KeptCounts) { return none }
	}
	if w.Unrouted == nil {
		w.Unrouted = func() int { return 0 }
	}
	if w.Paused == nil {
		w.Paused = func() []idem.PauseState { return nil }
	}
	if w.Routes == nil {
		w.Routes = func() []RouteHealth { return nil }
	}
	if w.Slots == nil {
		w.Slots = func() []idem.SlotCount { return nil }
	}
	if w.Attention == nil {
		w.Attention = func() map[string]int { return nil }
	}
	return w
}
