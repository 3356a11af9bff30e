package telemetry

import (
	"testing"

	"hooklock/idem"
	"hooklock/proxy"
)

// BenchmarkDelivered is what an executed delivery costs, its lines in the log apart and included,
// and with a trace that is not sampled.
func BenchmarkDelivered(b *testing.B) {
	for name, env := range map[string][]string{
		"metrics": nil, "and a trace that is not sampled": {"OTEL_TRACES_EXPORTER", "otlp", "OTEL_TRACES_SAMPLER",
			"traceidratio", "OTEL_TRACES_SAMPLER_ARG", "1e-9"},
	} {
		b.Run(name, func(b *testing.B) {
			r := open(b, env...)
			r.SetSampling(0)
			deliver(b, r)
		})
	}
	b.Run("and three lines in the log", func(b *testing.B) { deliver(b, open(b)) })
}

func deliver(b *testing.B, r *rig) {
	b.Helper()
	tracer := r.Tracer()
	b.ReportAllocs()
	for b.Loop() {
		d := executed()
		if tracer != nil {
			d.Trace = tracer.Begin(d, idem.TraceContext{}, nil)
		}
		r.Event(proxy.EventAcquired, d)
		r.Event(proxy.EventReleased, d)
		r.OnDelivered(d)
		r.log.Reset()
	}
}
