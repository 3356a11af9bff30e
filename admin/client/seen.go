package client

import (
	"context"
	"net/http"
)

// SeenMark says that a person has looked at one kind of concern on one route. What is newer needs
// attention again.
type SeenMark struct {
	Concern string `json:"concern"` // KIND:ROUTE
	Until   Time   `json:"until"`   // up to when it was looked at
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

// SeenList has all marks, the newest first.
type SeenList struct {
	Seen []SeenMark `json:"seen"`

	raw
}

// Seen returns what was marked as looked at.
func (c *Client) Seen(ctx context.Context) (*SeenList, error) {
	return get[SeenList](ctx, c, "/v1/seen", "seen", nil)
}

// MarkSeen marks a concern, which is KIND:ROUTE, as looked at. until says up to when: a time (RFC
// 3339), or how long ago; "" is now. A mark with a later time stays.
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
