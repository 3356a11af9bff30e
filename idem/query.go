package idem

import (
	"slices"
	"strings"
	"time"
)

// ExecutionQuery selects executions that match all fields that are set. The zero value selects all
// of them.
type ExecutionQuery struct {
	Workflow string // a pattern, see MatchPattern; "" = any
	Prefix   string // of the workflow
	// Text is the beginning of the workflow, of the event ID, or of a part of that between slashes,
	// in any case; or the whole of a label, of the value of one, or of a trace ID; "" = any.
	SearchText string
	Route      string // "" = any
	Status     Status // "" = any
	Outcome    Outcome
	// Decision selects the events of which a delivery arrived between Since and Until with this
	// decision, as far as arrivals are kept. Events without an execution are included: their Status
	// is Refused.
	Decision Decision
	// Lost selects the events that are possibly lost, and were found to be between Since and Until.
	Lost bool
	// Since and Until bound when it ended; for one that has not ended, when it began. Zero =
	// unbounded.
	Since, Until time.Time
	EventID      string // "" = any; the fingerprint in hex where the payload is the event
	Key          string // the idempotency key, or its first half
	IDPrefix     string // of its ID, or of that of an earlier attempt
	TraceID      string // of its trace, or of that of an earlier attempt
	Label        Label  // a label of it; without a name: one of that value; the zero value = any
	// Acknowledged leaves out what a person has looked at, by route; nil = nothing.
	Acknowledged map[string]Acknowledgement

	PageSize int    // at most so many on a page; 0 = 100
	Cursor   string // of the page before; "" = the first page
}

// ExecutionPage is a part of the executions. It may be shorter than its limit, even empty, and not
// be the last: only an empty NextCursor says that.
type ExecutionPage struct {
	Executions []Found // in the order of the query
	NextCursor string  // asks for the next page; "" = this is the last one
}

// Within reports whether at is between Since and Until.
func (q *ExecutionQuery) Within(at time.Time) bool {
	return (q.Since.IsZero() || !at.Before(q.Since)) && (q.Until.IsZero() || !at.After(q.Until))
}

// Matches reports whether f matches the query.
func (q *ExecutionQuery) Matches(f *Found) bool {
	if q.Status != "" && f.Status() != q.Status || !strings.HasPrefix(f.Workflow(), q.Prefix) ||
		q.Workflow != "" && !MatchPattern(q.Workflow, f.Workflow()) {
		return false
	}
	if q.Lost && (!f.IsLost() || !q.Within(f.Arrivals.Lost)) {
		return false
	}
	if f.Facts() == nil {
		return q.takesHistory(f.Arrivals) && !q.isAcknowledged(f, f.Arrivals.Route)
	}
	return q.takesFacts(f) && !q.isAcknowledged(f, f.Facts().Route) &&
		(q.Decision == "" || f.Arrivals != nil && q.Arrived(f.Arrivals))
}

func (q *ExecutionQuery) isAcknowledged(f *Found, route string) bool {
	s, marked := q.Acknowledged[route]
	return marked && s.Covers(f.ConcernedAt(q))
}

func (q *ExecutionQuery) takesFacts(f *Found) bool {
	e, outcome, at := f.Facts(), Outcome(""), f.Facts().StartedAt
	if f.Record != nil {
		outcome, at = f.Record.Outcome, f.Record.FinishedAt
	}
	switch {
	case q.Route != "" && e.Route != q.Route, q.Outcome != "" && outcome != q.Outcome, q.Decision == "" && !q.Lost &&
		!q.Within(at):
		return false
	case q.EventID != "" && e.EventID != q.EventID && (e.EventID != "" || e.Fingerprint.Hex() != q.EventID),
		!strings.HasPrefix(string(e.Key), q.Key):
		return false
	case !q.takesText(e.Workflow, e.EventID, e.Labels) && !e.hasTrace(q.SearchText), !q.takesLabels(e.Labels):
		return false
	}
	return e.anyAttempt(func(id ExecutionID, _ string) bool {
		return strings.HasPrefix(string(id), q.IDPrefix)
	}) && (q.TraceID == "" || e.hasTrace(q.TraceID))
}

