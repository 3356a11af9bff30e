package client

import (
	"context"
	"net/http"
)

// RouteRules is what a route of the process does, and what is known of its sender.
type RouteRules struct {
	Route string `json:"route"`
	Mode  string `json:"mode" jsonschema:"enum=enforce,enum=observe"`
	Path  string `json:"path"` // the pattern
	// What an event gets whose outcome is unknown when it comes again: retry runs it, block
	// refuses it.
	OnUnknown string `json:"onUnknown,omitempty" jsonschema:"enum=retry,enum=block"`
	// After how many attempts that failed, or may have, an event waits for a person; absent:
	// after none, or an older replica.
	Attempts int `json:"attempts,omitempty"`
	// The age in seconds at which a service that checks signatures refuses the one with which an
	// event came. Absent: none, or the signature is renewed, or an older replica.
	SignatureAge float64 `json:"signatureAge,omitempty"`
	// For how many seconds the requests of events that have run are kept; absent: none is.
	KeepRequests float64 `json:"keepRequests,omitempty"`

	Sender  *RouteSender  `json:"sender,omitempty"` // absent where the route names no preset
	Answers []RouteAnswer `json:"answers"`          // the answer of each decision, in the order of the checks
}

// RouteSender is what is known of the sender that a route names.
type RouteSender struct {
	Preset string `json:"preset"`
	// Seconds for which it waits for an answer. Absent: not established.
	Patience  float64 `json:"patience,omitempty" jsonschema:"minimum=0"`
	RetriesOn string  `json:"retriesOn,omitempty"` // after which answers the event comes again
	// Seconds from its first attempt to its last automatic one.
	RetriesFor float64 `json:"retriesFor,omitempty" jsonschema:"minimum=0"`
	GivesUp    string  `json:"givesUp,omitempty"` // what becomes of an endpoint that refuses too often
	// How near it is to switching the endpoint off, by what came to this process. Absent: not
	// established.
	Limits []SenderLimit `json:"limits,omitempty"`
}

// SenderLimit is how near a sender is to one of its limits, as it counts failures.
type SenderLimit struct {
	// For people: 4_in_a_row, 24h_of_failures, 95%_of_an_hour.
	Limit string  `json:"limit"`
	Ratio float64 `json:"ratio" jsonschema:"minimum=0,maximum=1"` // 0: not at all. 1: the sender has reached it.
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
