package telemetry

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// metricsIn are the names of the metrics in a request, and who sends them.
func metricsIn(r *collector.ExportMetricsServiceRequest) (names []string, who map[string]string) {
	who = map[string]string{}
	for _, resource := range r.GetResourceMetrics() {
		for _, a := range resource.GetResource().GetAttributes() {
			who[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range resource.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				names = append(names, m.GetName())
			}
		}
	}
	return names, who
}

type metricsCollector struct {
	collector.UnimplementedMetricsServiceServer
	got chan *collector.ExportMetricsServiceRequest
}

func (c *metricsCollector) Export(_ context.Context,
	r *collector.ExportMetricsServiceRequest) (*collector.ExportMetricsServiceResponse, error) {
	c.got <- r
	return &collector.ExportMetricsServiceResponse{}, nil
}

func TestMetricsTravelOverHTTPAndGRPCWithTheirOwnNames(t *testing.T) {
	got := make(chan *collector.ExportMetricsServiceRequest, 10)
	overHTTP := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request := new(collector.ExportMetricsServiceRequest)
		if err := proto.Unmarshal(body, request); err != nil || r.URL.Path != "/v1/metrics" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		got <- request
	}))
	t.Cleanup(overHTTP.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	overGRPC := grpc.NewServer()
	collector.RegisterMetricsServiceServer(overGRPC, &metricsCollector{got: got})
	served := make(chan error, 1)
	go func() { served <- overGRPC.Serve(ln) }()
	t.Cleanup(func() { overGRPC.Stop(); <-served })
	for protocol, url := range map[string]string{"http/protobuf": overHTTP.URL,
		"grpc": "http://" + ln.Addr().String()} {
		r := open(t, "OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_EXPORTER_OTLP_PROTOCOL", protocol,
			"OTEL_TRACES_EXPORTER", "none",
			"OTEL_SERVICE_NAME", "our-hooks", "OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod")
		r.OnDelivered(executed())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.Close(ctx); err != nil { // which sends what is left
			t.Fatal(err)
		}
		names, who := metricsIn(<-got)
		for _, name := range []string{"hooklock.deliveries", "hooklock.delivery.overhead.duration",
			"http.server.request.duration", "go.goroutine.count"} {
			if !slices.Contains(names, name) {
				t.Errorf("%s: no %s in %v", protocol, name, names)
			}
		}
		if who["service.name"] != "our-hooks" || who["deployment.environment.name"] != "prod" ||
			who["service.version"] != "1.2.3" {
			t.Errorf("%s: %v", protocol, who)
		}
	}
}
