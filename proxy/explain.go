package proxy

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy/sender"
)

// Sample is a delivery to explain.
type Sample struct {
	Method, Target string
	Header         [][2]string
	Body           []byte
}

// Explanation is what Hooklock would do with a delivery, as far as the configuration decides that.
type Explanation struct {
	Route, Pattern           string
	Vars                     [][2]string
	Workflow, EventID        string
	Source, Key, Fingerprint string
	Note                     string
	// Unread are the sources of templates that have no value in the delivery, each with the reason.
	Unread []naming.Unread
	// Preset is the route's, empty without one. Handshake is the one that s is: then it passes
	// through, and has no names.
	Preset, Handshake string
	// Signature is the result of the check, with the reason, and without any secret. "" if none is
	// needed.
	Signature string
	Diagnosis []string // Diagnosis explains a signature that is not accepted.
	// Refusals are the reasons why the delivery would be refused, in the order of the checks. A
	// sender gets the first one.
	Refusals []*Rejection
	// Order is the position of the event in its scope, and what happens if a newer one has gone
	// through. "" if the route has no order.
	Order  string
	Labels idem.Labels // Labels find the event, beside its IDs.
	// Question is the URL at which the service is asked if the outcome is unknown. "" if it is not
	// asked.
	Question string
	// Limits are those that the event counts against, beside its workflow's own.
	Limits []idem.Slot
	// Park is what happens if the event cannot run, or if its answer comes too late. "" if the
	// route parks nothing.
	Park    string
	Answers []ExplainedAnswer
}

// ExplainedAnswer says in words what a sender gets after a decision.
type ExplainedAnswer struct {
	Decision idem.Decision
	Text     string
}

// Explain returns which route takes s at the time now, and how s is named there. It runs the code
// that deliveries run. maxHead bounds the head, in bytes.
func (r *Rules) Explain(s *Sample, maxHead int, now time.Time) *Explanation {
	x := &Explanation{}
	var q request
	if bad := s.parseInto(&q, maxHead); bad != nil {
		x.Refusals = []*Rejection{bad}
		return x
	}
	route, vars, bad := r.Table.findRoute(&q.place)
	switch {
	case bad != nil:
		x.Refusals = []*Rejection{bad}
		return x
	case route == nil:
		x.Note = "no route takes it: it passes through to the upstream, untouched and unguarded"
		return x
	}
	m := &q.msg
	x.Route, x.Pattern, m.Vars, q.body, m.Body = route.Name, route.Pattern.String(), vars, s.Body, s.Body
	for _, v := range vars {
		x.Vars = append(x.Vars, [2]string{v.Name, string(v.Raw)})
	}
	x.Answers = route.Answers()
	if q.head.Upgrade() != nil {
		x.addRefusal(route, upgradeRefused())
	}
	if len(s.Body) > r.Limits.RequestBody {
		x.addRefusal(route, bodyTooLarge())
	}
	x.fillSignature(route, q.asSigned(), now)
	switch {
	case x.Handshake != "":
	case len(x.Refusals) == 0 && route.asksForChallenge(&q):
		x.Note = "no event: without a body and without Authorization it asks for the service's challenge, and is " +
			"forwarded without a key or a lock, as bypassed"
	default:
		names, faults := route.Keys.NameAll(m)
		x.fillNames(route, &names, faults)
		x.Unread = route.Keys.Unread(m)
		x.fillOrder(route, &names, faults)
		x.fillPark(route, &q)
	}
	return x
}

// parseInto writes s out and parses it as a server does. A sample without a Host is for localhost.
func (s *Sample) parseInto(q *request, maxHead int) *Rejection {
	raw := fmt.Appendf(nil, "%s %s HTTP/1.1\r\n", s.Method, s.Target)
	if !s.hasHeader("host") {
		raw = append(raw, "Host: localhost\r\n"...)
	}
	for _, h := range s.Header {
		raw = fmt.Appendf(raw, "%s: %s\r\n", h[0], h[1])
	}
	if len(s.Body) > 0 && !s.hasHeader("content-length") && !s.hasHeader("transfer-encoding") {
		raw = fmt.Appendf(raw, "Content-Length: %d\r\n", len(s.Body))
	}
	return q.parseRaw(append(raw, "\r\n"...), maxHead)
}

