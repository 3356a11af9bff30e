package config

import "fmt"

// refusal is a decision that Hooklock answers itself, so that its status can be chosen.
type refusal struct {
	decision string
	// drops: the sender takes a 2xx for done, although this event did not run, or not surely. Why says so.
	drops bool
}

// refusals are the rows of the table in docs/decisions.md that Hooklock answers itself.
func refusals() []refusal {
	return []refusal{
		{"in_flight", true},
		{"locked", true},
		{"wait_timeout", true},
		{"queue_full", true},
		{"skipped", false}, // a 2xx by default: the strategy says that the event may be dropped
		{"throttled", true},
		{"mismatch", true},
		{"unknown", true},
		{"aborted", true},
		{"lock_lost", true},
		{"upstream_unreachable", true},
		{"upstream_failed", true},
		{"upstream_timeout", true},
		{"store_unavailable", true},
		{"unverified", true},
		{"rejected", true},
		{"internal_error", true},
	}
}

// checkDecision refuses what is not a refusing decision.
func checkDecision(name string) error {
	words := []string{}
	for _, r := range refusals() {
		if r.decision == name {
			return nil
		}
		words = append(words, r.decision)
	}
	return unknownWord(name, words)
}

// checkRespondStatus refuses a status that cannot carry the problem description, or that a sender would not take for an
// answer.
func checkRespondStatus(status int) error {
	switch {
	case status == 204 || status == 205:
		return fmt.Errorf("%d has no body, and the answer has one; use 200", status)
	case status >= 200 && status < 300, status >= 400 && status < 600:
		return nil
	}
	return fmt.Errorf("%d cannot be the answer to a delivery; use 2xx, 4xx or 5xx", status)
}

// dropsEvent reports whether a 2xx for decision tells the sender that all is well although the event did not surely run.
func dropsEvent(decision string) bool {
	for _, r := range refusals() {
		if r.decision == decision {
			return r.drops
		}
	}
	return false
}
