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

// Of returns the counts of a route; nil = there are none.
func (l *CountList) Of(route string) *RouteCounts {
	for i := range l.Routes {
		if l.Routes[i].Route == route {
			return &l.Routes[i]
		}
	}
	return nil
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
	// P50Seconds and P95Seconds are as in RouteCounts, of this step; 0 = there were none, or an older
	// release counted them.
	P50Seconds float64 `json:"p50Seconds,omitempty"`
	P95Seconds float64 `json:"p95Seconds,omitempty"`
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

// CountQuery says which counts are asked for. The zero value asks for the last 24 hours.
type CountQuery struct {
	// Since and Until are times (RFC 3339), or how long ago ("24h"), at most 30 days; "" = 24 hours
	// before Until, and now. A minute, or where Since is more than 24 hours ago an hour, counts that
	// begins before Until.
	Since, Until string
	Step         string // the length of a step ("15m"); "" = what gives about a hundred steps
}

// Counts returns what was counted since then: CountsOf without Until.
func (c *Client) Counts(ctx context.Context, since, step string) (*CountList, error) {
	return c.CountsOf(ctx, CountQuery{Since: since, Step: step})
}

// CountsOf returns what was counted.
func (c *Client) CountsOf(ctx context.Context, q CountQuery) (*CountList, error) {
	return ask[CountList](ctx, c, call{method: http.MethodGet, path: "/v1/routes/counts", has: "routes",
		query: query("since", q.Since, "until", q.Until, "step", q.Step)})
}
