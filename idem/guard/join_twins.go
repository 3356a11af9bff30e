package guard

import (
	"context"

	"hooklock/idem"
)

// joinTwins makes r a delivery of the first event with its body, where the policy takes twins for
// one event. So all that follows decides as for any other delivery of that event. A delivery that
// is refused already has an Admission.
func (g *Guard) joinTwins(r *idem.Request) (first idem.FirstTwin, refused *Admission) {
	if r.Policy.TwinWindow == 0 || !r.Twin || !r.Policy.Idempotency {
		return first, nil
	}
	now := g.options.Now()
	if g.cache.get(r.Scope.Key, now) != nil { // it has run under its own key
		return first, nil
	}
	if wait, ok := g.quotas.takeToken(r.Policy, now); !ok { // what is to be written costs memory of etcd
		return first, &Admission{Verdict: idem.Verdict{Decision: idem.DecisionThrottled, RetryAfter: wait}}
	}
	g.quotas.addTokens(r.Policy, 1, now) // it is counted where it runs
	ctx, cancel := context.WithTimeout(g.options.Base, g.options.RequestTimeout)
	defer cancel()
	first, err := g.options.Ledger.FirstTwin(ctx, &idem.Twin{
		Scope: r.Scope, Route: r.Policy.Route, EventID: r.EventID, Body: r.Fingerprint,
		Window: r.Policy.TwinWindow, Life: r.Policy.TwinLife(),
	})
	if err != nil {
		a := unavailableAdmission(err)
		return first, &a
	}
	if first.Key != "" {
		r.Scope.Key, r.EventID = first.Key, first.EventID
	}
	return first, nil
}
