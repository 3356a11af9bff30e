package client

import (
	"context"
	"net/http"
)

// CountList is what was counted of the deliveries of each route, over all replicas and restarts.
type CountList struct {
	Since       Time    `json:"since"` // from when on it counts
	Until       Time    `json:"until"` // up to when
	StepSeconds float64 `json:"stepSeconds"`
	// By name, also those to which nothing came. Past 100 routes of a replica, the others are
	// together in "(others)".
	Routes []RouteCounts `json:"routes"`

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
	Route     string  `json:"route"`
	Total     Counts  `json:"total"`     // from since to until
	PerMinute float64 `json:"perMinute"` // the deliveries a minute in the last hour, whatever was asked for
	// How long half of the requests to the service took no longer than: less than 42 % off.
	// Absent: there was none. What an older release counted is taken from the hours or days that
	// are touched.
	P50Seconds float64     `json:"p50Seconds,omitempty"`
	P95Seconds float64     `json:"p95Seconds,omitempty"` // the same for 95 of 100 requests
	LastAt     Time        `json:"lastAt,omitzero"`      // when the newest delivery ended; absent: none came
	Steps      []CountStep `json:"steps"`                // those with something, the oldest first
}

// CountStep is what was counted in one step of time.
type CountStep struct {
	At     Time   `json:"at"` // its beginning
	Counts Counts `json:"counts"`
	// How long half of the requests to the service in this step took no longer than: less than
	// 42 % off. Absent: there was none, or an older release counted them.
	P50Seconds float64 `json:"p50Seconds,omitempty"`
	P95Seconds float64 `json:"p95Seconds,omitempty"` // the same for 95 of 100 requests
}

// Counts are numbers of one span of time. A delivery that mode observe forwarded counts as
// deliveries, and by its request to the service.
type Counts struct {
	Deliveries int64 `json:"deliveries"` // all that came
	// Requests to the service, those of forwarded deliveries and of tries of parked events, that
	// it answered with a 2xx.
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"` // those that it answered with another status
	// Those without a whole answer, and executions that lost their lock or were cancelled.
	Errors        int64 `json:"errors"`
	Parked        int64 `json:"parked"`        // accepted, to run later
	Duplicates    int64 `json:"duplicates"`    // answered without running: the event is settled or runs
	Busy          int64 `json:"busy"`          // another event of the workflow ran, or a limit had no slot
	BadSignatures int64 `json:"badSignatures"` // the signature was not valid
	Refused       int64 `json:"refused"`       // refused for another reason
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

// Counts returns what was counted since then: CountsOf without Until.
func (c *Client) Counts(ctx context.Context, since, step string) (*CountList, error) {
	return c.CountsOf(ctx, CountQuery{Since: since, Step: step})
}

// CountsOf returns what was counted.
func (c *Client) CountsOf(ctx context.Context, q CountQuery) (*CountList, error) {
	return ask[CountList](ctx, c, call{method: http.MethodGet, path: "/v1/routes/counts", has: "routes",
		query: queryOf(q)})
}
