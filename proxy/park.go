package proxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"hooklock/idem"
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

// parking returns what the gate needs to park the delivery; nil if its route parks nothing.
func (d *delivery) parking() *idem.Parking {
	p := d.route.Policy.Park
	if p == nil || d.h.o.Requests == nil || d.route.Verify.answerIsUsed(&d.req) {
		return nil
	}
	near := d.route.ParkNearLimit && d.h.o.NearLimit != nil && d.h.o.NearLimit(d.route.Name)
	return &idem.Parking{AtOnce: near, Patience: d.patience(), Size: d.req.size(), Keep: d.keep}
}

// answerIsUsed reports whether the sender does more with the answer than to read its status: then only the service can give it.
func (v *Verification) answerIsUsed(q *request) bool {
	return v.Preset != nil && v.Preset.Facts.AnswerIsUsed(q.asSigned())
}

// patience returns how long the sender still waits.
func (d *delivery) patience() time.Duration {
	return d.route.Policy.Park.After - d.h.o.Now().Sub(d.report.Started)
}

// keep stores the request, so that the delivery can outlive this process.
func (d *delivery) keep(ctx context.Context, id idem.ExecutionID) (idem.Kept, error) {
	r := d.req.stored()
	r.Arrived, r.TraceParent = d.report.Started, d.trace.String()
	value, err := d.h.o.Requests.Keep(ctx, id, r)
	if err != nil {
		return idem.Kept{}, err
	}
	size, err := d.h.o.Requests.Size(value)
	return idem.Kept{Value: value, Bytes: size, MaxAge: d.route.Policy.Park.MaxAge}, err
}

// run calls the upstream and settles. A sender that stops waiting meanwhile is told that the delivery is accepted, and the call goes on.
func (d *delivery) run(ctx *fasthttp.RequestCtx) *ending {
	if !d.parksSlow() {
		return d.execute()
	}
	front, began := d.front(), d.h.o.Now()
	ended, left, alone := make(chan *ending, 1), make(chan struct{}), false
	d.h.calls.Go(func() {
		growStack()
		end := d.contained(d.execute)
		ended <- end
		if <-left; alone {
			d.accepted, d.detached, d.report.Trace = true, false, nil // front has both reported
			end.readAlone()
			d.finish()
		}
	})
	timer := time.NewTimer(d.patience())
	defer timer.Stop()
	for waits := true; waits; {
		select {
		case end := <-ended:
			close(left)
			d.h.pool.put(front)
			return end
		case <-timer.C:
			waits = !d.parkSlow(front)
			timer.Reset(parkAgain) // it is about to end, or its sender waits as on any route
		}
	}
	front.report.Upstream = d.h.o.Now().Sub(began) // so far
	d.left, d.detached, alone = left, true, true
	defer front.contain(ctx)
	front.answerWith(ctx, front.policy(front.parkedAs(d.execution.Lock().Execution, idem.ParkSlow)))
	return nil
}

// parkSlow parks d, whose call goes on, if it can be. An error belongs to front: d is in use by its call.
func (d *delivery) parkSlow(front *delivery) (parked bool) {
	defer func() {
		if p := recover(); p != nil {
			front.logPanic(p)
		}
	}()
	return d.execution.MayPark(d.asked, idem.ParkSlow) && d.execution.Park(d.asked, idem.ParkSlow, nil) == nil
}

// readAlone reads an answer that is too long to be read whole, if no stream does: its end is the outcome.
func (e *ending) readAlone() {
	if e.stream != nil {
		_ = e.stream.Close()
	}
}

// growStack makes room on the stack of a new goroutine for a call of the upstream at once. Bit by bit, the stack is copied with all that is on it,
// which took 5 % of a delivery's CPU.
//
//go:noinline
func growStack() {
	var room [20 << 10]byte
	runtime.KeepAlive(&room)
}

