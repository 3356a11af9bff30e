package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"

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
func (t *Telemetry) watchPaused(m *maker, paused func() []idem.PauseState) {
	each := func(value func(*idem.PauseState) float64) func(see) {
		return func(see see) {
			for _, p := range paused() {
				see(value(&p), attribute.String("pause", p.Scope.String()))
			}
		}
	}
	m.addSums(observed{"hooklock.pause.parked", "{event}", "Parked events that wait for the end of a pause." +
		everywhere,
		each(func(p *idem.PauseState) float64 { return float64(p.Parked) })})
	m.addGauges(
		observed{"hooklock.pause.age", "s", "Age of a pause." + everywhere,
			each(func(p *idem.PauseState) float64 { return max(0, t.options.Now().Sub(p.Since).Seconds()) })},
		observed{"hooklock.pause.overdue", "s",
			"How long a pause is past its --until, or past one hour without one." + everywhere,
			each(func(p *idem.PauseState) float64 { return max(0, t.options.Now().Sub(p.Due()).Seconds()) })},
	)
}
