package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// RouteHealth is the standing of a route with its sender.
type RouteHealth struct {
	Route  string
	Last   time.Time // when the newest verified delivery ended; zero: none has since the start
	Limits []SenderLimit
}

// SenderLimit is how near a sender is to switching the endpoint off: 0 for not at all, 1 if it has
// reached the limit.
type SenderLimit struct {
	Limit string // from a closed set
	Near  float64
	// Unverified is Near if unverified deliveries are the sender's, too.
	Unverified float64
}

// watchRoutes exports the standing of routes with their senders.
func (t *Telemetry) watchRoutes(routes func() []RouteHealth) error {
	if routes == nil {
		return nil
	}
	_, last := t.sdk.meter.Float64ObservableGauge("hooklock.route.last_delivery.timestamp", metric.WithUnit("s"),
		metric.WithDescription("Unix time at which the newest verified delivery ended; without verify, any but an "+
			"unsigned handshake. Take the maximum over replicas."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			for _, r := range routes() {
				if !r.Last.IsZero() {
					o.Observe(float64(r.Last.UnixMilli())/1000,
						metric.WithAttributes(attribute.String("route", r.Route)))
				}
			}
			return nil
		}))
	return errors.Join(last,
		t.watchLimits(routes, "hooklock.sender.limit", "How near the sender is to disabling its endpoint, 0 to 1, "+
			"by verified deliveries to all replicas. Only of presets with a known limit.",
			func(l *SenderLimit) float64 { return l.Near }),
		t.watchLimits(routes, "hooklock.sender.limit.unverified", "hooklock.sender.limit, counting unverified "+
			"deliveries too: the sender's if a secret changed on one side, else a stranger's.",
			func(l *SenderLimit) float64 { return l.Unverified }))
}

// watchLimits exports a ratio of each limit of each route's sender.
func (t *Telemetry) watchLimits(routes func() []RouteHealth, name, description string,
	ratio func(*SenderLimit) float64) error {
	_, err := t.sdk.meter.Float64ObservableGauge(name, metric.WithUnit("1"), metric.WithDescription(description),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			for _, r := range routes() {
				for i := range r.Limits {
					l := &r.Limits[i]
					o.Observe(ratio(l), metric.WithAttributes(attribute.String("route", r.Route),
						attribute.String("limit", l.Limit)))
				}
			}
			return nil
		}))
	return err
}
