package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hooklock/idem"
	"hooklock/proxy"
)

// serverSpan is made once: options cost as much as the span of a delivery that is not sampled.
var serverSpan = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}

// Begin implements proxy.Tracer.
func (t *Telemetry) Begin(r *proxy.Report, sender idem.TraceContext, tracestate []byte) proxy.Trace {
	var parent trace.SpanContext
	if t.follow {
		parent = spanContextOf(sender)
	}
	if t.never.neverRecords(parent) {
		return nil
	}
	ctx := context.Background()
	if parent.IsValid() {
		if len(tracestate) > 0 {
			if state, err := trace.ParseTraceState(string(tracestate)); err == nil {
				parent = parent.WithTraceState(state)
			}
		}
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	ctx, span := t.tracer.Start(ctx, t.spanNames.valueOf(spanName{r.Method, (*t.patterns.Load())[r.Route]}),
		serverSpan...)
	if !span.IsRecording() { // neither its lines nor other spans shall link to a span that does not exist
		return nil
	}
	return &delivery{telemetry: t, ctx: ctx, span: span}
}

// delivery is the trace of one delivery: its own span, and that of the call of the upstream while
// it runs. The other stages get their spans at the end, from the times in the report.
type delivery struct {
	telemetry *Telemetry
	ctx       context.Context
	span      trace.Span

	mu   sync.Mutex // the call may begin while the delivery ends, if its sender is told that it is accepted
	call trace.Span // nil: the upstream was not called
	over bool
}

// Context implements proxy.Trace.
func (d *delivery) Context() context.Context { return d.ctx }

// TraceParent implements proxy.Trace.
func (d *delivery) TraceParent() idem.TraceContext { return traceContextOf(d.span.SpanContext()) }

// Call implements proxy.Trace.
func (d *delivery) Call() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over { // its span would never be ended
		return d.TraceParent().String()
	}
	_, d.call = d.telemetry.tracer.Start(d.ctx, "call", trace.WithSpanKind(trace.SpanKindClient))
	return traceContextOf(d.call.SpanContext()).String()
}

// End implements proxy.Trace.
func (d *delivery) End(r *proxy.Report) {
	over := r.Started.Add(r.Total)
	d.recordStage("claim", r.Stages.Claim)
	d.recordStage("wait", r.Stages.Wait)
	d.recordStage("settle", r.Stages.Settle)
	d.endCall(r)
	d.span.SetAttributes(attributesOf(r, (*d.telemetry.patterns.Load())[r.Route])...)
	if d.telemetry.eventIDs.Load() {
		d.span.SetAttributes(labelsOn(r.Labels)...)
	}
	if link := spanContextOf(idem.ParseTrace(r.Met)); link.IsSampled() {
		d.span.AddLink(trace.Link{SpanContext: link,
			Attributes: []attribute.KeyValue{attribute.String("hooklock.execution.id", string(r.Execution))}})
	}
	if r.Status >= 500 || r.Loss != "" {
		d.span.SetStatus(codes.Error, string(r.Decision))
	}
	d.span.End(trace.WithTimestamp(over))
}

// recordStage records a span that is over.
func (d *delivery) recordStage(name string, s proxy.Stretch) {
	if s.From.IsZero() {
		return
	}
	_, span := d.telemetry.tracer.Start(d.ctx, name, trace.WithTimestamp(s.From))
	span.End(trace.WithTimestamp(s.From.Add(s.For)))
}

func (d *delivery) endCall(r *proxy.Report) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.call == nil {
		return
	}
	d.call.SetName(r.Method)
	d.call.SetAttributes(methodOf(r.Method), semconv.NetworkProtocolVersion("1.1"))
	d.call.SetAttributes(addressOf(d.telemetry.options.UpstreamHost, d.telemetry.options.UpstreamPort)...)
	switch {
	case r.UpstreamFrom.IsZero(): // it goes on without the delivery
		d.call.End(trace.WithTimestamp(r.Started.Add(r.Total)))
		return
	case r.UpstreamStatus == 0:
		d.call.SetAttributes(semconv.ErrorTypeKey.String(callFailure(r)))
		d.call.SetStatus(codes.Error, callFailure(r))
	case r.UpstreamStatus >= 400:
		d.call.SetAttributes(semconv.HTTPResponseStatusCode(r.UpstreamStatus), errorType(r.UpstreamStatus))
		d.call.SetStatus(codes.Error, "")
	default:
		d.call.SetAttributes(semconv.HTTPResponseStatusCode(r.UpstreamStatus))
	}
	d.call.End(trace.WithTimestamp(r.UpstreamFrom.Add(r.Upstream)))
}

// attributesOf returns what a span may have and a metric may not: the names of one delivery, and
// its times.
func attributesOf(r *proxy.Report, pattern string) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		methodOf(r.Method), schemeOf(r.TLS), versionOf(r.HTTP10), semconv.HTTPRoute(pattern),
		semconv.HTTPResponseStatusCode(r.Status),
		attribute.String("hooklock.route", r.Route), attribute.String("hooklock.decision", string(r.Decision)),
	}
	if r.Status >= 500 {
		attrs = append(attrs, errorType(r.Status))
	}
	for _, a := range []struct{ name, value string }{
		{"hooklock.would", string(r.Would)}, {"hooklock.code", r.Code}, {"hooklock.workflow", r.Workflow},
		{"hooklock.key", r.Key},
		{"hooklock.execution.id", string(r.Execution)}, {"hooklock.outcome", string(r.Outcome)},
		{"hooklock.stale", r.Stale}, {"hooklock.lock.loss", string(r.Loss)},
	} {
		if a.value != "" {
			attrs = append(attrs, attribute.String(a.name, a.value))
		}
	}
	if r.Attempt > 0 {
		attrs = append(attrs, attribute.Int("hooklock.execution.attempt", r.Attempt))
	}
	for _, stage := range []struct {
		name string
		took time.Duration
	}{
		{"key", r.Stages.Key.For}, {"claim", r.Stages.Claim.For}, {"wait", r.Stages.Wait.For}, {"upstream", r.Upstream},
		{"settle", r.Stages.Settle.For},
	} {
		attrs = append(attrs, attribute.Float64("hooklock.time."+stage.name, stage.took.Seconds()))
	}
	return attrs
}

// labelsOn returns the labels of an event as attributes of a span.
func labelsOn(labels idem.Labels) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, len(labels))
	for i, l := range labels {
		attrs[i] = attribute.String("hooklock.label."+l.Name, l.Value)
	}
	return attrs
}

// spanContextOf returns t as a remote span of OpenTelemetry.
func spanContextOf(t idem.TraceContext) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: t.Trace, SpanID: t.Span, Remote: true,
		TraceFlags: trace.TraceFlags(t.Flags) & (trace.FlagsSampled | trace.FlagsRandom),
	})
}

func traceContextOf(c trace.SpanContext) idem.TraceContext {
	return idem.TraceContext{Trace: c.TraceID(), Span: c.SpanID(), Flags: byte(c.TraceFlags())}
}