// parkAgain is how often parking is tried again for a delivery whose sender has stopped waiting: there may be room, or a store, again.
const parkAgain = time.Second

// parksSlow reports whether the route parks what is slow, and this delivery can be.
func (d *delivery) parksSlow() bool {
	p := d.route.Policy.Park
	return p != nil && p.Slow && d.asked.Parking != nil && !d.route.Observe && (p.MaxBytes == 0 || d.asked.Parking.Size <= p.MaxBytes)
}

// front returns a delivery that answers in the place of d while the call of d goes on. They share no memory that changes.
func (d *delivery) front() *delivery {
	f := d.h.pool.get(d.h)
	f.route, f.base, f.trace, f.report, f.names = d.route, d.base, d.trace, d.report, d.names
	f.req.peer = append(f.req.peer, d.req.peer...)
	return f
}

// parkedAs returns the ending of a delivery that was accepted as that execution, for a reason, or is a duplicate of it.
func (d *delivery) parkedAs(id idem.ExecutionID, on idem.ParkOn) *ending {
	end := d.refuse(idem.DecisionParked)
	d.report.Gate, d.report.Execution, d.report.ParkedOn = idem.DecisionParked, id, on
	end.refusal.execution = id
	return end
}

// contained runs a stage outside of the handler, and recovers from its panics.
func (d *delivery) contained(stage func() *ending) (end *ending) {
	defer func() {
		if p := recover(); p != nil {
			d.logPanic(p)
			d.abandon()
			if d.execution.Parked() {
				d.report.Outcome = idem.Unknown
			}
			end = d.refuse(idem.DecisionInternalError)
		}
	}()
	return stage()
}

