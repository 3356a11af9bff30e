package suggest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// maxChoices bounds the other names of events that a suggestion compares.
const maxChoices = 3

// sendersText says how many senders there were, by what they call themselves.
func (v *view) sendersText() string {
	i := slices.IndexFunc(v.members, func(m member) bool { return m.path == "header.user-agent" })
	if i < 0 || v.members[i].present == 0 {
		return "without a User-Agent"
	}
	agents := countText(v.members[i].distinct, "User-Agent", "User-Agents")
	if silent := len(v.rows) - v.members[i].present; silent > 0 {
		return fmt.Sprintf("of %s, %d without one", agents, silent)
	}
	return "of " + agents
}

// countText writes a number and what follows it, of one thing or of several.
func countText(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// compareChoices says what other members would have made of the deliveries as the event ID, and
// what would have come of this one without ignore.
func (s *Suggestion) compareChoices(v *view, event *candidate) {
	var others []*member
	if len(event.members) > 1 { // each of them alone
		others = append(others, event.members...)
	}
	for _, m := range v.idMembers() {
		if m.distinct*5 >= len(v.rows) && !isRequestID(m.path) && !slices.Contains(event.members, m) {
			others = append(others, m)
		}
	}
	said := 0
	for _, m := range others {
		missed, wrong := compareKeys(event.key, v.keyOf(m))
		if missed+wrong == 0 || said == maxChoices {
			continue
		}
		said++
		s.addSentence("{%s} as event_id would have let %s run again, and stopped %s wrongly.", spelledSource(m.path),
			countText(missed, "repeat", "repeats"), countText(wrong, "delivery", "deliveries"))
	}
	if len(event.ignore) == 0 {
		return
	}
	if refused := newPrediction(event.key, v.payloadKey(nil)).Others - s.Predicted.Others; refused > 0 {
		s.addSentence("Without ignore %s would be refused, or run again after a failure.", countText(refused, "repeat",
			"repeats"))
	}
}

// compareHints says what each name that may be that of events would have stopped.
func (s *Suggestion) compareHints(v *view, hints []string) {
	for _, hint := range hints[:min(len(hints), maxChoices)] {
		k := v.keyOfTemplate(hint)
		if k == nil {
			continue
		}
		other := 0
		pairs := k.repeatPairs()
		for _, p := range pairs {
			if v.rows[p.first].whole != v.rows[p.next].whole {
				other++
			}
		}
		if len(pairs) > 0 {
			s.addSentence("%s as event_id would have stopped %s, %d of them with another body than the one before.",
				hint,
				countText(len(pairs), "delivery", "deliveries"), other)
		}
	}
}

// compareWorkflows says how many events each choice of a workflow would have stopped, because
// another event of it still ran. found is nil if the workflow is not known.
func (s *Suggestion) compareWorkflows(v *view, events []int, found *scope, others []*member) {
	all := v.stoppedCount(events, nil)
	if all == 0 {
		return // no two ran at the same time, or how long they took is not known
	}
	var choices []string
	for _, m := range others[:min(len(others), maxChoices)] {
		choices = append(choices, fmt.Sprintf("%d with {%s}", v.stoppedCount(events, m), spelledSource(m.path)))
	}
	choices = append(choices, fmt.Sprintf("%d without workflow", all))
	if found == nil {
		s.addSentence("Of %d events these came while another one of their workflow ran, and would have waited or been "+
			"refused: %s.", len(events), strings.Join(choices, ", "))
		return
	}
	s.addSentence("Of %d events %d came while another one of this workflow ran, and would have waited or been "+
		"refused; "+
		"it would have been %s.", len(events), v.stoppedCount(events, found.member), strings.Join(choices, ", "))
}

// twinPairs returns the pairs of different events with the same body but for the ID, within ten
// minutes.
func (v *view) twinPairs(event *candidate) (all []pair) {
	seen := map[[2]uint64]bool{}
	for _, p := range v.payloadKey(slices.Concat(event.ignore, event.members)).repeatPairs() {
		a, b := event.key[p.first], event.key[p.next]
		known := seen[[2]uint64{a, b}] || seen[[2]uint64{b, a}]
		if a != b && !known && v.rows[p.next].at.Sub(v.rows[p.first].at) <= 10*time.Minute {
			seen[[2]uint64{a, b}] = true
			all = append(all, p)
		}
	}
	return all
}

// sayTwins says how many twins there are, and which subscriptions they come from.
func (s *Suggestion) sayTwins(v *view, event *candidate) {
	pairs := v.twinPairs(event)
	if len(pairs) == 0 {
		return
	}
	is, are := "pairs", "have"
	if len(pairs) == 1 {
		is, are = "pair", "has"
	}
	from := v.subscriptionsOf(pairs)
	if from == "" {
		s.addSentence("%d %s within 10 minutes %s the same body but for the ID: two subscriptions of one hook, or "+
			"events that "+
			"are alike?", len(pairs), is, are)
		return
	}
	s.addSentence("%d %s within 10 minutes %s the same body but for the ID, and %s: these are subscriptions of one "+
		"hook, of "+
		"which one is enough.", len(pairs), is, are, from)
}

// subscriptionsOf says which subscriptions the deliveries of pairs come from; "" if no header
// tells that.
func (v *view) subscriptionsOf(pairs []pair) string {
	for i := range v.members {
		m := &v.members[i]
		if !namesSubscription(m.path) || m.distinct < 2 || m.distinct > maxSubscriptions || !v.isEverywhere(m) {
			continue
		}
		if slices.ContainsFunc(pairs, func(p pair) bool { return m.values[p.first] == m.values[p.next] }) {
			continue
		}
		header := strings.TrimPrefix(spelledSource(m.path), "header.")
		if len(m.subscriptions) < m.distinct {
			return "another " + header
		}
		return header + " " + strings.Join(slices.Sorted(maps.Values(m.subscriptions)), " and ")
	}
	return ""
}

// Bounds of the names of subscriptions that are kept, of one header.
const (
	maxSubscriptions = 4
	maxSubscription  = 40 // bytes
)

// namesSubscription reports whether a header names the subscription of a hook, and not the event
// or the attempt.
func namesSubscription(path string) bool {
	words := wordsOf(path, 1)
	return strings.HasPrefix(path, "header.") && anyOf(words, "hook", "webhook", "subscription", "endpoint") &&
		anyOf(words, "id", "name", "uuid", "key") && !isSecret(path) && !ofAttempt(path) &&
		!anyOf(words, "event", "delivery", "message", "request", "idempotency")
}

// keepSubscription keeps a value of a header that names subscriptions, until there are too many:
// then it names something else, and none is kept.
func (t *table) keepSubscription(i int, sum uint64, value []byte) {
	known := t.subscriptions[i]
	if known == nil || len(value) > maxSubscription {
		return
	}
	if _, is := known[sum]; is {
		return
	}
	if len(known) == maxSubscriptions {
		t.subscriptions[i] = nil
		return
	}
	known[sum] = string(value)
}
