package client

import (
	"context"
)

// CountList has the counts of each route, over all replicas and restarts.
type CountList struct {
	Since       Time    `json:"since"` // the beginning of what is counted
	Until       Time    `json:"until"` // the end of what is counted
	StepSeconds float64 `json:"stepSeconds"`
	// By name, also routes without a delivery. If a replica has more than 100 routes, the others
	// are together in "(others)".
	Routes []RouteCounts `json:"routes"`

	raw
}

// Of returns the counts of a route; nil if it is not in the list.
func (l *CountList) Of(route string) *RouteCounts {
	for i := range l.Routes {
		if l.Routes[i].Route == route {
			return &l.Routes[i]
		}
	}
	return nil
}

// RouteCounts are the counts of one route.
type RouteCounts struct {
	Route string `json:"route"`
	Total Counts `json:"total"` // the sums from since to until
	// The deliveries a minute in the last hour, whatever was asked for.
	PerMinute float64 `json:"perMinute"`
	// The time within which the service answered half of its requests, less than 42 % off. Absent
	// if there were none. Requests that an older release counted are those of the whole hours or
	// days that are touched.
	P50Seconds float64     `json:"p50Seconds,omitempty"`
	P95Seconds float64     `json:"p95Seconds,omitempty"` // the same for 95 of 100 requests
	LastAt     Time        `json:"lastAt,omitzero"`      // When the newest delivery ended. Absent if none came.
	Steps      []CountStep `json:"steps"`                // the steps in which something came, the oldest first
}

// CountStep has the counts of one step of time.
type CountStep struct {
	At     Time   `json:"at"` // when it begins
	Counts Counts `json:"counts"`
	// The time within which the service answered half of its requests, less than 42 % off. Absent
	// if there were none, or if an older release counted them.
	P50Seconds float64 `json:"p50Seconds,omitempty"`
	P95Seconds float64 `json:"p95Seconds,omitempty"` // the same for 95 of 100 requests
}

// Counts are the numbers of one span of time. A delivery that mode observe forwarded counts in
// deliveries, and by the answer of the service.
type Counts struct {
	Deliveries int64 `json:"deliveries"` // all deliveries
	// Requests to the service that it answered with a 2xx: forwarded deliveries, and tries of
	// parked events.
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"` // requests that it answered with another status
	// Requests without a whole answer, and executions that lost their lock or were cancelled.
	Errors int64 `json:"errors"`
	Parked int64 `json:"parked"` // deliveries that were accepted, to run later
	// Deliveries that were answered without running, because the event is settled or runs.
	Duplicates int64 `json:"duplicates"`
	// Deliveries that were refused because another event of the workflow ran, or a limit had no
	// slot.
	Busy          int64 `json:"busy"`
	BadSignatures int64 `json:"badSignatures"` // deliveries whose signature was not valid
	Refused       int64 `json:"refused"`       // deliveries that were refused for another reason
	DeadLetters   int64 `json:"deadLetters"`   // accepted events that were given up
	// Duplicates by their event ID that were other requests than the first delivery.
	Changed int64 `json:"changed"`
}

// CountQuery selects a span of time. The zero value selects the last 24 hours.
type CountQuery struct {
	// Since is a time (RFC 3339), or how long ago (24h), at most 30 days. It is rounded down to a
	// step. Absent: 24 hours before the end.
	Since string `query:"since"`
	// Until is a time (RFC 3339), or how long ago. The last minute that counts is the last one that
	// begins before it; where since is more than 24 hours ago, the last hour. Absent: now.
	Until string `query:"until"`
	// Step is the length of a step: whole minutes, such as 15m, or whole hours where since is more
	// than 24 hours ago. Absent: what gives about 100 steps.
	Step string `query:"step"`
}

// Counts returns the counts since then, in steps of that length; see CountQuery.
func (c *Client) Counts(ctx context.Context, since, step string) (*CountList, error) {
	return c.CountsOf(ctx, CountQuery{Since: since, Step: step})
}

// CountsOf returns the counts of a span of time.
func (c *Client) CountsOf(ctx context.Context, q CountQuery) (*CountList, error) {
	return get[CountList](ctx, c, "/v1/routes/counts", "routes", queryOf(q))
}
