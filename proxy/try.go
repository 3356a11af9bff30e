package proxy

import (
	"context"
	"errors"
	"slices"

	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/proxy/asking"
	"hooklock/proxy/kept"
)

// Policy returns the policy of a route; nil if there is no such route. A route in mode observe runs
// what it accepted before. It implements worker.Options.Policy.
func (h *Handler) Policy(route string) *idem.Policy {
	if r := h.rules.Load().Table.routeNamed(route); r != nil {
		return &r.Policy
	}
	return nil
}

// AskRule returns how a route asks the service about unknown outcomes; nil if it does not, or if
// there is no such route. It implements asking.Options.Rule.
func (h *Handler) AskRule(route string) (*idem.AskPolicy, *asking.Rule) {
	return h.rules.Load().AskRule(route)
}

// AskRule is Handler.AskRule, for rules that no process runs by.
func (r *Rules) AskRule(route string) (*idem.AskPolicy, *asking.Rule) {
	if of := r.Table.routeNamed(route); of != nil && of.Ask != nil {
		return of.Policy.Ask, of.Ask
	}
	return nil, nil
}

// Asks reports whether any route asks the service about unknown outcomes.
func (h *Handler) Asks() bool {
	return slices.ContainsFunc(h.rules.Load().Table.Routes, func(r *Route) bool { return r.Ask != nil })
}

// Try sends the request of a parked execution once, and ends x with what came of it. It implements
// worker.Options.Try.
func (h *Handler) Try(x *guard.Execution, value []byte) {
	d := h.pool.get(h)
	d.accepted, d.execution = true, x
	defer d.reportAndFree()
	d.runRecovered(func() *ending {
		if err := (parkedTry{d}).restoreRequest(value); err != nil {
			x.End(guard.Tried{Failure: idem.Failure{Code: "request_unavailable", Detail: err.Error()}})
			return nil
		}
		if err := d.req.renewSignature(d.route.Renewer, h.options.Now()); err != nil {
			x.End(guard.Tried{Hopeless: true,
				Failure: idem.Failure{Code: "signature_not_renewed", Detail: err.Error()}})
			return nil
		}
		end := d.callAndSettle()
		end.readAlone()
		return end
	})
}

// QuestionOf returns the URL at which the service says what became of the event of a stored
// request; "" if there is none.
func (r *Route) QuestionOf(k *kept.Request) string {
	var q request
	if r.Ask == nil || q.restoreFrom(k) != nil {
		return ""
	}
	q.msg.Vars, _ = r.Pattern.Match(q.place.path, nil)
	names, err := r.Keys.Name(&q.msg)
	if err != nil {
		return ""
	}
	return names.Question
}

// parkedTry is a delivery that is restored from the stored request, for one try.
type parkedTry struct{ *delivery }

// restoreRequest makes the delivery again as it came.
func (d parkedTry) restoreRequest(value []byte) error {
	x := d.execution
	lock := x.Lock()
	ctx, cancel := context.WithTimeout(x.Context(), d.handler.options.Timeout)
	defer cancel()
	r, err := d.handler.options.Requests.Fetch(ctx, lock.Execution, value)
	if err != nil {
		return err
	}
	if d.route = d.handler.rules.Load().Table.routeNamed(lock.Route); d.route == nil {
		return errors.New("the route " + lock.Route + " is not configured here any more")
	}
	if bad := d.req.restoreFrom(r); bad != nil {
		return bad
	}
	d.memory.Hold(len(d.req.body))
	d.original = r
	d.report.noteHead(&d.req)
	d.names.Workflow, d.names.Key = lock.Scope.Workflow, lock.Scope.Key
	d.report.Route, d.report.Workflow, d.report.Key, d.report.TLS = d.route.Name, lock.Scope.Workflow,
		lock.Scope.Key.Short(), r.TLS
	d.report.EventID, d.report.Labels = lock.EventID, lock.Labels
	d.report.noteStale(lock.Stale, d.route)
	d.report.Keyed, d.report.Locks = d.route.Policy.Idempotency, d.route.Policy.Strategy != idem.NoLock
	d.beginTry(idem.ParseTrace([]byte(r.TraceParent)))
	return nil
}
