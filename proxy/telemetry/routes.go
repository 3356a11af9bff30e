package telemetry

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
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
func watchRoutes(m *maker, routes func() []RouteHealth) {
	near := func(ratio func(*SenderLimit) float64) func(see) {
		return func(see see) {
			for _, r := range routes() {
				for i := range r.Limits {
					see(ratio(&r.Limits[i]), attribute.String("route", r.Route),
						attribute.String("limit", r.Limits[i].Limit))
				}
			}
		}
	}
	m.addGauges(
		observed{"hooklock.route.last_delivery.timestamp", "s", "Unix time at which the newest verified delivery " +
			"ended; without verify, any but an unsigned handshake. Take the maximum over replicas.", func(see see) {
			for _, r := range routes() {
				if !r.Last.IsZero() {
					see(float64(r.Last.UnixMilli())/1000, attribute.String("route", r.Route))
				}
			}
		}},
		observed{"hooklock.sender.limit", "1", "How near the sender is to disabling its endpoint, 0 to 1, by " +
			"verified deliveries to all replicas. Only of presets with a known limit.",
			near(func(l *SenderLimit) float64 { return l.Near })},
		observed{"hooklock.sender.limit.unverified", "1", "hooklock_sender_limit_ratio, counting unverified " +
			"deliveries too: the sender's if a secret changed on one side, else a stranger's.",
			near(func(l *SenderLimit) float64 { return l.Unverified })},
	)
}
