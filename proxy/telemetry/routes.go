package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// RouteHealth is how a route stands with its sender.
type RouteHealth struct {
	Route  string
	Last   time.Time // when the newest delivery ended; zero: none came since the start
	Limits []SenderLimit
}

// SenderLimit is how near a sender is to switching the endpoint off: 0 for not at all, 1 where it has reached the limit.
type SenderLimit struct {
	Limit string // for people; from a closed set
	Near  float64
}

// watchRoutes shows how routes stand with their senders.
func (t *Telemetry) watchRoutes(routes func() []RouteHealth) error {
	if routes == nil {
		return nil
	}
	_, last := t.sdk.meter.Float64ObservableGauge("hooklock.route.last_delivery.timestamp", metric.WithUnit("s"),
		metric.WithDescription("When the newest delivery of a route ended, as a Unix time; not shown before the first one after a start. Take the maximum over replicas."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			for _, r := range routes() {
				if !r.Last.IsZero() {
					o.Observe(float64(r.Last.UnixMilli())/1000, metric.WithAttributes(attribute.String("route", r.Route)))
				}
			}
			return nil
		}))
	_, near := t.sdk.meter.Float64ObservableGauge("hooklock.sender.limit", metric.WithUnit("1"),
		metric.WithDescription("How near the sender of a route is to switching its endpoint off, as that sender counts failures: 0 not at all, 1 its limit is reached. Only of presets whose limit is established, and of what came to this process."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			for _, r := range routes() {
				for _, l := range r.Limits {
					o.Observe(l.Near, metric.WithAttributes(attribute.String("route", r.Route), attribute.String("limit", l.Limit)))
				}
			}
			return nil
		}))
	return errors.Join(last, near)
}