func (s *Sample) hasHeader(name string) bool {
	return slices.ContainsFunc(s.Header, func(h [2]string) bool { return strings.EqualFold(h[0], name) })
}

// addRefusal notes a reason why the route does not take it.
func (x *Explanation) addRefusal(route *Route, bad *Rejection) {
	bad.Status = cmp.Or(route.Respond[idem.DecisionRejected], bad.Status)
	x.Refusals = append(x.Refusals, bad)
}

// fillSignature fills in the result of the signature check, and whether this is an event at all.
func (x *Explanation) fillSignature(route *Route, signed *sender.Delivery, now time.Time) {
	if route.Verify.Preset != nil {
		x.Preset = route.Verify.Preset.Name
	}
	found := route.Verify.inspectDelivery(signed, now)
	switch {
	case found.broken != nil:
		x.Signature = fmt.Sprintf("%s: %s: %s", found.broken.Reason, found.broken.Part, found.broken.Detail)
		if route.Verify.Diagnose != nil && !found.unsigned {
			x.Diagnosis = route.Verify.Diagnose(signed, now)
		}
		if !route.Observe {
			row := idem.DecisionUnverified.Row()
			x.Refusals = append(x.Refusals, &Rejection{Status: route.statusOf(&row), Code: row.Code, Title: row.Title,
				Detail: row.Detail})
		}
	case route.Verify.Verifier != nil && !found.unsigned:
		x.Signature = SignatureValid
	}
	if found.handshake != nil {
		x.Handshake = found.handshake.Name
		x.Note = "a handshake and no event: with the signature in order, it is forwarded without a key or a lock, " +
			"as bypassed"
	}
	if found.answeredHere {
		x.Note = "a handshake and no event: with everything in order, it is answered here"
	}
	if a := found.answer; a != nil {
		x.Note += fmt.Sprintf(": 200 %q", a.Body)
		for _, f := range a.Header {
			x.Note += fmt.Sprintf(", %s: %s", f.Name, f.Value)
		}
	}
}

// fillNames fills in the names of the delivery.
func (x *Explanation) fillNames(route *Route, names *naming.Names, faults []*naming.NameError) {
	x.Workflow, x.Fingerprint, x.Limits, x.Labels = names.Workflow, hex.EncodeToString(names.Fingerprint[:]),
		names.Limits, names.Labels
	x.Question = names.Question
	if route.Policy.Concurrency > 1 && x.Workflow != "" {
		x.Limits = append([]idem.Slot{{LimitName: idem.OwnLimit(x.Workflow)}}, x.Limits...)
	}
	for _, bad := range faults {
		x.addRefusal(route, newRejection(bad.Code, bad.Detail))
	}
	switch {
	case len(faults) > 0:
		x.EventID, x.Source = names.EventID, names.Source
		return
	case names.Missing:
		x.Note = "it has no event ID, and on_missing_event_id is pass: it is forwarded unguarded, unless it is paused"
		return
	}
	if !route.Policy.Idempotency {
		x.Note = "idempotency.enabled is false: each delivery is an event of its own, and no duplicate is found"
		return
	}
	if names.Key == "" {
		x.Note = "nothing names the event, neither an ID nor, by on_missing_event_id, its body: it is an event of " +
			"its own, and no duplicate of it is found"
		return
	}
	x.EventID, x.Source, x.Key = names.EventID, names.Source, string(names.Key)
	if names.ByPayload {
		x.Note = fmt.Sprintf("the payload is the key: equal deliveries are one event for %s after it ended",
			route.Policy.PayloadRetention)
	} else if within := route.Policy.TwinWindow; within > 0 {
		x.Note = fmt.Sprintf("twins is same_event: another event ID with this body in this workflow is this event "+
			"if it comes within %s", idem.DurationText(within))
	}
}

