package proxy

import (
	"time"

	"hooklock/idem"
)

// Report is what became of one delivery, for logs and metrics. Nothing in it is a secret, a signature or a body.
type Report struct {
	Route    string
	Decision idem.Decision
	Would    idem.Decision // what a bypassed delivery would have got
	Code     string        // of a rejection
	Status   int           // of the answer
	// Signature is valid, or why it is not (sender.Reason); empty where Scheme asks for none. SignaturePart is what the reason is
	// about.
	Scheme, Signature, SignaturePart string
	Workflow                         string
	Key                              string // short
	Execution                        idem.ExecutionID
	Attempt                          int
	Outcome                          idem.Outcome
	Recorded                         bool
	TraceID                          string
	Total                            time.Duration
	Upstream                         time.Duration // 0: it was not called
	Held                             time.Duration // how long the lock was held
	Hold                             time.Duration // how long it outlives the answer; 0: it does not
	By                               string        // who cancelled it
	Err                              error
}

// EventName names a log event (docs/operations.md).
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
)

// Observer hears of deliveries. The Report is the caller's: it is valid during the call.
type Observer interface {
	Delivered(*Report)
	Event(EventName, *Report)
}
