package telemetry

import (
	"context"
	"errors"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"hooklock/idem"
)

// OnPause logs a pause that this process has learned of, or its end.
func (t *Telemetry) OnPause(p idem.Pause, over bool) {
	attrs := []slog.Attr{slog.String("scope", p.Scope.String()), slog.String("by", p.By),
		slog.String("reason", p.Reason), slog.Time("since", p.Since.UTC())}
	if until := p.Until(); !until.IsZero() {
		attrs = append(attrs, slog.Time("until", until.UTC()))
	}
	if over {
		t.options.Log.LogAttrs(context.Background(), slog.LevelWarn, "pause.ended", attrs...)
		return
	}
	t.options.Log.LogAttrs(context.Background(), slog.LevelWarn, "pause.began", attrs...)
}

// watchPaused exports what is paused. Its label is the scope, so there are as many series as
// pauses.
func (t *Telemetry) watchPaused(paused func() []idem.PauseState) error {
	if paused == nil {
		return nil
	}
	of := func(p *idem.PauseState) metric.ObserveOption {
		return metric.WithAttributes(attribute.String("pause", p.Scope.String()))
	}
	_, parked := t.sdk.meter.Int64ObservableUpDownCounter("hooklock.pause.parked", metric.WithUnit("{event}"),
		metric.WithDescription("Parked events that wait for the end of a pause."+everywhere),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, p := range paused() {
				o.Observe(int64(p.Parked), of(&p))
			}
			return nil
		}))
	_, age := t.sdk.meter.Float64ObservableGauge("hooklock.pause.age", metric.WithUnit("s"),
		metric.WithDescription("Age of a pause."+everywhere),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			for _, p := range paused() {
				o.Observe(max(0, t.options.Now().Sub(p.Since).Seconds()), of(&p))
			}
			return nil
		}))
	_, overdue := t.sdk.meter.Float64ObservableGauge("hooklock.pause.overdue", metric.WithUnit("s"),
		metric.WithDescription("How long a pause is past its --until, or past one hour without one."+everywhere),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			for _, p := range paused() {
				o.Observe(max(0, t.options.Now().Sub(p.Due()).Seconds()), of(&p))
			}
			return nil
		}))
	return errors.Join(parked, age, overdue)
}