// fillOrder fills in the position of the delivery in its scope.
func (x *Explanation) fillOrder(route *Route, names *naming.Names, faults []*naming.NameError) {
	o := route.Policy.Order
	switch {
	case o == nil || len(faults) > 0 || names.Missing:
		return
	case names.Order == nil:
		x.Order = fmt.Sprintf("not known: what %s says is %s, so it is not judged", o.By, names.Ordered)
		return
	}
	scope := "its workflow"
	if names.Order.Scope != "" {
		scope = names.Order.Scope
	}
	then := map[idem.OnStale]string{
		idem.StaleAnnotate: "it runs all the same, with " + headerStale,
		idem.StaleSkip:     "it does not run, and gets " + route.answerText(idem.DecisionSuperseded),
		idem.StaleReject:   "it does not run, and gets " + route.answerText(idem.DecisionStale),
	}[o.OnStale]
	x.Order = fmt.Sprintf("%s in %s; where a newer one has gone through, %s", names.Order.At, scope, then)
}

// fillPark fills in whether the delivery would be parked, and the answer.
func (x *Explanation) fillPark(route *Route, q *request) {
	p := route.Policy.Park
	switch {
	case p == nil:
	case route.Verify.answerIsUsed(q):
		x.Park = "never: " + route.Verify.Preset.Facts.Answer
	case p.MaxBytes > 0 && len(q.body) > p.MaxBytes:
		x.Park = fmt.Sprintf("never: its body is longer than the %d bytes that can be kept here (park_store.inline)",
			p.MaxBytes)
	default:
		x.Park = route.parkedText()
	}
}

// parkedText says for what a delivery is parked, and with which answer.
func (r *Route) parkedText() string {
	p := r.Policy.Park
	if (p.After == 0 || p.Delay > 0) && p.Locked {
		return fmt.Sprintf("%d at once, always; then it runs in its turn%s", r.parkedStatus(), r.parkedTries())
	}
	var on []string
	for _, reason := range []struct {
		set  bool
		text string
	}{
		{p.Locked && r.Policy.Strategy.Waits(), "its turn does not come within " +
			idem.DurationText(min(p.After, r.Policy.WaitTimeout))},
		{p.Locked && r.Policy.Strategy == idem.FailFast, "another event of its workflow is before it"},
		{p.Slow, "no answer comes within " + idem.DurationText(p.After)},
		{p.Unreachable, "nothing reaches the upstream"},
		{p.Unknown, "its outcome is unknown"},
		{p.Failed, "the upstream answers " + p.RetryOn.String()},
	} {
		if reason.set {
			on = append(on, reason.text)
		}
	}
	if r.ParkNearLimit {
		on = append(on, "its sender is half way to switching the endpoint off")
	}
	return fmt.Sprintf("%d where %s; then it runs in its turn%s", r.parkedStatus(), strings.Join(on, ", or "),
		r.parkedTries())
}

// parkedTries says when a parked delivery is tried, where the route does not leave that alone.
func (r *Route) parkedTries() (text string) {
	p := r.Policy.Park
	if p.Delay > 0 {
		text = ", " + idem.DurationText(p.Delay) + " later at the earliest"
	}
	if p.RetryMost > 0 {
		text += fmt.Sprintf("; failed tries again after %s to %s", idem.DurationText(p.RetryFirst),
			idem.DurationText(p.RetryMost))
	}
	if on := p.RetryOn.String(); on != "" {
		text += ", where the upstream answers " + on
	}
	return text
}

// canDecide reports whether d can happen with the route's strategy.
func (r *Route) canDecide(d idem.Decision) bool {
	s := r.Policy.Strategy
	switch d {
	case idem.DecisionReplayed, idem.DecisionMismatch, idem.DecisionUnknown, idem.DecisionPaced:
		return r.Policy.Idempotency
	case idem.DecisionExhausted:
		return r.Policy.Idempotency && r.Policy.Attempts > 0
	case idem.DecisionLocked:
		return s == idem.FailFast
	case idem.DecisionLimited:
		return r.Keys.Limited() && !s.Waits()
	case idem.DecisionInFlight:
		return s != idem.Skip && r.Policy.Idempotency
	case idem.DecisionWaitTimeout, idem.DecisionQueueFull:
		return s.Waits() || d == idem.DecisionQueueFull && r.Policy.InFlight == idem.Attach
	case idem.DecisionSkipped:
		return s == idem.Skip
	case idem.DecisionThrottled:
		return r.Policy.NewPerSecond > 0
	case idem.DecisionSuperseded:
		return s == idem.Latest || r.Policy.Order != nil && r.Policy.Order.OnStale == idem.StaleSkip
	case idem.DecisionStale:
		return r.Policy.Order != nil && r.Policy.Order.OnStale == idem.StaleReject
	case idem.DecisionParked:
		return r.Policy.Park != nil
	case idem.DecisionUnverified:
		return r.Verify.Verifier != nil
	}
	return true
}

