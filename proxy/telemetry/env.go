package telemetry

import (
	"fmt"
	"slices"
	"strings"
)

// protocol is how OTLP is sent; empty is not at all.
type protocol string

const (
	otlpNone protocol = ""
	otlpHTTP protocol = "http/protobuf"
	otlpGRPC protocol = "grpc"
)

// wishes are what the standard variables ask for
// (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/). Other
// variables are read by the SDK itself, after mendVariables: endpoints, headers, certificates,
// sampling, batches, limits.
type wishes struct {
	off             bool // OTEL_SDK_DISABLED
	traces, metrics protocol
	follow          bool // the sender's trace context is taken over
	never           sampling
	problems        []string // what was asked for and is not available
}

// wishesOf reads the environment. OTLP is sent only if a variable asks for it: an endpoint, or an
// exporter by name.
func wishesOf(env func(string) string) wishes {
	disabled := strings.ToLower(env("OTEL_SDK_DISABLED"))
	w := wishes{off: disabled == "true"}
	switch disabled {
	case "true":
		return w
	case "", "false":
	default:
		w.problems = append(w.problems, "OTEL_SDK_DISABLED: choose from true, false; taken for false")
	}
	w.traces = w.exporterProtocol(env, "TRACES", "otlp")
	w.metrics = w.exporterProtocol(env, "METRICS", "otlp", "prometheus")
	if e := env("OTEL_LOGS_EXPORTER"); e != "" && e != "none" {
		w.problems = append(w.problems, "OTEL_LOGS_EXPORTER="+e+": logs go to standard error and nowhere else")
	}
	w.follow = w.readsTraceparent(env("OTEL_PROPAGATORS"))
	w.never = samplingOf(env("OTEL_TRACES_SAMPLER"), env("OTEL_TRACES_SAMPLER_ARG"))
	return w
}

// exporterProtocol is the protocol for one signal.
func (w *wishes) exporterProtocol(env func(string) string, signal string, known ...string) protocol {
	name := "OTEL_" + signal + "_EXPORTER"
	wanted := env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
	if list := env(name); list != "" {
		wanted = false
		for item := range strings.SplitSeq(list, ",") {
			switch item = strings.TrimSpace(item); {
			case item == "otlp":
				wanted = true
			case item != "none" && !slices.Contains(known, item):
				w.problems = append(w.problems,
					fmt.Sprintf("%s=%s: choose from none, %s", name, item, strings.Join(known, ", ")))
			}
		}
	}
	if !wanted {
		return otlpNone
	}
	name = "OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL"
	p := env(name)
	if p == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
		p = env(name)
	}
	switch protocol(p) {
	case otlpGRPC:
		return otlpGRPC
	case otlpHTTP, "":
		return otlpHTTP
	}
	problem := fmt.Sprintf("%s=%s: choose from %s, %s; taken for %[3]s", name, p, otlpHTTP, otlpGRPC)
	if !slices.Contains(w.problems, problem) { // the other signal may have the same variable
		w.problems = append(w.problems, problem)
	}
	return otlpHTTP
}

// readsTraceparent reports whether a sender's traceparent is read. Baggage passes through as any
// header does.
func (w *wishes) readsTraceparent(list string) (follow bool) {
	if list == "" {
		return true
	}
	for item := range strings.SplitSeq(list, ",") {
		switch item = strings.TrimSpace(item); item {
		case "tracecontext":
			follow = true
		case "baggage", "none":
		default:
			w.problems = append(w.problems, "OTEL_PROPAGATORS="+item+": choose from tracecontext, baggage, none")
		}
	}
	return follow
}
