package telemetry

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"hooklock/idem"
)

// What is said to be never recorded must not be what the SDK, which reads the same variables, would
// record.
func TestWhatIsNeverRecordedIsWhatTheSDKWouldNotRecord(t *testing.T) {
	const unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for _, sampler := range []string{"", "always_on", "always_off", "traceidratio", "parentbased_always_on",
		"parentbased_always_off", "parentbased_traceidratio", "Always_Off", "unheard_of"} {
		for _, arg := range []string{"", "0", "1", "x"} {
			t.Setenv("OTEL_TRACES_SAMPLER", sampler)
			t.Setenv("OTEL_TRACES_SAMPLER_ARG", arg)
			provider := sdktrace.NewTracerProvider()
			said := samplingOf(sampler, arg)
			for _, parent := range []string{"", sendersTrace, unsampled} {
				r := &Telemetry{tracer: provider.Tracer("test"), follow: true,
					spanNames: newOnce(func(spanName) string {
						return ""
					})}
				r.patterns.Store(&map[string]string{})
				recorded, never := r.Begin(executed(), idem.ParseTrace(parent), nil) != nil,
					said.neverRecords(spanContextOf(idem.ParseTrace(parent)))
				if recorded && never {
					t.Errorf("sampler %q, arg %q, parent %q: recorded, and said to be never", sampler, arg, parent)
				}
				if known := arg == "0" || arg == "" && sampler != "traceidratio" &&
					sampler != "parentbased_traceidratio"; known && sampler != "unheard_of" && !recorded && !never &&
					parent != "" {
					t.Errorf("sampler %q, arg %q, parent %q: made for nothing", sampler, arg, parent)
				}
			}
			if err := provider.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
