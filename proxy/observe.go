package proxy

import (
	"context"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// Report is the result of one delivery, for logs, metrics and traces. It holds no secret, no
// signature and no body.
type Report struct {
	Route    string        // "" if no route took it
	Decision idem.Decision // "" if it passed through
	Would    idem.Decision // of a bypassed one: what it would have got
	// Gate is the decision of the gate, executed if it let the delivery run. "" if it was not
	// asked.
	Gate idem.Decision
	Code string // the code of a rejection
	// Path is of a request that no route takes: without its query and without what looks like a
	// secret, at most 200 bytes.
	Path   string
	Status int // the status of the answer

	Method      string // in capitals; _OTHER if no standard has it
	TLS, HTTP10 bool   // how the delivery came

	// Signature is valid, or why it is not (sender.Reason); empty if Scheme needs none.
	// SignaturePart is what the reason is about.
	Scheme, Signature, SignaturePart string
	// Verified means that the delivery comes from the sender: its signature is valid, or its route
	// needs none.
	Verified bool
	// UnsignedHandshake means that it is a handshake without a signature. Any client can send one,
	// so it says nothing about the sender.
	UnsignedHandshake bool
	// WorkflowPart and EventIDPart say how these were found in the delivery; "" if they were not
	// looked for, or do not exist.
	WorkflowPart, EventIDPart PartResult
	Ordered                   naming.Ordered // how its position in its scope was found; "" without an order
	// Stale is by how much it is older than an event that had gone through. "" if it is not, or if
	// that is not known.
	Stale    string
	Keyed    bool // the route remembers events
	Locks    bool // the route takes locks: its strategy is not none
	Workflow string
	Key      string // the short key
	// of a mismatch, or if Changed: what differs from the first delivery
	Differs []string
	// Changed means that it is a duplicate by its event ID, but another request than the first
	// delivery.
	Changed bool
	// TwinOf is the short key of an event that came before in the same route and workflow, with the
	// same body and another ID. "" if none did, or if this delivery is not the first of its event.
	TwinOf string
	// FirstEventID is the ID of the event that the delivery was taken for, because that came first
	// with the same body. "" if it is its own event.
	FirstEventID string
	EventID      string // the sender's ID of the event; "" if it has none
	Labels       idem.Labels
	Execution    idem.ExecutionID
	ParkedOn     idem.ParkOn // why it was accepted; "" if it was not
	// Counted means that the delivery, or the try, is counted with its outcome, as is the result of
	// its call.
	Counted    bool
	Attempt    int // 0 if it did not run
	Outcome    idem.Outcome
	Recorded   bool
	RecordSize int           // in bytes; 0 if no record was written
	Hold       time.Duration // how long the lock outlives the answer; 0 if it does not
	By         string        // the name of the token that cancelled it
	// ClosedUntil is until when the lock of the execution that stood in the way stays closed, if
	// that has ended. Zero if it has not.
	ClosedUntil time.Time
	Loss        Loss // why the lock was lost while the execution ran

	TraceID string
	SpanID  string // "" if the delivery is not recorded as a trace
	// Members are the parts of a delivery that was another request than the first one of its event,
	// or that may be the first one of such. Otherwise nil.
	Members []idem.Member
	// Challenged means that the service asked the sender for credentials, which says nothing about
	// the event.
	Challenged bool
	Trace      Trace // nil if the delivery is not recorded as a trace
	// Met is the W3C trace context of the execution that stood in the way, or whose answer is
	// replayed.
	Met string

	Started time.Time
	Total   time.Duration
	Stages  Stages
	// UpstreamFrom is when the call began. Zero if there was none, or if the call goes on after the
	// delivery, which has taken Upstream so far.
	UpstreamFrom   time.Time
	Upstream       time.Duration
	UpstreamStatus int // 0 if no head of an answer came
	// Said is the beginning of an answer that is no success, as text for operators. "" if it has
	// none, or if the route keeps none (park.failed_answers).
	Said string
	Held time.Duration // how long this process had the lock
	Err  error
}

// Stages are the times that a delivery spent in its stages.
type Stages struct{ Key, Claim, Wait, Settle Stretch }

// Stretch is a span of time. The zero value is none.
type Stretch struct {
	From time.Time
	For  time.Duration
}

// PartResult says whether the workflow, or the event ID, was found in a delivery.
type PartResult string

// The results.
const (
	PartOK        PartResult = "ok"
	PartMissing   PartResult = "missing"
	PartAmbiguous PartResult = "ambiguous"
	PartTooLong   PartResult = "too_long"
	// PartPlaceholder: there is an event ID, but it is what a sender sends where a value is
	// missing.
	PartPlaceholder PartResult = "placeholder"
)

// Loss says why a lock was lost while its execution ran. The zero value means that it was not.
type Loss string

// The losses.
const (
	LossSession  Loss = "session_lost" // etcd ended the session early, and another process ended the execution
	LossUnheard  Loss = "unheard"      // the session was not renewed in time, so the process may not act for it
	LossReleased Loss = "released"     // an operator released the lock by force
)

// EventName is the name of a log event, as in docs/logs.md.
type EventName string

// The events of one delivery.
const (
	EventAcquired EventName = "lock.acquired"
	EventRefused  EventName = "lock.refused"
	EventReleased EventName = "lock.released"
	// EventHeld: the lock outlives the answer, and no longer belongs to this process.
	EventHeld    EventName = "lock.held"
	EventLost    EventName = "lock.lost"
	EventUnknown EventName = "execution.unknown"
	// EventExhausted: an event has failed as often as its route lets it, and waits for a person.
	EventExhausted EventName = "event.exhausted"
	// EventCancelled: an execution that waited or ran here was cancelled.
	EventCancelled EventName = "execution.cancelled"
	// EventTried: the upstream was called for a parked execution, whose sender was answered before.
	EventTried EventName = "execution.tried"
)

// The events of an execution whose sender was answered before: what follows a try.
const (
	EventRetry EventName = "execution.retry" // it is tried again
	// its service asks to be left alone, and no event of the route is tried
	EventLeftAlone  EventName = "route.rests"
	EventDone       EventName = "execution.done"    // an answer settled it
	EventBlocked    EventName = "execution.blocked" // its workflow waits for a decision
	EventDeadLetter EventName = "execution.dead"    // it ended without having gone through, and its request is kept
	// it did not run, because a newer event of its scope had gone through
	EventSuperseded EventName = "execution.superseded"
	EventCarried    EventName = "execution.lost" // another replica runs it, or it was ended
)

// Observer receives the reports of deliveries. A Report is valid until the call returns.
type Observer interface {
	// OnDelivered: a delivery on a route has ended, or one was rejected.
	OnDelivered(*Report)
	// OnPassed: a request that no route took has passed through, or could not.
	OnPassed(*Report)
	Event(EventName, *Report)
}

// Observers pass each call on to all of them.
type Observers []Observer

// OnDelivered implements Observer.
func (all Observers) OnDelivered(r *Report) {
	for _, o := range all {
		o.OnDelivered(r)
	}
}

// OnPassed implements Observer.
func (all Observers) OnPassed(r *Report) {
	for _, o := range all {
		o.OnPassed(r)
	}
}

// Event implements Observer.
func (all Observers) Event(name EventName, r *Report) {
	for _, o := range all {
		o.Event(name, r)
	}
}

// Tracer begins traces.
type Tracer interface {
	// Begin begins the trace of a delivery that has found its route. parent is the sender's span,
	// and tracestate, which is valid during the call, its header of that name; empty if it sent
	// none. It returns nil if the delivery is not recorded.
	Begin(r *Report, parent idem.TraceContext, tracestate []byte) Trace
	// Try begins the trace of one more call of the upstream for a delivery that was accepted, whose
	// span is accepted: a trace of its own, with a link to that. It returns nil if the call is not
	// recorded.
	Try(r *Report, accepted idem.TraceContext) Trace
}

// Trace records the spans of one delivery. Only Call is safe for concurrent use, also with End and
// after it.
type Trace interface {
	// Context returns a context with the delivery's span, for exemplars.
	Context() context.Context
	// TraceParent returns the delivery's span, to which duplicates of the event link.
	TraceParent() idem.TraceContext
	// Call begins the span of the call of the upstream, and returns it as W3C spells it.
	Call() string
	// End ends the trace. r does not change any more.
	End(r *Report)
}
