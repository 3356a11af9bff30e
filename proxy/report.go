package proxy

import (
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy/sender"
)

// finish reports a delivery, and gives its memory back to the pool. It is not inside of contain: a bug of an observer would end the process
// with all other deliveries.
func (d *delivery) finish() {
	defer d.h.pool.put(d)
	defer func() {
		if p := recover(); p != nil {
			d.logPanic(p)
		}
	}()
	over := d.call.over
	if d.route != nil || over.IsZero() { // a delivery that passed through is over with its call
		over = d.h.o.Now()
	}
	d.report.Total, d.report.UpstreamFrom = over.Sub(d.report.Started), d.call.began
	if d.report.mayChange() {
		d.report.Members = naming.Members(&d.req.msg)
	}
	switch {
	case d.accepted && d.report.Attempt == 0: // the upstream was not called, and later events report the rest
	case d.accepted:
		d.h.o.Observer.Event(EventTried, &d.report)
	case d.route != nil || d.report.Decision == idem.DecisionRejected || d.report.Decision == idem.DecisionInternalError:
		d.h.o.Observer.Delivered(&d.report)
	default:
		d.h.o.Observer.Passed(&d.report)
	}
	d.noteArrival()
	if d.report.Trace != nil {
		d.report.Trace.End(&d.report)
	}
}

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

// noteHead notes what the head of a request says.
func (r *Report) noteHead(q *request) {
	r.Method, r.HTTP10 = knownMethod(q.msg.Method), q.head.HTTP10()
}

// knownMethod returns a method without the memory of the request, and one word for all that no standard names: a value that a sender chooses
// freely is no label.
func knownMethod(m []byte) string {
	for _, known := range methods {
		if string(m) == known {
			return known
		}
	}
	return "_OTHER"
}

var methods = [...]string{"POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"}

// noteSignature notes the result of the check by a scheme; nil: the signature is right.
func (r *Report) noteSignature(scheme string, broken *sender.SignatureError) {
	r.Scheme, r.Signature, r.Verified = scheme, SignatureValid, broken == nil
	if broken != nil {
		r.Signature, r.SignaturePart = string(broken.Reason), broken.Part
	}
}

// SignatureValid is the Signature of a Report if the signature is right. Otherwise it is the sender.Reason.
const SignatureValid = "valid"

// noteStale notes that the event is older than one that went through; nil: it is not. Under Observe it is forwarded all the same.
func (r *Report) noteStale(stale *idem.Stale, route *Route) {
	if stale == nil {
		return
	}
	r.Stale = stale.By
	if order := route.Policy.Order; order != nil && route.Observe && order.OnStale != idem.StaleAnnotate {
		r.Would = idem.DecisionSuperseded
		if order.OnStale == idem.StaleReject {
			r.Would = idem.DecisionStale
		}
	}
}

// mayChange reports whether the report may show what differs between this attempt of an event and another: a failed one comes again, and one
// that is another request than the first counted as another event.
func (r *Report) mayChange() bool {
	other := r.Decision == idem.DecisionMismatch || r.Would == idem.DecisionMismatch
	return r.Key != "" && r.EventID != "" && r.Keyed && (other || r.Attempt > 0 && r.Status >= 400)
}
