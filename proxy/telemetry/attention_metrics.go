package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// watchAttention exports how many items of each kind need attention. count may return nil: another
// replica exports them.
func (t *Telemetry) watchAttention(count func() map[string]int) error {
	_, err := t.sdk.meter.Int64ObservableGauge("hooklock.attention.items", metric.WithUnit("{item}"),
		metric.WithDescription("What needs attention, as the page and hooklock status list it, counted each minute "+
			"by one of the replicas for all."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if count == nil {
				return nil
			}
			for kind, n := range count() {
				o.Observe(int64(n), metric.WithAttributes(attribute.String("kind", kind)))
			}
			return nil
		}))
	return err
}
