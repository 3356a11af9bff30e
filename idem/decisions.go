package idem

import (
	"log/slog"
	"slices"
)

// Decision is what Hooklock did with one delivery. A new one needs a name and a row here, a row in
// docs/answers.md, and the code that decides it.
type Decision string

// The decisions, in the order of the table in docs/answers.md: what happened, and what the sender
// gets unless its route says otherwise.
const (
	DecisionExecuted            Decision = "executed"             // the event ran: the upstream's answer
	DecisionReplayed            Decision = "replayed"             // it had ended: the first answer again
	DecisionAttached            Decision = "attached"             // a copy ran: the answer of that one
	DecisionInFlight            Decision = "in_flight"            // a copy runs or waits: 409
	DecisionLocked              Decision = "locked"               // another event of the workflow runs: 409
	DecisionLimited             Decision = "limited"              // a limit has no slot: 429
	DecisionWaitTimeout         Decision = "wait_timeout"         // the lock was not free in time: 409
	DecisionQueueFull           Decision = "queue_full"           // too many wait already: 429
	DecisionSkipped             Decision = "skipped"              // the lock is taken, strategy skip: 200
	DecisionSuperseded          Decision = "superseded"           // a newer event counts instead: 200
	DecisionStale               Decision = "stale_event"          // a newer event went through: 409
	DecisionParked              Decision = "parked"               // accepted, to run later: 202
	DecisionThrottled           Decision = "throttled"            // too many new events: 503
	DecisionPaused              Decision = "paused"               // its route or workflow is paused: 503
	DecisionMismatch            Decision = "mismatch"             // the event ID came with another request: 422
	DecisionUnknown             Decision = "unknown"              // an earlier outcome is unknown: 409
	DecisionExhausted           Decision = "exhausted"            // it failed too often: 409
	DecisionPaced               Decision = "paced"                // it keeps failing at once: 409
	DecisionAborted             Decision = "aborted"              // it was cancelled: 503
	DecisionLockLost            Decision = "lock_lost"            // the lock was lost while it ran: 503
	DecisionUpstreamUnreachable Decision = "upstream_unreachable" // no byte reached the upstream: 502
	DecisionUpstreamFailed      Decision = "upstream_failed"      // the exchange broke: 502
	DecisionUpstreamTimeout     Decision = "upstream_timeout"     // no answer came in time: 504
	DecisionStoreUnavailable    Decision = "store_unavailable"    // etcd cannot decide: 503
	DecisionBypassed            Decision = "bypassed"             // forwarded without a lock: the upstream's answer
	DecisionAnswered            Decision = "answered"             // a handshake: the answer of the route
	DecisionChallenged          Decision = "challenged"           // the upstream wants credentials: its 401
	DecisionUnverified          Decision = "unverified"           // the signature is not valid: 401
	DecisionRejected            Decision = "rejected"             // the request is not acceptable: 4xx or 503
	DecisionInternalError       Decision = "internal_error"       // a bug: 500
)

// DecisionRow is all that is said of a decision: to the sender, in metrics, in the log and in the
// report. The zero value is of no decision.
type DecisionRow struct {
	Decision Decision // the one that the row is about
	Class    Class    // what it means for metrics and the report
	// Status is the status of the answer that Hooklock makes itself; 0: the answer is the
	// upstream's, or the first delivery's.
	Status int
	// Code is the answer's, for programs; "" where the delivery has one of its own (rejected), or
	// where Status is 0.
	Code string
	// Effect tells the sender whether the event was executed; "" if Status is 0.
	Effect Effect
	Title  string // the problem's, of RFC 9457; "" if Status is 0
	// Detail is the text for the sender if nothing more precise is known. "EXECUTION" in it is
	// replaced by the execution that stands in the way.
	Detail string
	// Happened and Todo are for the operator: what happened, as the end of a sentence, and what to
	// do about it. Todo is "" if there is nothing to do.
	Happened, Todo string
	// Droppable says that the route decides that the event need not run, so a 2xx loses nothing.
	// Otherwise a 2xx would tell the sender that an event succeeded that may not have run.
	Droppable bool
	// MayBeLost says that the delivery did not run, and that its event runs only if the sender
	// sends it again.
	MayBeLost bool
	// Conflict says that the answer has the fields that clients of the older in-application locks
	// read.
	Conflict bool
	// Taken says that a lock was in the way; the log event is lock.refused.
	Taken bool
	// Routine says that the delivery needs no attention, so its log line may be sampled away.
	Routine bool
	// Acquisition is the word for the metric of locks; "" if the decision was not about the lock.
	Acquisition string
	// Lookup is the word for the metric of events; "" if no event was looked up.
	Lookup string
	Level  slog.Level // of the delivery's log line
}

