package telemetry

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"hooklock/idem"
	"hooklock/proxy"
)

const (
	sendersTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	firstTrace   = "00-11111111111111111111111111111111-2222222222222222-01"
)

// take is a collector for OTLP over HTTP.
func take(t *testing.T) (url string, got chan *spans.Span) {
	t.Helper()
	got = make(chan *spans.Span, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if r.URL.Path == "/v1/traces" {
			if err := proto.Unmarshal(body, &request); err != nil {
				t.Error(err)
			}
			unpack(&request, got)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func unpack(r *collector.ExportTraceServiceRequest, got chan<- *spans.Span) {
	for _, resource := range r.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				got <- s
			}
		}
	}
}

// flush sends what is left and returns it by name.
func flush(t *testing.T, r *rig, got chan *spans.Span) map[string]*spans.Span {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	all := map[string]*spans.Span{}
	for len(got) > 0 {
		s := <-got
		all[s.GetName()] = s
	}
	return all
}

func attributesIn(s *spans.Span) map[string]*common.AnyValue {
	all := map[string]*common.AnyValue{}
	for _, a := range s.GetAttributes() {
		all[a.GetKey()] = a.GetValue()
	}
	return all
}

func TestADeliveryIsOneTraceWithASpanForEachStage(t *testing.T) {
	url, got := take(t)
	r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_METRICS_EXPORTER", "none")
	d := executed()
	trace := r.Begin(d, idem.ParseTrace(sendersTrace), []byte("vendor=1"))
	if parent := trace.TraceParent().String(); !strings.HasPrefix(parent, sendersTrace[:36]) ||
		parent[36:52] == sendersTrace[36:52] || !strings.HasSuffix(parent, "-01") {
		t.Errorf("own span %s", parent)
	}
	call := trace.Call()
	trace.End(d)
	all := flush(t, r, got)
	server := all["POST /plain/{account}"]
	if server == nil || len(all) != 4 {
		t.Fatalf("%v", all)
	}
	if hex.EncodeToString(server.GetTraceId()) != sendersTrace[3:35] ||
		hex.EncodeToString(server.GetParentSpanId()) != sendersTrace[36:52] ||
		server.GetKind() != spans.Span_SPAN_KIND_SERVER || server.GetTraceState() != "vendor=1" {
		t.Errorf("%v", server)
	}
	attributes := attributesIn(server)
	for name, want := range map[string]string{
		"http.route": "/plain/{account}", "http.request.method": "POST", "hooklock.decision": "executed",
		"hooklock.workflow":     "acme",
		"hooklock.execution.id": "exec_1", "hooklock.outcome": "executed",
	} {
		if attributes[name].GetStringValue() != want {
			t.Errorf("%s = %v", name, attributes[name])
		}
	}
	for name, want := range map[string]float64{"key": 5e-6, "claim": 900e-6, "wait": 0, "upstream": 10e-3,
		"settle": 1e-3} {
		if v := attributes["hooklock.time."+name]; v == nil || v.GetDoubleValue() != want {
			t.Errorf("time in %s: %v", name, v)
		}
	}
	client := all["POST"]
	if client.GetKind() != spans.Span_SPAN_KIND_CLIENT || hex.EncodeToString(client.GetSpanId()) != call[36:52] ||
		string(client.GetParentSpanId()) != string(server.GetSpanId()) ||
		attributesIn(client)["server.port"].GetIntValue() != 8081 {
		t.Errorf("%v", client)
	}
	claim := all["claim"]
	if time.Duration(claim.GetEndTimeUnixNano()-claim.GetStartTimeUnixNano()) != 900*time.Microsecond ||
		all["settle"] == nil {
		t.Errorf("%v", claim)
	}
}

