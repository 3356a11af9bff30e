package e2e

import (
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"hooklock/test/testkit"
)

// traces is a collector that keeps the server spans of deliveries, by decision, and those of calls.
type traces struct {
	url string

	mu     sync.Mutex
	server map[string]*spans.Span
	calls  []*spans.Span
}

func collect(t *testing.T) *traces {
	t.Helper()
	c := &traces{server: map[string]*spans.Span{}}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var request collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err == nil && r.URL.Path == "/v1/traces" {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil {
			t.Error(err)
		}
		for _, resource := range request.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				for _, s := range scope.GetSpans() {
					c.add(s)
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

func (c *traces) add(s *spans.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.GetKind() == spans.Span_SPAN_KIND_CLIENT {
		c.calls = append(c.calls, s)
	}
	for _, a := range s.GetAttributes() {
		if a.GetKey() == "hooklock.decision" {
			c.server[a.GetValue().GetStringValue()] = s
		}
	}
}

// has reports whether a delivery of each decision has come, and a call. An end alone has less time
// for them than a busy machine needs.
func (c *traces) has(decisions ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, decision := range decisions {
		if c.server[decision] == nil {
			return false
		}
	}
	return len(c.calls) > 0
}

func TestADeliveryThatMeetsAnExecutionLinksToItsTrace(t *testing.T) {
	t.Parallel()
	c := collect(t)
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url, "OTEL_METRICS_EXPORTER=none", "OTEL_BSP_SCHEDULE_DELAY=50"}
	one := testkit.Serve(t, hooklockProgram, shared.config("linked", ""), env...)
	other := testkit.Serve(t, hooklockProgram, shared.config("linked", ""), env...)
	path := at(t, "attach")
	work := shared.holds(t, path)
	const sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	first := testkit.GoPost(t, one.Addr, path, "{}", key("1"), "TraceParent: "+sender, "tracestate: a=b")
	upstream := work.await(t)
	attached := testkit.GoPost(t, other.Addr, path, "{}", key("1"))
	testkit.Until(t, "the copy waits", func() bool {
		return strings.Contains(other.Metrics(t), "\nhooklock_lock_waiting 1\n")
	})
	testkit.Post(t, other.Addr, path, "{}", key("2")) // locked
	work.answer <- testkit.OK("done")
	passed(t, testkit.Receive(t, "the answer", first), 200, "done", "executed")
	passed(t, testkit.Receive(t, "the answer", attached), 200, "done", "attached")
	passed(t, testkit.Post(t, other.Addr, path, "{}", key("1")), 200, "done", "replayed")
	testkit.Until(t, "the spans of all of them", func() bool {
		return c.has("executed", "attached", "locked", "replayed")
	})
	for _, h := range []*testkit.Hooklock{one, other} {
		leave(t, h.Process)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	executed := c.server["executed"]
	if executed == nil || len(c.calls) != 1 || hex.EncodeToString(executed.GetTraceId()) != sender[3:35] ||
		executed.GetName() != "POST /attach/{w}" {
		t.Fatalf("%v\n%v", c.server, c.calls)
	}
	call := "00-" + sender[3:35] + "-" + hex.EncodeToString(c.calls[0].GetSpanId()) + "-01"
	if !strings.Contains(upstream.Raw, "TraceParent: "+call+"\r\n") ||
		!strings.Contains(upstream.Raw, "tracestate: a=b\r\n") {
		t.Errorf("want %s at the upstream:\n%s", call, upstream.Raw)
	}
	for _, decision := range []string{"attached", "locked", "replayed"} {
		s := c.server[decision]
		if links := s.GetLinks(); len(links) != 1 || string(links[0].GetSpanId()) != string(executed.GetSpanId()) ||
			string(links[0].GetTraceId()) != string(executed.GetTraceId()) {
			t.Errorf("%s: %v", decision, s)
		}
	}
}

func TestAFloodOfPathsHostsMethodsAndEventsMakesNoSeries(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("flood", ""))
	flood := func(n int) {
		for i := range n {
			for _, target := range []string{at(t, "plain"), "/none-of-ours"} {
				method := []string{"POST", fmt.Sprint("INVENTED", n, i), "GET"}[i%3]
				testkit.Exchange(t, h.Addr,
					fmt.Sprintf(
						"%s %s-%d-%d HTTP/1.1\r\nHost: h%d.example\r\nConnection: close\r\nUser-Agent: u%d\r\nIdempotency-Key: %d-%d\r\nContent-Length: 2\r\n\r\n{}",
						method, target, n, i, i, i, n, i))
			}
		}
	}
	flood(3)
	before := series(h.Metrics(t))
	flood(60)
	for name := range series(h.Metrics(t)) {
		if !before[name] {
			t.Errorf("new: %s", name)
		}
	}
}

// series are the names with labels on a page, but for those of etcd and of what needs attention,
// which come with time.
func series(page string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(page) {
		if name, _, found := strings.Cut(line, " "); found && !strings.HasPrefix(line, "#") &&
			!strings.HasPrefix(line, "db_") && !strings.HasPrefix(line, "hooklock_attention_items") {
			all[name] = true
		}
	}
	return all
}

func TestTheProgramShowsTheMetricsThatAreDocumentedAndNoOthers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^(?:[|-] )?`([a-z0-9_]+)`").FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = true
	}
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(busyMetrics(t), -1) {
		shown[m[1]] = true
		if !documented[m[1]] {
			t.Errorf("%s is not in docs/metrics.md", m[1])
		}
	}
	for name := range documented {
		if !shown[name] {
			t.Errorf("%s is in docs/metrics.md, and the program does not show it", name)
		}
	}
}

func TestADeadCollectorDelaysNeitherDeliveriesNorTheEnd(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	h := own(t, shared.config("dead-collector", ""), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+ln.Addr().String(),
		"OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_METRIC_EXPORT_INTERVAL=50", "OTEL_EXPORTER_OTLP_TIMEOUT=3600000")
	path := at(t, "plain")
	for i := range 50 {
		passed(t, testkit.Post(t, h.Addr, path, "{}", key(fmt.Sprint(i))), 200, "done", "executed")
	}
	since := time.Now()
	h.Signal(t, syscall.SIGTERM)
	// its share is an eighth of shutdown_timeout; unbounded, it would be an hour
	if code := h.ExitCode(t); code != 0 || time.Since(since) > 30*time.Second {
		t.Errorf("exit code %d after %v", code, time.Since(since))
	}
	h.Stderr.AwaitRecord(t, "telemetry.lost", nil)
}