// Class says what a decision is about. The zero value is that of a delivery that ran, or of which
// there is nothing more to say.
type Class uint8

// The classes.
const (
	// a duplicate of an event that is settled, runs, or ended in a way that lets no duplicate run
	ClassDuplicate Class = iota + 1
	ClassOverlap         // another event of the workflow ran
	ClassMismatch        // a known event ID with another request
	ClassForged          // the signature was not valid
	ClassUnnamed         // no workflow or key could be made of it, or it was refused for its form
	ClassFailed          // the execution ended without an answer
	ClassBug             // the execution ended without an answer, because of a bug in Hooklock
	ClassStale           // it is older than an event of its scope that went through
)

// Effect is what the response says about whether the event was executed.
type Effect string

// The effects. The zero value is that of an answer of the upstream, which speaks for itself.
const (
	EffectYes     Effect = "yes"     // the event was executed
	EffectNo      Effect = "no"      // this delivery did not execute it
	EffectUnknown Effect = "unknown" // it may have been
)

// decisions is the only table of decisions.
var decisions = [...]DecisionRow{
	{Decision: DecisionExecuted, Routine: true, Acquisition: "acquired", Lookup: "miss", Happened: "it ran"},
	{Decision: DecisionReplayed, Class: ClassDuplicate, Routine: true, Lookup: "hit",
		Happened: "a duplicate, which got the first answer again"},
	{Decision: DecisionAttached, Class: ClassDuplicate, Routine: true, Lookup: string(DecisionInFlight),
		Happened: "a duplicate, which waited for the running one and got its answer"},
	{
		Decision: DecisionInFlight, Class: ClassDuplicate, Status: 409, Code: "execution_in_flight", Effect: EffectNo,
		MayBeLost: true,
		Happened:  "a duplicate, while the same event was running",
		Title:     "This event is being executed",
		Detail:    "a copy of this event is being executed; send it again to get its answer",
		Conflict:  true, Taken: true, Lookup: string(DecisionInFlight),
	}, {
		Decision: DecisionLocked, Class: ClassOverlap, Status: 409, Code: "workflow_locked", Effect: EffectNo,
		MayBeLost: true,
		Happened:  "the workflow was busy with another event", Todo: "If the running event is stuck, cancel it",
		Title: "The workflow is locked", Detail: "only one event of this workflow runs at a time; send this one again",
		Conflict: true, Taken: true, Acquisition: string(DecisionLocked), Lookup: "miss",
	}, {
		Decision: DecisionLimited, Class: ClassOverlap, Status: 429, Code: "limit_reached", Effect: EffectNo,
		MayBeLost: true,
		Happened:  "a limit of the route had no free slot", Todo: "If an event that has a slot is stuck, cancel it",
		Title: "A limit is reached", Detail: "as many events run as a limit of this route lets; nothing was " +
			"executed, send this one again",
		Taken: true, Acquisition: string(DecisionLimited), Lookup: "miss",
	}, {
		Decision: DecisionWaitTimeout, Class: ClassOverlap, Status: 409, Code: "lock_wait_timeout", Effect: EffectNo,
		MayBeLost: true,
		Happened:  "the workflow stayed busy for as long as the route lets a delivery wait",
		Todo:      "If the running event is stuck, cancel it",
		Title:     "The lock did not become free in time",
		Detail: "the delivery waited for its turn for as long as the route lets it; nothing was executed, send it " +
			"again",
		Conflict: true, Taken: true, Acquisition: string(DecisionWaitTimeout), Lookup: "miss",
	}, {
		Decision: DecisionQueueFull, Class: ClassOverlap, Status: 429, Code: "too_many_waiting", Effect: EffectNo,
		MayBeLost: true,
		Happened:  "as many deliveries were waiting as may", Todo: "If the running event is stuck, cancel it",
		Title:  "Too many deliveries wait",
		Detail: "as many deliveries wait as may; nothing was executed, send it again",
		Taken:  true, Acquisition: string(DecisionQueueFull), Lookup: "miss",
	}, {
		Decision: DecisionSkipped, Class: ClassOverlap, Status: 200, Code: "already_running", Effect: EffectNo,
		Happened:  "the workflow was busy, and the route skips events meanwhile",
		Todo:      "To run it all the same, resend it at the sender",
		Droppable: true, Taken: true, Acquisition: string(DecisionSkipped), Lookup: "miss",
	}, {
		Decision: DecisionSuperseded, Class: ClassStale, Status: 200, Code: "superseded", Effect: EffectNo,
		Happened:  "a newer event had gone through, and the route skips older ones",
		Droppable: true, Acquisition: "acquired", Lookup: "miss",
	}, {
		Decision: DecisionStale, Class: ClassStale, Status: 409, Code: "stale_event", Effect: EffectNo,
		Happened: "a newer event of its scope had gone through", Todo: "To run it all the same, run it at the service",
		Title:       "A newer event of its scope has gone through",
		Detail:      "a newer event of its scope has gone through; nothing was executed",
		Droppable:   true,
		Acquisition: "acquired", Lookup: "miss",
	}, {
		Decision: DecisionParked, Status: 202, Code: "accepted", Effect: EffectNo,
		Happened:  "it was accepted and runs in its turn",
		Droppable: true, Acquisition: string(DecisionParked), Lookup: "miss",
	}, {
		Decision: DecisionThrottled, Status: 503, Code: "too_many_new_events", Effect: EffectNo, MayBeLost: true,
		Happened: "more new events came than the route takes in a second",
		Todo:     "If the load is real, raise new_per_second",
		Title:    "Too many new events on this route",
		Detail:   "more new events come than the route takes in a second; nothing was executed, send it again",
		Lookup:   "miss",
	}, {
		Decision: DecisionPaused, Status: 503, Code: "workflow_paused", Effect: EffectNo, MayBeLost: true,
		Happened: "its route or workflow was paused", Todo: "Resume it when the service is ready",
		Title:       "Events of this workflow are paused",
		Detail:      "these events are paused for a while; nothing was executed, send it again",
		Acquisition: string(DecisionPaused), Lookup: "miss",
	}, {
		Decision: DecisionMismatch, Class: ClassMismatch, Status: 422, Code: "idempotency_key_reused", Effect: EffectNo,
		Happened: "the event ID had been used for another request",
		Todo:     "Check the sender: two events share an ID, or it changes an event between attempts",
		Title:    "This event ID was used for another request",
		Detail:   "this event ID came before with another method, host, path, query or body; nothing was executed",
		Lookup:   string(DecisionMismatch),
	}, {
		Decision: DecisionUnknown, Class: ClassDuplicate, Status: 409, Code: "outcome_unknown", Effect: EffectUnknown,
		Happened: "an earlier run of the event ended with an unknown outcome",
		Todo:     "Check the service, then allow the event again",
		Title:    "An earlier execution of this event ended with an unknown outcome",
		Detail: "it is unknown whether the earlier execution of this event took effect; the operator of this " +
			"endpoint has to look, " +
			"and lets it run again with: hooklock forget EXECUTION --reason TEXT",
		Lookup: string(DecisionUnknown),
	}, {
		Decision: DecisionExhausted, Class: ClassDuplicate, Status: 409, Code: CodeAttemptsExhausted,
		Effect:   EffectUnknown,
		Happened: "the event had failed as often as its route lets it",
		Todo:     "Repair the service or the event, then allow the event again",
		Title:    "This event has failed as often as it may",
		Detail: "as many attempts of this event failed as its route allows, and nothing was executed now; the " +
			"operator of this endpoint has to look, " +
			"and lets it run again with: hooklock forget EXECUTION --reason TEXT",
		Lookup: string(DecisionExhausted),
	}, {
		Decision: DecisionPaced, Class: ClassDuplicate, Status: 409, Code: "event_paced", Effect: EffectNo,
		MayBeLost: true,
		Happened:  "its attempts had ended within a second, without an answer of the service",
		Todo:      "Look why the service fails at once",
		Title:     "This event fails at once, again and again",
		Detail: "the latest attempts of this event ended within a second, and the service seems to fail of it; " +
			"nothing was executed now, send it again after the pause",
		Lookup: string(DecisionPaced),
	}, {
		Decision: DecisionAborted, Class: ClassFailed, Status: 503, Code: "execution_aborted", Effect: EffectUnknown,
		Happened:    "its run was cancelled",
		Title:       "The execution was aborted",
		Detail:      "the execution was cancelled before anything was sent to the upstream",
		Acquisition: string(DecisionAborted), Lookup: string(DecisionAborted),
	}, {
		Decision: DecisionLockLost, Class: ClassFailed, Status: 503, Code: "lock_lost", Effect: EffectUnknown,
		Happened: "the lock was lost while it ran", Todo: "Check the service: it may have taken effect",
		Title:  "The lock was lost while the event was executed",
		Detail: "the lock was lost; another execution may have it", Lookup: string(DecisionInFlight),
		Level: slog.LevelWarn,
	}, {
		Decision: DecisionUpstreamUnreachable, Class: ClassFailed, Status: 502, Code: "upstream_unreachable",
		Effect: EffectNo, MayBeLost: true,
		Happened: "the service could not be reached", Todo: "Check that the service is up",
		Title:  "The upstream could not be reached",
		Detail: "no byte was sent to the upstream; the event may be delivered again", Lookup: string(DecisionInFlight),
		Level: slog.LevelWarn,
	}, {
		Decision: DecisionUpstreamFailed, Class: ClassFailed, Status: 502, Code: "upstream_failed",
		Effect:   EffectUnknown,
		Happened: "the service closed the connection without a whole answer",
		Todo:     "Check the service: it may have taken effect",
		Title:    "The upstream broke off",
		Detail:   "the upstream took the request and its answer broke off; it may have executed the event",
		Lookup:   string(DecisionInFlight), Level: slog.LevelWarn,
	}, {
		Decision: DecisionUpstreamTimeout, Class: ClassFailed, Status: 504, Code: "upstream_timeout",
		Effect:   EffectUnknown,
		Happened: "the service did not answer in time", Todo: "Check the service: it may have taken effect",
		Title:  "The upstream did not answer in time",
		Detail: "the upstream took the request and did not answer in time; it may have executed the event",
		Lookup: string(DecisionInFlight), Level: slog.LevelWarn,
	}, {
		Decision: DecisionStoreUnavailable, Status: 503, Code: "store_unavailable", Effect: EffectNo, MayBeLost: true,
		Happened: "etcd could not be reached", Todo: "Check etcd",
		Title: "The lock store cannot decide now", Detail: "nothing was executed; send the event again",
		Acquisition: string(DecisionStoreUnavailable), Lookup: string(DecisionStoreUnavailable), Level: slog.LevelWarn,
	},
	{Decision: DecisionBypassed, Happened: "it was forwarded without a lock"},
	{Decision: DecisionAnswered, Happened: "Hooklock answered it without the service, as the sender asked"},
	{
		Decision: DecisionChallenged, Happened: "the service asked the sender to authenticate first",
		Todo: "If it does not come again, check the sender's credentials for the service",
	},
	{
		Decision: DecisionUnverified, Class: ClassForged, Status: 401, Code: "signature_invalid", Effect: EffectNo,
		Happened: "a bad signature", Todo: "Compare the secret here with that at the sender",
		Title: "The signature is not valid", Detail: "its signature is not accepted",
	},
	{Decision: DecisionRejected, Class: ClassUnnamed, Status: 400, Effect: EffectNo,
		Happened: "no workflow or event ID could be read from it",
		// each code of its own, in proxy/rejection.go
		Todo: "The log says why; hooklock explain shows the rules of the route"},
	{
		Decision: DecisionInternalError, Class: ClassBug, Status: 500, Code: "internal_error", Effect: EffectUnknown,
		Happened: "a bug in Hooklock", Todo: "Its log has the details",
		Title: "Internal error", Detail: "this is a bug in Hooklock; its log has the details",
		Lookup: string(DecisionInFlight), Level: slog.LevelError,
	},
}

// Decisions returns the rows, in the order of docs/answers.md. The caller owns the slice.
func Decisions() []DecisionRow { return slices.Clone(decisions[:]) }

// Row returns the row of d; the zero value if there is none.
func (d Decision) Row() DecisionRow {
	for i := range decisions {
		if decisions[i].Decision == d {
			return decisions[i]
		}
	}
	return DecisionRow{}
}

// Own reports whether Hooklock makes the answer itself, so that a route can choose its status.
func (r *DecisionRow) Own() bool { return r.Status != 0 }
