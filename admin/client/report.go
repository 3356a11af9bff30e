package client

import (
	"context"
	"net/http"
)

// Report is what the routes of one process have found wrong with their deliveries; in mode observe these were forwarded all the same.
type Report struct {
	Replica   string        `json:"replica"` // which process counted; others have counted their own deliveries
	StartedAt Time          `json:"startedAt"`
	Since     Time          `json:"since"` // the start of its counts: what was asked for, rounded down to a step, but not before StartedAt
	Until     Time          `json:"until"`
	Routes    []RouteReport `json:"routes"`

	raw
}

// RouteReport is what was found on one route.
type RouteReport struct {
	Route           string  `json:"route"`
	Mode            string  `json:"mode"` // enforce or observe
	Deliveries      int64   `json:"deliveries"`
	Stale           Finding `json:"staleEvents"` // not set by an older replica
	Duplicates      Finding `json:"duplicates"`
	Overlaps        Finding `json:"overlaps"`
	Mismatches      Finding `json:"mismatches"`
	MissingEventIDs Finding `json:"missingEventIds"`
	Forged          Finding `json:"forged"`
	Unnamed         Finding `json:"unnamed"`
	// Changing is what the sender changes between attempts of one event, so that later ones count as other requests; nil: no change was seen.
	Changing *Changing `json:"changing,omitempty"`
}

// Changing is what a sender changes between attempts.
type Changing struct {
	Refused int64    `json:"refused"` // such attempts, since the start
	Members []string `json:"members"` // what differed: body.delivery_attempts
	At      Time     `json:"at"`      // of the newest
	Key     string   `json:"key"`     // of the newest
}

// Finding is how often something was found, with the newest examples, the newest first.
type Finding struct {
	Count    int64     `json:"count"`
	Examples []Example `json:"examples"`
}

// Example is one delivery.
type Example struct {
	At          Time   `json:"at"`
	Decision    string `json:"decision"`
	CarriedOut  bool   `json:"carriedOut"`    // otherwise the delivery was forwarded
	Key         string `json:"key,omitempty"` // short, as in the log
	Workflow    string `json:"workflow,omitempty"`
	ExecutionID string `json:"executionId,omitempty"` // the execution that stood in the way
	Code        string `json:"code,omitempty"`        // of a rejection
	Signature   string `json:"signature,omitempty"`   // why it is not valid
	Status      int    `json:"status,omitempty"`      // the status sent in response
	TraceID     string `json:"traceId,omitempty"`
}

// Report returns the report since then: a time (RFC 3339), or how long ago (24h); "" is everything that is known.
func (c *Client) Report(ctx context.Context, since string) (*Report, error) {
	return ask[Report](ctx, c, call{method: http.MethodGet, path: "/v1/report", query: query("since", since), has: "routes"})
}
