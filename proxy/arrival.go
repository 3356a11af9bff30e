package proxy

import (
	"time"

	"hooklock/idem"
)

// Arrivals store how events arrived that were not executed; *etcdlock.Ledger does.
type Arrivals interface {
	// Arrived must not block: the delivery is not over yet.
	Arrived(event idem.Scope, route, eventID string, a idem.Arrival, retention time.Duration)
}

// noteArrival notes a delivery of a known event that was not executed. An executed one has its record, and needs no further write; one that was
// cancelled while it ran has a record, too, and is not to come again.
func (d *delivery) noteArrival() {
	r := &d.report
	ran := r.Decision == idem.DecisionExecuted || r.Decision == idem.DecisionBypassed && (r.Would == "" || r.Would == idem.DecisionExecuted)
	ran = ran || r.Decision == idem.DecisionAborted && d.execution != nil
	if d.h.o.Arrivals == nil || d.route == nil || d.names.Key == "" || d.accepted || ran {
		return
	}
	p := &d.route.Policy
	event := idem.Scope{Workflow: d.names.Workflow, Key: d.names.Key, PerEvent: p.PerEvent()}
	d.h.o.Arrivals.Arrived(event, d.route.Name, d.names.EventID, idem.Arrival{
		At: r.Started, Decision: r.Decision, Would: r.Would, Status: r.Status, Execution: r.Execution, Differs: r.Differs, From: string(d.req.peer), TraceID: r.TraceID, Labels: d.names.Labels,
	}, p.RetentionOf(d.names.ByPayload))
}
