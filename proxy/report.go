package proxy

import (
	"errors"
	"sync/atomic"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy/sender"
	"hooklock/proxy/wire"
)

// reportAndFree reports a delivery, and gives its memory back to the pool. It is not inside of
// endServing: a bug of an observer would end the process with all other deliveries.
func (d *delivery) reportAndFree() {
	defer d.handler.pool.put(d)
	defer func() {
		if p := recover(); p != nil {
			d.logPanic(p)
		}
	}()
	over := d.call.over
	if d.route != nil || over.IsZero() { // a delivery that passed through is over with its call
		over = d.handler.options.Now()
	}
	d.report.Total, d.report.UpstreamFrom = over.Sub(d.report.Started), d.call.began
	if d.comparesMembers() {
		d.report.Members = naming.Members(&d.req.msg)
	}
	switch {
	case d.accepted && d.report.Attempt == 0: // the upstream was not called, and later events report the rest
	case d.accepted:
		d.handler.options.Observer.Event(EventTried, &d.report)
	case d.route != nil || d.report.Decision == idem.DecisionRejected ||
		d.report.Decision == idem.DecisionInternalError:
		d.handler.options.Observer.OnDelivered(&d.report)
	default:
		d.handler.options.Observer.OnPassed(&d.report)
	}
	d.noteArrival()
	d.noteBadSignature()
	d.recordForSuggest()
	if d.report.Trace != nil {
		d.report.Trace.End(&d.report)
	}
}

// Arrivals store how events arrived that were not executed. In production it is *etcdlock.Ledger.
type Arrivals interface {
	// NoteArrival must not block: the delivery is not over yet.
	NoteArrival(event idem.Scope, route, eventID string, a idem.Arrival, retention time.Duration)
	// NoteBadSignature must not block either. It calls eventID only if it stores more than the
	// number.
	NoteBadSignature(b idem.BadSignature, eventID func() string)
}

// noteBadSignature notes a delivery whose signature was not valid.
func (d *delivery) noteBadSignature() {
	if d.signature == nil || d.handler.options.Arrivals == nil {
		return
	}
	r, broken := &d.report, d.signature
	d.handler.options.Arrivals.NoteBadSignature(idem.BadSignature{
		At: r.Started, Route: d.route.Name, From: string(d.req.peer), Scheme: broken.Scheme,
		Reason: string(broken.Reason), Part: broken.Part, Detail: broken.Detail, TraceID: r.TraceID, Status: r.Status,
	}, d.claimedEventID)
}

// claimedEventID returns the event ID of a delivery that may be anyone's; "" if it has none.
func (d *delivery) claimedEventID() string {
	names, err := d.route.Keys.Name(&d.req.msg)
	if err != nil {
		return ""
	}
	return names.EventID
}

// noteArrival notes a delivery of a known event that was not executed. An executed one has its
// record, and needs no further write; one that was cancelled while it ran has a record, too, and is
// not to come again.
func (d *delivery) noteArrival() {
	r := &d.report
	ran := r.Decision == idem.DecisionExecuted ||
		r.Decision == idem.DecisionBypassed && (r.Would == "" || r.Would == idem.DecisionExecuted)
	ran = ran || r.Decision == idem.DecisionAborted && d.execution != nil
	if d.handler.options.Arrivals == nil || d.route == nil || d.names.Key == "" || d.accepted || ran {
		return
	}
	p := &d.route.Policy
	event := idem.Scope{Workflow: d.names.Workflow, Key: d.names.Key, PerEvent: p.PerEvent()}
	eventID, own := d.names.EventID, ""
	if r.FirstEventID != "" {
		event.Key, eventID, own = d.asked.Scope.Key, r.FirstEventID, eventID
	}
	d.handler.options.Arrivals.NoteArrival(event, d.route.Name, eventID, idem.Arrival{
		EventID: own, At: r.Started, Took: r.Total, Decision: r.Decision, Would: r.Would, Status: r.Status,
		Execution: r.Execution, Differs: r.Differs, From: string(d.req.peer), TraceID: r.TraceID,
		Labels: d.names.Labels, Detail: r.whyFailed(),
	}, p.RetentionOf(d.names.ByPayload))
}

// whyFailed returns the error of the call, or of etcd, that decided about the delivery; "" if it
// was none of these.
func (r *Report) whyFailed() string {
	if r.Err == nil || r.Decision.Row().Class != idem.ClassFailed && r.Decision != idem.DecisionStoreUnavailable {
		return ""
	}
	if send, is := errors.AsType[*wire.SendError](r.Err); is {
		return send.Err.Error()
	}
	return r.Err.Error()
}

// Redirected reports whether the sender got a redirect from the service. Many senders take a 3xx
// for success, or follow it with a GET that has no body.
func (r *Report) Redirected() bool {
	return r.UpstreamStatus/100 == 3 && r.Status == r.UpstreamStatus
}

// noteHead notes what the head of a request says.
func (r *Report) noteHead(q *request) {
	r.Method, r.HTTP10 = knownMethod(q.msg.Method), q.head.HTTP10()
}

// knownMethod returns a method without the memory of the request, and one word for all that no
// standard names: a value that a sender chooses freely is no label.
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

// SignatureValid is Report.Signature of a valid signature. Otherwise that is a sender.Reason.
const SignatureValid = "valid"

// noteStale notes that the event is older than one that went through; nil: it is not. Under Observe
// it is forwarded all the same.
func (r *Report) noteStale(stale *idem.Stale, route *Route) {
	if stale == nil {
		return
	}
	r.Stale = stale.By
	if !route.Observe {
		return
	}
	switch route.Policy.StalenessOf(stale) {
	case idem.StaleSkipped:
		r.Would = idem.DecisionSuperseded
	case idem.StaleRefused:
		r.Would = idem.DecisionStale
	}
}

// comparesMembers reports whether the report is to show what differs between this delivery and
// another one of its event: it is another request than the first, or it failed and may come again
// as one. Taking a delivery apart costs far more than its name, so only some of those that went
// well are, once a duplicate of the route was another request.
func (d *delivery) comparesMembers() bool {
	r := &d.report
	if r.Key == "" || r.EventID == "" || !r.Keyed || r.FirstEventID != "" { // the IDs of twins differ
		return false
	}
	switch {
	case r.Changed:
		d.route.firsts.refillIfDue(d.handler.options.Now())
		return true
	case r.Decision == idem.DecisionMismatch || r.Would == idem.DecisionMismatch || r.Attempt > 1:
		// after a failure, any bytes run
		return true
	}
	duplicate := r.Decision == idem.DecisionReplayed || r.Would == idem.DecisionReplayed // of the first bytes
	return r.Attempt > 0 && r.Status >= 400 && !r.Challenged || (r.Attempt > 0 || duplicate) && d.route.firsts.takeOne()
}

// firsts says how many deliveries of a route that went well are still to be taken apart. The zero
// value: none.
type firsts struct {
	left     int64 // these two are atomic
	refilled int64 // Unix time in ns
}

const (
	firstsCompared = 64 // as many as the report remembers
	firstsEvery    = 10 * time.Minute
)

func (f *firsts) refillIfDue(now time.Time) {
	before := atomic.LoadInt64(&f.refilled)
	if now.UnixNano()-before >= int64(firstsEvery) && atomic.CompareAndSwapInt64(&f.refilled, before, now.UnixNano()) {
		atomic.StoreInt64(&f.left, firstsCompared)
	}
}

func (f *firsts) takeOne() bool {
	return atomic.LoadInt64(&f.left) > 0 && atomic.AddInt64(&f.left, -1) >= 0
}
