package client

import (
	"context"
	"net/http"
	"time"
)

// Pause says that nothing of its scope begins, and how far that has come over all replicas. Running
// executions go on.
type Pause struct {
	Scope  string `json:"scope"` // route:NAME, or workflow:PATTERN
	By     string `json:"by"`    // the name of the token that paused it
	Reason string `json:"reason"`
	Since  Time   `json:"since"`
	Until  Time   `json:"until,omitzero"` // when it ends by itself; absent: somebody resumes it
	// Executions that wait for their turn, and whose senders wait for the answer.
	Waiting int `json:"waiting"`
	// Executions that wait for their turn, and whose senders were told that they are accepted.
	Parked int `json:"parked"`
	// Executions that have begun and not ended: at work, held, in a try, or closed after an
	// unknown outcome.
	Running int `json:"running"`
	// Processes that have not acknowledged it: something may still begin there. One of an older
	// release never does.
	Unheard    []string `json:"unheard"`
	Incomplete bool     `json:"incomplete,omitempty"` // there is more than was counted
	// Nothing of it runs anywhere, and nothing begins until it is resumed.
	Drained bool `json:"drained"`
	// That the replica that was asked has no route of that name, with the nearest name that it
	// has: it may be mistyped, and it may be another replica's. Absent: it has one.
	Warning string `json:"warning,omitempty"`

	raw
}

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (p *Pause) UnmarshalJSON(text []byte) error {
	type plain Pause
	return p.read(text, (*plain)(p))
}

// PauseList are all pauses that the token may see, the oldest first.
type PauseList struct {
	Pauses []Pause `json:"pauses"`

	raw
}

// EndedPause is a pause that was resumed.
type EndedPause struct {
	Scope  string `json:"scope"` // route:NAME, or workflow:PATTERN
	By     string `json:"by"`    // the name of the token that paused it
	Reason string `json:"reason"`
	Since  Time   `json:"since"`
	Until  Time   `json:"until,omitzero"` // when it ends by itself; absent: somebody resumes it

	raw
}

// PauseStatus is a pause as one process knows it.
type PauseStatus struct {
	Scope  string `json:"scope"` // route:NAME, or workflow:PATTERN
	By     string `json:"by"`    // the name of the token that paused it
	Reason string `json:"reason"`
	Since  Time   `json:"since"`
	Until  Time   `json:"until,omitzero"` // when it ends by itself; absent: somebody resumes it
	Parked int    `json:"parked"`         // parked executions that wait for it, over all replicas
}

// Pauses returns all pauses that the token may see.
func (c *Client) Pauses(ctx context.Context) (*PauseList, error) {
	return ask[PauseList](ctx, c, call{method: http.MethodGet, path: "/v1/pauses", has: "pauses"})
}

// Pause returns one pause. A *Problem with CodePauseNotFound means that nothing of that scope is
// paused.
func (c *Client) Pause(ctx context.Context, scope string) (*Pause, error) {
	return ask[Pause](ctx, c, call{method: http.MethodGet, path: "/v1/pauses/" + segment(scope), has: "scope"})
}

// BeginPause pauses route:NAME or workflow:PATTERN, for that long, or with 0 until it is resumed. A
// pause of the same scope is replaced. It is in force at a process when Unheard does not name it
// any more.
func (c *Client) BeginPause(ctx context.Context, scope, reason string, d time.Duration) (*Pause, error) {
	body := map[string]string{"scope": scope, "reason": reason}
	if d != 0 {
		body["for"] = d.String()
	}
	return ask[Pause](ctx, c, call{method: http.MethodPost, path: "/v1/pauses", body: body, has: "scope"})
}

// Resume ends a pause: waiting executions go on, in their order. reason may be "". A *Problem with
// CodePauseNotFound means that nothing of that scope is paused.
func (c *Client) Resume(ctx context.Context, scope, reason string) (*EndedPause, error) {
	return ask[EndedPause](ctx, c, call{method: http.MethodDelete, path: "/v1/pauses/" + segment(scope),
		query: query("reason", reason), has: "scope"})
}
