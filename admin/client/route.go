package client

import (
	"context"
	"net/http"
)

// RouteRules is what a route of the process does, and what is known of its sender.
type RouteRules struct {
	Route string `json:"route"`
	Mode  string `json:"mode"` // enforce or observe
	Path  string `json:"path"` // the pattern
	// OnUnknown is what an event gets whose outcome is unknown when it comes again: retry runs it,
	// block refuses it; "" = an older replica.
	OnUnknown string `json:"onUnknown,omitempty"`
	// Attempts is after how many failed attempts an event waits for a person; 0 = after none, or an
	// older replica.
	Attempts int `json:"attempts,omitempty"`
	// SignatureAge is the age, in seconds, at which a service that checks signatures refuses the
	// one with which an event came, and so one that runs again later; 0 = at none, or an older
	// replica.
	SignatureAge float64 `json:"signatureAge,omitempty"`
	// KeepRequests is for how many seconds it keeps the requests of events that have run; 0 = it
	// keeps none.
	KeepRequests float64 `json:"keepRequests,omitempty"`

	Sender  *RouteSender  `json:"sender,omitempty"` // nil if the route names no preset
	Answers []RouteAnswer `json:"answers"`          // the answer of each decision, in the order of the checks
}

// RouteSender is what is known of the sender that a route names.
type RouteSender struct {
	Preset string `json:"preset"`
	// seconds for which it waits for an answer; 0 = not documented, or not established
	Patience  float64 `json:"patience,omitempty"`
	RetriesOn string  `json:"retriesOn,omitempty"` // after which answers the event comes again; "" = not established
	// seconds from its first attempt to its last automatic one; 0 = none, or not established
	RetriesFor float64 `json:"retriesFor,omitempty"`
	// what happens to an endpoint that refuses too often; "" = not established
	GivesUp string `json:"givesUp,omitempty"`
	// Limits is how near the sender is to switching the endpoint off, by the deliveries to this
	// process; empty: not established, or an older replica.
	Limits []SenderLimit `json:"limits,omitempty"`
}

// SenderLimit is how near a sender is to one of its limits, as it counts failures.
type SenderLimit struct {
	Limit string  `json:"limit"` // the name of the limit: 4_in_a_row, 24h_of_failures, 95%_of_an_hour
	Ratio float64 `json:"ratio"` // 0 = not at all, 1 = it has reached it
}

// RouteAnswer is the answer of one decision.
type RouteAnswer struct {
	Decision string `json:"decision"`
	Text     string `json:"text"`
}

// RouteList is the routes of a process, in the order of its configuration.
type RouteList struct {
	Routes []RouteRules `json:"routes"`
}

// Of returns the rules of the route with that name; nil = the process has none of that name.
func (l *RouteList) Of(route string) *RouteRules {
	for i := range l.Routes {
		if l.Routes[i].Route == route {
			return &l.Routes[i]
		}
	}
	return nil
}

// Routes returns what the routes of the process that answers do.
func (c *Client) Routes(ctx context.Context) (*RouteList, error) {
	return ask[RouteList](ctx, c, call{method: http.MethodGet, path: "/v1/routes", has: "routes"})
}
