package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"hooklock/idem"
)

// Telemetry is the Observer of production: one log line for each delivery on a route, one for each event, and counters. No label and
// no field holds a secret, a signature or a body; no label holds anything that comes from outside.
type Telemetry struct {
	log        *slog.Logger
	deliveries metric.Int64Counter
	signatures metric.Int64Counter
}

// NewTelemetry makes the instruments of meter.
func NewTelemetry(log *slog.Logger, meter metric.Meter) (*Telemetry, error) {
	deliveries, err := meter.Int64Counter("hooklock.deliveries",
		metric.WithUnit("{delivery}"), metric.WithDescription("Deliveries by decision; would is what a bypassed one would have got."))
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	signatures, err := meter.Int64Counter("hooklock.signature.verifications",
		metric.WithUnit("{verification}"), metric.WithDescription("Signatures by result: valid, missing, malformed, mismatch, too_old, too_new."))
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	return &Telemetry{log: log, deliveries: deliveries, signatures: signatures}, nil
}

// Delivered implements Observer.
func (t *Telemetry) Delivered(r *Report) {
	ctx := context.Background()
	t.deliveries.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(
		attribute.String("route", r.Route), attribute.String("decision", string(r.Decision)), attribute.String("would", string(r.Would)))))
	if r.Signature != "" {
		t.signatures.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(
			attribute.String("route", r.Route), attribute.String("scheme", r.Scheme), attribute.String("result", r.Signature))))
	}
	level := slog.LevelInfo
	if r.Decision == idem.DecisionInternalError {
		level = slog.LevelError
	}
	if !t.log.Enabled(ctx, level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 16), slog.String("decision", string(r.Decision)), slog.String("route", r.Route), slog.Int("status", r.Status))
	attrs = appendText(attrs, "would", string(r.Would))
	attrs = appendText(attrs, "code", r.Code)
	attrs = appendText(attrs, "signature", r.Signature)
	attrs = appendText(attrs, "signature_part", r.SignaturePart)
	attrs = appendNames(attrs, r)
	attrs = append(attrs, slog.Float64("duration_ms", milliseconds(r.Total)))
	if r.Upstream > 0 {
		attrs = append(attrs, slog.Float64("upstream_ms", milliseconds(r.Upstream)))
	}
	if r.Hold > 0 {
		attrs = append(attrs, slog.Float64("hold_ms", milliseconds(r.Hold)))
	}
	if r.Err != nil && r.Code == "" {
		attrs = append(attrs, slog.String("error", r.Err.Error()))
	}
	t.log.LogAttrs(ctx, level, "delivery", attrs...)
}

// Event implements Observer.
func (t *Telemetry) Event(name EventName, r *Report) {
	ctx := context.Background()
	level := slog.LevelInfo
	if name == EventLost || name == EventUnknown {
		level = slog.LevelWarn
	}
	if !t.log.Enabled(ctx, level) {
		return
	}
	attrs := appendNames(append(make([]slog.Attr, 0, 10), slog.String("route", r.Route)), r)
	if name == EventReleased {
		attrs = append(attrs, slog.Float64("held_ms", milliseconds(r.Held)), slog.Bool("recorded", r.Recorded), slog.String("outcome", string(r.Outcome)))
	}
	switch name {
	case EventHeld:
		attrs = append(attrs, slog.Float64("hold_ms", milliseconds(r.Hold)), slog.Bool("recorded", r.Recorded))
	case EventCancelled:
		attrs = appendText(attrs, "by", r.By)
	}
	t.log.LogAttrs(ctx, level, string(name), attrs...)
}

func appendNames(attrs []slog.Attr, r *Report) []slog.Attr {
	attrs = appendText(attrs, "workflow", r.Workflow)
	attrs = appendText(attrs, "key", r.Key)
	attrs = appendText(attrs, "execution", string(r.Execution))
	if r.Attempt > 0 {
		attrs = append(attrs, slog.Int("attempt", r.Attempt))
	}
	return appendText(attrs, "trace_id", r.TraceID)
}

func appendText(attrs []slog.Attr, name, value string) []slog.Attr {
	if value == "" {
		return attrs
	}
	return append(attrs, slog.String(name, value))
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
