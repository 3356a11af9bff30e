package proxy

import (
	"context"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// Report is what became of one delivery, for logs, metrics and traces. Nothing in it is a secret, a signature or a body.
type Report struct {
	Route    string        // "" = no route took it
	Decision idem.Decision // "" = it passed through
	Would    idem.Decision // what a bypassed delivery would have got
	// Gate is what the gate said: executed where it let the delivery run; "" where it was not asked.
	Gate   idem.Decision
	Code   string // of a rejection
	Status int    // of the answer

	Method      string // in capitals; _OTHER where no standard names it
	TLS, HTTP10 bool   // how the delivery came

	// Signature is valid, or why it is not (sender.Reason); empty where Scheme asks for none. SignaturePart is what the reason is
	// about.
	Scheme, Signature, SignaturePart string
	// Verified: it is its sender's: its signature is right, or its route asks for none.
	Verified bool
	// UnsignedHandshake: it is a handshake without a signature. Anybody can send one, so it says nothing of how the sender fares.
	UnsignedHandshake bool
	// WorkflowPart and EventIDPart say how these were found in the delivery; "" if it was not looked for, or there is nothing to find.
	WorkflowPart, EventIDPart PartResult
	Ordered                   naming.Ordered // how its place among the events of its scope was found; "" without an order
	Stale                     string         // by how much it is older than what went through; "": it is not, or that is unknown
	Keyed                     bool           // the route remembers events
	Locks                     bool           // the route takes locks: its strategy is not none
	Workflow                  string
	Key                       string   // short
	Differs                   []string // the parts of a mismatch that differ
	EventID                   string   // what the sender calls the event; "" where it has no name
	Labels                    idem.Labels
	Execution                 idem.ExecutionID
	ParkedOn                  idem.ParkOn // why it was accepted; "": it was not
	Attempt                   int         // 0: it did not run
	Outcome                   idem.Outcome
	Recorded                  bool
	RecordSize                int           // bytes; 0 = no record was written
	Hold                      time.Duration // how long the lock outlives the answer; 0: it does not
	By                        string        // who cancelled it
	ClosedUntil               time.Time     // Execution, which stood in the way, has ended, and its lock stays closed; zero: it has not
	Loss                      Loss          // of the lock, while the execution ran

	TraceID string
	SpanID  string // "" where the delivery is not recorded as a trace
	// Members are what it was made of, where it was refused as another request, or failed and may come again; else nil.
	Members []idem.Member
	Trace   Trace  // nil where the delivery is not recorded as a trace
	Met     string // W3C trace context of the execution that stood in the way, or that is replayed

	Started time.Time
	Total   time.Duration
	Stages  Stages
	// UpstreamFrom is when the call began; zero: there was none, or it goes on behind the delivery, for Upstream so far.
	UpstreamFrom   time.Time
	Upstream       time.Duration
	UpstreamStatus int           // 0: no head of an answer came
	Held           time.Duration // how long the lock was held
	Err            error
}

// Stages is when a delivery was where (docs/architecture.md).
type Stages struct{ Key, Claim, Wait, Settle Stretch }

// Stretch is a stretch of time. The zero value: there was none.
type Stretch struct {
	From time.Time
	For  time.Duration
}

// PartResult says how a part of a delivery's name was found.
type PartResult string

// The results.
const (
	PartOK        PartResult = "ok"
	PartMissing   PartResult = "missing"
	PartAmbiguous PartResult = "ambiguous"
	PartTooLong   PartResult = "too_long"
)

// Loss says why a lock was lost while its execution ran. The zero value: it was not.
type Loss string

// The losses.
const (
	LossSession  Loss = "session_lost" // etcd ended the session early, and another process ended the execution
	LossUnheard  Loss = "unheard"      // the session was not renewed in time, so the process may not act for it
	LossReleased Loss = "released"     // a person released the lock by force
)

// EventName names a log event (docs/logs.md).
type EventName string

// The events of one delivery.
const (
	EventAcquired EventName = "lock.acquired"
	EventRefused  EventName = "lock.refused"
	EventReleased EventName = "lock.released"
	// EventHeld: the lock outlives the answer, and is no longer this process's.
	EventHeld    EventName = "lock.held"
	EventLost    EventName = "lock.lost"
	EventUnknown EventName = "execution.unknown"
	// EventCancelled: a person asked for the end of the execution, which waited or ran here.
	EventCancelled EventName = "execution.cancelled"
	// EventTried: the upstream was called for a parked execution, whose sender was answered before.
	EventTried EventName = "execution.tried"
)

// The events of an execution whose sender was answered before: what follows a try.
const (
	EventRetry      EventName = "execution.retry"      // it is tried again
	EventDone       EventName = "execution.done"       // an answer settled it
	EventBlocked    EventName = "execution.blocked"    // its workflow waits for a person
	EventDeadLetter EventName = "execution.dead"       // it ended without having gone through, and its request is kept
	EventSuperseded EventName = "execution.superseded" // it did not run, because a newer event of its scope had gone through
	EventCarried    EventName = "execution.lost"       // another replica runs it, or it was ended
)

// Observer hears of deliveries. The Report is the caller's: it is valid during the call.
type Observer interface {
	// Delivered: a delivery on a route has ended, or one was rejected.
	Delivered(*Report)
	// Passed: a request that no route took has passed through, or could not.
	Passed(*Report)
	Event(EventName, *Report)
}

// Observers are several that hear of the same.
type Observers []Observer

// Delivered implements Observer.
func (all Observers) Delivered(r *Report) {
	for _, o := range all {
		o.Delivered(r)
	}
}

// Passed implements Observer.
func (all Observers) Passed(r *Report) {
	for _, o := range all {
		o.Passed(r)
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
	// Begin begins the trace of a delivery that has found its route. parent is the sender's span, and tracestate, which is valid during the
	// call, its header of that name; empty where it sent none. It is nil where the delivery is not recorded.
	Begin(r *Report, parent idem.TraceContext, tracestate []byte) Trace
	// Try begins the trace of one more call of the upstream for a delivery that was accepted, whose span is accepted: a trace of its own, with a
	// link to that. It is nil where the call is not recorded.
	Try(r *Report, accepted idem.TraceContext) Trace
}

// Trace is the trace of one delivery. It is for one goroutine, but for Call, which another one may ask while it ends, or later.
type Trace interface {
	// Context holds the delivery's span, for exemplars.
	Context() context.Context
	// TraceParent is the delivery's span: what duplicates of the event link to.
	TraceParent() idem.TraceContext
	// Call is the span of the call of the upstream, as W3C spells it, begun now.
	Call() string
	// End ends the trace. Nothing of r changes any more.
	End(r *Report)
}