// park returns the ending of a delivery whose call did not bring the answer that its sender should get, if it could be parked; nil otherwise.
func (a *attempt) park() *ending {
	x := a.execution
	on, last := a.parkedOn()
	if on == "" || a.accepted || x.Parked() || !x.MayPark(a.asked, on) {
		return nil
	}
	if cause := context.Cause(x.Context()); cause != nil && !errors.Is(cause, idem.ErrShutdown) && !errors.Is(cause, idem.ErrMaxDuration) {
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

// parkedOn returns the reason to park such a delivery, and what is known of its call.
func (a *attempt) parkedOn() (idem.ParkOn, *idem.Evidence) {
	last := &idem.Evidence{At: a.h.o.Now(), Code: string(a.why.decision), Detail: a.why.cause}
	answer := &a.call.answer
	switch {
	case a.err != nil && !a.sent:
		last.Outcome = idem.NotExecuted
		return idem.ParkUnreachable, last
	case a.err != nil:
		last.Outcome = idem.Unknown
		return idem.ParkUnknown, last
	case !answer.Whole || a.route.Policy.Keep.Has(answer.Status) || a.holdFor(answer.Status) > 0:
		return "", nil
	}
	last.Status, last.Code, last.Detail = answer.Status, "upstream_status", ""
	if a.route.Policy.Unknown.Has(answer.Status) {
		last.Outcome = idem.Unknown
		return idem.ParkUnknown, last
	}
	last.Outcome = idem.Executed
	if idem.Retried(answer.Status) {
		return idem.ParkFailed, last
	}
	return "", nil
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
func (a *attempt) noteTry() {
	a.report.Outcome = idem.Executed
	if _, last := a.parkedOn(); last != nil {
		a.report.Outcome = last.Outcome
	}
}

// Try sends the request of a parked execution once, and ends x with what is known then. It implements idem.ParkWorkerOptions.Try.
func (h *Handler) Try(x *idem.Execution, value []byte) {
	d := parkedTry{h.pool.get(h)}
	d.accepted, d.execution = true, x
	defer d.finish()
	d.contained(func() *ending {
		if err := d.restore(value); err != nil {
			x.Release(idem.Failure{Code: "request_unavailable", Detail: err.Error()})
			return nil
		}
		if err := d.req.renew(d.route.Renewer, h.o.Now()); err != nil {
			x.GiveUp(idem.Failure{Code: "signature_not_renewed", Detail: err.Error()})
			return nil
		}
		end := d.execute()
		end.readAlone()
		return end
	})
}

// parkedTry is a delivery that is restored from the stored request, for one try.
type parkedTry struct{ *delivery }

// restore makes the delivery again as it came.
func (d parkedTry) restore(value []byte) error {
	x := d.execution
	lock := x.Lock()
	ctx, cancel := context.WithTimeout(x.Context(), d.h.o.Timeout)
	defer cancel()
	r, err := d.h.o.Requests.Fetch(ctx, lock.Execution, value)
	if err != nil {
		return err
	}
	if d.route = d.h.rules.Load().Table.named(lock.Route); d.route == nil {
		return errors.New("the route " + lock.Route + " is not configured here any more")
	}
	if bad := d.req.restore(r); bad != nil {
		return bad
	}
	d.memory.Hold(len(d.req.body))
	d.noteHead()
	d.names.Workflow, d.names.Key = lock.Scope.Workflow, lock.Scope.Key
	d.report.Route, d.report.Workflow, d.report.Key, d.report.TLS = d.route.Name, lock.Scope.Workflow, lock.Scope.Key.Short(), r.TLS
	d.report.EventID, d.report.Labels = lock.EventID, lock.Labels
	d.noteStale(lock.Stale)
	d.report.Keyed, d.report.Locks = d.route.Policy.Idempotency, d.route.Policy.Strategy != idem.NoLock
	d.beginTry(idem.ParseTrace([]byte(r.TraceParent)))
	return nil
}

// beginTry begins the trace of a try, which is linked to the one in which the delivery was accepted.
func (d parkedTry) beginTry(accepted idem.TraceContext) {
	d.trace = accepted
	d.report.TraceID, d.report.Execution = accepted.TraceID(), d.execution.Lock().Execution
	if d.h.o.Tracer == nil {
		return
	}
	if t := d.h.o.Tracer.Try(&d.report, accepted); t != nil {
		d.report.Trace, d.report.SpanID = t, t.TraceParent().SpanID()
	}
}

// named returns the route of that name, or of that former name; nil if there is none.
func (t *Table) named(name string) *Route {
	for _, r := range t.Routes {
		if r.Name == name || slices.Contains(r.Former, name) {
			return r
		}
	}
	return nil
}

// Policy returns the policy of the route of that name, or nil without one. A route that observes runs what it has accepted before. It
// implements idem.ParkWorkerOptions.Policy.
func (h *Handler) Policy(route string) *idem.Policy {
	if r := h.rules.Load().Table.named(route); r != nil {
		return &r.Policy
	}
	return nil
}

// Wait waits for the calls that go on after their senders were answered, at most until ctx ends.
func (h *Handler) Wait(ctx context.Context) error {
	over := make(chan struct{})
	go func() { defer close(over); h.calls.Wait() }()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// writeParked answers a delivery that is accepted, with the status that its sender expects.
func (r *refusal) writeParked(ctx *fasthttp.RequestCtx) {
	own(ctx)
	ctx.Response.SetStatusCode(r.status)
	if r.status == fasthttp.StatusNoContent {
		return
	}
	body, err := json.Marshal(struct {
		Status    string `json:"status"`
		Execution string `json:"executionId"`
		Workflow  string `json:"workflow"`
	}{r.code, string(r.execution), r.workflow})
	if err != nil {
		panic(err) // strings alone
	}
	ctx.Response.Header.SetContentType("application/json")
	ctx.Response.SetBodyRaw(body)
}

// parkedStatus returns the status for the sender of a parked delivery.
func (r *Route) parkedStatus() int {
	if p := r.Policy.Park; p != nil {
		return cmp.Or(p.Answer, fasthttp.StatusAccepted)
	}
	return fasthttp.StatusAccepted // it was parked when the route had park
}
