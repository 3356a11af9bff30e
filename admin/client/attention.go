package client

import (
	"context"
	"net/http"
)

// Attention is what needs a person now, over all replicas.
type Attention struct {
	At       Time            `json:"at"`                 // when the list was made
	Items    []AttentionItem `json:"items"`              // the worst first; equal things are one item
	LookedAt int             `json:"lookedAt,omitempty"` // how many marks leave something out (GET /v1/seen)
	// What could not be looked at now, and why. Absent if everything could.
	NotKnown []string `json:"notKnown,omitempty"`
	// The token is limited to some workflows, and only their executions are in the list.
	Limited bool `json:"limited,omitempty"`

	raw
}

// AttentionItem is one thing that needs a person, or several equal ones.
type AttentionItem struct {
	ID          string `json:"id"`            // names the item for as long as it needs attention
	Kind        string `json:"kind"`          // what kind of concern it is
	Bad         bool   `json:"bad,omitempty"` // something is being lost, or stands still
	Route       string `json:"route,omitempty"`
	Workflow    string `json:"workflow,omitempty"`    // absent if it is about several
	ExecutionID string `json:"executionId,omitempty"` // absent if it is about several
	// How many equal things there are; of a route that fails, how many requests. If there are more,
	// text says so.
	Count int    `json:"count"`
	Text  string `json:"text"`            // what is wrong
	Cause string `json:"cause,omitempty"` // why, as far as that is known
	// The beginning of what the service answered. For tokens with the scope bodies.
	Said     string `json:"said,omitempty"`
	Next     string `json:"next,omitempty"`    // what follows, or what to do
	SinceAt  Time   `json:"sinceAt,omitzero"`  // when the first of it happened
	LatestAt Time   `json:"latestAt,omitzero"` // when the newest of it happened
	// The parameters of GET /v1/executions that list its executions.
	Query   map[string]string `json:"query,omitempty"`
	Command string            `json:"command,omitempty"` // the command that shows more
}

// CauseText returns the cause with what the service said; "" if neither is known.
func (i *AttentionItem) CauseText() string {
	if i.Said == "" {
		return i.Cause
	}
	return i.Cause + ": " + i.Said
}

// Line returns the item in one line, with what to do and the command that shows more. since is when
// it began; "" = that is not known.
func (i *AttentionItem) Line(since string) string {
	line := i.Text
	for _, part := range []struct{ before, text string }{
		{" since ", since}, {", ", i.CauseText()}, {"; ", i.Next}, {": ", i.Command}} {
		if part.text != "" && part.text != "hooklock status" { // which has printed this
			line += part.before + part.text
		}
	}
	return line
}

// The kinds of attention items, the worst first.
const (
	AttentionEtcdDown      = "etcd_down"      // etcd does not answer
	AttentionEtcdFull      = "etcd_full"      // a member is near its quota, or over it
	AttentionRouteFails    = "route_fails"    // requests of a route fail now
	AttentionSenderLimit   = "sender_limit"   // a sender is half way to switching its endpoint off
	AttentionUnknown       = "unknown"        // outcomes that are unknown
	AttentionExhausted     = "exhausted"      // events that failed as often as they may
	AttentionBlocked       = "blocked"        // parked queues that wait for a decision
	AttentionHeld          = "held"           // locks behind which events have waited for ten minutes
	AttentionReplicaGone   = "replica_gone"   // a replica ended without saying so
	AttentionConfigDiffers = "config_differs" // replicas run different configurations
	AttentionConfigRefused = "config_refused" // a changed file is not in force
	AttentionDeadLetters   = "dead_letters"   // accepted events that were given up
	AttentionLost          = "lost"           // refused events that did not come again
	AttentionReused        = "reused"         // event IDs that came with another request
	AttentionChanged       = "changed"        // most duplicates of a route were other requests
	AttentionEventIDs      = "event_ids"      // an event ID that names no single event
	AttentionBadSignatures = "bad_signatures" // many deliveries of a route with a bad signature
	AttentionSilent        = "silent"         // a route to which nothing came for an hour, unlike before
)

// AttentionKinds returns the kinds of items, the worst first.
func AttentionKinds() []string {
	return []string{
		AttentionEtcdDown, AttentionEtcdFull, AttentionRouteFails, AttentionSenderLimit, AttentionUnknown,
		AttentionExhausted, AttentionBlocked,
		AttentionHeld, AttentionReplicaGone, AttentionConfigDiffers, AttentionConfigRefused, AttentionDeadLetters,
		AttentionLost,
		AttentionReused, AttentionChanged, AttentionEventIDs, AttentionBadSignatures, AttentionSilent,
	}
}

// Attention returns what needs a person now. It may be some seconds old.
func (c *Client) Attention(ctx context.Context) (*Attention, error) {
	return get[Attention](ctx, c, "/v1/attention", "items", nil)
}

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
	return ask[SeenMark](ctx, c, call{method: http.MethodDelete, path: "/v1/seen/" + pathSegment(concern),
		query: queryOfPairs("reason", reason), has: "concern"})
}
