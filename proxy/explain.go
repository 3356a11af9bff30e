package proxy

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"

	"hooklock/idem"
)

// Sample is a delivery to explain.
type Sample struct {
	Method, Target string
	Header         [][2]string
	Body           []byte
}

// Explanation is what Hooklock would make of a delivery, as far as the configuration alone decides it.
type Explanation struct {
	Route, Pattern           string
	Vars                     [][2]string
	Workflow, EventID        string
	Source, Key, Fingerprint string
	Note                     string
	Rejection                *Rejection
	Answers                  []ExplainedAnswer
}

// ExplainedAnswer is what one decision would answer.
type ExplainedAnswer struct {
	Decision idem.Decision
	Text     string
}

// Explain says which route s takes and how it is named there. It runs the code that a delivery runs.
func (t *Table) Explain(s *Sample) *Explanation {
	var m idem.Message
	m.Method, m.Target, m.Body = []byte(s.Method), []byte(s.Target), s.Body
	m.Path, m.Query, _ = bytes.Cut(m.Target, []byte{'?'})
	for _, h := range s.Header {
		m.Fields = append(m.Fields, idem.Field{Name: []byte(h[0]), Value: []byte(h[1])})
		if bytes.EqualFold([]byte(h[0]), []byte("host")) {
			m.Host = []byte(h[1])
		}
	}
	x := &Explanation{}
	route, vars, bad := t.find(m.Method, m.Host, m.Path, nil, nil)
	switch {
	case bad != nil:
		x.Rejection = bad
		return x
	case route == nil:
		x.Note = "no route takes it: it passes through to the upstream, untouched and unguarded"
		return x
	}
	x.Route, x.Pattern, m.Vars = route.Name, route.Pattern.String(), vars
	for _, v := range vars {
		x.Vars = append(x.Vars, [2]string{v.Name, string(v.Raw)})
	}
	names, err := route.Keys.Name(&m)
	x.Workflow, x.Fingerprint = names.Workflow, hex.EncodeToString(names.Fingerprint[:])
	var refused *idem.NameError
	switch {
	case errors.As(err, &refused):
		x.Rejection = reject(refused.Code, refused.Detail)
		return x
	case names.Missing:
		x.Note = "it has no event ID, and on_missing_event_id is pass: it is forwarded unguarded"
		return x
	}
	x.EventID, x.Source, x.Key = names.EventID, names.Source, string(names.Key)
	if names.ByPayload {
		x.Note = fmt.Sprintf("the payload is the key: equal deliveries are one event for %s after it ended", route.Policy.PayloadRetention)
	}
	x.Answers = route.answers()
	return x
}

// gives reports whether d can happen with the route's strategy.
func (r *Route) gives(d idem.Decision) bool {
	s := r.Policy.Strategy
	switch d {
	case idem.DecisionLocked:
		return s == idem.FailFast
	case idem.DecisionInFlight:
		return s != idem.Skip
	case idem.DecisionWaitTimeout, idem.DecisionQueueFull:
		return s == idem.Wait || d == idem.DecisionQueueFull && r.Policy.InFlight == idem.Attach
	case idem.DecisionSkipped:
		return s == idem.Skip
	}
	return true
}

// answers is the table of decisions as this route has it.
func (r *Route) answers() []ExplainedAnswer {
	if r.Observe {
		return []ExplainedAnswer{{idem.DecisionBypassed, "mode is observe: whatever is decided, the upstream's answer"}}
	}
	answers := []ExplainedAnswer{
		{idem.DecisionExecuted, "the upstream's answer"},
		{idem.DecisionReplayed, "the first answer, with Idempotent-Replayed: true"},
	}
	for _, d := range []idem.Decision{
		idem.DecisionInFlight, idem.DecisionLocked, idem.DecisionWaitTimeout, idem.DecisionQueueFull, idem.DecisionSkipped, idem.DecisionMismatch, idem.DecisionUnknown, idem.DecisionAborted, idem.DecisionLockLost,
		idem.DecisionUpstreamUnreachable, idem.DecisionUpstreamFailed, idem.DecisionUpstreamTimeout, idem.DecisionStoreUnavailable, idem.DecisionInternalError,
	} {
		if !r.gives(d) {
			continue
		}
		v := verdictOf(d)
		status := v.status
		if s, ok := r.Respond[d]; ok {
			status = s
		}
		text := fmt.Sprintf("%d %s", status, v.code)
		switch {
		case d == idem.DecisionInFlight && r.Policy.InFlight == idem.Attach:
			text = "the first one's answer, or " + text + " when it takes too long"
		case d == idem.DecisionSkipped:
			text = fmt.Sprintf("%d {\"status\":\"already_running\"}", cmp.Or(r.Respond[d], 200))
		case d == idem.DecisionMismatch && r.Policy.OnMismatch != idem.MismatchReject:
			text = "does not happen: on_mismatch is " + string(r.Policy.OnMismatch)
		case d == idem.DecisionUnknown && r.Policy.OnUnknown != idem.UnknownBlock:
			text = "does not happen: on_unknown is " + string(r.Policy.OnUnknown)
		case d == idem.DecisionStoreUnavailable && r.Forward:
			text = "the upstream's answer: on_store_down is forward"
		}
		answers = append(answers, ExplainedAnswer{d, text})
	}
	return answers
}
