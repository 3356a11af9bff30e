package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Report is what the routes of one replica have found wrong with their deliveries. In mode observe
// these were forwarded all the same.
type Report struct {
	Replica   string `json:"replica"` // which replica counted; each counts its own deliveries
	StartedAt Time   `json:"startedAt"`
	// The beginning of what is counted: the time that was asked for, rounded down to ten minutes,
	// or startedAt if that is later.
	Since  Time          `json:"since"`
	Until  Time          `json:"until"`
	Routes []RouteReport `json:"routes"`

	raw
}

// RouteReport is what was found on one route.
type RouteReport struct {
	Route      string `json:"route"`
	Mode       string `json:"mode" jsonschema:"enum=enforce,enum=observe"`
	Deliveries int64  `json:"deliveries"`
	// Events that are older than one of their scope that went through. An older replica does not
	// count them.
	Stale      Finding `json:"staleEvents"`
	Duplicates Finding `json:"duplicates"` // deliveries of events that came before
	Overlaps   Finding `json:"overlaps"`   // deliveries while another event of the workflow ran
	Mismatches Finding `json:"mismatches"` // Deliveries with the event ID of another request.
	// Duplicates by their event ID that were other requests than the first delivery (on_mismatch:
	// replay): what they brought never ran.
	Changed         Finding `json:"changed"`
	MissingEventIDs Finding `json:"missingEventIds"` // deliveries without an event ID
	// Deliveries that the service answered with a 3xx: many senders take that for success, or
	// follow it with a GET.
	Redirected Finding `json:"redirected"`
	// Events with the body of another one that came shortly before under another ID.
	Twins  Finding `json:"twins"`
	Forged Finding `json:"forged"` // deliveries whose signature was not valid
	// Deliveries of which no workflow or key could be made, or that were refused for their form.
	Unnamed Finding `json:"unnamed"`
	// What the sender changes between deliveries of an event. Absent if nothing was seen.
	Changing     *Changing     `json:"changing,omitempty"`
	WrongEventID *WrongEventID `json:"wrongEventId,omitempty"` // Absent if none was seen.
}

// The reasons of a WrongEventID.
const (
	// IDPlaceholder is what a sender sends where a value is missing: $UNIQID, {{id}}, undefined,
	// null.
	IDPlaceholder = "placeholder"
	// IDConstant is an ID that deliveries that differ have one after the other.
	IDConstant = "constant"
)

// WrongEventID is an event ID that names no single event, so that events are taken for duplicates
// of others.
type WrongEventID struct {
	EventID string `json:"eventId"` // at most the first 128 bytes
	// placeholder: what a sender sends where a value is missing, such as $UNIQID, {{id}}, undefined
	// or null. constant: deliveries that differ have it one after the other.
	Why string `json:"why" jsonschema:"enum=placeholder,enum=constant"`
	// How many deliveries had it since the start; of a constant one, in a row.
	Deliveries int64 `json:"deliveries" jsonschema:"minimum=1"`
	At         Time  `json:"at"` // when the newest came
}

// Text returns what is wrong with the ID, and what to do.
func (w *WrongEventID) Text() string {
	if w.Why == IDConstant {
		return fmt.Sprintf("the event ID %q came with each of %d deliveries, which differ: correct event_id", w.EventID,
			w.Deliveries)
	}
	return fmt.Sprintf("the event ID %q is a placeholder: all such events are one; correct it, or event_id", w.EventID)
}

// ChangedText returns how many duplicates were other requests than the first delivery of their
// event ID, and what to do; "" if none were.
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

// RedirectedText returns how many deliveries the service answered with a redirect, and what to do;
// "" if it was none.
func (r *RouteReport) RedirectedText() string {
	if r.Redirected.Count == 0 {
		return ""
	}
	return fmt.Sprintf("the service answered %d deliveries with a redirect (3xx): many senders take it for success, "+
		"or follow it with a GET, and the event is lost; "+
		"let the service answer at the URL that is called, or set upstream to where it leads", r.Redirected.Count)
}

// TwinsText returns how many events had the body of another one, and what to do; "" if none had.
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
	// How many were refused as another request (mismatch) since the start.
	Refused int64 `json:"refused"`
	// How many were answered as duplicates (on_mismatch: replay) since the start.
	Replayed int64    `json:"replayed"`
	Members  []string `json:"members"` // what differed, as in a template: body.delivery_attempts
	At       Time     `json:"at"`      // when the newest came
	Key      string   `json:"key"`     // the short key of the newest
}

// Finding is how often something was found.
type Finding struct {
	Count    int64     `json:"count"`
	Examples []Example `json:"examples"` // the newest first, at most 5
}

// Example is one delivery with a finding.
type Example struct {
	At       Time   `json:"at"`
	Decision string `json:"decision"`
	// The decision was carried out. Otherwise the delivery was forwarded.
	CarriedOut  bool     `json:"carriedOut"`
	Key         string   `json:"key,omitempty"` // the short key, as in the log
	Workflow    string   `json:"workflow,omitempty"`
	ExecutionID string   `json:"executionId,omitempty"` // the execution that stood in the way, or its own
	Code        string   `json:"code,omitempty"`        // why it was rejected
	Signature   string   `json:"signature,omitempty"`   // why its signature is not valid
	Status      int      `json:"status,omitempty"`      // the status of the response
	TraceID     string   `json:"traceId,omitempty"`
	Differs     []string `json:"differs,omitempty"` // what differs from the first delivery of the event ID
	TwinOf      string   `json:"twinOf,omitempty"`  // of a twin: the short key of the earlier event
}

// Report returns what was found since then: a time (RFC 3339), or how long ago (24h); "" is all
// that is known.
func (c *Client) Report(ctx context.Context, since string) (*Report, error) {
	return get[Report](ctx, c, "/v1/report", "routes", queryOfPairs("since", since))
}

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
	return get[SuggestionList](ctx, c, "/v1/suggestions", "suggestions", queryOfPairs("since", since, "route", route))
}
