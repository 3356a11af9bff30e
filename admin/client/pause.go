package client

import (
	"context"
	"net/http"
	"time"
)

// Pause says that no execution of its scope begins, and how far that has come over all replicas.
// What runs goes on.
type Pause struct {
	Scope  string `json:"scope"` // route:NAME, or workflow:PATTERN
	By     string `json:"by"`    // the name of the token that began it
	Reason string `json:"reason"`
	Since  Time   `json:"since"`
	Until  Time   `json:"until,omitzero"` // When it ends by itself. Absent if it does not.
	// Executions that wait in a queue, and whose senders wait for the answer.
	Waiting int `json:"waiting"`
	// Executions that wait in a queue, and whose senders were told that they are accepted.
	Parked int `json:"parked"`
	// Executions that have begun and not ended: at the service, held, in a try, or closed after an
	// unknown outcome.
	Running int `json:"running"`
	// Replicas that have not acknowledged the pause: an execution may still begin there. A replica
	// of an older release never acknowledges it.
	Unheard    []string `json:"unheard"`
	Incomplete bool     `json:"incomplete,omitempty"` // there are more than were counted
	// Nothing of it runs anywhere, and nothing begins until it is resumed.
	Drained bool `json:"drained"`
	// Says that the replica that answers has no route of that name, and the nearest name that it
	// has. The name may be mistyped, or be of another replica. Absent if it has one.
	Warning string `json:"warning,omitempty"`

	raw
}

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (p *Pause) UnmarshalJSON(text []byte) error {
	type plain Pause
	return p.read(text, (*plain)(p))
}

// PauseList has the pauses that the token may see, the oldest first.
type PauseList struct {
	Pauses []Pause `json:"pauses"`

	raw
}

// EndedPause is a pause that was ended.
type EndedPause struct {
	Scope  string `json:"scope"` // route:NAME, or workflow:PATTERN
	By     string `json:"by"`    // the name of the token that began it
	Reason string `json:"reason"`
	Since  Time   `json:"since"`
	Until  Time   `json:"until,omitzero"` // When it would have ended by itself. Absent if it would not.

	raw
}

// PauseStatus is a pause as one replica knows it.
type PauseStatus struct {
	Scope  string `json:"scope"` // route:NAME, or workflow:PATTERN
	By     string `json:"by"`    // the name of the token that began it
	Reason string `json:"reason"`
	Since  Time   `json:"since"`
	Until  Time   `json:"until,omitzero"` // When it ends by itself. Absent if it does not.
	Parked int    `json:"parked"`         // parked executions that wait for it, over all replicas
}

// Pauses returns the pauses that the token may see.
func (c *Client) Pauses(ctx context.Context) (*PauseList, error) {
	return get[PauseList](ctx, c, "/v1/pauses", "pauses", nil)
}

// Pause returns a pause. A *Problem with CodePauseNotFound means that nothing of that scope is
// paused.
func (c *Client) Pause(ctx context.Context, scope string) (*Pause, error) {
	return get[Pause](ctx, c, "/v1/pauses/"+pathSegment(scope), "scope", nil)
}

// BeginPause pauses a scope, which is route:NAME or workflow:PATTERN, for d, or with 0 until it is
// resumed. It replaces a pause of the same scope. It is in force at a replica when Unheard does not
// name that replica any more.
func (c *Client) BeginPause(ctx context.Context, scope, reason string, d time.Duration) (*Pause, error) {
	body := map[string]string{"scope": scope, "reason": reason}
	if d != 0 {
		body["for"] = d.String()
	}
	return ask[Pause](ctx, c, call{method: http.MethodPost, path: "/v1/pauses", body: body, has: "scope"})
}

// Resume ends a pause. Executions that wait go on in their order. reason may be "". A *Problem with
// CodePauseNotFound means that nothing of that scope is paused.
func (c *Client) Resume(ctx context.Context, scope, reason string) (*EndedPause, error) {
	return ask[EndedPause](ctx, c, call{method: http.MethodDelete, path: "/v1/pauses/" + pathSegment(scope),
		query: queryOfPairs("reason", reason), has: "scope"})
}
