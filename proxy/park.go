package proxy

import (
	"bytes"
	"context"
	"errors"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/proxy/kept"
)

// A delivery is parked if its sender would get a refusal that only needs time, or would wait longer than it can (docs/park.md): its bytes are
// committed, then the sender gets its 2xx, and the execution goes on without it.

// Requests store the requests of parked executions. In production it is *parked.Keeper.
type Requests interface {
	// Keep stores r, and returns the value for the ledger. What is stored elsewhere is durable then.
	Keep(ctx context.Context, id idem.ExecutionID, r *kept.Request) ([]byte, error)
	// Size returns how many bytes a value of Keep stands for.
	Size(value []byte) (int64, error)
	// Fetch returns the request of a value of Keep.
	Fetch(ctx context.Context, id idem.ExecutionID, value []byte) (*kept.Request, error)
}

// parking returns what the gate needs to park the delivery, so that it can outlive this process; nil if its route parks nothing.
func (d *delivery) parking() *idem.Parking {
	p := d.route.Policy.Park
	if p == nil || d.h.o.Requests == nil || d.answerIsUsed() {
		return nil
	}
	near := d.route.ParkNearLimit && d.h.o.NearLimit != nil && d.h.o.NearLimit(d.route.Name)
	keep := func(ctx context.Context, id idem.ExecutionID) (idem.Kept, error) {
		r := d.req.stored()
		r.Arrived, r.TraceParent = d.report.Started, d.trace.String()
		value, err := d.h.o.Requests.Keep(ctx, id, r)
		if err != nil {
			return idem.Kept{}, err
		}
		size, err := d.h.o.Requests.Size(value)
		return idem.Kept{Value: value, Bytes: size, MaxAge: p.MaxAge}, err
	}
	return &idem.Parking{AtOnce: near, Patience: d.patience(), Size: d.req.size(), Keep: keep}
}

// answerIsUsed reports whether the sender does more with the answer than to read its status: then only the service can give it.
func (v *Verification) answerIsUsed(q *request) bool {
	return v.Preset != nil && v.Preset.Facts.AnswerIsUsed(q.asSigned())
}

// answerIsUsed is that of its route.
func (d *delivery) answerIsUsed() bool {
	defer d.awaitParser()()
	return d.route.Verify.answerIsUsed(&d.req)
}

// patience returns how long the sender still waits.
func (d *delivery) patience() time.Duration {
	return d.route.Policy.Park.After - d.h.o.Now().Sub(d.report.Started)
}

// parkedAs returns the ending of a delivery that was accepted as that execution, for a reason, or is a duplicate of it.
func (d *delivery) parkedAs(id idem.ExecutionID, on idem.ParkOn) *ending {
	end := d.refuse(idem.DecisionParked)
	d.report.Gate, d.report.Execution, d.report.ParkedOn = idem.DecisionParked, id, on
	end.refusal.execution = id
	return end
}

// park returns the ending of a delivery whose call did not bring the answer that its sender should get, if it could be parked; nil otherwise.
func (a *attempt) park() *ending {
	x := a.execution
	if a.accepted || a.asked.Parking == nil || x.Parked() {
		return nil
	}
	on, last := a.parkedOn()
	if on == "" || !x.MayPark(a.asked, on) {
		return nil
	}
	if cause := context.Cause(x.Context()); cause != nil && !errors.Is(cause, guard.ErrShutdown) && !errors.Is(cause, guard.ErrMaxDuration) {
		return nil // it was cancelled, or belongs to another process
	}
	if a.route.Observe {
		a.report.Would = idem.DecisionParked
		return nil
	}
	if err := x.Park(a.asked, on, last); err != nil {
		a.report.Err, a.unsure = errors.Join(a.report.Err, err), errors.Is(err, idem.ErrNotRecorded)
		return nil
	}
	a.handOver()
	return a.parkedAs(x.Lock().Execution, on)
}

// judge says what the call means for its event.
func (a *attempt) judge() idem.Judgement {
	p, answer := &a.route.Policy, &a.call.answer
	if a.err != nil {
		return idem.Judge(p, idem.Try{Sent: a.sent})
	}
	hold, _ := holdFor(p, answer)
	return idem.Judge(p, idem.Try{Status: answer.Status, Sent: true, Held: hold > 0, Challenge: isChallenge(&a.req, answer)})
}

// parkedOn returns the reason to park such a delivery, and what is known of its call; "": there is none.
func (a *attempt) parkedOn() (idem.ParkOn, *idem.Evidence) {
	answer := &a.call.answer
	if a.err == nil && !answer.Whole {
		return "", nil
	}
	j := a.judge()
	last := &idem.Evidence{Outcome: j.Outcome, At: a.h.o.Now(), Code: string(a.why.decision), Detail: a.why.cause}
	if a.err == nil {
		last.Status, last.Code, last.Detail = answer.Status, idem.CodeUpstreamStatus, ""
	}
	return j.ParkOn, last
}

// handOver reports to the park worker how the call of the execution ended.
func (a *attempt) handOver() {
	if a.err != nil {
		a.giveUp()
		return
	}
	answer := &a.call.answer
	a.settleAnswered(idem.Answer{
		Status: answer.Status, Bytes: int64(len(answer.Body)), Whole: true, Header: a.call.replayHeader(), Body: bytes.Clone(answer.Body),
	})
}

// noteTry notes for the report how a try ended.
func (a *attempt) noteTry() { a.report.Outcome = a.judge().Outcome }
