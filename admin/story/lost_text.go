package story

import (
	"hooklock/admin/client"
	"hooklock/idem"
)

// isLost reports whether an event is possibly lost: it was refused and did not come again in time.
func (s *Story) isLost() bool { return !s.LostAt.IsZero() }

// lost says that the sender has not sent a refused event again.
func (s *Story) lost() string {
	if !s.isLost() {
		return ""
	}
	return " It did not come again until " + s.Stamp(s.LostAt.Time) + ": it is possibly lost."
}

// SetForLost says what to set so that no event is lost because its sender does not repeat what is
// refused with that decision.
func SetForLost(d idem.Decision) string {
	const respond = "answer what the sender repeats (respond: 503)"
	switch d {
	case idem.DecisionUpstreamUnreachable:
		return "park with unreachable in on, or " + respond
	case idem.DecisionStoreUnavailable:
		return respond + ", and run etcd with three members"
	case idem.DecisionThrottled:
		return "raise new_per_second, or " + respond
	case idem.DecisionPaused:
		return "park what comes during a pause (park), or " + respond
	case idem.DecisionInFlight:
		return "attach duplicates (in_flight: attach), park (park), or " + respond
	}
	return "let deliveries wait (lock.strategy: wait), park them (park), or " + respond
}

// todoForLost says what to do about a lost event, and about further ones.
func todoForLost(x *client.Execution) string {
	text := "Resend it at the sender, or run it at the service"
	if x.Arrivals == nil || len(x.Arrivals.Newest) == 0 {
		return text
	}
	return text + "; so that no other is lost: " + SetForLost(idem.Decision(x.Arrivals.Newest[0].Decision))
}
