package client

import (
	"context"
	"errors"
)

// BadSignature is a delivery whose signature was not valid. What is not known is absent.
type BadSignature struct {
	At     Time   `json:"at"` // when it came
	Route  string `json:"route"`
	From   string `json:"from,omitempty"`   // the client's IP address
	Scheme string `json:"scheme,omitempty"` // the setting verify.scheme
	Reason string `json:"reason,omitempty"` // missing, malformed, stale, mismatch, …
	// What was wrong: the name of a header, or a source as in templates.
	Part    string `json:"part,omitempty"`
	Detail  string `json:"detail,omitempty"`  // what was found, and what to check
	EventID string `json:"eventId,omitempty"` // the event ID that it says, which nothing proves
	TraceID string `json:"traceId,omitempty"`
	Status  int    `json:"status,omitempty"` // the status of the response
	// How many more of the route came so soon after it that they are not listed.
	More  int64 `json:"more,omitempty"`
	Until Time  `json:"until,omitzero"` // when the newest of these came

	raw
}

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (b *BadSignature) UnmarshalJSON(text []byte) error {
	type plain BadSignature
	err := b.read(text, (*plain)(b))
	if err == nil && b.At.IsZero() {
		err = errors.New("a bad signature says when it came")
	}
	return err
}

// BadSignatureQuery selects bad signatures that match all fields that are set. The zero value
// selects all that are kept: for 30 days, the newest 1,000 of a route, and 20,000 together.
type BadSignatureQuery struct {
	Route string `query:"route"` // the name of a route
	// EventID selects the deliveries that say this event ID. Nothing proves that it is true.
	EventID string `query:"event"`
	// Since selects what came since then: a time (RFC 3339), or how long ago (24h).
	Since string `query:"since"`
	// Until selects what came until then: a time (RFC 3339), or how long ago.
	Until string `query:"until"`

	Limit  int    `query:"limit"`  // the most items of a page
	Cursor string `query:"cursor"` // nextCursor of the page before; absent: from the beginning
}

// BadSignaturePage is a part of the list of bad signatures. It may hold fewer items than its limit,
// even none, and not be the last one: only an empty nextCursor says that it is.
type BadSignaturePage struct {
	BadSignatures []BadSignature `json:"badSignatures"`
	NextCursor    string         `json:"nextCursor"`
}

// BadSignaturePage returns one page of the bad signatures, the newest first.
func (c *Client) BadSignaturePage(ctx context.Context, q BadSignatureQuery) (*BadSignaturePage, error) {
	return get[BadSignaturePage](ctx, c, "/v1/signatures", "badSignatures", queryOf(q))
}
