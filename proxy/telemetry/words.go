package telemetry

import (
	"slices"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy"
	"hooklock/proxy/sender"
)

// The closed sets of labels. docs/metrics.md explains each word.
var (
	decisions          = decisionWords(func(r *idem.DecisionRow) []idem.Decision { return []idem.Decision{r.Decision} })
	acquisitionResults = decisionWords(func(r *idem.DecisionRow) []string { return []string{r.Acquisition} })
	lookupResults      = decisionWords(func(r *idem.DecisionRow) []string {
		if r.Decision == idem.DecisionExecuted {
			return []string{r.Lookup, lookupRetry}
		}
		return []string{r.Lookup}
	})
	outcomes    = []string{string(idem.Executed), string(idem.NotExecuted), string(idem.Unknown), buried}
	partResults = []proxy.PartResult{proxy.PartOK, proxy.PartMissing, proxy.PartAmbiguous, proxy.PartTooLong,
		proxy.PartPlaceholder}
	signatureResults = []string{
		"valid", string(sender.Missing), string(sender.Malformed), string(sender.Mismatch), string(sender.TooOld),
		string(sender.TooNew),
	}
)

// orderResults are the results of checking the order of an event.
var orderResults = []string{
	orderCurrent, orderStale, string(naming.OrderedMissing), string(naming.OrderedAmbiguous),
	string(naming.OrderedTooLong), string(naming.OrderedUnreadable),
}

const (
	orderCurrent = "current" // nothing newer has gone through, as far as is known
	orderStale   = "stale"
)

// orderResult returns "" if the order was not checked.
func orderResult(r *proxy.Report) string {
	switch {
	case r.Stale != "":
		return orderStale
	case r.Ordered != naming.OrderedOK:
		return string(r.Ordered)
	case r.Gate == idem.DecisionExecuted:
		return orderCurrent
	}
	return ""
}

const (
	buried = "buried" // unknown, of a dead process

	reloaded = "reloaded"
	refused  = "refused"

	taken  = "taken" // of a message, by its receiver
	failed = "failed"
)

// decisionWords returns the words of the decisions, each once, in their order.
func decisionWords[T ~string](of func(*idem.DecisionRow) []T) []T {
	var all []T
	for _, row := range idem.Decisions() {
		for _, word := range of(&row) {
			if word != "" && !slices.Contains(all, word) {
				all = append(all, word)
			}
		}
	}
	return all
}

// lookupRetry is counted instead of the Lookup of idem.DecisionExecuted if the event ran before.
const lookupRetry = "retry"

// lookupOf returns what the gate's decision says about the event.
func lookupOf(gate idem.Decision, attempt int) string {
	if gate == idem.DecisionExecuted && attempt > 1 {
		return lookupRetry
	}
	return gate.Row().Lookup
}