// executedText returns the answer to a delivery that ran, and what happens to its lock.
func (r *Route) executedText() string {
	text := "the upstream's answer"
	if on := r.Policy.HoldOn.String(); on != "" {
		text += fmt.Sprintf("; after %s the lock is held, for %s without a heartbeat", on, r.Policy.HoldTTL)
	}
	return text
}

// Answers returns what a sender gets on this route after each decision.
func (r *Route) Answers() []ExplainedAnswer {
	if r.Observe {
		return []ExplainedAnswer{{idem.DecisionBypassed, "mode is observe: whatever is decided, the upstream's answer"}}
	}
	answers := []ExplainedAnswer{{idem.DecisionExecuted, r.executedText()}}
	if r.canDecide(idem.DecisionReplayed) {
		answers = append(answers, ExplainedAnswer{idem.DecisionReplayed, "the first answer, with " +
			"Idempotent-Replayed: true"})
	}
	own := []idem.Decision{idem.DecisionRejected, idem.DecisionUnverified} // in the order of the checks
	for _, row := range idem.Decisions() {
		if row.Own() && !slices.Contains(own, row.Decision) {
			own = append(own, row.Decision)
		}
	}
	for _, d := range own {
		if r.canDecide(d) {
			answers = append(answers, ExplainedAnswer{d, r.answerText(d)})
		}
	}
	return answers
}

// answerText returns the answer of a decision that Hooklock answers itself.
func (r *Route) answerText(d idem.Decision) string {
	row := d.Row()
	text := fmt.Sprintf("%d %s", r.statusOf(&row), row.Code)
	switch {
	case d == idem.DecisionParked:
		return r.parkedText()
	case d == idem.DecisionRejected && r.Respond[d] != 0:
		return fmt.Sprintf("%d, with a code that says what is wrong; 503 %s", r.Respond[d], codeMemoryExhausted)
	case d == idem.DecisionRejected:
		return rejectedStatuses() + ", by its code; 503 " + codeMemoryExhausted
	case d == idem.DecisionInFlight && r.Policy.InFlight == idem.Attach:
		return "the first one's answer, or " + text + " when it takes too long"
	case d == idem.DecisionSkipped, d == idem.DecisionSuperseded:
		return fmt.Sprintf("%d {\"status\":%q}", r.statusOf(&row), row.Code)
	case d == idem.DecisionMismatch && r.Policy.OnMismatch != idem.MismatchReject:
		return "does not happen: on_mismatch is " + string(r.Policy.OnMismatch)
	case d == idem.DecisionUnknown && r.Policy.OnUnknown == idem.UnknownRetry:
		return "does not happen: on_unknown is " + string(r.Policy.OnUnknown)
	case d == idem.DecisionExhausted:
		return fmt.Sprintf("%s, after %d attempts that failed or may have", text, r.Policy.Attempts)
	case d == idem.DecisionStoreUnavailable && r.Forward:
		return "the upstream's answer: on_store_down is forward"
	}
	return text
}

// statusOf returns the status of a decision that Hooklock answers itself, on this route.
func (r *Route) statusOf(row *idem.DecisionRow) int {
	return cmp.Or(r.Respond[row.Decision], row.Status)
}

// rejectedStatuses returns those that the route's choice replaces, as a list in words.
func rejectedStatuses() string {
	var all []string
	for _, row := range rejections {
		if text := strconv.Itoa(row.status); row.status < 500 && row.code != codeRouteNotFound &&
			!slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}
