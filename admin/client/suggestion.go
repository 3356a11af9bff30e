package client

import (
	"context"
	"strings"
)

// SuggestionList has the routes that one replica suggests.
type SuggestionList struct {
	Replica   string `json:"replica"`
	Recording bool   `json:"recording"` // it learns from deliveries (limits.suggestions)
	// How many other replicas are alive. They have their own suggestions.
	Others      int          `json:"others"`
	Suggestions []Suggestion `json:"suggestions"`
	Passed      int64        `json:"passed"` // deliveries that were not looked at, because too many came
	// Deliveries of paths that had no room, or that were forgotten for others.
	Missed int64 `json:"missed"`

	raw
}

// Suggestion is a route to write for a path, and why.
type Suggestion struct {
	Route      string     `json:"route"`      // the name of the route
	Configured bool       `json:"configured"` // A route of that name is configured, and took the deliveries.
	Path       string     `json:"path"`
	Deliveries int        `json:"deliveries"`
	Since      Time       `json:"since"`              // when the first delivery came
	Until      Time       `json:"until"`              // when the last delivery came
	Preset     string     `json:"preset,omitempty"`   // the sender that the deliveries look like
	EventID    string     `json:"eventId,omitempty"`  // a template; absent if it is not known what names an event
	Workflow   string     `json:"workflow,omitempty"` // a template; absent if it is not known
	Ignore     []string   `json:"ignore,omitempty"`
	Predicted  *Predicted `json:"predicted,omitempty"` // absent without an event ID
	YAML       string     `json:"yaml"`                // the route, to paste below routes
	Sentences  []string   `json:"sentences"`           // what was seen, and how sure that is
}

// Paste returns the YAML of the route, with the sentences as comments below it.
func (s *Suggestion) Paste() string {
	var b strings.Builder
	b.WriteString(s.YAML)
	for _, sentence := range s.Sentences {
		b.WriteString("    # " + strings.ReplaceAll(sentence, "\n", " ") + "\n")
	}
	return b.String()
}

// Predicted is what the route would have done with the deliveries, had the service answered each
// event with success.
type Predicted struct {
	Events  int `json:"events"`  // deliveries that run
	Repeats int `json:"repeats"` // deliveries that get the first answer
	Others  int `json:"others"`  // Deliveries that are refused: the event ID of another request.
}

// Suggestions returns the routes that fit the deliveries since then: a time (RFC 3339), or how long
// ago (24h); "" is all that are known. route selects one by its name or path; "" selects all.
func (c *Client) Suggestions(ctx context.Context, since, route string) (*SuggestionList, error) {
	return get[SuggestionList](ctx, c, "/v1/suggestions", "suggestions", query("since", since, "route", route))
}
