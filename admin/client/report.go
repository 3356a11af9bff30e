package client

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Report is what the routes of one process have found wrong with their deliveries; in mode observe
// these were forwarded all the same.
type Report struct {
	Replica   string `json:"replica"` // which process counted; others have counted their own deliveries
	StartedAt Time   `json:"startedAt"`
	// The start of its counts: what was asked for, rounded down to a step, but not before
	// startedAt.
	Since  Time          `json:"since"`
	Until  Time          `json:"until"`
	Routes []RouteReport `json:"routes"`

	raw
}

// RouteReport is what was found on one route.
type RouteReport struct {
	Route      string  `json:"route"`
	Mode       string  `json:"mode" jsonschema:"enum=enforce,enum=observe"`
	Deliveries int64   `json:"deliveries"`
	Stale      Finding `json:"staleEvents"` // not set by an older replica
	Duplicates Finding `json:"duplicates"`
	Overlaps   Finding `json:"overlaps"`
	Mismatches Finding `json:"mismatches"`
	// Duplicates by their event ID that were other requests than the first delivery
	// (on_mismatch: replay): their bytes never ran.
	Changed         Finding `json:"changed"`
	MissingEventIDs Finding `json:"missingEventIds"`
	// Deliveries that the service answered with a 3xx: many senders take it for
	// success, or follow it with a GET.
	Redirected Finding `json:"redirected"`
	// Events with the body of another one that came shortly before under another ID.
	Twins   Finding `json:"twins"`
	Forged  Finding `json:"forged"`
	Unnamed Finding `json:"unnamed"`
	// Absent: no change was seen.
	Changing *Changing `json:"changing,omitempty"`
	// Absent: none was seen.
	WrongEventID *WrongEventID `json:"wrongEventId,omitempty"`
}

// The reasons of a WrongEventID.
const (
	// it is what a sender sends where a value is missing: $UNIQID, {{id}}, undefined, null
	IDPlaceholder = "placeholder"
	IDConstant    = "constant" // deliveries that differ have it one after the other
)

// WrongEventID is an event ID that names no single event, so that events are taken for duplicates
// of others.
type WrongEventID struct {
	EventID string `json:"eventId"` // at most 128 bytes of it
	// placeholder: what a sender sends where a value is missing, such as $UNIQID, {{id}},
	// undefined or null. constant: deliveries that differ have it one after the other.
	Why string `json:"why" jsonschema:"enum=placeholder,enum=constant"`
	// With it, since the start; of a constant one, in a row.
	Deliveries int64 `json:"deliveries" jsonschema:"minimum=1"`
	At         Time  `json:"at"` // of the newest
}

// Text says what is wrong with the ID, and what to do.
func (w *WrongEventID) Text() string {
	if w.Why == IDConstant {
		return fmt.Sprintf("the event ID %q came with each of %d deliveries, which differ: correct event_id", w.EventID,
			w.Deliveries)
	}
	return fmt.Sprintf("the event ID %q is a placeholder: all such events are one; correct it, or event_id", w.EventID)
}

// ChangedText says that duplicates were other requests than the first delivery of their event ID,
// and what to do; "" if none were.
func (r *RouteReport) ChangedText() string {
	if r.Changed.Count == 0 {
		return ""
	}
	var differs []string
	for i := range r.Changed.Examples {
		differs = append(differs, r.Changed.Examples[i].Differs...)
	}
	if r.Changing != nil && r.Changing.Refused == 0 {
		differs = r.Changing.Members
	}
	slices.Sort(differs)
	what := strings.Join(slices.Compact(differs), ", ")
	ran := "and theirs never ran"
	if r.Mode == "observe" {
		ran = "and theirs would not have run"
	}
	return fmt.Sprintf("%d of %d duplicates were other requests than the first delivery of their event ID (%s), %s: "+
		"if they are events of their own, correct event_id",
		r.Changed.Count, max(r.Duplicates.Count, r.Changed.Count), cmp.Or(what, "what differs is not known"), ran)
}

// RedirectedText says that the service answered with redirects, and what to do; "" if it did not.
func (r *RouteReport) RedirectedText() string {
	if r.Redirected.Count == 0 {
		return ""
	}
	return fmt.Sprintf("the service answered %d deliveries with a redirect (3xx): many senders take it for success, "+
		"or follow it with a GET, and the event is lost; "+
		"let the service answer at the URL that is called, or set upstream to where it leads", r.Redirected.Count)
}

// TwinsText says that events had the body of another one, and what to do; "" if none had.
func (r *RouteReport) TwinsText() string {
	if r.Twins.Count == 0 {
		return ""
	}
	of := ""
	if len(r.Twins.Examples) > 0 {
		of = fmt.Sprintf(" (the newest: %s, like %s)", r.Twins.Examples[0].Key, r.Twins.Examples[0].TwinOf)
	}
	return fmt.Sprintf("%d events had the body of another one shortly before, under another event ID%s: if two "+
		"subscriptions of the sender lead here, end one; if events are alike, all is well (twins: off, and never "+
		"same_event)",
		r.Twins.Count, of)
}

// Changing is what differs between deliveries of one event ID.
type Changing struct {
	Refused int64 `json:"refused"` // of them that were refused as another request (mismatch), since the start
	// Of them that were answered as duplicates (on_mismatch: replay), since the start.
	Replayed int64    `json:"replayed"`
	Members  []string `json:"members"` // what differed, as a template spells it: body.delivery_attempts
	At       Time     `json:"at"`      // of the newest
	Key      string   `json:"key"`     // of the newest
}

// Finding is how often something was found, with the newest examples, the newest first.
type Finding struct {
	Count    int64     `json:"count"`
	Examples []Example `json:"examples"` // the newest, at most 5
}

// Example is one delivery.
type Example struct {
	At          Time     `json:"at"`
	Decision    string   `json:"decision"`
	CarriedOut  bool     `json:"carriedOut"`    // otherwise the delivery was forwarded
	Key         string   `json:"key,omitempty"` // the short key, as in the log
	Workflow    string   `json:"workflow,omitempty"`
	ExecutionID string   `json:"executionId,omitempty"` // the execution that it met
	Code        string   `json:"code,omitempty"`        // of a rejection
	Signature   string   `json:"signature,omitempty"`   // why it is not valid
	Status      int      `json:"status,omitempty"`      // the status sent in response
	TraceID     string   `json:"traceId,omitempty"`
	Differs     []string `json:"differs,omitempty"` // the parts that differ from the first delivery of the event ID
	TwinOf      string   `json:"twinOf,omitempty"`  // the short key of the earlier event, of a twin
}

// Report returns the report since then: a time (RFC 3339), or how long ago (24h); "" is everything
// that is known.
func (c *Client) Report(ctx context.Context, since string) (*Report, error) {
	return ask[Report](ctx, c, call{method: http.MethodGet, path: "/v1/report", query: query("since", since),
		has: "routes"})
}