// TestTheFlagOfARandomTraceIDIsKept: W3C Trace Context Level 2, section 3.2.2.5. Other bits have no
// meaning yet.
func TestTheFlagOfARandomTraceIDIsKept(t *testing.T) {
	url, _ := take(t)
	r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_METRICS_EXPORTER", "none")
	for sent, want := range map[string]string{"01": "-01", "03": "-03", "ff": "-03"} {
		trace := r.Begin(executed(), idem.ParseTrace(sendersTrace[:53]+sent), nil)
		if parent, call := trace.TraceParent().String(), trace.Call(); !strings.HasSuffix(parent, want) ||
			!strings.HasSuffix(call, want) {
			t.Errorf("flags %s: %s, and to the service %s", sent, parent, call)
		}
		trace.End(executed())
	}
}

func TestASpanHasTheLabelsOfItsEventWhereLinesHaveThem(t *testing.T) {
	for _, shown := range []bool{true, false} {
		url, got := take(t)
		r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_METRICS_EXPORTER", "none")
		r.SetEventIDs(shown)
		d := full()
		r.Begin(d, idem.TraceContext{}, nil).End(d)
		r.Try(d, idem.ParseTrace(firstTrace)).End(d)
		want := map[bool]string{true: "1042"}[shown]
		all := flush(t, r, got)
		for _, name := range []string{"POST /plain/{account}", "try /plain/{account}"} {
			if label := attributesIn(all[name])["hooklock.label.order"].GetStringValue(); all[name] == nil ||
				label != want {
				t.Errorf("log.event_id %v: %s has %q, want %q", shown, name, label, want)
			}
		}
	}
}

func TestADeliveryThatDidNotRunLinksToTheExecutionItMet(t *testing.T) {
	url, got := take(t)
	r := open(t, "OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url+"/v1/traces")
	for _, decision := range []idem.Decision{idem.DecisionReplayed, idem.DecisionAttached, idem.DecisionLocked} {
		d := met(decision, 200)
		d.Met = firstTrace
		r.Begin(d, idem.TraceContext{}, nil).End(d)
	}
	if err := r.sdk.closeUntil(t.Context()); err != nil {
		t.Fatal(err)
	}
	linked := 0
	for len(got) > 0 {
		s := <-got
		if s.GetName() == "claim" {
			continue
		}
		if links := s.GetLinks(); len(links) != 1 || hex.EncodeToString(links[0].GetTraceId()) != firstTrace[3:35] ||
			hex.EncodeToString(links[0].GetSpanId()) != firstTrace[36:52] {
			t.Errorf("%v", s)
		}
		linked++
	}
	if linked != 3 {
		t.Errorf("%d of 3", linked)
	}
}

func TestADeliveryThatIsNotSampledLeavesTheSendersContextAlone(t *testing.T) {
	url, got := take(t)
	r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_METRICS_EXPORTER", "none", "OTEL_TRACES_SAMPLER",
		"always_off")
	d := executed()
	if trace := r.Begin(d, idem.ParseTrace(sendersTrace), nil); trace != nil {
		t.Error("a span is made")
	}
	if all := flush(t, r, got); len(all) != 0 {
		t.Errorf("%v", all)
	}
}

func TestTheSamplersOfTheVariablesAreHonoured(t *testing.T) {
	for sampler, recorded := range map[string]bool{"always_on": true, "parentbased_always_off": true,
		"parentbased_traceidratio": true, "traceidratio": false} {
		url, _ := take(t)
		r := open(t, "OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url, "OTEL_TRACES_SAMPLER",
			sampler, "OTEL_TRACES_SAMPLER_ARG", "0")
		trace := r.Begin(executed(), idem.ParseTrace(sendersTrace), nil)
		if call := trace != nil && trace.Call() != ""; call != recorded {
			t.Errorf("%s: %v", sampler, call)
		}
	}
}

