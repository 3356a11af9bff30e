package client

import (
	"context"
)

// RouteRules is what a route does, and what is known of its sender.
type RouteRules struct {
	Route string `json:"route"`
	Mode  string `json:"mode" jsonschema:"enum=enforce,enum=observe"`
	Path  string `json:"path"` // the pattern of its path
	// What happens to an event of unknown outcome that comes again: retry runs it, block refuses
	// it.
	OnUnknown string `json:"onUnknown,omitempty" jsonschema:"enum=retry,enum=block"`
	// After how many attempts that failed, or may have, an event waits for a person. Absent if it
	// never does, or from an older replica.
	Attempts int `json:"attempts,omitempty"`
	// The age of a signature, in seconds, at which the service refuses it. Absent if there is none,
	// if the signature is renewed, or from an older replica.
	SignatureAge float64 `json:"signatureAge,omitempty"`
	// For how many seconds the requests of events that have run are stored. Absent if they are not.
	KeepRequests float64 `json:"keepRequests,omitempty"`

	Sender  *RouteSender  `json:"sender,omitempty"` // absent if the route names no preset
	Answers []RouteAnswer `json:"answers"`          // what each decision answers, in the order of the checks
}

// RouteSender is what is known of the sender of a route.
type RouteSender struct {
	Preset string `json:"preset"`
	// For how many seconds it waits for an answer. Absent if that is not established.
	Patience  float64 `json:"patience,omitempty" jsonschema:"minimum=0"`
	RetriesOn string  `json:"retriesOn,omitempty"` // after which answers it sends the event again
	// The seconds from its first attempt to its last automatic one.
	RetriesFor float64 `json:"retriesFor,omitempty" jsonschema:"minimum=0"`
	GivesUp    string  `json:"givesUp,omitempty"` // what it does with an endpoint that refuses too often
	// How near it is to switching the endpoint off, by what came to this replica. Absent if its
	// rules are not established.
	Limits []SenderLimit `json:"limits,omitempty"`
}

// SenderLimit is how near a sender is to switching the endpoint off by one of its rules.
type SenderLimit struct {
	// The rule, for people: 4_in_a_row, 24h_of_failures, 95%_of_an_hour.
	Limit string  `json:"limit"`
	Ratio float64 `json:"ratio" jsonschema:"minimum=0,maximum=1"` // from 0, not at all, to 1: it is reached
}

// RouteAnswer says in words what the sender gets after a decision.
type RouteAnswer struct {
	Decision string `json:"decision"`
	Text     string `json:"text"`
}

// RouteList has the routes of a replica, in the order of its configuration.
type RouteList struct {
	Routes []RouteRules `json:"routes"`
}

// Of returns the rules of a route; nil if the replica has none of that name.
func (l *RouteList) Of(route string) *RouteRules {
	for i := range l.Routes {
		if l.Routes[i].Route == route {
			return &l.Routes[i]
		}
	}
	return nil
}

// Routes returns the routes of the replica that answers.
func (c *Client) Routes(ctx context.Context) (*RouteList, error) {
	return get[RouteList](ctx, c, "/v1/routes", "routes", nil)
}
