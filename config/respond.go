package config

import (
	"fmt"
	"slices"

	"hooklock/idem"
)

// RespondAsked is the entry of respond for duplicates of an event that the service says to have
// executed (ask). It is no decision: they are replayed.
const RespondAsked = "asked"

// refusalRows returns the decisions that Hooklock answers itself, so that their status can be
// chosen. The status of parked is park.answer.
func refusalRows() []idem.DecisionRow {
	return slices.DeleteFunc(idem.Decisions(), func(r idem.DecisionRow) bool {
		return !r.Own() || r.Decision == idem.DecisionParked
	})
}

// checkDecision refuses a decision that is no refusal.
func checkDecision(name string) error {
	var words []string
	for _, row := range refusalRows() {
		words = append(words, string(row.Decision))
	}
	if words = append(words, RespondAsked); slices.Contains(words, name) {
		return nil
	}
	return unknownWord(name, words)
}

// checkRespondStatus refuses a status that cannot carry the problem description, or that a sender
// would not take for an answer.
func checkRespondStatus(status int) error {
	switch {
	case status == 204 || status == 205:
		return fmt.Errorf("%d has no body, and the answer has one; use 200", status)
	case status >= 200 && status < 300, status >= 400 && status < 600:
		return nil
	}
	return fmt.Errorf("%d cannot be the answer to a delivery; use 2xx, 4xx or 5xx", status)
}
