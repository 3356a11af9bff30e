package client

import (
	"context"
	"net/http"
	"strings"
)

// SuggestionList is what one process suggests.
type SuggestionList struct {
	Replica   string `json:"replica"`
	Recording bool   `json:"recording"` // it learns from deliveries (limits.suggestions)
	// Other replicas that are alive. What came to them is not in the suggestions.
	Others      int          `json:"others"`
	Suggestions []Suggestion `json:"suggestions"`
	Passed      int64        `json:"passed"` // deliveries that were not looked at, because too many came
	Missed      int64        `json:"missed"` // deliveries of paths that were forgotten for others, or had no room

	raw
}

// Suggestion is the route to write for a path, and why.
type Suggestion struct {
	Route      string     `json:"route"`      // its name
	Configured bool       `json:"configured"` // there is a route of that name, which took the deliveries
	Path       string     `json:"path"`
	Deliveries int        `json:"deliveries"`
	Since      Time       `json:"since"`              // the first of them
	Until      Time       `json:"until"`              // the last of them
	Preset     string     `json:"preset,omitempty"`   // of the sender that they look like
	EventID    string     `json:"eventId,omitempty"`  // a template. Absent: what names an event is not known.
	Workflow   string     `json:"workflow,omitempty"` // a template. Absent: that is not known.
	Ignore     []string   `json:"ignore,omitempty"`
	Predicted  *Predicted `json:"predicted,omitempty"` // absent without an event ID
	YAML       string     `json:"yaml"`                // the route, to paste below routes
	Sentences  []string   `json:"sentences"`           // what was seen, and how sure that is
}

// Paste returns the route, with what it is concluded from as comments below it.
func (s *Suggestion) Paste() string {
	var b strings.Builder
	b.WriteString(s.YAML)
	for _, sentence := range s.Sentences {
		b.WriteString("    # " + strings.ReplaceAll(sentence, "\n", " ") + "\n")
	}
	return b.String()
}

// Predicted is what the route would have made of the deliveries, one after the other, had the
// service answered each event with success.
type Predicted struct {
	Events  int `json:"events"`  // run once each
	Repeats int `json:"repeats"` // get the first answer
	Others  int `json:"others"`  // are refused: the ID of an event with another request
}

// Suggestions returns what is suggested out of the deliveries since then: a time (RFC 3339), or how
// long ago (24h); "" is all that are known. route is the name of a suggested route, or its path; ""
// is each.
func (c *Client) Suggestions(ctx context.Context, since, route string) (*SuggestionList, error) {
	return ask[SuggestionList](ctx, c, call{method: http.MethodGet, path: "/v1/suggestions",
		query: query("since", since, "route", route), has: "suggestions"})
}