func TestAnErrorIsAnErrorOnTheSpan(t *testing.T) {
	url, got := take(t)
	r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_METRICS_EXPORTER", "none")
	d := executed()
	d.Decision, d.Status, d.UpstreamStatus = idem.DecisionUpstreamFailed, 502, 0
	trace := r.Begin(d, idem.TraceContext{}, nil)
	trace.Call()
	trace.End(d)
	all := flush(t, r, got)
	for _, name := range []string{"POST", "POST /plain/{account}"} {
		if all[name].GetStatus().GetCode() != spans.Status_STATUS_CODE_ERROR {
			t.Errorf("%s: %v", name, all[name])
		}
	}
}

// TestACallThatGoesOnBehindItsSendersBackHasNotFailed: the delivery is over when it is parked,
// whatever its call is doing then.
func TestACallThatGoesOnBehindItsSendersBackHasNotFailed(t *testing.T) {
	url, got := take(t)
	r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_METRICS_EXPORTER", "none")
	d := met(idem.DecisionParked, 202)
	d.Started, d.Total, d.Upstream = time.Now(), time.Minute, 59*time.Second
	trace := r.Begin(d, idem.TraceContext{}, nil)
	trace.Call()
	trace.End(d)
	early, calls := r.Begin(d, idem.TraceContext{}, nil), make(chan string)
	go func() { calls <- early.Call() }()
	early.End(d)
	if call := <-calls; call[:36] != early.TraceParent().String()[:36] {
		t.Errorf("the upstream was told of the trace %s, in %s", call, early.TraceParent())
	}
	client := flush(t, r, got)["POST"]
	if client == nil || client.GetStatus().GetCode() != spans.Status_STATUS_CODE_UNSET ||
		attributesIn(client)["error.type"] != nil ||
		client.GetEndTimeUnixNano() != uint64(d.Started.Add(d.Total).UnixNano()) {
		t.Errorf("%v", client)
	}
}

func TestSpansTravelOverGRPC(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	got := make(chan *spans.Span, 10)
	collector.RegisterTraceServiceServer(s, &grpcCollector{got: got})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() { s.Stop(); <-served })
	r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+ln.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc",
		"OTEL_METRICS_EXPORTER", "none")
	d := executed()
	r.Begin(d, idem.TraceContext{}, nil).End(d)
	if all := flush(t, r, got); all["POST /plain/{account}"] == nil {
		t.Errorf("%v", all)
	}
}

type grpcCollector struct {
	collector.UnimplementedTraceServiceServer
	got chan *spans.Span
}

func (c *grpcCollector) Export(_ context.Context,
	r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	unpack(r, c.got)
	return &collector.ExportTraceServiceResponse{}, nil
}

func TestOpenMetricsHasTheTraceAsAnExemplar(t *testing.T) {
	url, _ := take(t)
	r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_METRICS_EXPORTER", "none")
	d := executed()
	d.Trace = r.Begin(d, idem.ParseTrace(sendersTrace), nil)
	r.OnDelivered(d)
	d.Trace.End(d)
	page := r.page(t, "application/openmetrics-text; version=1.0.0")
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "hooklock_delivery_overhead_duration_seconds_bucket") &&
			strings.Contains(line, `trace_id="`+sendersTrace[3:35]) {
			return
		}
	}
	t.Errorf("no exemplar in\n%s", page)
}

func TestADeadCollectorDelaysNothing(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+ln.Addr().String(), "OTEL_EXPORTER_OTLP_TIMEOUT", "3600000",
		"OTEL_BSP_MAX_QUEUE_SIZE", "16", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
	since := time.Now()
	for range 1000 {
		d := executed()
		d.Trace = r.Begin(d, idem.TraceContext{}, nil)
		d.Trace.Call()
		r.OnDelivered(d)
		d.Trace.End(d)
	}
	if took := time.Since(since); took > 30*time.Second { // one export alone may take an hour
		t.Errorf("1000 deliveries took %v", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	since = time.Now()
	if err := r.Close(ctx); err == nil {
		t.Error("nothing was lost")
	}
	if took := time.Since(since); took > 30*time.Second {
		t.Errorf("the end took %v", took)
	}
}

var _ proxy.Trace = (*delivery)(nil)
