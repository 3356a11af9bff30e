package client

import (
	"context"
	"net/http"
)

// CountList is what was counted of the deliveries of each route, over all replicas and restarts.
type CountList struct {
	Since       Time          `json:"since"` // what was asked for, rounded down to a step
	Until       Time          `json:"until"`
	StepSeconds float64       `json:"stepSeconds"`
	Routes      []RouteCounts `json:"routes"` // also those without deliveries

	raw
}

// RouteCounts is what was counted of one route.
type RouteCounts struct {
	Route string `json:"route"`
	Total Counts `json:"total"` // from Since to Until
	// PerMinute is the deliveries a minute in the hour before Until, whatever was asked for.
	PerMinute float64 `json:"perMinute"`
	// P50Seconds and P95Seconds estimate how long requests to the service took, over whole hours
	// (or days); 0 = there were none.
	P50Seconds float64     `json:"p50Seconds,omitempty"`
	P95Seconds float64     `json:"p95Seconds,omitempty"`
	LastAt     Time        `json:"lastAt,omitzero"` // when the newest delivery ended; zero: none has
	Steps      []CountStep `json:"steps"`           // those with something, the oldest first
}

// CountStep is what was counted in one step of time.
type CountStep struct {
	At     Time   `json:"at"` // its beginning
	Counts Counts `json:"counts"`
}

// Counts are numbers of one span of time. Succeeded, Failed and Errors count requests to the
// service: forwarded deliveries, and tries of parked events. A delivery that mode observe forwarded
// counts there alone.
type Counts struct {
	Deliveries    int64 `json:"deliveries"`    // all that came
	Succeeded     int64 `json:"succeeded"`     // the service answered with a 2xx
	Failed        int64 `json:"failed"`        // it answered with another status
	Errors        int64 `json:"errors"`        // no whole answer came
	Parked        int64 `json:"parked"`        // accepted, to run later
	Duplicates    int64 `json:"duplicates"`    // answered without running
	Busy          int64 `json:"busy"`          // another event of the workflow ran, or a limit had no slot
	BadSignatures int64 `json:"badSignatures"` // the signature was not valid
	Refused       int64 `json:"refused"`       // for another reason
	DeadLetters   int64 `json:"deadLetters"`   // accepted events that were given up
	// duplicates by their event ID that were other requests than the first delivery
	Changed int64 `json:"changed"`
}

// Counts returns what was counted since then: a time (RFC 3339), or how long ago (24h), at most 30
// days; "" is 24h. step is the length of a step (15m); "" gives about a hundred steps.
func (c *Client) Counts(ctx context.Context, since, step string) (*CountList, error) {
	return ask[CountList](ctx, c, call{method: http.MethodGet, path: "/v1/routes/counts",
		query: query("since", since, "step", step), has: "routes"})
}
