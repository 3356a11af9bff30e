package telemetry

import (
	"hooklock/idem"
	"hooklock/proxy"
	"hooklock/proxy/sender"
)

// The closed sets of labels. docs/metrics.md explains each word.
var (
	decisions = []idem.Decision{
		idem.DecisionExecuted, idem.DecisionReplayed, idem.DecisionAttached, idem.DecisionInFlight, idem.DecisionLocked, idem.DecisionWaitTimeout,
		idem.DecisionQueueFull, idem.DecisionSkipped, idem.DecisionThrottled, idem.DecisionMismatch, idem.DecisionUnknown, idem.DecisionAborted, idem.DecisionLockLost,
		idem.DecisionUpstreamUnreachable, idem.DecisionUpstreamFailed, idem.DecisionUpstreamTimeout, idem.DecisionStoreUnavailable,
		idem.DecisionBypassed, idem.DecisionUnverified, idem.DecisionRejected, idem.DecisionInternalError,
	}
	acquisitionResults = []string{
		acquired, string(idem.DecisionLocked), string(idem.DecisionWaitTimeout), string(idem.DecisionQueueFull), string(idem.DecisionSkipped),
		string(idem.DecisionAborted), string(idem.DecisionStoreUnavailable),
	}
	lookupResults = []string{
		lookupMiss, lookupRetry, lookupHit, string(idem.DecisionInFlight), string(idem.DecisionMismatch), string(idem.DecisionUnknown),
		string(idem.DecisionAborted), string(idem.DecisionStoreUnavailable),
	}
	outcomes         = []string{string(idem.Executed), string(idem.NotExecuted), string(idem.Unknown), buried}
	partResults      = []proxy.PartResult{proxy.PartOK, proxy.PartMissing, proxy.PartAmbiguous, proxy.PartTooLong}
	signatureResults = []string{
		"valid", string(sender.Missing), string(sender.Malformed), string(sender.Mismatch), string(sender.TooOld), string(sender.TooNew),
	}
)

const (
	acquired = "acquired"

	lookupMiss  = "miss"  // nothing is known of the event
	lookupRetry = "retry" // it ran before and may run again
	lookupHit   = "hit"   // it is settled: the first answer is sent again

	buried = "buried" // unknown, of a dead process

	reloaded = "reloaded"
	refused  = "refused"
)

// acquisitionOf is what the gate's decision says about the lock; "" where the lock was not what it was about.
func acquisitionOf(gate idem.Decision) string {
	switch gate {
	case idem.DecisionExecuted:
		return acquired
	case idem.DecisionLocked, idem.DecisionWaitTimeout, idem.DecisionQueueFull, idem.DecisionSkipped, idem.DecisionAborted, idem.DecisionStoreUnavailable:
		return string(gate)
	}
	return ""
}

// lookupOf is what the gate's decision says about the event.
func lookupOf(gate idem.Decision, attempt int) string {
	switch gate {
	case idem.DecisionExecuted:
		if attempt > 1 {
			return lookupRetry
		}
		return lookupMiss
	case idem.DecisionLocked, idem.DecisionWaitTimeout, idem.DecisionQueueFull, idem.DecisionSkipped, idem.DecisionThrottled:
		return lookupMiss
	case idem.DecisionReplayed:
		return lookupHit
	case idem.DecisionMismatch, idem.DecisionUnknown, idem.DecisionAborted, idem.DecisionStoreUnavailable:
		return string(gate)
	}
	return string(idem.DecisionInFlight) // attached, and how it ended
}
