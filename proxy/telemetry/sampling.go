package telemetry

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// sampling is what is known of a delivery before anything is made for it: that the SDK's sampler,
// which reads the same variables, will not record it. Most deliveries of a busy route are not
// recorded, and need not cost what a span costs.
type sampling struct {
	children bool // of a sender that does not record: never
	roots    bool // of a sender without a context: never
	all      bool // never
}

// samplingOf reads OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG. It returns the zero value,
// which excludes nothing, for everything that it does not know.
func samplingOf(name, arg string) sampling {
	name = strings.ToLower(strings.TrimSpace(name))
	ratio, err := strconv.ParseFloat(strings.TrimSpace(arg), 64)
	nothing := err == nil && ratio == 0
	switch name {
	case "", "parentbased_always_on":
		return sampling{children: true}
	case "parentbased_always_off":
		return sampling{children: true, roots: true}
	case "parentbased_traceidratio":
		return sampling{children: true, roots: nothing}
	case "always_off":
		return sampling{all: true}
	case "traceidratio":
		return sampling{all: nothing}
	}
	return sampling{}
}

// neverRecords reports whether a delivery with this parent, which is not valid if there is none, is
// certainly not recorded.
func (s sampling) neverRecords(parent trace.SpanContext) bool {
	switch {
	case s.all:
		return true
	case parent.IsValid():
		return s.children && !parent.IsSampled()
	}
	return s.roots
}
