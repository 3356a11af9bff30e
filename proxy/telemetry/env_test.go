package telemetry

import (
	"strings"
	"testing"
)

func TestOTLPIsSentOnlyWhereAVariableAsksForIt(t *testing.T) {
	for _, c := range []struct {
		env             map[string]string
		traces, metrics protocol
		problems        int
	}{
		{env: nil},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, traces: otlpHTTP, metrics: otlpHTTP},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318"}, traces: otlpHTTP},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318"}, metrics: otlpHTTP},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, traces: otlpHTTP},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"},
			metrics: otlpHTTP},
		{env: map[string]string{"OTEL_METRICS_EXPORTER": "prometheus", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"},
			traces: otlpHTTP},
		{env: map[string]string{"OTEL_METRICS_EXPORTER": "prometheus, otlp"}, metrics: otlpHTTP},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317"},
			traces: otlpGRPC, metrics: otlpGRPC},
		{env: map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317",
		}, traces: otlpHTTP, metrics: otlpGRPC},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_TRACES_EXPORTER": "otlp"},
			traces: otlpHTTP, problems: 1},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, traces: otlpHTTP, metrics: otlpHTTP, problems: 1},
		{env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, problems: 1},
		{env: map[string]string{"OTEL_LOGS_EXPORTER": "otlp"}, problems: 1},
		{env: map[string]string{"OTEL_PROPAGATORS": "b3,tracecontext,baggage"}, problems: 1},
		{env: map[string]string{"OTEL_TRACES_SAMPLER": "jaeger_remote", "OTEL_TRACES_EXPORTER": "otlp"},
			traces: otlpHTTP},
		{env: map[string]string{"OTEL_TRACES_SAMPLER": "ParentBased_AlwaysOn "}},
		{env: map[string]string{"OTEL_TRACES_SAMPLER": " Always_Off", "OTEL_TRACES_EXPORTER": "otlp"},
			traces: otlpHTTP},
		{env: map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}},
		{env: map[string]string{"OTEL_SDK_DISABLED": "yes", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"},
			traces: otlpHTTP, metrics: otlpHTTP, problems: 1},
		{env: map[string]string{"OTEL_SDK_DISABLED": "false"}},
	} {
		w := wishesOf(func(name string) string { return c.env[name] })
		if w.traces != c.traces || w.metrics != c.metrics || len(w.problems) != c.problems {
			t.Errorf("%v: traces %q, metrics %q, problems %q", c.env, w.traces, w.metrics, w.problems)
		}
	}
}

func TestPropagatorsSayWhetherTheSendersTraceIsTakenOver(t *testing.T) {
	for list, follow := range map[string]bool{"": true, "tracecontext,baggage": true, "baggage": false, "none": false} {
		if w := wishesOf(func(name string) string {
			return map[string]string{"OTEL_PROPAGATORS": list}[name]
		}); w.follow != follow {
			t.Errorf("%q: %v", list, w.follow)
		}
	}
}

func FuzzWishes(f *testing.F) {
	f.Add("otlp,none", "grpc", "tracecontext")
	f.Fuzz(func(t *testing.T, exporter, protocol, propagators string) {
		w := wishesOf(func(name string) string {
			switch {
			case strings.HasSuffix(name, "_EXPORTER"):
				return exporter
			case strings.HasSuffix(name, "_PROTOCOL"):
				return protocol
			case name == "OTEL_PROPAGATORS":
				return propagators
			}
			return ""
		})
		for _, p := range []any{w.traces, w.metrics} {
			if p != otlpHTTP && p != otlpGRPC && p != otlpNone {
				t.Errorf("protocol %q", p)
			}
		}
	})
}
