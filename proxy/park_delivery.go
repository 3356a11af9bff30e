package proxy

import (
	"context"
	"time"

	"hooklock/idem"
	"hooklock/proxy/kept"
)

// A delivery is parked if its sender would get a refusal that only needs time, or would wait longer
// than it can (docs/park.md): its bytes are committed, then the sender gets its 2xx, and the
// execution goes on without it.

// Requests store the requests of parked executions. In production it is *parked.Keeper.
type Requests interface {
	// Keep stores r, and returns the value for the ledger. What is stored elsewhere is durable
	// then.
	Keep(ctx context.Context, id idem.ExecutionID, r *kept.Request) ([]byte, error)
	// Size returns how many bytes a value of Keep stands for.
	Size(value []byte) (int64, error)
	// Fetch returns the request of a value of Keep.
	Fetch(ctx context.Context, id idem.ExecutionID, value []byte) (*kept.Request, error)
}

// newParking returns what the gate needs to park the delivery, so that it can outlive this process;
// nil if its route parks nothing.
func (d *delivery) newParking() *idem.Parking {
	p := d.route.Policy.Park
	if p == nil || d.handler.options.Requests == nil || d.answerIsUsed() {
		return nil
	}
	near := d.route.ParkNearLimit && d.handler.options.NearLimit != nil && d.handler.options.NearLimit(d.route.Name)
	keep := func(ctx context.Context, id idem.ExecutionID) (idem.StoredRequest, error) {
		value, err := d.handler.options.Requests.Keep(ctx, id, d.storedRequest())
		if err != nil {
			return idem.StoredRequest{}, err
		}
		size, err := d.handler.options.Requests.Size(value)
		return idem.StoredRequest{Value: value, Bytes: size, MaxAge: p.MaxAge}, err
	}
	return &idem.Parking{AtOnce: near, Patience: d.patienceLeft(), Size: d.req.byteSize(), Store: keep}
}

// storedRequest returns the delivery as it is stored. It shares the memory of its body.
func (d *delivery) storedRequest() *kept.Request {
	r := d.req.storedRequest()
	r.Arrived, r.TraceParent = d.report.Started, d.trace.String()
	return r
}

// archiveRequest keeps the request of an execution that the upstream is about to be called for, if
// its route does. Of the tries of a parked one, the first does it.
func (d *delivery) archiveRequest(l *idem.Lock) {
	keep := d.route.KeepRequests
	if keep == 0 || d.handler.options.Archive == nil || d.route.Observe || l.Parked != nil && l.Parked.Tries > 1 {
		return
	}
	r := d.original // its signature may have been renewed since
	if r == nil {
		r = d.storedRequest()
	}
	d.handler.options.Archive(&l.ExecutionFacts, keep, r)
}

// answerIsUsed reports whether the sender does more with the answer than to read its status: then
// only the service can give it.
func (v *Verification) answerIsUsed(q *request) bool {
	return v.Preset != nil && v.Preset.Facts.AnswerIsUsed(q.asSigned())
}

// answerIsUsed is that of its route.
func (d *delivery) answerIsUsed() bool {
	defer d.awaitParser()()
	return d.route.Verify.answerIsUsed(&d.req)
}

// patienceLeft returns how long the sender still waits.
func (d *delivery) patienceLeft() time.Duration {
	return d.route.Policy.Park.After - d.handler.options.Now().Sub(d.report.Started)
}

// endParked returns the ending of a delivery that was accepted as that execution, for a reason, or
// is a duplicate of it.
func (d *delivery) endParked(id idem.ExecutionID, on idem.ParkOn) *ending {
	end := d.refuseWith(idem.DecisionParked)
	d.report.Gate, d.report.Execution, d.report.ParkedOn = idem.DecisionParked, id, on
	end.refusal.execution = id
	return end
}
