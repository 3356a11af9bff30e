package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// SeenMark says that a person has looked at what needs attention, of one kind on one route. What is newer needs attention again.
type SeenMark struct {
	Concern string `json:"concern"` // KIND:ROUTE
	Until   Time   `json:"until"`   // what happened up to then was looked at
	By      string `json:"by"`      // the name of the token
	Reason  string `json:"reason"`
	At      Time   `json:"at"` // when it was marked

	raw json.RawMessage
}

// RawJSON is the object as the server sent it. Do not change it.
func (m *SeenMark) RawJSON() []byte { return m.raw }

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (m *SeenMark) UnmarshalJSON(text []byte) error {
	type plain SeenMark
	if err := json.Unmarshal(text, (*plain)(m)); err != nil {
		return err
	}
	m.raw = append(json.RawMessage(nil), text...)
	return nil
}

// SeenList are all marks, the newest first.
type SeenList struct {
	Seen []SeenMark `json:"seen"`

	raw json.RawMessage
}

// RawJSON is the object as the server sent it. Do not change it.
func (l *SeenList) RawJSON() []byte { return l.raw }

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (l *SeenList) UnmarshalJSON(text []byte) error {
	type plain SeenList
	if err := json.Unmarshal(text, (*plain)(l)); err != nil {
		return err
	}
	l.raw = append(json.RawMessage(nil), text...)
	return nil
}

// Seen lists what was looked at.
func (c *Client) Seen(ctx context.Context) (*SeenList, error) {
	l := new(SeenList)
	if _, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/seen", into: l, has: "seen"}); err != nil {
		return nil, err
	}
	return l, nil
}

// MarkSeen marks KIND:ROUTE as looked at: what happened up to until, a time (RFC 3339) or how long ago; "" = up to now. A later mark stays.
func (c *Client) MarkSeen(ctx context.Context, concern, until, reason string) (*SeenMark, error) {
	body := map[string]string{"concern": concern, "reason": reason}
	if until != "" {
		body["until"] = until
	}
	m := new(SeenMark)
	if _, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/seen", body: body, into: m, has: "concern"}); err != nil {
		return nil, err
	}
	return m, nil
}

// UnmarkSeen removes a mark. reason may be "". A *Problem with CodeMarkNotFound means that there is none.
func (c *Client) UnmarkSeen(ctx context.Context, concern, reason string) (*SeenMark, error) {
	if concern == "" {
		return nil, errors.New("the concern is empty")
	}
	m := new(SeenMark)
	if _, err := c.do(ctx, call{method: http.MethodDelete, path: "/v1/seen/" + segment(concern), query: query("reason", reason), into: m, has: "concern"}); err != nil {
		return nil, err
	}
	return m, nil
}
