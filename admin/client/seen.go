package client

import (
	"context"
	"net/http"
)

// SeenMark says that a person has looked at what needs attention, of one kind on one route. What is
// newer needs attention again.
type SeenMark struct {
	Concern string `json:"concern"` // KIND:ROUTE
	Until   Time   `json:"until"`   // what happened up to then was looked at
	By      string `json:"by"`      // the name of the token
	Reason  string `json:"reason"`
	At      Time   `json:"at"` // when it was marked

	raw
}

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (m *SeenMark) UnmarshalJSON(text []byte) error {
	type plain SeenMark
	return m.read(text, (*plain)(m))
}

// SeenList are all marks, the newest first.
type SeenList struct {
	Seen []SeenMark `json:"seen"`

	raw
}

// Seen lists what was looked at.
func (c *Client) Seen(ctx context.Context) (*SeenList, error) {
	return ask[SeenList](ctx, c, call{method: http.MethodGet, path: "/v1/seen", has: "seen"})
}

// MarkSeen marks KIND:ROUTE as looked at: what happened up to until, a time (RFC 3339) or how long
// ago; "" = up to now. A later mark stays.
func (c *Client) MarkSeen(ctx context.Context, concern, until, reason string) (*SeenMark, error) {
	body := map[string]string{"concern": concern, "reason": reason}
	if until != "" {
		body["until"] = until
	}
	return ask[SeenMark](ctx, c, call{method: http.MethodPost, path: "/v1/seen", body: body, has: "concern"})
}

// UnmarkSeen removes a mark. reason may be "". A *Problem with CodeMarkNotFound means that there is
// none.
func (c *Client) UnmarkSeen(ctx context.Context, concern, reason string) (*SeenMark, error) {
	return ask[SeenMark](ctx, c, call{method: http.MethodDelete, path: "/v1/seen/" + segment(concern),
		query: query("reason", reason), has: "concern"})
}