// OneWorkflow returns the only workflow that the query can be about; "" = there may be several.
func (q *ExecutionQuery) OneWorkflow() string {
	if strings.Contains(q.Workflow, "*") {
		return ""
	}
	return q.Workflow
}

// SearchLabels returns the labels that Text may be: one with that value, or one given as NAME=VALUE
// or NAME:VALUE.
func (q *ExecutionQuery) SearchLabels() []Label {
	all := []Label{{Value: q.SearchText}}
	if i := strings.IndexAny(q.SearchText, "=:"); i > 0 && i+1 < len(q.SearchText) {
		if named := ParseLabel(q.SearchText[:i] + "=" + q.SearchText[i+1:]); named.Name != "" {
			all = append(all, named)
		}
	}
	return all
}

// takesText compares with each part of an event ID: senders that give each endpoint's events no ID
// of their own get one that is made of several parts, and the sender's page shows only one of them.
// It leaves traces to its callers.
func (q *ExecutionQuery) takesText(workflow, eventID string, labels Labels) bool {
	if strings.HasPrefix(workflow, q.SearchText) || beginsFold(eventID, q.SearchText) {
		return true
	}
	for part := range strings.SplitSeq(eventID, "/") {
		if beginsFold(part, q.SearchText) {
			return true
		}
	}
	return slices.ContainsFunc(q.SearchLabels(), labels.Has)
}

func (q *ExecutionQuery) takesLabels(labels Labels) bool {
	return q.Label == Label{} || labels.Has(q.Label)
}

func beginsFold(text, beginning string) bool {
	return len(text) >= len(beginning) && strings.EqualFold(text[:len(beginning)], beginning)
}

// anyAttempt reports whether f holds for the execution or for an earlier attempt.
func (e *ExecutionFacts) anyAttempt(f func(id ExecutionID, traceParent string) bool) bool {
	if f(e.Execution, e.TraceParent) {
		return true
	}
	for i := range e.Earlier {
		if f(e.Earlier[i].Execution, e.Earlier[i].TraceParent) {
			return true
		}
	}
	return false
}

// hasTrace reports whether the execution or an earlier attempt has this trace ID.
func (e *ExecutionFacts) hasTrace(id string) bool {
	return e.anyAttempt(func(_ ExecutionID, trace string) bool { return ParseTrace(trace).TraceID() == id })
}

// takesHistory reports whether an event that has no execution matches.
func (q *ExecutionQuery) takesHistory(h *History) bool {
	switch {
	case q.Route != "" && h.Route != q.Route, q.Outcome != "", q.EventID != "" && h.EventID != q.EventID,
		!strings.HasPrefix(string(h.Key), q.Key):
		return false
	case !q.takesText(h.Workflow, h.EventID, h.Labels) && !h.anyArrival(func(a Arrival) bool {
		return a.TraceID == q.SearchText
	}), !q.takesLabels(h.Labels):
		return false
	}
	return q.Lost || q.Arrived(h)
}

// Arrived reports whether a delivery arrived as the query wants it. Arrivals that are only counted
// are left out, because their times are not known.
func (q *ExecutionQuery) Arrived(h *History) bool {
	if f := h.Forgotten; f != nil && q.Decision == "" && q.TraceID == "" && q.Within(f.At) &&
		strings.HasPrefix(string(f.Execution), q.IDPrefix) {
		return true
	}
	return h.anyArrival(q.takesArrival)
}

// anyArrival reports whether f holds for one of the arrivals that are kept.
func (h *History) anyArrival(f func(Arrival) bool) bool {
	return slices.ContainsFunc(h.Newest, f) || h.Counts != nil && f(h.First)
}

func (q *ExecutionQuery) takesArrival(a Arrival) bool {
	return (q.Decision == "" || a.Decision == q.Decision || a.Would == q.Decision) && q.Within(a.At) &&
		strings.HasPrefix(string(a.Execution), q.IDPrefix) && (q.TraceID == "" || a.TraceID == q.TraceID)
}
