package proxy

import (
	"cmp"

	"hooklock/idem"
	"hooklock/proxy/sender"
)

// ending is how a delivery ends: the decision, and the answer. A stage returns one in place of the
// input of the next stage; applyPolicy applies the route's rules, and writeEnding makes it the
// answer. It lives in its delivery, so that none is allocated.
type ending struct {
	decision idem.Decision // "": no route took the delivery
	source   source
	forward  forward

	refusal  refusal                 // of fromHooklock
	rejected *Rejection              // of the decision rejected; nil otherwise
	first    *idem.Answer            // of fromFirst
	bare     bool                    // of the first answer, the status alone
	greeting *sender.HandshakeAnswer // of fromRule
	body     []byte                  // of the answer; nil: it has none, or it is pooled, or a stream
	pooled   bool                    // the body is in the delivery's memory
	stream   *answerStream

	err error // for the report; nil: nothing to add
	// hangUp ends the connection, because what follows on it cannot be told from the rest of this
	// request: fasthttp would take an unread body for the next request, and a sender could hide a
	// whole request in it from a proxy in front that checks requests.
	hangUp     bool
	unrecorded bool // the answer is right, but the ledger does not have it yet
	left       bool // of the first answer only the status is in the ledger, because the rest has expired
}

// source is where an answer comes from. The zero value is Hooklock itself.
type source uint8

const (
	fromHooklock source = iota
	fromUpstream
	fromFirst // the upstream too, when the event ran
	fromTunnel
	fromRule // the route's answer to a handshake
)

// forward says whether a delivery that does not run goes to the upstream all the same.
type forward uint8

const (
	forwardNever  forward = iota
	forwardByRule         // if the route says so: nothing was sent before, and the delivery is complete
	forwardAlways         // it needs neither a lock nor a record
)

// withForward returns the ending of a delivery that may go to the upstream all the same.
func (e *ending) withForward(f forward) *ending {
	e.forward = f
	return e
}

// hangingUp returns the ending of a delivery after which its connection is closed.
func (e *ending) hangingUp() *ending {
	e.hangUp = true
	return e
}

// refuseWith returns the ending of a delivery that is refused with that decision.
func (d *delivery) refuseWith(decision idem.Decision) *ending {
	d.end = ending{decision: decision, refusal: refusalOf(decision)}
	return &d.end
}

// rejectWith returns the ending of a delivery that is refused for its form. What follows on its
// connection may be the rest of it.
func (d *delivery) rejectWith(bad *Rejection) *ending {
	d.report.Code = bad.Code
	d.end = ending{decision: idem.DecisionRejected, refusal: bad.asRefusal(), rejected: bad, err: bad}
	d.end.hangUp = bad.Status == 408 || bad.Status == 413 ||
		d.route == nil && (bad.Status == 400 || d.req.head.HasBody())
	return &d.end
}

// applyPolicy applies the route's rules to an ending: mode observe and on_store_down forward the
// delivery all the same, and respond gives a refusal another status.
func (d *delivery) applyPolicy(end *ending) *ending {
	r := d.route
	if r == nil {
		return end
	}
	rule := r.Observe || r.Forward && end.decision == idem.DecisionStoreUnavailable
	switch {
	case end.forward == forwardAlways || end.forward == forwardByRule && rule:
		d.report.Would = end.decision
		end = d.forwardUnlocked()
	case r.Observe && (end.decision == idem.DecisionExecuted || end.decision == idem.DecisionChallenged):
		// also one that was decided as under enforce is marked as observed
		if d.report.Would == "" {
			d.report.Would = end.decision
		}
		if p := r.Policy.Park; p != nil && p.Slow && d.patienceLeft() < 0 {
			d.report.Would = idem.DecisionParked
		}
		end.decision = idem.DecisionBypassed
	}
	// a 503 says that this process has no capacity now, and nothing about the delivery
	if end.rejected == nil || end.rejected.Status < 500 {
		end.refusal.status = cmp.Or(r.Respond[end.decision], end.refusal.status)
	}
	if end.decision == idem.DecisionParked {
		end.refusal.status = r.parkedStatus()
	}
	return end
}
