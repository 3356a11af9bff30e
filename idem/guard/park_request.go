package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hooklock/idem"
)

// ParkLimits bound what is parked over all processes, as far as each knows of the others.
type ParkLimits struct {
	Events int   // parked executions
	Bytes  int64 // the bytes of their stored requests together
}

// MayPark reports whether a delivery may be parked for that reason now; under Observe, whether it
// might be.
func (g *Guard) MayPark(r *idem.Request, on idem.ParkOn) bool {
	p := r.Policy.Park
	switch {
	case p == nil || r.Parking == nil || !p.Has(on), p.MaxBytes > 0 && r.Parking.Size > p.MaxBytes:
		return false
	case r.Policy.Observe:
		return true
	case g.options.Parks == nil:
		return false
	}
	now, most := g.options.Parks.Parked(r.Scope), g.options.ParkLimits()
	return now.Events < most.Events && now.Bytes+int64(r.Parking.Size) <= most.Bytes && now.InQueue < p.MaxWaiting
}

// parksAtOnce reports whether the route parks a delivery before anything is asked.
func (g *Guard) parksAtOnce(r *idem.Request) bool {
	p := r.Policy.Park
	return p != nil && r.Parking != nil && ((p.After == 0 || p.Delay > 0) && p.Locked || r.Parking.AtOnce) &&
		!r.Policy.Observe
}

// enqueueParked enqueues a delivery to be run without its sender. The verdict may be another one:
// its event was settled, or a duplicate waits or runs.
func (g *Guard) enqueueParked(r *idem.Request, first idem.Verdict, on idem.ParkOn) Admission {
	ctx, cancel := context.WithTimeout(g.options.Base, g.options.RequestTimeout)
	defer cancel()
	var unstored error // if the store took all the time there was, no other error says so
	keep := func(ctx context.Context, id idem.ExecutionID) (idem.StoredRequest, error) {
		kept, err := r.Parking.Store(ctx, id)
		if err != nil {
			unstored = fmt.Errorf("%w: %w", errNotStored, err)
			err = unstored
		}
		return kept, err
	}
	v, err := idem.Accept(ctx, g.options.Ledger, &waiter{guard: g, request: r, ctx: ctx, parks: on}, keep,
		idem.Verdict{Attempt: 1, Behind: first.Behind})
	if v.Decision == "" {
		a := unavailableAdmission(errors.Join(err, unstored, context.Cause(ctx)))
		a.Unsure = errors.Is(err, idem.ErrNotRecorded)
		return a
	}
	if v.Accepted {
		v.On = on
	}
	return Admission{Verdict: v, Err: err}
}

// errNotStored: the request store does not take this request, so the delivery is decided as if
// parking were off. The ledger was not asked.
var errNotStored = errors.New("the request could not be kept")

// parkEntry parks a delivery that waits in the queue, where it waits. ErrNotRecorded: it is not
// known whether it did.
func (g *Guard) parkEntry(r *idem.Request, e *idem.Waiting, on idem.ParkOn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.options.Base), g.options.RequestTimeout)
	defer cancel()
	kept, err := r.Parking.Store(ctx, e.Lock.Execution)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotStored, err)
	}
	return e.Park(ctx, idem.Parked{Since: g.options.Now(), On: on, Kept: &kept})
}

// errMayNotBeParked: nothing may be, of its route or its size, or there is no room for it now.
var errMayNotBeParked = errors.New("it may not be parked now")

// Park accepts the event while its call goes on, so that the execution outlives its sender. ctx
// bounds the storing of the request, but not the call of the ledger. After an error the execution
// is unchanged, and its sender waits on.
func (x *Execution) Park(ctx context.Context) error {
	if !x.guard.MayPark(x.request, idem.ParkSlow) {
		return errMayNotBeParked
	}
	return x.parkRequest(ctx, idem.ParkSlow, nil)
}

// isStorable reports whether the event may be accepted for that reason, instead of telling its
// sender how its call ended.
func (x *Execution) isStorable(on idem.ParkOn, t *Tried) bool {
	if on == "" || t.ResponseBegun || x.request == nil || !x.guard.MayPark(x.request, on) {
		return false
	}
	cause := context.Cause(x.ctx) // it may have been cancelled, or belong to another process
	return cause == nil || errors.Is(cause, ErrShutdown) || errors.Is(cause, ErrMaxDuration)
}

// parkAfterCall accepts the event of an execution whose call has ended. If it is not Parked, what
// follows its call is still to be written down.
func (x *Execution) parkAfterCall(on idem.ParkOn, t *Tried) Ending {
	if x.policy.Observe {
		return Ending{WouldPark: true}
	}
	if err := x.parkRequest(context.WithoutCancel(x.ctx), on, t.Evidence(x.policy, x.guard.options.Now())); err != nil {
		return Ending{Unsure: errors.Is(err, idem.ErrNotRecorded), Err: err}
	}
	x.handBack(t)
	return Ending{Recorded: true, Parked: true, On: on}
}

// parkRequest makes it an accepted one. last is how its only try ended; nil: the try still goes on.
func (x *Execution) parkRequest(ctx context.Context, on idem.ParkOn, last *idem.Evidence) error {
	keeping, cancel := context.WithTimeout(ctx, x.guard.options.RequestTimeout) // as long as a disk takes
	kept, err := x.request.Parking.Store(keeping, x.Lock().Execution)
	cancel()
	if err == nil {
		err = context.Cause(ctx) // the stored request belongs to no execution, and is swept
	}
	if err != nil {
		return err
	}
	writing, cancel := x.requestContext()
	defer cancel()
	p := (&idem.Parked{Since: x.guard.options.Now(), On: on, Kept: &kept, Tries: 1}).AfterTry(last)
	// The park worker gets the end of this try at once, and writes down its answer and what follows
	// from an unknown outcome. Until then that is the outcome of a try that has not ended.
	p.Trying, p.Failed = last == nil || last.Outcome == idem.Unknown, nil
	if err := x.running.Park(writing, p); err != nil {
		return err
	}
	x.parked = true
	x.guard.live.replaceLock(x.spot, x.running.Lock())
	return nil
}

// Parked reports whether the response said that the event is accepted. The park worker then judges
// its end.
func (x *Execution) Parked() bool { return x.parked }

// handBack gives the end of a try to the worker of a parked execution. It returns false if it is
// not parked, or has ended.
func (x *Execution) handBack(t *Tried) bool {
	if !x.parked || !x.markEnded() {
		return false
	}
	x.deadline()
	x.stop(nil)
	if x.result = *t; x.request != nil { // no worker runs it yet
		x.guard.worker.TakeOver(&ParkedExecution{x.running, x.guard, x.spot}, *t)
	}
	return true
}

// markEnded returns true to the first caller that ends the execution.
func (x *Execution) markEnded() bool {
	first := !x.ended
	x.ended = true
	return first
}

// BusyFor returns for how long other work leaves the service to deliveries whose senders wait:
// until a second after the last one; 0 if none comes.
func (g *Guard) BusyFor() time.Duration {
	since := time.Duration(g.options.Now().UnixNano() - g.lively.Load())
	return max(time.Second-since.Abs(), 0)
}

// Drain parks the deliveries that wait, if they may be parked, so that they are not refused when
// the process ends.
func (g *Guard) Drain() { g.drain(errDraining) }

var errDraining = errors.New("the process is about to end")
